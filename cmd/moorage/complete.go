package main

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"moorage"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// versionsOffered is the number of versions of the form now~N that completion offers.
const versionsOffered = 5

// completeOperand returns completions for an operand of a command for people. It only calls a
// server, because opening a store would take too long.
func completeOperand(ctx context.Context, c cli.Config, kind cli.Operand, before []string, typed string) []string {
	if kind == cli.OperandEngine {
		var names []string
		for _, each := range engines() {
			names = append(names, each.name)
		}
		return names
	}
	if c.URI == "" {
		return nil
	}
	p := &person{PeopleWords: c.People, out: &term.Output{}, server: serverOf(c), uri: c.URI}
	if p.Warehouse == "" {
		p.Warehouse = defaultWarehouse
	}
	if kind == cli.OperandName {
		return p.namesFor(ctx, typed)
	}
	name, err := cli.ParseName(before[0])
	if err != nil {
		return nil
	}
	found, err := p.find(ctx, name, kindTable, kindView)
	if err != nil {
		return nil
	}
	document, err := parseTable(found.loaded.Metadata)
	if err != nil {
		return nil
	}
	words := slices.Sorted(maps.Keys(document.Refs))
	if kind == cli.OperandVersion {
		for n := range versionsOffered {
			words = append(words, "now~"+strconv.Itoa(n+1))
		}
	}
	return words
}

// namesFor returns the names that may complete typed: the contents of the namespace that typed
// names so far. A namespace gets a trailing dot, because the user may continue after it.
func (p *person) namesFor(ctx context.Context, typed string) (names []string) {
	cut := strings.LastIndexAny(typed, "./") + 1
	before := typed[:cut]
	warehouse, namespace := p.Warehouse, []string(nil)
	if parent := strings.TrimSuffix(before, "."); parent != "" {
		name, err := cli.ParseName(parent)
		if err != nil {
			return nil
		}
		warehouse, namespace = p.warehouseOf(name), name.Levels
	}
	query := url.Values{"pageSize": {"200"}}
	if len(namespace) > 0 {
		query.Set("parent", client.JoinLevels(namespace))
	}
	var spaces client.NamespacesPage
	if p.get(ctx, client.IcebergPath(warehouse, "namespaces"), query, &spaces) != nil {
		return nil
	}
	for _, each := range spaces.Namespaces {
		names = append(names, before+moorage.PersonLevels(each[len(each)-1:]...)+".")
	}
	if len(namespace) == 0 {
		return names
	}
	for _, list := range []string{"tables", "views"} {
		var page client.IdentifiersPage
		path := client.NamespacePath(warehouse, namespace) + "/" + list
		if p.get(ctx, path, url.Values{"pageSize": {"200"}}, &page) != nil {
			return names
		}
		for _, each := range page.Identifiers {
			names = append(names, before+moorage.PersonLevels(each.Name))
		}
	}
	return names
}
