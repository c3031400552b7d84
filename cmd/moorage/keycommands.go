package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
)

// listedKey is an API key with its principal.
type listedKey struct {
	client.Key
	principal string
	disabled  bool
}

// keysOf returns all API keys, the first to end first.
func keysOf(ctx context.Context, a administrators) (keys []listedKey, err error) {
	err = eachPage(ctx, a.Principals, func(p client.Principal) {
		for _, key := range p.Keys {
			keys = append(keys, listedKey{key, p.Name, p.Disabled})
		}
	})
	slices.SortStableFunc(keys, func(a, b listedKey) int { return a.Ends.Compare(b.Ends) })
	return keys, err
}

func listKeys(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		keys, err := keysOf(ctx, a)
		table := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "principal\tid\tends\tsoon\troles\tmade by\tdescription")
		for _, key := range keys {
			name := key.principal
			if key.disabled {
				name += " (disabled)"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, key.ID, key.Ends.Format(time.RFC3339),
				endsIn(time.Until(key.Ends)), strings.Join(key.Roles, ","), key.By, moorage.OneLine(key.Description))
		}
		return errors.Join(err, table.Flush())
	})
}

// endsIn marks a key that ends soon, or has ended.
func endsIn(left time.Duration) string {
	switch {
	case left <= 0:
		return "ENDED"
	case left <= keyWarnBefore:
		return "in " + counted(int(left/(24*time.Hour)), "day")
	}
	return ""
}

func withdrawKey(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		if err := a.WithdrawKey(ctx, c.Access.Principal, c.Access.Key); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "withdrew key %s of %s\n", c.Access.Key, c.Access.Principal)
		keys, err := keysOf(ctx, a)
		if err != nil { // the key is withdrawn even if its holder cannot be read
			fmt.Fprintln(env.Stdout,
				"Keys that its holder made stay good. An administrator sees them in moorage key list.")
			return nil
		}
		printDescendants(env.Stdout, keys, c.Access.Key)
		return nil
	})
}

// printDescendants prints how to withdraw the keys that were created, directly or not, with a key.
func printDescendants(out io.Writer, keys []listedKey, id string) {
	made := map[string]bool{id: true}
	for again := true; again; {
		again = false
		for _, key := range keys {
			if key.Parent != "" && made[key.Parent] && !made[key.ID] {
				made[key.ID], again = true, true
			}
		}
	}
	if len(made) == 1 {
		return
	}
	fmt.Fprintln(out, "These keys got a secret from its holder, and stay good. To end them:")
	for _, key := range keys {
		if made[key.ID] && key.ID != id {
			name := strings.TrimPrefix(key.principal, "key:")
			fmt.Fprintf(out, "  moorage key withdraw %s %s\n", name, key.ID)
		}
	}
}
