package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"strings"
)

// homePage returns the page that a browser gets at the root. It describes this server, and how
// three engines connect to it.
func (n *node) homePage(ctx context.Context, uri string) []byte {
	to := connection{uri: uri, warehouse: defaultWarehouse, as: catalogName, who: shownTo(n.config)}
	if found, err := n.first.find(ctx); err == nil && found != nil {
		to.scheme = schemeOf(found.Location)
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, "<!doctype html><html lang=en><meta charset=utf-8><title>Moorage</title>\n"+
		"<h1>Moorage</h1>\n<p>An Apache Iceberg catalog, %s.\n<p>Its base URI is <code>%s</code>.\n",
		html.EscapeString(version()), html.EscapeString(uri))
	for _, each := range engines() {
		switch each.name {
		case "pyiceberg", "duckdb", "curl":
			fmt.Fprintf(&page, "<h2>%s</h2>\n<pre>%s</pre>\n", html.EscapeString(each.title(to)),
				html.EscapeString(strings.Join(each.lines(to), "\n")))
		}
	}
	page.WriteString("<p>For other engines: <code>moorage connect</code>.\n")
	return page.Bytes()
}
