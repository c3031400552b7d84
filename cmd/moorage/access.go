package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management"
	"moorage/management/client"
	"moorage/registry/pebble"
)

// administrators manages access: a catalog of this process, or a running server.
type administrators interface {
	keyMakers
	roleMakers
	ChangeGrants(ctx context.Context, changes []client.GrantChange) (client.GrantsChanged, error)
	GrantsOn(ctx context.Context, object client.Object) (client.ObjectGrants, error)
	GrantsTo(ctx context.Context, grantee string, page client.Page) ([]client.ObjectGrants, string, error)
	SetOwner(ctx context.Context, owner client.Owner) error
	Explain(ctx context.Context, question client.Question) (client.Explanation, error)
	Export(ctx context.Context) (client.Export, error)
	LoadAccess(ctx context.Context) (client.Access, error)
	EnableAccess(ctx context.Context) error
}

type keyMakers interface {
	Principals(ctx context.Context, page client.Page) ([]client.Principal, string, error)
	CreateKey(ctx context.Context, principal string, spec client.KeySpec) (client.MadeKey, error)
	RotateKey(ctx context.Context, principal, id string, spec client.KeySpec) (client.MadeKey, error)
	WithdrawKey(ctx context.Context, principal, id string) error
}

type roleMakers interface {
	Roles(ctx context.Context, page client.Page) ([]client.Role, string, error)
	LoadRole(ctx context.Context, name string) (client.Role, error)
	PutRole(ctx context.Context, role client.Role) (client.Role, error)
	ChangeMembers(ctx context.Context, name string, change client.MembersChange) (client.Role, error)
	DeleteRole(ctx context.Context, name string) error
}

// administer runs do on the server at c.URI, or on the store.
func administer(ctx context.Context, c cli.Config, env cli.Environment, do func(administrators) error) error {
	if c.Admin { // key create --admin is the first command on a new store
		return administerOver(ctx, c, env, openNew, do)
	}
	return administerOver(ctx, c, env, openStopped, do)
}

// administerOver is administer with open to open the store.
func administerOver(ctx context.Context, c cli.Config, env cli.Environment,
	open func(context.Context, cli.Config, cli.Environment) (*node, error), do func(administrators) error) error {
	if c.URI != "" {
		return do(serverOf(c))
	}
	node, err := open(ctx, c, env)
	if err != nil {
		return orAsk(err)
	}
	err = do(management.Administrator{
		Access: node.catalog.As(moorage.System(whoOpened)).Grants(), Draw: drawKey, Now: time.Now,
	})
	return errors.Join(err, node.close())
}

// openNew opens a database, or the store of a stopped server, and creates the store if there is
// none.
func openNew(ctx context.Context, c cli.Config, env cli.Environment) (*node, error) {
	node, err := openNode(ctx, c, stoppedLogger(env))
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w: stop the server first", err)
	}
	return node, err
}

func createKey(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		if c.Admin {
			// Enable access control first: without it each key can do everything.
			if err := a.EnableAccess(ctx); err != nil {
				return err
			}
		}
		made, err := a.CreateKey(ctx, c.Access.Principal, client.KeySpec{
			Description: c.Description, Roles: c.Roles, Ends: time.Now().Add(c.Expires),
		})
		if err != nil {
			return err
		}
		if c.Admin {
			_, err = a.ChangeGrants(ctx, []client.GrantChange{{
				Change: client.ChangeGrant, Grantee: made.Principal, Privileges: administrating(),
			}})
			if err != nil {
				// No output contained the key, so it must not stay valid.
				return errors.Join(err, a.WithdrawKey(ctx, made.Principal, made.ID))
			}
		}
		printKey(env.Stdout, made)
		return nil
	})
}

// administrating are the privileges of key create --admin.
func administrating() []string { return []string{"admin", "operate", "audit"} }

// printKey prints a new key. The key alone is the last line, for scripts.
func printKey(out io.Writer, made client.MadeKey) {
	fmt.Fprintf(out, "key %s of %s, good until %s; it is not shown again:\n%s\n",
		made.ID, made.Principal, made.Ends.Format(time.RFC3339), made.Secret)
}

func rotateKey(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		made, err := a.RotateKey(ctx, c.Access.Principal, c.Access.Key, client.KeySpec{
			Ends: time.Now().Add(c.Expires), GraceSeconds: int64(c.Grace / time.Second),
		})
		if err == nil {
			printKey(env.Stdout, made)
		}
		return err
	})
}

func listRoles(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		return eachPage(ctx, a.Roles, func(role client.Role) { printRole(env.Stdout, role) })
	})
}

func printRole(out io.Writer, role client.Role) {
	fmt.Fprintf(out, "%s: %s\n", role.Name, strings.Join(role.Members, ", "))
}

func createRole(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		role, err := a.LoadRole(ctx, c.Access.Role)
		if isMissing(err) {
			role, err = client.Role{Name: c.Access.Role, Members: []string{}}, nil
		}
		if err != nil {
			return err
		}
		if c.Description != "" {
			role.Description = c.Description
		}
		if role, err = a.PutRole(ctx, role); err == nil {
			printRole(env.Stdout, role)
		}
		return err
	})
}

// isMissing reports whether err means that an object does not exist.
func isMissing(err error) bool {
	if answered, ok := errors.AsType[*client.Error](err); ok {
		return answered.Code == 404
	}
	return err != nil && moorage.KindOf(err) == moorage.KindNotFound
}

func dropRole(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		err := a.DeleteRole(ctx, c.Access.Role)
		if err == nil {
			fmt.Fprintf(env.Stdout, "dropped role %s\n", c.Access.Role)
		}
		return err
	})
}

func addMembers(ctx context.Context, c cli.Config, env cli.Environment) error {
	return changeMembers(ctx, c, env, client.MembersChange{Add: c.Access.Members})
}

func removeMembers(ctx context.Context, c cli.Config, env cli.Environment) error {
	return changeMembers(ctx, c, env, client.MembersChange{Remove: c.Access.Members})
}

func changeMembers(ctx context.Context, c cli.Config, env cli.Environment, change client.MembersChange) error {
	return administer(ctx, c, env, func(a administrators) error {
		role, err := a.ChangeMembers(ctx, c.Access.Role, change)
		if err == nil {
			printRole(env.Stdout, role)
		}
		return err
	})
}

func grant(ctx context.Context, c cli.Config, env cli.Environment) error {
	return changeGrants(ctx, c, env, client.ChangeGrant)
}

func revoke(ctx context.Context, c cli.Config, env cli.Environment) error {
	return changeGrants(ctx, c, env, client.ChangeRevoke)
}

func changeGrants(ctx context.Context, c cli.Config, env cli.Environment, change string) error {
	return administer(ctx, c, env, func(a administrators) error {
		changed, err := a.ChangeGrants(ctx, []client.GrantChange{{
			Change: change, Object: c.Access.Object, Grantee: c.Access.Grantee, Privileges: c.Access.Privileges,
		}})
		if err != nil {
			return err
		}
		verb, to := "granted", "to"
		if change == client.ChangeRevoke {
			verb, to = "revoked", "from"
		}
		fmt.Fprintf(env.Stdout, "%s %s on %s %s %s\n",
			verb, strings.Join(c.Access.Privileges, ", "), c.Access.Object, to, c.Access.Grantee)
		for _, grantee := range changed.UnknownGrantees {
			fmt.Fprintf(env.Stdout, "%s is unknown: nobody of that name has a record; is it a typing error?", grantee)
			if !strings.ContainsAny(grantee, ":/") {
				fmt.Fprintf(env.Stdout, " Who has the API key %s is called key:%s.", grantee, grantee)
			}
			fmt.Fprintln(env.Stdout)
		}
		return nil
	})
}

func showGrants(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		if c.Access.Grantee != "" {
			return eachPage(ctx, func(ctx context.Context, page client.Page) ([]client.ObjectGrants, string, error) {
				return a.GrantsTo(ctx, c.Access.Grantee, page)
			}, func(found client.ObjectGrants) { printGrants(env.Stdout, found) })
		}
		found, err := a.GrantsOn(ctx, c.Access.Object)
		if err == nil {
			printGrants(env.Stdout, found)
		}
		return err
	})
}

func printGrants(out io.Writer, found client.ObjectGrants) {
	fmt.Fprintln(out, found.Object)
	if found.Owner != "" {
		fmt.Fprintf(out, "  owner: %s\n", found.Owner)
	}
	if found.Managed {
		fmt.Fprintln(out, "  managed: owners of what is in it cannot grant")
	}
	for _, each := range found.Grants {
		fmt.Fprintf(out, "  %s: %s (by %s, %s)\n", each.Grantee, strings.Join(each.Privileges, ", "), each.By,
			each.At.Format(time.RFC3339))
	}
}

func handOver(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		err := a.SetOwner(ctx, client.Owner{Object: c.Access.Object, Owner: c.Access.Grantee})
		if err == nil {
			fmt.Fprintf(env.Stdout, "%s belongs to %s\n", c.Access.Object, c.Access.Grantee)
		}
		return err
	})
}

func explain(ctx context.Context, c cli.Config, env cli.Environment) error {
	question := client.Question{
		Operation: c.Access.Operation, Privileges: c.Access.Privileges, Object: c.Access.Object,
		Through: c.Access.Through, Engine: c.Access.Engine,
	}
	switch {
	case c.Access.Grantee != "":
		question.Caller = &client.Subject{Name: c.Access.Grantee}
	case c.URI == "":
		return errors.New("explain needs for PRINCIPAL, or --uri: who opens the store may do everything")
	}
	return administer(ctx, c, env, func(a administrators) error {
		why, err := a.Explain(ctx, question)
		if err == nil {
			printExplanation(env.Stdout, why)
		}
		return err
	})
}

func printExplanation(out io.Writer, why client.Explanation) {
	for _, view := range why.Through {
		fmt.Fprintf(out, "%s: through view %s%s%s\n", view.Decision, view.View, withRightsOf(view.As),
			lacking(view.Missing))
	}
	if why.Ignored {
		fmt.Fprintln(out, "the views are not heeded: who names them lacks delegate on the warehouse")
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
}

// withRightsOf names the owner whose rights decided, if not the caller's own.
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

func enableAccess(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administerOver(ctx, c, env, openNew, func(a administrators) error {
		err := a.EnableAccess(ctx)
		if err == nil {
			fmt.Fprintln(env.Stdout, "access is on: nobody may do anything without a grant")
		}
		return err
	})
}

func exportAccess(ctx context.Context, c cli.Config, env cli.Environment) error {
	return administer(ctx, c, env, func(a administrators) error {
		all, err := a.Export(ctx)
		if err != nil {
			return err
		}
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	})
}
