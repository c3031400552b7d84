package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// granted is an object whose grants are read or changed.
type granted struct {
	ref    ObjectRef
	object gate.Object
	id     registry.ID
	record registry.Record // of the object; zero for the server
	grants registry.Record
	value  registry.Grants
	before registry.Grants
	mark   registry.Value   // the object, marked as having grants; nil if it is marked already
	found  *directory.Found // of a table or view
}

// find reads the object that ref names and its grants, if the caller sees it.
func (a *asking) find(ctx context.Context, ref ObjectRef) (*granted, error) {
	g, err := a.object(ctx, ref)
	if err != nil {
		return nil, err
	}
	records, err := a.catalog.planner.ledger.Get(ctx, registry.GrantsKey(g.id))
	if err != nil {
		return nil, err
	}
	if g.grants = records[0]; g.grants.Exists() {
		if g.value, err = ledger.Decode[registry.Grants](g.grants); err != nil {
			return nil, err
		}
	}
	g.before = g.value
	g.value.Kind, g.value.Grants = ref.Kind.String(), slices.Clone(g.value.Grants)
	if len(g.object.Path) > 0 {
		g.value.Ancestors = idsOf(g.object.Path[1:])
	}
	if ref.Kind == access.Warehouse || ref.Kind == access.Namespace {
		g.value.Ident = ref.Ident
	}
	return g, nil
}

// object finds the object that ref names, if the caller sees it.
func (a *asking) object(ctx context.Context, ref ObjectRef) (*granted, error) {
	by := directory.Asker{Caller: a.catalog.caller, Verb: a.verb}
	names := a.catalog.planner.directory
	g := &granted{ref: ref}
	switch ref.Kind {
	case access.Server:
		return g, nil
	case access.Table, access.View:
		if err := ref.Ident.Validate(); err != nil {
			return nil, err
		}
		kind := directory.Table()
		if ref.Kind == access.View {
			kind = directory.View()
		}
		found, err := names.FindFor(ctx, by, access.See, kind, ref.Ident)
		if err != nil {
			return nil, err
		}
		g.found, g.object, g.id, g.record = found, found.Object(ref.Ident), found.Pointer.ID, found.Record
		if marked := found.Pointer; !marked.Granted {
			marked.Granted = true
			g.mark = marked
		}
		return g, nil
	case access.Warehouse, access.Namespace:
		return g, a.container(ctx, by, g)
	}
	return nil, moorage.Errorf(moorage.KindIllegalArgument, "Nothing can be granted on a %s", ref.Kind)
}

// container finds a warehouse or a namespace for object.
func (a *asking) container(ctx context.Context, by directory.Asker, g *granted) (err error) {
	if (g.ref.Kind == access.Namespace) != (len(g.ref.Ident.Namespace) > 0) || g.ref.Ident.Name != "" {
		return moorage.Errorf(moorage.KindIllegalArgument, "Invalid name of a %s", g.ref.Kind)
	}
	err = checkWarehouseName(g.ref.Ident.Warehouse)
	if g.ref.Kind == access.Namespace {
		err = cmp.Or(err, g.ref.Ident.Namespace.Validate())
	}
	if err != nil {
		return err
	}
	names := a.catalog.planner.directory
	if _, err := names.PathFor(ctx, by, access.See, g.ref.Ident); err != nil {
		return err
	}
	path, err := names.LivePath(ctx, g.ref.Ident.Warehouse, g.ref.Ident.Namespace)
	if err != nil {
		return names.Missing(ctx, by, g.ref.Ident.Warehouse, err)
	}
	g.object = gate.Object{Ident: g.ref.Ident, Path: path.Above()}
	g.id, g.record = path.ID(), path.Record()
	if g.ref.Kind == access.Warehouse {
		if marked := path.Warehouse; !marked.Granted {
			marked.Granted = true
			g.mark = marked
		}
		return nil
	}
	marked, err := ledger.Decode[registry.Namespace](g.record)
	if err == nil && !marked.Granted {
		marked.Granted = true
		g.mark = marked
	}
	return err
}

// add adds the change of g to e, by policy. It adds nothing if g is unchanged.
func (g *granted) add(e *edit, policy *access.Snapshot) error {
	if equalGrants(g.before, g.value) {
		return nil
	}
	g.value.Grants = slices.DeleteFunc(g.value.Grants, func(grant registry.Grant) bool {
		return policy.Holder(grant.Grantee) == "" // was deleted
	})
	checked, err := gate.GrantsOf(g.id, g.value)
	if err != nil {
		return err
	}
	if err := access.CheckGrants(checked); err != nil {
		return err
	}
	key := registry.GrantsKey(g.id)
	if g.value.IsEmpty() {
		e.gone = append(e.gone, key)
	} else {
		e.puts = append(e.puts, ledger.Put(key, registry.StateNone, g.value))
	}
	if g.grants.Exists() {
		e.read = append(e.read, ledger.Unchanged(g.grants))
	} else if !g.value.IsEmpty() {
		e.read = append(e.read, registry.Absent(key))
	}
	if g.record.Exists() {
		e.read = append(e.read, ledger.Unchanged(g.record))
	}
	if g.mark != nil {
		e.marks = append(e.marks, ledger.Put(g.record.Key, g.record.State, g.mark))
	}
	e.items = append(e.items, registry.Item{Kind: registry.ItemGrants, ID: g.id, Ident: g.ref.Ident})
	return nil
}

// equalGrants reports whether two grants records are equal.
func equalGrants(a, b registry.Grants) bool {
	return a.Owner == b.Owner && a.Managed == b.Managed && slices.EqualFunc(a.Grants, b.Grants,
		func(a, b registry.Grant) bool {
			return a.Grantee == b.Grantee && slices.Equal(a.Privileges, b.Privileges)
		})
}

// ChangeGrants applies all of changes or none, at most GrantChangesMax. The caller must have manage
// on each object, and each privilege that they grant or revoke. ChangeGrants returns the names of
// grantees without a record, which may be typing errors. Only administrators get these names:
// otherwise an owner of a table could find out which principals exist.
func (a Access) ChangeGrants(ctx context.Context, changes []GrantChange) (unknown []string, err error) {
	err = a.change(ctx, gate.ChangeGrants, func(ctx context.Context, a *asking) (e edit, err error) {
		if len(changes) == 0 || len(changes) > GrantChangesMax {
			return e, moorage.Errorf(moorage.KindIllegalArgument,
				"%d changes of grants, 1 to %d are possible at once", len(changes), GrantChangesMax)
		}
		unknown = nil
		lists := gate.ListPrincipals.Needs(gate.OfServer, gate.Always)
		tells := a.who == nil || a.who.Decide(nil, lists).Outcome == access.Allow
		objects := make(map[string]*granted)
		var order []*granted
		for _, change := range changes {
			name := change.Object.Kind.String() + "\x00" + directory.NameKey(change.Object.Ident)
			g := objects[name]
			if g == nil {
				if g, err = a.find(ctx, change.Object); err != nil {
					return e, err
				}
				objects[name], order = g, append(order, g)
			}
			if err := a.apply(ctx, g, change); err != nil {
				return e, err
			}
			if tells && !change.Revoke && !a.isKnown(change.Grantee) && !slices.Contains(unknown, change.Grantee) {
				unknown = append(unknown, change.Grantee)
			}
		}
		added := 0
		for _, g := range order {
			if !g.grants.Exists() {
				added++
			}
			if err := g.add(&e, a.policy); err != nil {
				return e, err
			}
		}
		return e, a.policy.CheckRoom(added)
	})
	return unknown, moorage.Annotate("catalog.ChangeGrants", "", err)
}

// apply applies one change to g, if the caller may make it.
func (a *asking) apply(ctx context.Context, g *granted, change GrantChange) error {
	if err := access.CheckGrantee(change.Grantee); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
	}
	if err := access.CheckGrantable(change.Privileges, g.ref.Kind); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
	}
	if change.Privileges == 0 {
		return moorage.Errorf(moorage.KindIllegalArgument, "No privileges for %s", change.Grantee)
	}
	rule := func(who *access.Who, path []access.Object) access.Decision {
		return who.DecideGrant(path, change.Privileges)
	}
	err := a.decide(ctx, g.object,
		a.verb.NeedsFor(gate.OfObject, gate.ForGrants, change.Privileges), rule)
	if err != nil {
		return err
	}
	grantee := a.policy.Identity(change.Grantee)
	at, found := slices.BinarySearchFunc(g.value.Grants, grantee,
		func(grant registry.Grant, grantee string) int { return strings.Compare(grant.Grantee, grantee) })
	var present access.Privileges
	var unknown []string // privileges of a later version
	if found {
		present, _ = access.Parse(g.value.Grants[at].Privileges)
		unknown = slices.DeleteFunc(slices.Clone(g.value.Grants[at].Privileges), func(word string) bool {
			_, err := access.Parse([]string{word})
			return err == nil
		})
	}
	next := present | change.Privileges
	if change.Revoke {
		next = present &^ change.Privileges
	}
	grant := registry.Grant{
		Grantee: grantee, Privileges: append(next.Words(), unknown...), By: a.by(), At: a.catalog.planner.now(),
	}
	switch {
	case next == present:
	case len(grant.Privileges) == 0:
		g.value.Grants = slices.Delete(g.value.Grants, at, at+1)
	case found:
		g.value.Grants[at] = grant
	default:
		g.value.Grants = slices.Insert(g.value.Grants, at, grant)
	}
	return nil
}

// isKnown reports whether a grantee has a record, or needs no record.
func (a *asking) isKnown(grantee string) (known bool) {
	switch access.GranteeOf(grantee) {
	case access.IsPrincipal:
		_, known = a.policy.Principal(grantee)
	case access.IsRole:
		_, known = a.policy.Role(grantee)
		known = known || grantee == access.Everyone
	default:
		known = true
	}
	return known
}

// SetOwner transfers an object to another owner. It requires the present owner, the owner of a
// container, or admin. An empty owner gives the object back to its creator. Only admin may transfer
// a definer view to another principal.
func (a Access) SetOwner(ctx context.Context, object ObjectRef, owner string) error {
	err := a.change(ctx, gate.SetOwner, func(ctx context.Context, a *asking) (e edit, err error) {
		g, err := a.find(ctx, object)
		if err != nil {
			return e, err
		}
		asked := a.verb.Needs(gate.OfObject, gate.Always)
		err = a.decide(ctx, g.object, asked, func(who *access.Who, path []access.Object) access.Decision {
			return who.DecideTransfer(path)
		})
		if err != nil {
			return e, err
		}
		if owner != "" {
			if err := access.CheckGrantee(owner); err != nil {
				return e, moorage.Errorf(moorage.KindIllegalArgument, "Owner: %w", err)
			}
			owner = a.policy.Identity(owner)
		}
		if g.ref.Kind == access.View {
			if err := a.mayHandOver(ctx, g, owner); err != nil {
				return e, err
			}
		}
		g.value.Owner = owner
		return e, g.add(&e, a.policy)
	})
	return moorage.Annotate("catalog.SetOwner", object.Ident.String(), err)
}

// SetManaged sets whether a warehouse or namespace is managed: the owners of its contents then
// cannot grant privileges on them. It requires manage.
func (a Access) SetManaged(ctx context.Context, object ObjectRef, managed bool) error {
	err := a.change(ctx, gate.SetManaged, func(ctx context.Context, a *asking) (e edit, err error) {
		g, err := a.find(ctx, object)
		if err != nil {
			return e, err
		}
		if err := a.mayManage(ctx, g); err != nil {
			return e, err
		}
		g.value.Managed = managed
		return e, g.add(&e, a.policy)
	})
	return moorage.Annotate("catalog.SetManaged", object.Ident.String(), err)
}

// mayManage returns nil if the caller may see and change the grants on g.
func (a *asking) mayManage(ctx context.Context, g *granted) error {
	asked := a.verb.Needs(gate.OfObject, gate.Always)
	return a.decide(ctx, g.object, asked, func(who *access.Who, path []access.Object) access.Decision {
		return who.DecideGrant(path, 0)
	})
}

// GrantsOn returns the grants on an object. It requires manage on the object, or admin.
func (a Access) GrantsOn(ctx context.Context, object ObjectRef) (ObjectGrants, error) {
	const op = "catalog.GrantsOn"
	asking, err := a.ask(ctx, gate.ListGrants)
	if err != nil {
		return ObjectGrants{}, moorage.Annotate(op, "", err)
	}
	g, err := asking.find(ctx, object)
	if err == nil {
		err = asking.mayManage(ctx, g)
	}
	if err != nil {
		return ObjectGrants{}, moorage.Annotate(op, object.Ident.String(), err)
	}
	if g.value.Owner == "" && len(g.object.Path) > 0 {
		g.value.Owner = g.object.Path[0].Creator
	}
	return grantsOf(object, g.value, asking.policy), nil
}

// grantsOf returns a grants record in the form for callers, without grants to deleted grantees.
func grantsOf(object ObjectRef, value registry.Grants, policy *access.Snapshot) ObjectGrants {
	grants := ObjectGrants{Object: object, Owner: policy.Holder(value.Owner), Managed: value.Managed, Grants: []Grant{}}
	for _, each := range value.Grants {
		privileges, _ := access.Parse(each.Privileges) // the known ones
		if name := policy.Holder(each.Grantee); name != "" {
			grants.Grants = append(grants.Grants, Grant{name, privileges, each.By, each.At})
		}
	}
	slices.SortFunc(grants.Grants, func(a, b Grant) int { return strings.Compare(a.Grantee, b.Grantee) })
	return grants
}

// GrantsTo returns the direct grants to one grantee, on each object, in the order of the objects'
// ids. It requires admin, unless the grantee is the caller. next is the After of the next page.
func (a Access) GrantsTo(ctx context.Context, grantee string, page Page) (
	grants []ObjectGrants, next string, err error) {
	const op = "catalog.GrantsTo"
	asking, err := a.ask(ctx, gate.ListGrants)
	if err == nil {
		err = asking.adminOrSelf(ctx, grantee)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, grantee, err)
	}
	identity := asking.policy.Identity(grantee)
	others := func(each registry.Grant) bool { return each.Grantee != identity }
	grants, next, err = a.grantsThat(ctx, asking.policy, page, func(value *registry.Grants) bool {
		value.Grants = slices.DeleteFunc(value.Grants, others)
		return value.Owner == identity || len(value.Grants) > 0
	})
	return grants, next, moorage.Annotate(op, grantee, err)
}

// AllGrants returns all grants and explicitly set owners, on each object, in the order of the
// objects' ids. It requires admin. next is the After of the next page.
func (a Access) AllGrants(ctx context.Context, page Page) (grants []ObjectGrants, next string, err error) {
	const op = "catalog.AllGrants"
	asking, err := a.ask(ctx, gate.ListGrants)
	if err == nil {
		err = asking.onServer(ctx, gate.Always)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	grants, next, err = a.grantsThat(ctx, asking.policy, page, func(*registry.Grants) bool { return true })
	return grants, next, moorage.Annotate(op, "", err)
}

// grantsThat returns a page of the grants records for which keep returns true. keep may remove
// unwanted grants from them.
func (a Access) grantsThat(ctx context.Context, policy *access.Snapshot, page Page,
	keep func(*registry.Grants) bool) (grants []ObjectGrants, next string, err error) {
	type kept struct {
		record registry.Record
		value  registry.Grants
	}
	var found []kept
	err = a.catalog.planner.ledger.Scan(ctx, registry.TableGrants, "", page.After, func(record registry.Record) (
		bool, error) {
		value, err := ledger.Decode[registry.Grants](record)
		if err != nil {
			return true, nil // an unreadable record gives no privileges
		}
		if !keep(&value) {
			return true, nil
		}
		if page.Limit > 0 && len(found) == page.Limit {
			next = found[len(found)-1].record.Key.ID
			return false, nil
		}
		found = append(found, kept{record, value})
		return true, nil
	})
	if err != nil {
		return nil, "", err
	}
	grants = []ObjectGrants{}
	for _, each := range found {
		object, there, err := a.nameOf(ctx, each.record, each.value)
		if err != nil {
			return nil, "", err
		}
		if there {
			grants = append(grants, grantsOf(object, each.value, policy))
		}
	}
	return grants, next, nil
}

// nameOf returns the name of the object of a grants record. there is false for a dropped object.
func (a Access) nameOf(ctx context.Context, record registry.Record, value registry.Grants) (
	object ObjectRef, there bool, err error) {
	if object.Kind, err = access.ParseKind(value.Kind); err != nil {
		return object, false, moorage.E("catalog.nameOf", record.Key.ID, moorage.KindInternal, err)
	}
	if object.Ident = value.Ident; object.Kind != access.Table && object.Kind != access.View {
		return object, true, nil
	}
	id, err := registry.GrantsObject(record.Key)
	if err != nil {
		return object, false, moorage.E("catalog.nameOf", record.Key.ID, moorage.KindInternal, err)
	}
	pointers, err := a.catalog.planner.ledger.Get(ctx, registry.PointerKey(id))
	if err != nil || !pointers[0].Exists() || pointers[0].State != registry.StateLive {
		return object, false, err
	}
	pointer, err := ledger.Decode[registry.Pointer](pointers[0])
	object.Ident = pointer.Identifier()
	return object, err == nil, err
}
