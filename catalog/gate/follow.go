package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// loadsMax is how many times the guard reads the whole policy before it gives up. A read must be
// repeated if the epoch changed during the read. One read takes one page for each thousand records.
const loadsMax = 100

// pageRecords is the number of policy records that are read at a time.
const pageRecords = 1000

// follow returns a view that has every change that this process has seen. present is the present
// view, or nil if there is no view yet.
func (g *Guard) follow(ctx context.Context, present *view) (*view, error) {
	for range loadsMax {
		records, err := g.config.Store.Get(ctx, registry.EpochKey(), registry.RecentKey(), registry.AccessStoreKey())
		if err != nil {
			return nil, err
		}
		if !records[0].Exists() {
			return &view{}, nil
		}
		epoch, err := registry.Decode[registry.Epoch](records[0])
		if err != nil {
			return nil, fmt.Errorf("read the epoch: %w", err)
		}
		store, err := registry.Decode[registry.AccessStore](records[2])
		if err != nil {
			return nil, fmt.Errorf("read since when access is on: %w", err)
		}
		next := &view{enabled: true, store: store}
		if present != nil && present.enabled && present.Epoch() == epoch.Number {
			next.Snapshot = present.Snapshot
			return next, nil
		}
		if next.Snapshot, err = g.changed(ctx, present, epoch.Number, records[1]); err != nil {
			return nil, err
		}
		if next.Snapshot == nil {
			next.Snapshot, err = g.load(ctx, epoch.Number)
		}
		switch {
		case err != nil:
			return nil, err
		case next.Snapshot == nil: // the policy changed during the read
			continue
		}
		return next, nil
	}
	return nil, errors.New("policy kept changing while it was read")
}

// changed takes the snapshot of present, and returns it with the changes since then. It returns nil
// if the whole policy must be read. recent was read in the same call as epoch.
func (g *Guard) changed(ctx context.Context, present *view, epoch uint64, recent registry.Record) (
	*access.Snapshot, error) {
	if present == nil || !present.enabled || present.Epoch() > epoch {
		return nil, nil
	}
	named, err := registry.Decode[registry.Recent](recent)
	if err != nil {
		g.config.Logger.WarnContext(ctx, "the last changes of policy cannot be read: all policy is", "error", err)
		return nil, nil
	}
	keys, ok := named.Since(present.Epoch())
	if !ok || named.Changes[len(named.Changes)-1].Epoch != epoch {
		return nil, nil
	}
	records, err := g.config.Store.Get(ctx, append(keys, registry.EpochKey())...)
	if err != nil {
		return nil, err
	}
	last := len(records) - 1
	if numberOf(records[last]) != epoch {
		return nil, nil // the records may be newer than epoch
	}
	changes := g.changesOf(ctx, keys, records[:last])
	return present.With(epoch, changes), nil
}

// load reads the whole policy. It returns nil if the policy changed during the read, because then
// the result is not the policy of epoch.
func (g *Guard) load(ctx context.Context, epoch uint64) (*access.Snapshot, error) {
	var all access.Changes
	for _, table := range []registry.Table{registry.TablePrincipal, registry.TableRole, registry.TableGrants} {
		for after := ""; ; {
			page, err := g.config.Store.List(ctx, table, "", after, pageRecords)
			if err != nil {
				return nil, err
			}
			for _, record := range page {
				g.add(ctx, &all, record.Key, record)
			}
			if registry.IsLastPage(page, pageRecords) {
				break
			}
			after = page[len(page)-1].Key.ID
		}
	}
	records, err := g.config.Store.Get(ctx, registry.EpochKey())
	if err != nil {
		return nil, err
	}
	if !records[0].Exists() || numberOf(records[0]) != epoch {
		return nil, nil
	}
	g.addAdmins(&all, true)
	return access.New(epoch, all.Records), nil
}

// changesOf converts the records that were read at keys to access.Changes.
func (g *Guard) changesOf(ctx context.Context, keys []registry.Key, records []registry.Record) access.Changes {
	var changes access.Changes
	for i, key := range keys {
		g.add(ctx, &changes, key, records[i])
	}
	g.addAdmins(&changes, slices.Contains(keys, registry.GrantsKey(registry.ID{})))
	return changes
}

// add adds the content of the record at key to changes. A record that cannot be read gives no
// privileges: a principal is disabled, a role has no members, an object has no grants.
func (g *Guard) add(ctx context.Context, changes *access.Changes, key registry.Key, record registry.Record) {
	var err error
	switch key.Table {
	case registry.TablePrincipal:
		var principal access.Principal
		if record.Exists() {
			var value registry.Principal
			principal, value, err = principalOf(record)
			noteGeneration(changes, key, value.Generation)
			if value.Deleted {
				changes.GonePrincipals = append(changes.GonePrincipals, key.ID)
				break
			}
			changes.Principals = append(changes.Principals, principal)
		} else {
			changes.GonePrincipals = append(changes.GonePrincipals, key.ID)
		}
	case registry.TableRole:
		var role registry.Role
		if record.Exists() {
			role, err = registry.Decode[registry.Role](record)
			noteGeneration(changes, key, role.Generation)
			if role.Deleted {
				changes.GoneRoles = append(changes.GoneRoles, key.ID)
				break
			}
			changes.Roles = append(changes.Roles, access.Role{Name: key.ID, Members: role.Holders})
		} else {
			changes.GoneRoles = append(changes.GoneRoles, key.ID)
		}
	case registry.TableGrants:
		var grants access.Grants
		id, idErr := registry.GrantsObject(key)
		if record.Exists() && idErr == nil {
			grants, err = grantsOf(access.ID(id), record)
		}
		switch {
		case idErr != nil || err != nil:
			err = errors.Join(idErr, err)
			changes.GoneGrants = append(changes.GoneGrants, access.ID(id))
		case record.Exists():
			changes.Grants = append(changes.Grants, grants)
		default:
			changes.GoneGrants = append(changes.GoneGrants, access.ID(id))
		}
	}
	if err != nil {
		g.config.Logger.ErrorContext(ctx, "a record of policy cannot be read: it grants nothing",
			"record", key, "error", err)
	}
}

// noteGeneration records how many principals or roles of this name were deleted earlier.
func noteGeneration(changes *access.Changes, key registry.Key, generation uint64) {
	if generation == 0 {
		return
	}
	if changes.Generations == nil {
		changes.Generations = make(map[string]uint64)
	}
	changes.Generations[key.ID] = generation
}

// principalOf reads the record of a principal. If the record cannot be read, the principal is
// disabled.
func principalOf(record registry.Record) (access.Principal, registry.Principal, error) {
	value, err := registry.Decode[registry.Principal](record)
	if err != nil {
		return access.Principal{Name: record.Key.ID, Disabled: true}, value, err
	}
	principal := access.Principal{Name: record.Key.ID, Disabled: value.Disabled}
	for _, key := range value.Keys {
		for _, secret := range key.Secrets {
			principal.Keys = append(principal.Keys, access.Key{
				ID: key.ID, Generation: secret.Generation, SHA256: secret.SHA256, Ends: secret.Ends, Roles: key.Roles,
			})
		}
	}
	return principal, value, nil
}

// grantsOf reads a grants record. It omits privileges that this version does not know.
func grantsOf(id access.ID, record registry.Record) (access.Grants, error) {
	value, err := registry.Decode[registry.Grants](record)
	if err != nil {
		return access.Grants{}, err
	}
	return GrantsOf(registry.ID(id), value)
}

// GrantsOf converts a grants record to the form of package access. It omits privileges that this
// version does not know. It returns an error if the kind of the object is unknown.
func GrantsOf(id registry.ID, value registry.Grants) (access.Grants, error) {
	kind, err := access.ParseKind(value.Kind)
	if err != nil {
		return access.Grants{}, err
	}
	grants := access.Grants{ID: access.ID(id), Kind: kind, Owner: value.Owner, Managed: value.Managed}
	for _, ancestor := range value.Ancestors {
		grants.Ancestors = append(grants.Ancestors, access.ID(ancestor))
	}
	for _, each := range value.Grants {
		privileges, _ := access.Parse(each.Privileges) // without the unknown ones
		grants.Grants = append(grants.Grants, access.Grant{Grantee: each.Grantee, Privileges: privileges})
	}
	return grants, nil
}

// addAdmins adds the configured administrators to the grants on the server in changes. If
// hasServerGrants is false, changes does not include these grants, and addAdmins does nothing.
func (g *Guard) addAdmins(changes *access.Changes, hasServerGrants bool) {
	if len(g.config.Admins) == 0 || !hasServerGrants {
		return
	}
	changes.GoneGrants = slices.DeleteFunc(changes.GoneGrants, func(id access.ID) bool { return id == access.ServerID })
	at := slices.IndexFunc(changes.Grants, func(grants access.Grants) bool { return grants.ID == access.ServerID })
	if at < 0 {
		at = len(changes.Grants)
		changes.Grants = append(changes.Grants, access.Grants{ID: access.ServerID, Kind: access.Server})
	}
	for _, name := range g.config.Admins {
		changes.Grants[at].Grants = append(changes.Grants[at].Grants,
			access.Grant{
				Grantee: moorage.AnyIdentityOf(name), Privileges: access.OfAdministrators,
			})
	}
}
