package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
)

// warehousePath returns the path of the warehouse named in a command, followed by the given
// segments.
func warehousePath(segments ...string) path {
	return func(c cli.Config) (string, url.Values) {
		return client.Path(append([]string{"warehouses", c.Operand}, segments...)...), nil
	}
}

func newWarehouse(c cli.Config) (any, error) {
	secret, err := readSecretFile(c.SecretFile)
	return client.WarehouseSpec{
		Name: c.Operand, Location: c.Location, AllowedLocations: c.AllowLocations, Properties: c.Properties,
		Delegation: c.Delegation, Secret: secret, Storage: c.StorageOptions,
	}, err
}

func printCreatedWarehouse(out io.Writer, _ cli.Config, made client.Warehouse) error {
	_, err := fmt.Fprintf(out, "created warehouse %s at %s\n", made.Name, made.Location)
	return err
}

func listWarehouses(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		table := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		warehouses := client.Request{Method: http.MethodGet, Path: client.Path("warehouses")}
		err := client.Pages(ctx, server, warehouses, func(page client.WarehousesPage) bool {
			for _, w := range page.Warehouses {
				fmt.Fprintf(table, "%s\t%s\n", w.Name, w.Location)
			}
			return true
		})
		return errors.Join(err, table.Flush())
	})
}

// printWarehouse prints everything about a warehouse.
func printWarehouse(out io.Writer, _ cli.Config, w client.Warehouse) error {
	fmt.Fprintf(out, "%s at %s\n", w.Name, w.Location)
	for _, location := range w.AllowedLocations {
		fmt.Fprintf(out, "  allowed: %s\n", location)
	}
	if len(w.Delegation) == 0 {
		fmt.Fprintln(out, "  engines bring their own credentials of the storage")
	} else {
		fmt.Fprintf(out, "  offers engines: %s\n", orNothing(w.Delegation))
	}
	if w.Health != nil {
		printHealth(out, *w.Health)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Storage)) {
		fmt.Fprintf(out, "  storage option %s=%s\n", name, moorage.OneLine(w.Storage[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Properties)) {
		fmt.Fprintf(out, "  property %s=%s\n", name, moorage.OneLine(w.Properties[name]))
	}
	if waiting := w.WaitingPurges; waiting.Tables > 0 {
		fmt.Fprintf(out, "  purges that wait: %s with %s; see moorage doctor\n",
			moorage.Counted(waiting.Tables, "dropped table"), moorage.SizeOf(uint64(waiting.Bytes)))
	}
	if w.Secret != nil {
		fmt.Fprintf(out, "  secret: %s, set %s by %s\n", w.Secret.Kind, w.Secret.Set.Format(time.RFC3339), w.Secret.By)
	}
	return nil
}

// printHealth prints a node's view of a storage.
func printHealth(out io.Writer, seen client.StorageHealth) {
	for _, failure := range seen.Failing {
		fmt.Fprintf(out, "  its storage FAILS: %s since %s, last at %s\n    %s\n", failure.Calls,
			failure.Since.Format(time.RFC3339), failure.Last.Format(time.RFC3339), moorage.OneLine(failure.Error))
	}
	if seen.FreeBytes != nil {
		fmt.Fprintf(out, "  free on its disk: %s\n", moorage.SizeOf(*seen.FreeBytes))
	}
}

func warehouseChange(c cli.Config) (any, error) {
	change := client.WarehouseChange{
		Storage: edits(c.StorageOptions, c.RemovedOptions), Properties: edits(c.Properties, c.RemovedProperties),
		AllowLocations: c.AllowLocations, RemoveLocations: c.RemovedLocations,
	}
	if c.Delegation != nil {
		offers := slices.DeleteFunc(slices.Clone(c.Delegation), func(way string) bool {
			return way == cli.DelegationNone
		})
		change.Delegation = &offers
	}
	if c.SecretFile != "" || c.NoSecret {
		secret, err := readSecretFile(c.SecretFile)
		if err != nil {
			return nil, err
		}
		change.Secret = &secret
	}
	return change, nil
}

// edits returns the change that sets values and removes the names in removed.
func edits(values map[string]string, removed []string) map[string]*string {
	all := make(map[string]*string, len(values)+len(removed))
	for _, name := range removed {
		all[name] = nil
	}
	for name, value := range values {
		all[name] = &value
	}
	return all
}

func printDroppedWarehouse(out io.Writer, c cli.Config, _ client.Done) error {
	_, err := fmt.Fprintf(out, "dropped warehouse %s\n", c.Operand)
	return err
}

// printValidation prints the tests of a storage. The exit code is cli.ExitNo if a test failed.
func printValidation(out io.Writer, c cli.Config, found client.WarehouseValidation) error {
	for _, trial := range found.Trials {
		result := "passed"
		if !trial.Passed {
			result = "FAILED: " + moorage.OneLine(trial.Failure)
		}
		fmt.Fprintf(out, "%s: %s\n", trial.Name, result)
	}
	for _, feature := range found.Features {
		fmt.Fprintf(out, "%s: %s\n", feature.Name, moorage.OneLine(feature.Value))
	}
	if len(found.Stopped) > 0 {
		fmt.Fprintf(out, "the warehouse no longer offers %s\n", strings.Join(found.Stopped, ", "))
	}
	if !found.Passed {
		return cli.No("the storage of the warehouse %s does not do all that it has to", c.Operand)
	}
	return nil
}

// printTombstones prints the former locations of dropped tables and views.
func printTombstones(out io.Writer, page client.TombstonesPage) {
	for _, left := range page.Tombstones {
		fmt.Fprintf(out, "%s: %s\n", left.Location, describeTombstone(left))
	}
}

// describeTombstone returns one line about a tombstone.
func describeTombstone(left client.Tombstone) string {
	text := fmt.Sprintf("%s until %s, by %s", left.Table, left.Ended.Format(time.RFC3339), left.How)
	if left.ReachableUntil != nil {
		text += ", credentials until " + left.ReachableUntil.Format(time.RFC3339)
	}
	if !left.Lasting {
		text += ", ends by itself"
	}
	return text
}

func tombstoneBody(c cli.Config) (any, error) {
	return client.TombstoneClear{Location: c.Location}, nil
}

func printCleared(out io.Writer, _ cli.Config, left client.Tombstone) error {
	_, err := fmt.Fprintf(out, "cleared %s: %s\n", left.Location, describeTombstone(left))
	return err
}
