package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// principalPath returns the path of the principal named in a command, followed by the given
// segments.
func principalPath(c cli.Config, segments ...string) string {
	return client.Path(append([]string{"principals", c.Access.Principal}, segments...)...)
}

// keyPath returns the path of the key named in a command, followed by the given segments.
func keyPath(segments ...string) path {
	return func(c cli.Config) (string, url.Values) {
		return principalPath(c, append([]string{"keys", c.Access.Key}, segments...)...), nil
	}
}

// withdrawWait is the timeout for withdrawing a key that could not be printed.
const withdrawWait = 10 * time.Second

func createKey(ctx context.Context, c cli.Config, env cli.Environment) error {
	open := openStopped
	if c.Admin { // this may be the first command on a new store
		open = openNode
	}
	return withStore(ctx, c, env, open, func(server *client.Client) error {
		if c.Admin {
			// Enable access control first: without it every key has all privileges.
			if err := server.Do(ctx, enabling(), new(client.Access)); err != nil {
				return err
			}
		}
		var made client.MadeKey
		spec := client.KeySpec{Description: c.Description, Roles: c.Roles, Ends: time.Now().Add(c.Expires)}
		create := client.Request{Method: http.MethodPost, Path: principalPath(c, "keys"), Body: spec}
		err := server.Do(ctx, create, &made)
		if err != nil {
			return err
		}
		if c.Admin {
			grant := client.GrantChange{
				Change: client.ChangeGrant, Grantee: made.Principal, Privileges: []string{"admin", "operate", "audit"},
			}
			err := server.Do(ctx, client.Request{
				Method: http.MethodPost, Path: client.Path("grants"),
				Body: client.GrantChanges{Changes: []client.GrantChange{grant}},
			}, new(client.GrantsChanged))
			if err != nil {
				// The key could not be printed, so it must not stay valid, even if ctx has ended.
				within, stop := context.WithTimeout(context.WithoutCancel(ctx), withdrawWait)
				defer stop()
				withdraw := client.Request{Method: http.MethodDelete, Path: principalPath(c, "keys", made.ID)}
				return errors.Join(err, server.Do(within, withdraw, new(client.Done)))
			}
		}
		return printKey(env.Stdout, c, made)
	})
}

// printKey prints a new key. The key alone is the last line, for scripts.
func printKey(out io.Writer, _ cli.Config, made client.MadeKey) error {
	_, err := fmt.Fprintf(out, "key %s of %s, valid until %s; it is not shown again:\n%s\n",
		made.ID, made.Principal, made.Ends.Format(time.RFC3339), made.Secret)
	return err
}

func rotatedKeyBody(c cli.Config) (any, error) {
	return client.KeySpec{Ends: time.Now().Add(c.Expires), GraceSeconds: int64(c.Grace / time.Second)}, nil
}

// listedKey is an API key with its principal.
type listedKey struct {
	client.Key
	principal string
	disabled  bool
}

// keysOf returns all API keys, ordered by the time at which they end.
func keysOf(ctx context.Context, server *client.Client) (keys []listedKey, err error) {
	principals := client.Request{Method: http.MethodGet, Path: client.Path("principals")}
	err = client.Pages(ctx, server, principals, func(page client.PrincipalsPage) bool {
		for _, p := range page.Principals {
			for _, key := range p.Keys {
				keys = append(keys, listedKey{key, p.Name, p.Disabled})
			}
		}
		return true
	})
	slices.SortStableFunc(keys, func(a, b listedKey) int { return a.Ends.Compare(b.Ends) })
	return keys, err
}

func listKeys(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		keys, err := keysOf(ctx, server)
		if err != nil {
			return err
		}
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
		return table.Flush()
	})
}

// endsIn marks a key that ends soon, or has ended.
func endsIn(left time.Duration) string {
	switch {
	case left <= 0:
		return "ENDED"
	case left <= keyWarnBefore:
		return "in " + moorage.Counted(int(left/(24*time.Hour)), "day")
	}
	return ""
}

func withdrawKey(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		if c.Sessions {
			asked := client.Request{Method: http.MethodPost, Path: client.Path("sessions", "end")}
			if err := server.Do(ctx, asked, new(client.Done)); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, "ended all sessions of the console; keys and tokens stay valid")
			return nil
		}
		key, _ := keyPath()(c)
		if err := server.Do(ctx, client.Request{Method: http.MethodDelete, Path: key}, new(client.Done)); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "withdrew key %s of %s\n", c.Access.Key, c.Access.Principal)
		keys, err := keysOf(ctx, server)
		if err != nil { // the key is withdrawn even if the caller may not see the other keys
			fmt.Fprintln(env.Stdout,
				"Keys that were created with it stay valid. An administrator sees them in moorage key list.")
			return nil
		}
		printDescendants(env.Stdout, keys, c.Access.Key)
		return nil
	})
}

// printDescendants prints how to withdraw the keys that were created with a key, directly or
// indirectly.
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
	fmt.Fprintln(out, "These keys were created with it, and stay valid. To end them:")
	for _, key := range keys {
		if made[key.ID] && key.ID != id {
			name := strings.TrimPrefix(key.principal, "key:")
			fmt.Fprintf(out, "  moorage key withdraw %s %s\n", moorage.ShellWord(name), key.ID)
		}
	}
}

// rolePath returns the path of the role named in a command, followed by the given segments.
func rolePath(segments ...string) path {
	return func(c cli.Config) (string, url.Values) {
		return client.Path(append([]string{"roles", c.Access.Role}, segments...)...), nil
	}
}

func printRoles(out io.Writer, page client.RolesPage) {
	for _, role := range page.Roles {
		_ = printRole(out, cli.Config{}, role)
	}
}

func printRole(out io.Writer, _ cli.Config, role client.Role) error {
	_, err := fmt.Fprintf(out, "%s: %s\n", role.Name, strings.Join(role.Members, ", "))
	return err
}

func createRole(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		at, _ := rolePath()(c)
		role := client.Role{Name: c.Access.Role, Members: []string{}}
		err := server.Do(ctx, client.Request{Method: http.MethodGet, Path: at}, &role)
		if answered, ok := errors.AsType[*client.Error](err); ok && answered.IsMissing() {
			err = nil
		}
		if err != nil {
			return err
		}
		if c.Description != "" {
			role.Description = c.Description
		}
		if err := server.Do(ctx, client.Request{Method: http.MethodPut, Path: at, Body: role}, &role); err != nil {
			return err
		}
		return printRole(env.Stdout, c, role)
	})
}

func printDroppedRole(out io.Writer, c cli.Config, _ client.Done) error {
	_, err := fmt.Fprintf(out, "dropped role %s\n", c.Access.Role)
	return err
}

func addedMembers(c cli.Config) (any, error) { return client.MembersChange{Add: c.Access.Members}, nil }

func removedMembers(c cli.Config) (any, error) {
	return client.MembersChange{Remove: c.Access.Members}, nil
}

// grantBody returns a function for the request body of the commands grant and revoke.
func grantBody(change string) func(cli.Config) (any, error) {
	return func(c cli.Config) (any, error) {
		return client.GrantChanges{Changes: []client.GrantChange{{
			Change: change, Object: c.Access.Object, Grantee: c.Access.Grantee, Privileges: c.Access.Privileges,
		}}}, nil
	}
}

func printGranted(out io.Writer, c cli.Config, changed client.GrantsChanged) error {
	fmt.Fprintf(out, "granted %s on %s to %s\n", strings.Join(c.Access.Privileges, ", "), c.Access.Object,
		c.Access.Grantee)
	return printUnknown(out, changed)
}

func printRevoked(out io.Writer, c cli.Config, changed client.GrantsChanged) error {
	fmt.Fprintf(out, "revoked %s on %s from %s\n", strings.Join(c.Access.Privileges, ", "), c.Access.Object,
		c.Access.Grantee)
	return printUnknown(out, changed)
}

// printUnknown prints the grantees that have no record.
func printUnknown(out io.Writer, changed client.GrantsChanged) error {
	for _, grantee := range changed.UnknownGrantees {
		fmt.Fprintf(out, "%s is unknown: no principal or role of that name has a record. Check the name.", grantee)
		if !strings.ContainsAny(grantee, ":/") {
			fmt.Fprintf(out, " The principal of the API key %s is key:%s.", grantee, grantee)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// grantsPath returns the path of the grants on an object, or to a grantee.
func grantsPath(c cli.Config) (string, url.Values) {
	if c.Access.Grantee != "" {
		return client.Path("grants"), url.Values{"grantee": {c.Access.Grantee}}
	}
	return client.Path("grants"), c.Access.Object.Query()
}

func printGrants(out io.Writer, page client.GrantsPage) {
	for _, found := range page.Grants {
		fmt.Fprintln(out, found.Object)
		if found.Owner != "" {
			fmt.Fprintf(out, "  owner: %s\n", found.Owner)
		}
		if found.Managed {
			fmt.Fprintln(out, "  managed: the owners of the objects in it cannot grant privileges")
		}
		for _, each := range found.Grants {
			fmt.Fprintf(out, "  %s: %s (by %s, %s)\n", each.Grantee, strings.Join(each.Privileges, ", "), each.By,
				each.At.Format(time.RFC3339))
		}
	}
}

func ownerBody(c cli.Config) (any, error) {
	return client.Owner{Object: c.Access.Object, Owner: c.Access.Grantee}, nil
}

func printOwner(out io.Writer, c cli.Config, _ client.Owner) error {
	_, err := fmt.Fprintf(out, "%s belongs to %s\n", c.Access.Object, c.Access.Grantee)
	return err
}

// question returns the request body of the command explain.
func question(c cli.Config) (any, error) {
	asked := client.Question{
		Operation: c.Access.Operation, Privileges: c.Access.Privileges, Object: c.Access.Object,
		Through: c.Access.Through, Engine: c.Access.Engine,
	}
	switch {
	case c.Access.Grantee != "":
		asked.Caller = &client.Subject{Name: c.Access.Grantee}
	case c.URI == "":
		return nil, errors.New("explain needs for PRINCIPAL, or --uri: a command on the store itself may do everything")
	}
	return asked, nil
}

func printExplanation(out io.Writer, _ cli.Config, why client.Explanation) error {
	for _, view := range why.Through {
		fmt.Fprintf(out, "%s: through view %s%s%s\n", view.Decision, view.View, withRightsOf(view.As),
			lacking(view.Missing))
	}
	if why.Ignored {
		fmt.Fprintln(out, "the views do not count: the engine lacks delegate on the warehouse")
	}
	fmt.Fprintf(out, "%s: asked for %s, has %s%s\n", why.Decision, orNothing(why.Asked), orNothing(why.Has),
		withRightsOf(why.As))
	for _, step := range why.Steps {
		fmt.Fprintf(out, "  %s %s\n", step.Kind, step.Name)
		if step.Owner != "" {
			fmt.Fprintf(out, "    owner: %s\n", step.Owner)
		}
		for _, each := range step.Grants {
			via := ""
			if len(each.Via) > 0 {
				via = ", through " + strings.Join(each.Via, ", ")
			}
			fmt.Fprintf(out, "    %s to %s%s\n", strings.Join(each.Privileges, ", "), each.Grantee, via)
		}
	}
	if len(why.Missing) > 0 {
		fmt.Fprintf(out, "missing: %s; %s could grant that\n", strings.Join(why.Missing, ", "), orNobody(why.Grantors))
	}
	return nil
}

// withRightsOf returns a phrase that names the owner whose rights decided. It is empty if the
// caller's own rights decided.
func withRightsOf(owner string) string {
	if owner == "" {
		return ""
	}
	return ", with the rights of " + owner
}

func lacking(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ", without " + strings.Join(words, ", ")
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// enabling returns the request that switches access control on.
func enabling() client.Request {
	return client.Request{Method: http.MethodPost, Path: client.Path("access", "enable")}
}

// enableAccess switches access control on. It may be the first command on a new store.
func enableAccess(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withStore(ctx, c, env, openNode, func(server *client.Client) error {
		err := server.Do(ctx, enabling(), new(client.Access))
		if err == nil {
			fmt.Fprintln(env.Stdout, "access control is on: every operation needs a grant")
		}
		return err
	})
}

func printExport(out io.Writer, _ cli.Config, all client.Export) error { return printJSON(out, all) }
