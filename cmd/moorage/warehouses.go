package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
)

// warehouseKeepers manages warehouses: a catalog of this process, or a running server.
type warehouseKeepers interface {
	Warehouses(ctx context.Context, page client.Page) ([]client.WarehouseSummary, string, error)
	LoadWarehouse(ctx context.Context, name string) (client.Warehouse, error)
	CreateWarehouse(ctx context.Context, spec client.WarehouseSpec) (client.Warehouse, error)
	ChangeWarehouse(ctx context.Context, name string, change client.WarehouseChange) (client.Warehouse, error)
	DropWarehouse(ctx context.Context, name string) error
	ValidateWarehouse(ctx context.Context, name string) (client.WarehouseValidation, error)
	Tombstones(ctx context.Context, name string, page client.Page) ([]client.Tombstone, string, error)
	ClearTombstone(ctx context.Context, name string, asked client.TombstoneClear) (client.Tombstone, error)
	RotateSecrets(ctx context.Context, rotation client.SecretsRotation) (client.SecretsRotated, error)
}

// keepWarehouses runs do on the server at c.URI, or on the store.
func keepWarehouses(ctx context.Context, c cli.Config, env cli.Environment, do func(warehouseKeepers) error) error {
	if c.URI != "" {
		return do(client.KeeperOf(serverOf(c)))
	}
	return orAsk(withStopped(ctx, c, env, func(node *node) error {
		return do(keeperOf(node.catalog, node.storages.sealer, nil, moorage.System(whoOpened)))
	}))
}

func createWarehouse(ctx context.Context, c cli.Config, env cli.Environment) error {
	secret, err := readSecretFile(c.SecretFile)
	if err != nil {
		return err
	}
	spec := client.WarehouseSpec{
		Name: c.Operand, Location: c.Location, AllowedLocations: c.AllowLocations, Properties: c.Properties,
		Delegation: c.Delegation, Secret: secret, Storage: c.StorageOptions,
	}
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		made, err := k.CreateWarehouse(ctx, spec)
		if err == nil {
			fmt.Fprintf(env.Stdout, "created warehouse %s at %s\n", made.Name, made.Location)
		}
		return err
	})
}

func listWarehouses(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		table := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		err := eachPage(ctx, k.Warehouses, func(w client.WarehouseSummary) {
			fmt.Fprintf(table, "%s\t%s\n", w.Name, w.Location)
		})
		return errors.Join(err, table.Flush())
	})
}

func showWarehouse(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		found, err := k.LoadWarehouse(ctx, c.Operand)
		if err == nil {
			printWarehouse(env.Stdout, found)
		}
		return err
	})
}

// printWarehouse prints all about a warehouse.
func printWarehouse(out io.Writer, w client.Warehouse) {
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
		fmt.Fprintf(out, "  purges that wait: %s with %s; see moorage recover list\n",
			counted(waiting.Tables, "dropped table"), sizeOf(uint64(waiting.Bytes)))
	}
	if w.Secret != nil {
		fmt.Fprintf(out, "  secret: %s, set %s by %s\n", w.Secret.Kind, w.Secret.Set.Format(time.RFC3339), w.Secret.By)
	}
}

// printHealth prints a node's view of a storage.
func printHealth(out io.Writer, seen client.StorageHealth) {
	for _, failure := range seen.Failing {
		fmt.Fprintf(out, "  its storage FAILS: %s since %s, last at %s\n    %s\n", failure.Calls,
			failure.Since.Format(time.RFC3339), failure.Last.Format(time.RFC3339), moorage.OneLine(failure.Error))
	}
	if seen.FreeBytes != nil {
		fmt.Fprintf(out, "  free on its disk: %s\n", sizeOf(*seen.FreeBytes))
	}
}

func changeWarehouse(ctx context.Context, c cli.Config, env cli.Environment) error {
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
			return err
		}
		change.Secret = &secret
	}
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		changed, err := k.ChangeWarehouse(ctx, c.Operand, change)
		if err == nil {
			printWarehouse(env.Stdout, changed)
		}
		return err
	})
}

// edits returns the change that sets values and removes others.
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

func dropWarehouse(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		err := k.DropWarehouse(ctx, c.Operand)
		if err == nil {
			fmt.Fprintf(env.Stdout, "dropped warehouse %s\n", c.Operand)
		}
		return err
	})
}

func validateWarehouse(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		found, err := k.ValidateWarehouse(ctx, c.Operand)
		if err != nil {
			return err
		}
		for _, trial := range found.Trials {
			result := "passed"
			if !trial.Passed {
				result = "FAILED: " + moorage.OneLine(trial.Failure)
			}
			fmt.Fprintf(env.Stdout, "%s: %s\n", trial.Name, result)
		}
		for _, feature := range found.Features {
			fmt.Fprintf(env.Stdout, "%s: %s\n", feature.Name, moorage.OneLine(feature.Value))
		}
		if len(found.Stopped) > 0 {
			fmt.Fprintf(env.Stdout, "the warehouse no longer offers %s\n", strings.Join(found.Stopped, ", "))
		}
		if !found.Passed {
			return fmt.Errorf("the storage of the warehouse %s does not do all that it has to", c.Operand)
		}
		return nil
	})
}

// listTombstones prints the former locations of dropped tables and views.
func listTombstones(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		for page := (client.Page{Limit: 1000}); ; {
			found, next, err := k.Tombstones(ctx, c.Operand, page)
			if err != nil {
				return err
			}
			for _, left := range found {
				fmt.Fprintf(env.Stdout, "%s: %s\n", left.Location, tellTombstone(left))
			}
			if page.After = next; next == "" {
				return nil
			}
		}
	})
}

// tellTombstone describes a tombstone.
func tellTombstone(left client.Tombstone) string {
	text := fmt.Sprintf("%s until %s, by %s", left.Table, left.Ended.Format(time.RFC3339), left.How)
	if left.ReachableUntil != nil {
		text += ", credentials until " + left.ReachableUntil.Format(time.RFC3339)
	}
	if !left.Lasting {
		text += ", ends by itself"
	}
	return text
}

// clearTombstone removes a tombstone.
func clearTombstone(ctx context.Context, c cli.Config, env cli.Environment) error {
	return keepWarehouses(ctx, c, env, func(k warehouseKeepers) error {
		left, err := k.ClearTombstone(ctx, c.Operand, client.TombstoneClear{Location: c.Location})
		if err == nil {
			fmt.Fprintf(env.Stdout, "cleared %s: %s\n", left.Location, tellTombstone(left))
		}
		return err
	})
}
