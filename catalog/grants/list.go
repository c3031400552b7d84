package grants

import (
	"context"
	"slices"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// GrantsOn returns the grants on an object. It requires manage on the object, or admin.
func (g *Grants) GrantsOn(ctx context.Context, object Object) (ObjectGrants, error) {
	const op = "grants.GrantsOn"
	call, err := g.begin(ctx, gate.ListGrants)
	if err != nil {
		return ObjectGrants{}, moorage.Annotate(op, "", err)
	}
	t, err := call.find(ctx, object)
	if err == nil {
		err = call.mayManage(ctx, t)
	}
	if err != nil {
		return ObjectGrants{}, moorage.Annotate(op, object.Ident.String(), err)
	}
	return t.asCaller(call.policy), nil
}

// asCaller returns the grants on t in the form for callers. An object that has never been handed
// over has its creator as the owner.
func (t *target) asCaller(policy *access.Snapshot) ObjectGrants {
	value, isCreator := t.value, t.value.Owner == "" && len(t.object.Path) > 0
	if isCreator {
		value.Owner = t.object.Path[0].Creator
	}
	grants := grantsOf(t.ref, value, policy)
	grants.OwnerIsCreator = isCreator
	return grants
}

// grantsOf returns the value of a grants record in the form for callers, without grants to deleted
// grantees.
func grantsOf(object Object, value registry.Grants, policy *access.Snapshot) ObjectGrants {
	grants := ObjectGrants{Object: object, Owner: policy.Holder(value.Owner), Managed: value.Managed, Grants: []Grant{}}
	for _, each := range value.Grants {
		privileges, _ := access.Parse(each.Privileges) // without unknown privileges
		if name := policy.Holder(each.Grantee); name != "" {
			grants.Grants = append(grants.Grants, Grant{name, privileges, each.By, each.At})
		}
	}
	slices.SortFunc(grants.Grants, func(a, b Grant) int { return strings.Compare(a.Grantee, b.Grantee) })
	return grants
}

// GrantsTo returns the direct grants to one grantee, on each object, in the order of the objects'
// IDs. It requires admin, unless the grantee is the caller. To get the next page, pass next as
// page.After.
func (g *Grants) GrantsTo(ctx context.Context, grantee string, page moorage.Page) (
	grants []ObjectGrants, next string, err error) {
	const op = "grants.GrantsTo"
	call, err := g.begin(ctx, gate.ListGrants)
	if err == nil {
		err = call.adminOrSelf(ctx, grantee)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, grantee, err)
	}
	identity := call.policy.Identity(grantee)
	others := func(each registry.Grant) bool { return each.Grantee != identity }
	grants, next, err = g.grantsThat(ctx, call.policy, page, func(value *registry.Grants) bool {
		value.Grants = slices.DeleteFunc(value.Grants, others)
		return value.Owner == identity || len(value.Grants) > 0
	})
	return grants, next, moorage.Annotate(op, grantee, err)
}

// AllGrants returns all grants and explicitly set owners, on each object, in the order of the
// objects' IDs. It requires admin. To get the next page, pass next as page.After.
func (g *Grants) AllGrants(ctx context.Context, page moorage.Page) (grants []ObjectGrants, next string, err error) {
	const op = "grants.AllGrants"
	call, err := g.begin(ctx, gate.ListGrants)
	if err == nil {
		err = call.onServer(ctx, gate.Always)
	}
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	grants, next, err = g.grantsThat(ctx, call.policy, page, func(*registry.Grants) bool { return true })
	return grants, next, moorage.Annotate(op, "", err)
}

// grantsThat returns a page of the grants records for which keep returns true. keep may remove
// grants from its argument.
func (g *Grants) grantsThat(ctx context.Context, policy *access.Snapshot, page moorage.Page,
	keep func(*registry.Grants) bool) (grants []ObjectGrants, next string, err error) {
	type kept struct {
		record registry.Record
		value  registry.Grants
	}
	var found []kept
	err = g.ledger.Scan(ctx, registry.TableGrants, "", page.After, func(record registry.Record) (
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
		object, there, err := g.nameOf(ctx, each.record, each.value)
		if err != nil {
			return nil, "", err
		}
		if there {
			grants = append(grants, grantsOf(object, each.value, policy))
		}
	}
	return grants, next, nil
}

// nameOf returns the name of the object of a grants record. It also reports whether that object
// still exists.
func (g *Grants) nameOf(ctx context.Context, record registry.Record, value registry.Grants) (
	object Object, there bool, err error) {
	if object.Kind, err = access.ParseKind(value.Kind); err != nil {
		return object, false, moorage.E("grants.nameOf", record.Key.ID, moorage.KindInternal, err)
	}
	if object.Ident = value.Ident; object.Kind != access.Table && object.Kind != access.View {
		return object, true, nil
	}
	id, err := registry.GrantsObject(record.Key)
	if err != nil {
		return object, false, moorage.E("grants.nameOf", record.Key.ID, moorage.KindInternal, err)
	}
	pointers, err := g.ledger.Get(ctx, registry.PointerKey(id))
	if err != nil || !pointers[0].Exists() || pointers[0].State != registry.StateLive {
		return object, false, err
	}
	pointer, err := ledger.Decode[registry.Pointer](pointers[0])
	object.Ident = pointer.Identifier()
	return object, err == nil, err
}
