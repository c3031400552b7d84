package grants

import (
	"context"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Role is a role of the store.
type Role struct {
	Name        string
	Description string
	Members     []string // principals, roles and token roles, sorted
}

// roleAt is the record of a role from one read. The record may be missing.
type roleAt struct {
	name   string
	record registry.Record
	value  registry.Role
	exists bool // whether the role exists; a deleted role also has a record
}

// readRole reads the record of a role.
func (g *Grants) readRole(ctx context.Context, name string) (r roleAt, err error) {
	if access.GranteeOf(name) != access.IsRole || name == access.Everyone {
		return r, moorage.Errorf(moorage.KindIllegalArgument, "%q cannot be the name of a role", name)
	}
	records, err := g.ledger.Get(ctx, registry.RoleKey(name))
	if err != nil {
		return r, err
	}
	r.name, r.record = name, records[0]
	if r.record.Exists() {
		r.value, err = ledger.Decode[registry.Role](r.record)
		r.exists = !r.value.Deleted
	}
	if !r.exists {
		r.value = registry.Role{Created: g.now(), Generation: r.value.Generation}
	}
	return r, err
}

// members returns the sorted names of the direct members of r. It omits deleted members.
func (r roleAt) members(policy *access.Snapshot) []string {
	members := []string{}
	for _, holder := range r.value.Holders {
		if name := policy.Holder(holder); name != "" {
			members = append(members, name)
		}
	}
	slices.Sort(members)
	return members
}

// asCaller returns r in the form for callers.
func (r roleAt) asCaller(policy *access.Snapshot) Role {
	return Role{Name: r.name, Description: r.value.Description, Members: r.members(policy)}
}

// put returns the edit that writes r with members. It checks that policy permits these members.
func (r roleAt) put(policy *access.Snapshot, members []string) (edit, error) {
	if err := policy.CheckRole(access.Role{Name: r.name, Members: members}); err != nil {
		return edit{}, err
	}
	r.value.Holders = []string{}
	for _, member := range members {
		r.value.Holders = append(r.value.Holders, policy.Identity(member))
	}
	slices.Sort(r.value.Holders)
	r.value.Holders = slices.Compact(r.value.Holders)
	key := registry.RoleKey(r.name)
	return edit{
		puts:  []ledger.Write{ledger.Put(key, registry.StateNone, r.value)},
		read:  []registry.Condition{ledger.AsRead(r.record, key)},
		items: []registry.Item{policyItem(registry.ItemRole, r.name)},
	}, nil
}

// Roles returns the roles of the store, sorted by name. It requires admin.
func (g *Grants) Roles(ctx context.Context, page moorage.Page) (roles []Role, next string, err error) {
	const op = "grants.Roles"
	call, err := g.begin(ctx, gate.ListRoles)
	if err == nil {
		err = call.onServer(ctx, gate.Always)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	roles = []Role{}
	records := g.ledger
	err = records.Scan(ctx, registry.TableRole, "", page.After, func(record registry.Record) (bool, error) {
		if page.Limit > 0 && len(roles) == page.Limit {
			next = roles[len(roles)-1].Name
			return false, nil
		}
		value, err := ledger.Decode[registry.Role](record)
		if !value.Deleted {
			roles = append(roles, roleAt{record.Key.ID, record, value, true}.asCaller(call.policy))
		}
		return true, err
	})
	return roles, next, moorage.Annotate(op, "", err)
}

// LoadRole returns a role. It requires admin. If the role does not exist, the error is
// KindNotFound.
func (g *Grants) LoadRole(ctx context.Context, name string) (Role, error) {
	const op = "grants.LoadRole"
	call, err := g.begin(ctx, gate.LoadRole)
	if err == nil {
		err = call.onServer(ctx, gate.Always)
	}
	if err != nil {
		return Role{}, moorage.Annotate(op, name, err)
	}
	r, err := g.readRole(ctx, name)
	if err == nil && !r.exists {
		err = noSuch("Role", name)
	}
	if err != nil {
		return Role{}, moorage.Annotate(op, name, err)
	}
	return r.asCaller(call.policy), moorage.Annotate(op, name, err)
}

// PutRole creates or replaces a role. It requires admin. If match is not nil, it must accept the
// present role, which is nil if there is none. Otherwise the error is KindPreconditionFailed.
func (g *Grants) PutRole(ctx context.Context, role Role, match func(present *Role) bool) (made Role, err error) {
	err = g.changeRole(ctx, gate.PutRole, role.Name, &made, func(r *roleAt, members []string) ([]string, error) {
		var present *Role
		if r.exists {
			present = &Role{Name: r.name, Description: r.value.Description, Members: members}
		}
		if match != nil && !match(present) {
			return nil, moorage.Errorf(moorage.KindPreconditionFailed, "Role %s has changed", role.Name)
		}
		r.value.Description = role.Description
		return role.Members, checkDescription(role.Description)
	})
	return made, moorage.Annotate("grants.PutRole", role.Name, err)
}

// ChangeMembers adds members to a role and removes others. It requires admin. If the role does not
// exist, the error is KindNotFound.
func (g *Grants) ChangeMembers(ctx context.Context, name string, add, remove []string) (made Role, err error) {
	err = g.changeRole(ctx, gate.ChangeMembers, name, &made, func(r *roleAt, members []string) ([]string, error) {
		if !r.exists {
			return nil, noSuch("Role", name)
		}
		kept := slices.DeleteFunc(members, func(member string) bool { return slices.Contains(remove, member) })
		return append(kept, add...), nil
	})
	return made, moorage.Annotate("grants.ChangeMembers", name, err)
}

// changeRole calls the function do with a role. It writes the role with the members that the
// function returns, and sets made to the result. It requires admin.
func (g *Grants) changeRole(ctx context.Context, v gate.Verb, name string, made *Role,
	do func(r *roleAt, members []string) ([]string, error)) error {
	return g.change(ctx, v, func(ctx context.Context, c *call) (edit, error) {
		if err := c.onServer(ctx, gate.Always); err != nil {
			return edit{}, err
		}
		r, err := c.readRole(ctx, name)
		var members []string
		if err == nil {
			members, err = do(&r, r.members(c.policy))
		}
		if err != nil {
			return edit{}, err
		}
		e, err := r.put(c.policy, members)
		if err == nil {
			r.value = e.puts[0].Value.(registry.Role)
			*made = r.asCaller(c.policy)
		}
		return e, err
	})
}

// DeleteRole removes a role. Its grants, memberships and ownership end. A later role of the same
// name does not inherit them. It requires admin. If the role does not exist, the error is
// KindNotFound.
func (g *Grants) DeleteRole(ctx context.Context, name string) error {
	err := g.change(ctx, gate.DeleteRole, func(ctx context.Context, c *call) (edit, error) {
		if err := c.onServer(ctx, gate.Always); err != nil {
			return edit{}, err
		}
		r, err := c.readRole(ctx, name)
		switch {
		case err != nil:
			return edit{}, err
		case !r.exists:
			return edit{}, noSuch("Role", name)
		}
		return edit{
			puts: []ledger.Write{ledger.Put(r.record.Key, registry.StateNone, registry.Role{
				Deleted: true, Generation: r.value.Generation + 1, Holders: []string{},
			})},
			read:  []registry.Condition{ledger.Unchanged(r.record)},
			items: []registry.Item{policyItem(registry.ItemRole, name)},
		}, nil
	})
	return moorage.Annotate("grants.DeleteRole", name, err)
}
