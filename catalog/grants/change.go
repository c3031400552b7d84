package grants

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Object names an object on which privileges are granted.
type Object struct {
	Kind access.Kind
	// Ident is zero for the server. A warehouse or a namespace has an empty name.
	Ident moorage.Identifier
}

// Grant holds the privileges of one grantee on one object.
type Grant struct {
	Grantee    string
	Privileges access.Privileges
	By         string // the caller of the last change
	At         time.Time
}

// ObjectGrants holds all grants on one object.
type ObjectGrants struct {
	Object Object
	Owner  string // empty if the object has no owner
	// OwnerIsCreator means that Owner is the creator, because the object was not handed over.
	OwnerIsCreator bool
	Managed        bool
	Grants         []Grant // sorted by grantee
}

// Change grants privileges to a grantee on an object, or revokes them.
type Change struct {
	Revoke     bool
	Object     Object
	Grantee    string
	Privileges access.Privileges
}

// ChangesMax is the maximum number of changes in one call of ChangeGrants.
const ChangesMax = 1000

// target is an object whose grants are read or changed.
type target struct {
	ref    Object
	object gate.Object
	id     registry.ID
	record registry.Record // the object's record; zero for the server
	grants registry.Record
	value  registry.Grants
	before registry.Grants
	mark   registry.Value   // the object's value, marked as having grants; nil if it already has the mark
	found  *directory.Found // set for a table or view
}

// find reads the object named in ref, and the grants on it, if the object is visible to the caller.
func (c *call) find(ctx context.Context, ref Object) (*target, error) {
	t, err := c.object(ctx, ref)
	if err != nil {
		return nil, err
	}
	records, err := c.ledger.Get(ctx, registry.GrantsKey(t.id))
	if err != nil {
		return nil, err
	}
	if t.grants = records[0]; t.grants.Exists() {
		if t.value, err = ledger.Decode[registry.Grants](t.grants); err != nil {
			return nil, err
		}
	}
	t.before = t.value
	t.value.Kind, t.value.Grants = ref.Kind.String(), slices.Clone(t.value.Grants)
	if len(t.object.Path) > 0 {
		t.value.Ancestors = gate.IDs(t.object.Path[1:])
	}
	if ref.Kind == access.Warehouse || ref.Kind == access.Namespace {
		t.value.Ident = ref.Ident
	}
	return t, nil
}

// object finds the object named in ref, if it is visible to the caller.
func (c *call) object(ctx context.Context, ref Object) (*target, error) {
	by := directory.Asker{Caller: c.caller, Verb: c.verb}
	names := c.directory
	t := &target{ref: ref}
	switch ref.Kind {
	case access.Server:
		return t, nil
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
		t.found, t.object, t.id, t.record = found, found.Object(ref.Ident), found.Pointer.ID, found.Record
		if marked := found.Pointer; !marked.Granted {
			marked.Granted = true
			marked.Last = marked.Written(t.record.State, c.change, marked.LastIn(t.record.State).Summary)
			t.mark = marked
		}
		return t, nil
	case access.Warehouse, access.Namespace:
		return t, c.container(ctx, by, t)
	}
	return nil, moorage.Errorf(moorage.KindIllegalArgument, "Nothing can be granted on a %s", ref.Kind)
}

// container is like object, for a warehouse or a namespace.
func (c *call) container(ctx context.Context, by directory.Asker, t *target) (err error) {
	if (t.ref.Kind == access.Namespace) != (len(t.ref.Ident.Namespace) > 0) || t.ref.Ident.Name != "" {
		return moorage.Errorf(moorage.KindIllegalArgument, "Invalid name of a %s", t.ref.Kind)
	}
	err = moorage.ValidateWarehouse(t.ref.Ident.Warehouse)
	if t.ref.Kind == access.Namespace {
		err = cmp.Or(err, t.ref.Ident.Namespace.Validate())
	}
	if err != nil {
		return err
	}
	names := c.directory
	if _, err := names.PathFor(ctx, by, access.See, t.ref.Ident); err != nil {
		return err
	}
	path, err := names.LivePath(ctx, t.ref.Ident.Warehouse, t.ref.Ident.Namespace)
	if err != nil {
		return names.Missing(ctx, by, t.ref.Ident.Warehouse, err)
	}
	t.object = gate.Object{Ident: t.ref.Ident, Path: path.Above()}
	t.id, t.record = path.ID(), path.Record()
	if t.ref.Kind == access.Warehouse {
		if marked := path.Warehouse; !marked.Granted {
			marked.Granted, marked.Last = true, marked.Written(t.record.State, c.change)
			t.mark = marked
		}
		return nil
	}
	marked, err := ledger.Decode[registry.Namespace](t.record)
	if err == nil && !marked.Granted {
		marked.Granted, marked.Last = true, marked.Written(t.record.State, c.change)
		t.mark = marked
	}
	return err
}

// add adds the changes of t to e. It omits grants to grantees that are no longer in policy. It adds
// nothing if t is unchanged.
func (t *target) add(e *edit, policy *access.Snapshot) error {
	if equalGrants(t.before, t.value) {
		return nil
	}
	t.value.Grants = slices.DeleteFunc(t.value.Grants, func(grant registry.Grant) bool {
		return policy.Holder(grant.Grantee) == "" // the grantee was deleted
	})
	checked, err := gate.GrantsOf(t.id, t.value)
	if err != nil {
		return err
	}
	if err := access.CheckGrants(checked); err != nil {
		return err
	}
	key := registry.GrantsKey(t.id)
	if t.value.IsEmpty() {
		e.gone = append(e.gone, key)
	} else {
		e.puts = append(e.puts, ledger.Put(key, registry.StateNone, t.value))
	}
	if t.grants.Exists() {
		e.read = append(e.read, ledger.Unchanged(t.grants))
	} else if !t.value.IsEmpty() {
		e.read = append(e.read, registry.Absent(key))
	}
	if t.record.Exists() {
		e.read = append(e.read, ledger.Unchanged(t.record))
	}
	if t.mark != nil {
		e.marks = append(e.marks, ledger.Replace(t.record, t.record.State, t.mark))
	}
	e.items = append(e.items, registry.Item{Kind: registry.ItemGrants, ID: t.id, Ident: t.ref.Ident})
	return nil
}

// equalGrants reports whether two grants records are equal.
func equalGrants(a, b registry.Grants) bool {
	return a.Owner == b.Owner && a.Managed == b.Managed && slices.EqualFunc(a.Grants, b.Grants,
		func(a, b registry.Grant) bool {
			return a.Grantee == b.Grantee && slices.Equal(a.Privileges, b.Privileges)
		})
}

// ChangeGrants applies all changes or none. There may be at most ChangesMax. On each object, the
// caller must have manage, and each privilege that it grants or revokes. ChangeGrants returns the
// names of grantees without a record, which may be typing errors. Only administrators get these
// names: otherwise the owner of a table could find out which principals exist.
func (g *Grants) ChangeGrants(ctx context.Context, changes []Change) (unknown []string, err error) {
	err = g.change(ctx, gate.ChangeGrants, func(ctx context.Context, c *call) (e edit, err error) {
		if len(changes) == 0 || len(changes) > ChangesMax {
			return e, moorage.Errorf(moorage.KindIllegalArgument,
				"%d changes of grants, 1 to %d are possible at once", len(changes), ChangesMax)
		}
		unknown = nil
		lists := gate.ListPrincipals.Needs(gate.OfServer, gate.Always)
		tells := c.who == nil || c.who.Decide(nil, lists).Outcome == access.Allow
		objects := make(map[string]*target)
		var order []*target
		for _, change := range changes {
			name := change.Object.Kind.String() + "\x00" + directory.NameKey(change.Object.Ident)
			t := objects[name]
			if t == nil {
				if t, err = c.find(ctx, change.Object); err != nil {
					return e, err
				}
				objects[name], order = t, append(order, t)
			}
			if err := c.apply(ctx, t, change); err != nil {
				return e, err
			}
			if tells && !change.Revoke && !c.isKnown(change.Grantee) && !slices.Contains(unknown, change.Grantee) {
				unknown = append(unknown, change.Grantee)
			}
		}
		added := 0
		for _, t := range order {
			if !t.grants.Exists() {
				added++
			}
			if err := t.add(&e, c.policy); err != nil {
				return e, err
			}
		}
		return e, c.policy.CheckRoom(added)
	})
	return unknown, moorage.Annotate("grants.ChangeGrants", "", err)
}

// apply applies one change to t, if the caller may make it.
func (c *call) apply(ctx context.Context, t *target, change Change) error {
	if err := access.CheckGrantee(change.Grantee); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
	}
	if err := access.CheckGrantable(change.Privileges, t.ref.Kind); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%w", err)
	}
	if change.Privileges == 0 {
		return moorage.Errorf(moorage.KindIllegalArgument, "No privileges for %s", change.Grantee)
	}
	rule := func(who *access.Who, path []access.Object) access.Decision {
		return who.DecideGrant(path, change.Privileges)
	}
	err := c.decide(ctx, t.object,
		c.verb.NeedsFor(gate.OfObject, gate.ForGrants, change.Privileges), rule)
	if err != nil {
		return err
	}
	grantee := c.policy.Identity(change.Grantee)
	at, found := slices.BinarySearchFunc(t.value.Grants, grantee,
		func(grant registry.Grant, grantee string) int { return strings.Compare(grant.Grantee, grantee) })
	var present access.Privileges
	var unknown []string // privileges that only a later version of the server knows
	if found {
		present, _ = access.Parse(t.value.Grants[at].Privileges)
		unknown = slices.DeleteFunc(slices.Clone(t.value.Grants[at].Privileges), func(word string) bool {
			_, err := access.Parse([]string{word})
			return err == nil
		})
	}
	next := present | change.Privileges
	if change.Revoke {
		next = present &^ change.Privileges
	}
	grant := registry.Grant{
		Grantee: grantee, Privileges: append(next.Words(), unknown...), By: c.caller.Name, At: c.now(),
	}
	switch {
	case next == present:
	case len(grant.Privileges) == 0:
		t.value.Grants = slices.Delete(t.value.Grants, at, at+1)
	case found:
		t.value.Grants[at] = grant
	default:
		t.value.Grants = slices.Insert(t.value.Grants, at, grant)
	}
	return nil
}

// isKnown reports whether a grantee has a record, or needs no record.
func (c *call) isKnown(grantee string) (known bool) {
	switch access.GranteeOf(grantee) {
	case access.IsPrincipal:
		_, known = c.policy.Principal(grantee)
	case access.IsRole:
		_, known = c.policy.Role(grantee)
		known = known || grantee == access.Everyone
	default:
		known = true
	}
	return known
}

// SetOwner transfers an object to another owner. The caller must be the present owner or the owner
// of a container, or have admin. If owner is empty, the object goes back to its creator. Only admin
// may transfer a definer view to another principal. If match is not nil, it must accept the present
// grants on the object. Otherwise the error is KindPreconditionFailed.
func (g *Grants) SetOwner(ctx context.Context, object Object, owner string,
	match func(present ObjectGrants) bool) error {
	err := g.change(ctx, gate.SetOwner, func(ctx context.Context, c *call) (e edit, err error) {
		t, err := c.find(ctx, object)
		if err != nil {
			return e, err
		}
		asked := c.verb.Needs(gate.OfObject, gate.Always)
		err = c.decide(ctx, t.object, asked, func(who *access.Who, path []access.Object) access.Decision {
			return who.DecideTransfer(path)
		})
		if err != nil {
			return e, err
		}
		identity := ""
		if owner != "" {
			if err := access.CheckGrantee(owner); err != nil {
				return e, moorage.Errorf(moorage.KindIllegalArgument, "Owner: %w", err)
			}
			identity = c.policy.Identity(owner)
		}
		if t.ref.Kind == access.View {
			if err := c.mayHandOver(ctx, t, identity); err != nil {
				return e, err
			}
		}
		if match != nil && !match(t.asCaller(c.policy)) {
			return e, moorage.Errorf(moorage.KindPreconditionFailed, "The owner or the grants of %s have changed",
				object.Ident)
		}
		t.value.Owner = identity
		return e, t.add(&e, c.policy)
	})
	return moorage.Annotate("grants.SetOwner", object.Ident.String(), err)
}

// mayHandOver returns nil if the caller may transfer the view t to the identity owner. After the
// transfer, a definer view reads with the new owner's privileges. So a transfer to another
// principal requires admin, which includes the right to grant any privilege.
func (c *call) mayHandOver(ctx context.Context, t *target, owner string) error {
	if owner == "" {
		owner = t.found.Pointer.Creator
	}
	if c.who == nil || c.who.Is(owner) {
		return nil
	}
	isDefiner, err := c.isDefiner(ctx, t.found)
	switch {
	case errors.Is(err, ledger.ErrRetry):
		return err
	case err == nil && !isDefiner:
		return nil
	}
	// An unreadable view may be a definer view.
	err = c.onServer(ctx, gate.Always)
	if moorage.KindOf(err) == moorage.KindForbidden {
		return moorage.Errorf(moorage.KindForbidden,
			"Not allowed: make %s the owner of view %s, read with the rights of its owner. This requires admin",
			moorage.NameOf(owner), t.ref.Ident)
	}
	return err
}

// SetManaged sets whether a warehouse or namespace is managed. In a managed container, the owner of
// an object cannot grant privileges on the object. SetManaged requires manage.
func (g *Grants) SetManaged(ctx context.Context, object Object, managed bool) error {
	err := g.change(ctx, gate.SetManaged, func(ctx context.Context, c *call) (e edit, err error) {
		t, err := c.find(ctx, object)
		if err != nil {
			return e, err
		}
		if err := c.mayManage(ctx, t); err != nil {
			return e, err
		}
		t.value.Managed = managed
		return e, t.add(&e, c.policy)
	})
	return moorage.Annotate("grants.SetManaged", object.Ident.String(), err)
}

// mayManage returns nil if the caller may see and change the grants on t.
func (c *call) mayManage(ctx context.Context, t *target) error {
	return c.guard.MayManage(ctx, c.who, c.policy, gate.Question{
		Caller: c.caller, Verb: c.verb, Object: t.object, Asked: c.verb.Needs(gate.OfObject, gate.Always),
	})
}
