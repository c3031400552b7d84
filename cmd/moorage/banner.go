package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"moorage/catalog/warehouses"
	"moorage/internal/cli"
)

// printedURI returns the address for clients of a server that listens on addr. Its host is the host
// of --listen. If --listen means all addresses, its host is the first name of --host, or this
// machine's name if there is no --host.
func printedURI(c cli.Config, addr net.Addr, encrypted bool) string {
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return scheme + addr.String()
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); host == "" || ip != nil {
		host = tcp.IP.String()
	}
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
		if len(c.Hosts) > 0 {
			host = c.Hosts[0]
		}
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// writeBanner prints how each client connects to the server. The last line contains the address, so
// that it stays visible. config has the settings with which clients access the warehouse's files.
func writeBanner(out io.Writer, uri string, warehouse warehouses.Warehouse, config map[string]string, who shown) {
	to := connection{
		uri: uri, warehouse: warehouse.Name, as: catalogName, scheme: schemeOf(warehouse.Location), config: config,
		who: who,
	}
	for _, each := range engines() {
		if each.isBanner {
			fmt.Fprintf(out, "%s\n  %s\n\n", each.title(to), strings.Join(each.lines(to), "\n  "))
		}
	}
	fmt.Fprintf(out, "Warehouse %s is at %s\nMoorage is ready at %s\n", warehouse.Name, warehouse.Location, uri)
}
