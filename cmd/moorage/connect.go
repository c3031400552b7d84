package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"moorage/identity"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// connectEngine is the command connect.
func connectEngine(ctx context.Context, c cli.Config, env cli.Environment) error {
	chosen := engines()
	if name := c.People.Engine; name != "" {
		chosen = chosen[:0:0]
		var names []string
		for _, each := range engines() {
			names = append(names, each.name)
			if each.name == name {
				chosen = append(chosen, each)
			}
		}
		if len(chosen) == 0 {
			return cli.Usage(fmt.Sprintf("there are no lines for %q, only for %s", name, strings.Join(names, ", ")))
		}
	}
	if c.URI == "" {
		return cli.Usage("engines connect to a server: name it with --uri")
	}
	server := serverOf(c)
	p := newPerson(c, env, server)
	to := connection{uri: c.URI, warehouse: p.warehouseOf(p.Name), as: catalogName, who: credentialOf(c.Token)}
	if len(p.Name.Levels) > 0 {
		found, err := p.find(ctx, p.Name, kindTable)
		if err != nil {
			return err
		}
		to.table, to.config = found.levels(), found.loaded.Config
		document, err := parseTable(found.loaded.Metadata)
		if err != nil {
			return err
		}
		to.scheme = schemeOf(document.Location)
	} else if err := p.readWarehouse(ctx, &to); err != nil {
		return err
	}
	var text strings.Builder
	for i, each := range chosen {
		if len(chosen) > 1 {
			if i > 0 {
				text.WriteString("\n")
			}
			fmt.Fprintf(&text, "# %s\n", each.title(to))
		}
		for _, line := range each.lines(to) {
			fmt.Fprintln(&text, term.Clean(line)) // a name must not start a new line
		}
	}
	if p.File == "" {
		_, err := io.WriteString(p.out, text.String())
		return err
	}
	return createFile(p.File, text.String())
}

// credentialOf returns the kind of a caller's credential.
func credentialOf(token string) shown {
	switch {
	case token == "":
		return shownNothing
	case identity.LooksLikeKey(token):
		return shownKey
	}
	return shownToken
}

// readWarehouse sets the facts about a warehouse that the templates need. The options of its
// storage are left out if the caller may not see them.
func (p *person) readWarehouse(ctx context.Context, to *connection) error {
	var all []string
	asked := client.Request{Method: http.MethodGet, Path: client.Path("warehouses")}
	err := client.Pages(ctx, p.server, asked, func(page client.WarehousesPage) bool {
		for _, w := range page.Warehouses {
			if all = append(all, w.Name); w.Name == to.warehouse {
				to.scheme = schemeOf(w.Location)
			}
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case to.scheme == "":
		return cli.No("Warehouse does not exist: %s. There are: %s", to.warehouse, strings.Join(all, ", "))
	}
	var whole client.Warehouse
	asked.Path = client.Path("warehouses", to.warehouse)
	if p.server.Do(ctx, asked, &whole) == nil {
		to.config = whole.Storage
	}
	return nil
}

// createFile creates a file with text. It fails if the file exists.
func createFile(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists, and is not overwritten", name)
	}
	if err != nil {
		return fmt.Errorf("write the lines: %w", err)
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}
