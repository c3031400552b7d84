package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/verb"
	"moorage/ledger"
	"moorage/registry"
)

// roleAt is the record of a role, which need not exist.
type roleAt struct {
	name   string
	record registry.Record
	value  registry.Role
}

// readRole reads the record of a role.
func readRole(ctx context.Context, c *planner, name string) (r roleAt, err error) {
	if access.GranteeOf(name) != access.IsRole || name == access.Everyone {
		return r, moorage.Errorf(moorage.KindIllegalArgument, "%q cannot be the name of a role", name)
	}
	records, err := c.ledger.Get(ctx, registry.RoleKey(name))
	if err != nil {
		return r, err
	}
	r.name, r.record = name, records[0]
	if r.record.Exists() {
		r.value, err = ledger.Decode[registry.Role](r.record)
	} else {
		r.value.Created = c.now()
	}
	return r, err
}

// asCaller returns r as callers get it.
func (r roleAt) asCaller() Role {
	return Role{Name: r.name, Description: r.value.Description, Members: append([]string{}, r.value.Holders...)}
}

// put returns the edit that writes r, if r may be written by policy.
func (r roleAt) put(policy *access.Snapshot) (edit, error) {
	r.value.Holders = slices.Clone(r.value.Holders)
	slices.Sort(r.value.Holders)
	r.value.Holders = append([]string{}, slices.Compact(r.value.Holders)...)
	if err := policy.CheckRole(access.Role{Name: r.name, Members: r.value.Holders}); err != nil {
		return edit{}, err
	}
	key := registry.RoleKey(r.name)
	return edit{
		puts:  []ledger.Write{ledger.Put(key, registry.StateNone, r.value)},
		read:  []registry.Condition{asRead(r.record, key)},
		items: []registry.Item{policyItem(registry.ItemRole, r.name)},
	}, nil
}

// Roles returns the roles of the store, sorted by name. It needs admin.
func (a Access) Roles(ctx context.Context, page Page) (roles []Role, next string, err error) {
	const op = "catalog.Roles"
	asking, err := a.ask(ctx, verb.ListRoles)
	if err == nil {
		err = asking.onServer(ctx, access.Admin)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	roles = []Role{}
	records := a.catalog.planner.ledger
	err = records.Scan(ctx, registry.TableRole, "", page.After, func(record registry.Record) (bool, error) {
		if page.Limit > 0 && len(roles) == page.Limit {
			next = roles[len(roles)-1].Name
			return false, nil
		}
		value, err := ledger.Decode[registry.Role](record)
		roles = append(roles, roleAt{record.Key.ID, record, value}.asCaller())
		return true, err
	})
	return roles, next, moorage.Annotate(op, "", err)
}

// LoadRole returns a role. It needs admin. One that is not there is KindNotFound.
func (a Access) LoadRole(ctx context.Context, name string) (Role, error) {
	const op = "catalog.LoadRole"
	asking, err := a.ask(ctx, verb.LoadRole)
	if err == nil {
		err = asking.onServer(ctx, access.Admin)
	}
	if err != nil {
		return Role{}, moorage.Annotate(op, name, err)
	}
	r, err := readRole(ctx, a.catalog.planner, name)
	if err == nil && !r.record.Exists() {
		err = noSuch("Role", name)
	}
	return r.asCaller(), moorage.Annotate(op, name, err)
}

// PutRole makes or replaces a role. It needs admin.
func (a Access) PutRole(ctx context.Context, role Role) (made Role, err error) {
	err = a.changeRole(ctx, verb.PutRole, role.Name, &made, func(r *roleAt) error {
		r.value.Description, r.value.Holders = role.Description, role.Members
		return checkDescription(role.Description)
	})
	return made, moorage.Annotate("catalog.PutRole", role.Name, err)
}

// ChangeMembers adds members to a role and removes others. It needs admin. A role that is not there
// is KindNotFound.
func (a Access) ChangeMembers(ctx context.Context, name string, add, remove []string) (made Role, err error) {
	err = a.changeRole(ctx, verb.ChangeMembers, name, &made, func(r *roleAt) error {
		if !r.record.Exists() {
			return noSuch("Role", name)
		}
		kept := slices.DeleteFunc(slices.Clone(r.value.Holders),
			func(member string) bool { return slices.Contains(remove, member) })
		r.value.Holders = append(kept, add...)
		return nil
	})
	return made, moorage.Annotate("catalog.ChangeMembers", name, err)
}

// changeRole writes a role as do makes it, and sets made to that. It needs admin.
func (a Access) changeRole(ctx context.Context, v verb.Verb, name string, made *Role, do func(*roleAt) error) error {
	return a.change(ctx, v, func(ctx context.Context, a *asking) (edit, error) {
		if err := a.onServer(ctx, access.Admin); err != nil {
			return edit{}, err
		}
		r, err := readRole(ctx, a.catalog.planner, name)
		if err == nil {
			err = do(&r)
		}
		if err != nil {
			return edit{}, err
		}
		e, err := r.put(a.policy)
		if err == nil {
			r.value = e.puts[0].Value.(registry.Role)
			*made = r.asCaller()
		}
		return e, err
	})
}

// DeleteRole removes a role. What was granted to it stays granted, and holds for a role that gets
// the name. It needs admin. One that is not there is KindNotFound.
func (a Access) DeleteRole(ctx context.Context, name string) error {
	err := a.change(ctx, verb.DeleteRole, func(ctx context.Context, a *asking) (edit, error) {
		if err := a.onServer(ctx, access.Admin); err != nil {
			return edit{}, err
		}
		r, err := readRole(ctx, a.catalog.planner, name)
		switch {
		case err != nil:
			return edit{}, err
		case !r.record.Exists():
			return edit{}, noSuch("Role", name)
		}
		return edit{
			gone: []registry.Key{r.record.Key}, read: []registry.Condition{ledger.Unchanged(r.record)},
			items: []registry.Item{policyItem(registry.ItemRole, name)},
		}, nil
	})
	return moorage.Annotate("catalog.DeleteRole", name, err)
}
