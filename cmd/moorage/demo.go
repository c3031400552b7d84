package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/warehouses"
	"moorage/demo"
	"moorage/internal/cli"
	"moorage/internal/term"
)

// whoFills is the caller that makes the sample tables of the demo.
const whoFills = "demo"

// demoPorts is the number of ports that moorage demo tries before it gives up.
const demoPorts = 10

// runDemo runs a catalog with sample tables until ctx ends.
func runDemo(ctx context.Context, c cli.Config, env cli.Environment) error {
	server, err := cli.ServeDefaults()
	if err != nil {
		return err
	}
	server.Data, server.Listen, server.LogLevel = c.Data, c.Listen, slog.LevelWarn
	if !c.IsGiven("listen") {
		if server.Listen, err = freeAddress(ctx, c.Listen); err != nil {
			return err
		}
	}
	if err := checkListen(ctx, server); err != nil {
		return err // before the folder is made
	}
	if err := claimDemoFolder(server.Data); err != nil {
		return err
	}
	fill := func(ctx context.Context, n *node) error {
		bar := term.StartProgress(env.Stderr, env.Environ, "make the sample tables", 0)
		defer bar.End()
		return fillDemo(ctx, n)
	}
	greet := func(ctx context.Context, env cli.Environment, n *node, warehouse *warehouses.Warehouse, uri string) {
		greetDemo(ctx, env, n, warehouse, uri)
		if server.Console && !c.People.NoBrowser {
			openBrowser(ctx, env, uri+"/console")
		}
	}
	return runServer(ctx, server, env, opening{fill: fill, greet: greet})
}

// freeAddress returns the first of demoPorts addresses, from address on, at which no other process
// listens.
func freeAddress(ctx context.Context, address string) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	for port := first; port < first+demoPorts; port++ {
		candidate := net.JoinHostPort(host, strconv.Itoa(port))
		var config net.ListenConfig
		if listener, err := config.Listen(ctx, "tcp", candidate); err == nil {
			return candidate, listener.Close()
		}
	}
	return "", fmt.Errorf("the ports %d to %d are in use by other processes; choose another address with --listen",
		first, first+demoPorts-1)
}

// demoMark is the file that marks the data folder of a demo. It is the first file in the folder.
const demoMark = "moorage-demo.txt"

// claimDemoFolder makes the data folder of the demo. It refuses a folder with other content,
// without changing it.
func claimDemoFolder(folder string) error {
	mark := filepath.Join(folder, demoMark)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	content, err := os.ReadDir(folder)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("look into the data folder: %w", err)
	case len(content) > 0:
		return fmt.Errorf("%s is not empty, and no demo made it; choose another folder with --data", folder)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	const text = "moorage demo keeps its sample tables here. Delete the folder when you no longer need it.\n"
	if err := os.WriteFile(mark, []byte(text), 0o600); err != nil {
		return fmt.Errorf("mark the data folder: %w", err)
	}
	return nil
}

// fillDemo makes the sample tables.
func fillDemo(ctx context.Context, n *node) error {
	tables := n.catalog.As(moorage.System(whoFills))
	_, files, err := tables.Tables().WarehouseLocation(ctx, defaultWarehouse)
	if err != nil {
		return err
	}
	err = demo.Fill(ctx, demo.Config{Catalog: tables, Warehouse: defaultWarehouse, Storage: files, Now: time.Now})
	if err != nil {
		return fmt.Errorf("make the sample tables: %w", err)
	}
	return nil
}

// greetDemo prints what a newcomer can type, in lines of 80 columns.
func greetDemo(_ context.Context, env cli.Environment, n *node, warehouse *warehouses.Warehouse, uri string) {
	to := connection{uri: uri, warehouse: warehouse.Name, as: "demo", scheme: schemeOf(warehouse.Location)}
	fmt.Fprintf(env.Stdout, "Moorage demo at %s, data in %s. Ctrl-C ends it.\n", uri, n.config.Data)
	say := func(title string, lines ...string) {
		for _, line := range lines {
			fmt.Fprintf(env.Stdout, "%-9s%s\n", title, line)
			title = ""
		}
	}
	var statements []string
	for _, line := range to.duckDB() {
		statements = append(statements, wrapped(line)...)
	}
	count := fmt.Sprintf("SELECT count(*) FROM %s.%s.voyages;", to.as, demo.Namespace)
	say("DuckDB", append(statements, fmt.Sprintf("%-56s-- %d", count, demo.Rows))...)
	if uri != cli.DefaultURI {
		say("Shell", "export MOORAGE_URI="+uri)
	}
	say("Look", fmt.Sprintf("%-30s%s", "moorage show harbour.voyages", "moorage ls -l harbour"))
	say("Oops", fmt.Sprintf("%-30s%s", "moorage rm harbour.ports", "moorage history harbour.ports"),
		fmt.Sprintf("%-30s%s", "moorage undrop harbour.ports", "moorage rollback harbour.ships now~1"))
	var others []string
	for _, each := range engines() {
		if each.name != "duckdb" {
			others = append(others, each.name)
		}
	}
	say("More", "moorage connect "+strings.Join(others, " | "))
}

// wrappedColumns is the width of the demo's lines, without the titles before them.
const wrappedColumns = 71

// wrapped breaks a statement into lines, and indents all lines after the first.
func wrapped(statement string) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(statement) {
		if line != "" && len(line)+1+len(word) > wrappedColumns {
			lines, line = append(lines, line), " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
