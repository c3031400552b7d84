package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"moorage/catalog"
)

// stoppedText is said of every command that opens the store itself.
const stoppedText = " If the store is a folder, its server must be stopped.\n"

func warehouseCreateCommand() command {
	return command{
		name:    "warehouse create",
		operand: "NAME",
		summary: "add a warehouse",
		text: "Adds a warehouse, whose tables go below --location. Endpoint, region, path style and profile of S3 are kept with it, if they " +
			"are given, and win over those of the server; keys are not kept." + stoppedText,
		settings: append(nodeSettings(),
			setting{
				name: "location", value: "URI", flagOnly: true, required: true,
				usage: "Where the warehouse's tables go: file:///absolute/folder or s3://bucket/prefix.",
				set: func(c *config, v []string) error {
					c.Location = v[0]
					return checkLocation(v[0])
				},
			},
			allowLocation(true),
			setting{
				name: "property", value: "KEY=VALUE", list: true, flagOnly: true,
				usage: "Property of the warehouse. Every client that connects to it is told, and takes it for a default of its own settings: " +
					"table-default.write.format.default=orc, say. No secrets. May be given more than once.",
				set: func(c *config, values []string) error {
					c.Properties = make(map[string]string, len(values))
					for _, pair := range values {
						key, value, ok := strings.Cut(pair, "=")
						if !ok || key == "" {
							return fmt.Errorf("%q is not KEY=VALUE", pair)
						}
						c.Properties[key] = value
					}
					return nil
				},
			}),
		validate: validateS3,
		run: func(ctx context.Context, c config, env environment) error {
			return withStopped(ctx, c, env, func(node *node) error {
				spec := catalog.WarehouseSpec{
					Name: c.Operand, Location: c.Location, AllowedLocations: c.AllowLocations, Properties: c.Properties,
				}
				if slices.ContainsFunc(append(c.AllowLocations, c.Location), isInS3) {
					spec.Storage = c.s3Place()
				}
				made, err := node.catalog.CreateWarehouse(ctx, spec)
				if err != nil {
					return err
				}
				fmt.Fprintf(env.stdout, "created warehouse %s at %s\n", made.Name, made.Location)
				return nil
			})
		},
	}
}

func warehouseListCommand() command {
	return command{
		name:     "warehouse list",
		summary:  "list the warehouses",
		text:     "Prints every warehouse and its location, in the order of their names." + stoppedText,
		settings: nodeSettings(),
		validate: validateS3,
		run: func(ctx context.Context, c config, env environment) error {
			return withStopped(ctx, c, env, func(node *node) error {
				warehouses, err := node.catalog.Warehouses(ctx)
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
				for _, w := range warehouses {
					fmt.Fprintf(table, "%s\t%s\n", w.Name, w.Location)
				}
				return table.Flush()
			})
		},
	}
}

func warehouseDropCommand() command {
	return command{
		name:     "warehouse drop",
		operand:  "NAME",
		summary:  "remove an empty warehouse",
		text:     "Removes a warehouse that has no namespaces. Files below its location stay." + stoppedText,
		settings: nodeSettings(),
		validate: validateS3,
		run: func(ctx context.Context, c config, env environment) error {
			return withStopped(ctx, c, env, func(node *node) error {
				if err := node.catalog.DropWarehouse(ctx, c.Operand); err != nil {
					return err
				}
				fmt.Fprintf(env.stdout, "dropped warehouse %s\n", c.Operand)
				return nil
			})
		},
	}
}

// withStopped runs do on a database, or on the store of a server that is stopped.
func withStopped(ctx context.Context, c config, env environment, do func(*node) error) (err error) {
	node, err := openStopped(ctx, c, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	return do(node)
}
