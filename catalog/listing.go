package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Bounds of one page of a list, if the caller does not see all objects.
const (
	// lookedAtMin is the number of records that a page may always examine, however few names are
	// requested.
	lookedAtMin = 1000
	// lookedAtTimes is the number of records that a page may examine for each requested name, if
	// that is more.
	lookedAtTimes = 10
)

// listing is a list of the direct children of a namespace or a warehouse.
type listing struct {
	table  registry.Table
	prefix string // the common prefix of the IDs of the children's records
	kind   access.Kind
	state  registry.State // the state of the records, or StateNone for any state
}

// listRechecked calls listFor for a container, which the parameter on identifies. It fails if the
// caller loses the right to see the container during the call.
func (p *parts) listRechecked(ctx context.Context, by directory.Asker, path *directory.Path, on moorage.Identifier,
	of listing, page moorage.Page) (names []string, next string, err error) {
	asked := by.Verb.Needs(gate.OfObject, gate.Always)
	err = p.directory.RecheckAt(ctx, by, asked, path, on, func(ctx context.Context) (err error) {
		names, next, err = p.listFor(ctx, by, path, of, page)
		return err
	})
	return names, next, err
}

// listFor lists the names of the objects in the container of path that are visible to the caller.
// If all objects are visible, the cost is proportional to the page. Otherwise listFor examines a
// bounded number of records, and a page may be short or empty without being the last. The position
// after such a page is encrypted, because it may contain the name of a hidden object.
func (p *parts) listFor(ctx context.Context, by directory.Asker, path *directory.Path, of listing, page moorage.Page) (
	names []string, next string, err error) {
	keep := func(record registry.Record) bool { return of.state == registry.StateNone || record.State == of.state }
	who, err := p.guard.ForLists(ctx, by.Caller)
	if err != nil {
		return nil, "", err
	}
	if page.After, err = p.guard.UnsealPage(ctx, of.prefix, page.After); err != nil {
		return nil, "", err
	}
	if who == nil {
		return p.listNames(ctx, of.table, of.prefix, page, keep)
	}
	above := path.Above()
	plan, ids := who.PlanList(above, of.kind)
	var made map[access.ID]bool
	if plan != access.ListAll {
		if made, err = p.guard.MadeIn(ctx, by.Caller); err != nil {
			return nil, "", err
		}
		for i := range above {
			above[i].OwnsInside = made[above[i].ID]
		}
		plan, ids = who.PlanList(above, of.kind)
	}
	switch {
	case plan == access.ListAll:
		return p.listNames(ctx, of.table, of.prefix, page, keep)
	case plan == access.ListNone:
		return []string{}, "", nil
	case plan == access.ListChildren && of.table == registry.TableEntry:
		names, next, err = p.listGranted(ctx, path, of, ids, page)
	default: // namespaces cannot be read by ID
		names, next, err = p.listSeen(ctx, who, made, of, page, keep)
	}
	if err != nil || next == "" {
		return names, "", err
	}
	next, err = p.guard.SealPage(ctx, p.random, of.prefix, next)
	return names, next, err
}

// listSeen is listFor for a caller that sees some of the objects. made has the containers in which
// the caller created an object. next is the name of the last record that was examined.
func (p *parts) listSeen(ctx context.Context, who *access.Who, made map[access.ID]bool, of listing, page moorage.Page,
	keep func(registry.Record) bool) (names []string, next string, err error) {
	names = []string{}
	after := ""
	if page.After != "" {
		after = of.prefix + page.After
	}
	looked, bound := 0, max(lookedAtMin, lookedAtTimes*page.Limit)
	err = p.ledger.Scan(ctx, of.table, of.prefix, after, func(record registry.Record) (bool, error) {
		name := record.Key.ID[len(of.prefix):]
		if keep(record) {
			child, err := of.child(record)
			if err != nil {
				return false, err
			}
			child.OwnsInside = made[child.ID]
			if who.SeenIn(child) {
				names = append(names, name)
			}
		}
		looked++
		if page.Limit > 0 && (len(names) == page.Limit || looked == bound) {
			next = name
			return false, nil
		}
		return true, nil
	})
	return names, next, err
}

// child returns the object of a record of l in the form that an access decision needs.
func (l listing) child(record registry.Record) (access.Object, error) {
	if l.table == registry.TableEntry {
		entry, err := ledger.Decode[registry.Entry](record)
		return access.Object{ID: access.ID(entry.Pointer), Kind: l.kind, Creator: entry.Creator}, err
	}
	namespace, err := ledger.Decode[registry.Namespace](record)
	return access.Object{ID: access.ID(namespace.ID), Kind: l.kind, Creator: namespace.Creator}, err
}

// listGranted is listFor for a caller that sees only the objects in ids, because of grants on them.
// It reads only the records of these objects.
func (p *parts) listGranted(ctx context.Context, path *directory.Path, of listing, ids []access.ID, page moorage.Page) (
	names []string, next string, err error) {
	names = []string{}
	keys := make([]registry.Key, len(ids))
	for i, id := range ids {
		keys[i] = registry.PointerKey(registry.ID(id))
	}
	if len(keys) == 0 {
		return names, "", nil
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, "", err
	}
	for _, record := range records {
		if !record.Exists() || record.State != registry.StateLive {
			continue
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err != nil {
			return nil, "", err
		}
		if pointer.NamespaceID == path.ID() && pointer.View == (of.kind == access.View) && pointer.Name > page.After {
			names = append(names, pointer.Name)
		}
	}
	slices.Sort(names)
	if page.Limit > 0 && len(names) > page.Limit {
		names = names[:page.Limit]
		next = names[page.Limit-1]
	}
	return names, next, nil
}
