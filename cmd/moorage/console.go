package main

import (
	"strings"

	"moorage/console"
	"moorage/internal/cli"
)

// hasConsole reports whether the server has the console. A server that only does maintenance has
// none, because it lacks the operations on tables.
func hasConsole(c cli.Config) bool { return c.Console && c.Maintenance != cli.MaintenanceOnly }

// homePath returns where a browser at the root goes: to the console, if there is one.
func homePath(c cli.Config) string {
	if hasConsole(c) {
		return console.Root
	}
	return ""
}

// consoleConfig returns what the console needs.
func (n *node) consoleConfig() console.Config {
	return console.Config{
		Version: version(), Authenticates: n.config.Authenticates(), Recipes: n.recipes,
	}
}

// recipes returns the lines with which each engine reads a table.
func (n *node) recipes(reach console.Reach) (made []console.Recipe) {
	to := connection{
		uri: reach.URI, warehouse: reach.Warehouse, as: catalogName, scheme: schemeOf(reach.Location),
		who: shownTo(n.config), table: reach.Table,
	}
	for _, each := range engines() {
		title, note, _ := strings.Cut(each.title(to), ", ")
		made = append(made, console.Recipe{Title: title, Note: note, Lines: each.lines(to)})
	}
	return made
}
