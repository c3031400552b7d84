package catalog

import (
	"context"
	"fmt"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Dropped has the verbs for dropped tables and views, as one caller: see Catalog.Dropped. It is
// safe for concurrent use. It promises:
//
//   - A list shows which objects can be restored, and why others cannot: TestListDropped.
//   - Each situation of an undrop has one answer, on each store: TestUndrop.
//   - An undrop and a concurrent request that could stop it take effect one after the other. The
//     rows of undropRaces in TestRaces enumerate the interleavings of their calls of the store.
//   - If a table is ended early, nothing is left that could restore it: TestPurgeDropped,
//     TestForget.
type Dropped struct{ catalog *Catalog }

// Dropped returns the verbs for dropped tables and views, as the caller of c and with the key of
// its request.
func (c *Catalog) Dropped() Dropped { return Dropped{c} }

// DroppedName identifies a dropped table or view: by its ID, or else by its last name. If several
// objects had the name, it refers to the one that was dropped last.
type DroppedName struct {
	ID    registry.ID // if zero, Ident counts
	Ident moorage.Identifier
	// Kind is access.Table or access.View. The zero value means either.
	Kind access.Kind
}

// check returns KindBadRequest for a name that no object can have.
func (n DroppedName) check() error {
	if !n.ID.IsZero() {
		return nil
	}
	if err := moorage.ValidateWarehouse(n.Ident.Warehouse); err != nil {
		return err
	}
	return n.Ident.Validate()
}

// isOf reports whether n can refer to an object of the pointer's kind.
func (n DroppedName) isOf(pointer registry.Pointer) bool {
	return n.Kind == access.Server || (n.Kind == access.View) == pointer.View
}

// none returns the error if no visible object has the name n.
func (n DroppedName) none() error {
	what := "table or view"
	if n.Kind != access.Server {
		what = n.Kind.String()
	}
	if n.ID.IsZero() {
		return moorage.Errorf(moorage.KindNotFound, "There is no dropped %s called %s", what, n.Ident)
	}
	return moorage.Errorf(moorage.KindNotFound, "There is no dropped %s with the id %s", what, n.ID)
}

// droppedPointer is a dropped table or view, with its containers that still exist. The object may
// also be live or gone: the code that uses it checks the state of the record.
type droppedPointer struct {
	record  registry.Record
	pointer registry.Pointer
	above   []access.Object
	kept    []registry.Condition // for changes that protection can refuse: see unprotectedDropped
}

// found returns d in the form that an access decision needs.
func (d droppedPointer) found() *directory.Found {
	return &directory.Found{Record: d.record, Pointer: d.pointer, Above: d.above}
}

// droppedByID returns the pointer with the id of name, whatever its state, if the caller has the
// privileges asked on it.
//
// Errors: KindNotFound, also if the object is hidden from the caller; KindForbidden.
func (p *parts) droppedByID(ctx context.Context, by directory.Asker, asked access.Privileges, name DroppedName) (
	d droppedPointer, err error) {
	records, err := p.ledger.Get(ctx, registry.PointerKey(name.ID))
	if err != nil {
		return d, err
	}
	if !records[0].Exists() {
		return d, p.endedError(ctx, by, name)
	}
	if d, err = p.droppedOf(ctx, records[0]); err != nil {
		return d, err
	}
	if !name.isOf(d.pointer) {
		return d, name.none()
	}
	err = p.directory.May(ctx, by, asked, d.found(), d.pointer.Identifier())
	if moorage.IsHidden(err) {
		err = gate.Hide(name.none()) // the error must not show the name
	}
	return d, err
}

func (p *parts) droppedOf(ctx context.Context, record registry.Record) (d droppedPointer, err error) {
	d.record = record
	if d.pointer, err = ledger.Decode[registry.Pointer](record); err != nil {
		return d, err
	}
	d.above, err = p.directory.AboveOf(ctx, d.pointer)
	return d, err
}

// namesakesMax is the maximum number of dropped objects of one name that a search by name reads.
const namesakesMax = 1000

// resolveDropped sets the ID in a DroppedName without one. It chooses the object of that name that
// was dropped last and is visible to the caller. If there is none, it chooses the live table or
// view of that name.
//
// Errors: KindNotFound, KindNoSuchWarehouse.
func (p *parts) resolveDropped(ctx context.Context, by directory.Asker, name DroppedName) (DroppedName, error) {
	if err := name.check(); err != nil || !name.ID.IsZero() {
		return name, err
	}
	on := moorage.Identifier{Warehouse: name.Ident.Warehouse}
	path, err := p.directory.PathFor(ctx, by, access.See, on)
	if err != nil {
		return name, err
	}
	prefix := registry.DroppedNamePrefix(path.Warehouse.ID, name.Ident.Namespace, name.Ident.Name)
	looked := 0
	err = p.ledger.Scan(ctx, registry.TableDropped, prefix, "", func(record registry.Record) (bool, error) {
		looked++
		value, err := registry.Decode[registry.Dropped](record)
		if err != nil || record.State != registry.StateDropped { // losing a damaged record costs only a hint
			return looked < namesakesMax, nil
		}
		found, err := p.standing(ctx, record.Key, value.ID)
		if err != nil || found.IsZero() {
			return looked < namesakesMax, err
		}
		asked := name
		asked.ID = value.ID
		_, err = p.droppedByID(ctx, by, access.See, asked)
		if kind := moorage.KindOf(err); err != nil && kind == moorage.KindNotFound {
			return looked < namesakesMax, nil // it is hidden, of another kind, or has just ended
		}
		if err == nil {
			name = asked
		}
		return false, err
	})
	if err != nil || !name.ID.IsZero() {
		return name, err
	}
	if name.ID, err = p.liveOf(ctx, by, name); err == nil && name.ID.IsZero() {
		err = p.endedError(ctx, by, name)
	}
	return name, err
}

// standing returns id if the pointer with that ID is dropped and belongs to the dropped record with
// this key. Otherwise it returns zero: then a node of version 0.1.0 has restored or ended the
// pointer, and left the record.
func (p *parts) standing(ctx context.Context, key registry.Key, id registry.ID) (registry.ID, error) {
	records, err := p.ledger.Get(ctx, registry.PointerKey(id))
	if err != nil {
		return registry.ID{}, err
	}
	if pointer, err := registry.Decode[registry.Pointer](records[0]); err != nil ||
		!records[0].State.IsDropped() || pointer.DroppedKey(records[0].State) != key {
		return registry.ID{}, nil
	}
	return id, nil
}

// seesDropped returns the privilege that a caller needs to learn about a dropped object.
func seesDropped() access.Privileges { return gate.ListDropped.Needs(gate.OfDropped, gate.Always) }

// liveOf returns the id of the live table or view called name, or zero if none is visible to the
// caller.
func (p *parts) liveOf(ctx context.Context, by directory.Asker, name DroppedName) (registry.ID, error) {
	for _, of := range []*directory.Kind{directory.Table(), directory.View()} {
		if !name.isOf(registry.Pointer{View: of == directory.View()}) {
			continue
		}
		found, err := p.directory.FindFor(ctx, by, seesDropped(), of, name.Ident)
		switch moorage.KindOf(err) {
		case of.Missing, moorage.KindNoSuchNamespace, moorage.KindForbidden:
			if err != nil {
				continue
			}
		}
		if err != nil {
			return registry.ID{}, err
		}
		return found.Pointer.ID, nil
	}
	return registry.ID{}, nil
}

// endedError returns the error for a name whose objects cannot be restored. If the caller may know
// about the last of these objects, the error explains how it ended, and how its files can be
// registered.
func (p *parts) endedError(ctx context.Context, by directory.Asker, name DroppedName) error {
	none := name.none()
	if name.Ident.Name == "" {
		return none
	}
	path, err := p.directory.Path(ctx, name.Ident.Warehouse, nil)
	if err != nil {
		return none
	}
	var last registry.Dropped
	looked := 0
	prefix := registry.DroppedNamePrefix(path.Warehouse.ID, name.Ident.Namespace, name.Ident.Name)
	err = p.ledger.Scan(ctx, registry.TableDropped, prefix, "", func(record registry.Record) (bool, error) {
		looked++
		value, err := registry.Decode[registry.Dropped](record)
		isTable, isView := value.Kind == registry.ItemTable, value.Kind == registry.ItemView
		if err != nil || record.State != registry.StateEnded || !name.ID.IsZero() && name.ID != value.ID ||
			name.Kind == access.Table && !isTable || name.Kind == access.View && !isView || !isTable && !isView {
			return looked < namesakesMax, nil
		}
		last = value
		return false, nil
	})
	if err != nil || last.ID.IsZero() {
		return none
	}
	above, err := p.aboveEnded(ctx, last)
	if err != nil {
		return err
	}
	found := &directory.Found{
		Pointer: registry.Pointer{ID: last.ID, View: last.Kind == registry.ItemView}, Above: above,
	}
	if p.directory.May(ctx, by, seesDropped(), found, last.Ident) != nil {
		return none
	}
	text := fmt.Sprintf("%s cannot come back: it %s", last.Ident, endedHow(last))
	file, err := p.fileOfEnded(ctx, last)
	if err != nil {
		return err
	}
	if last.How != registry.EndedPurge && last.Kind == registry.ItemTable && file != "" {
		text += fmt.Sprintf(". If its files are still there: moorage register %s %s",
			moorage.ShellWord(last.Ident.PersonName()), moorage.ShellWord(file))
	}
	return moorage.Errorf(moorage.KindNotFound, "%s", text)
}

// endedHow describes how an object ended. The text continues a sentence that begins with "it".
func endedHow(ended registry.Dropped) string {
	how := "ended"
	switch ended.How {
	case registry.EndedPurge:
		how = "was purged"
	case registry.EndedUnregister:
		how = "was unregistered"
	case registry.EndedWindow:
		how = "was dropped, and its time to come back ended"
	case registry.EndedForget:
		how = "was dropped and forgotten"
	case registry.EndedDrop:
		how = "was dropped"
	}
	text := how + " at " + ended.Ended.UTC().Format(time.RFC3339)
	dropped := ended.By != "" && ended.By != ended.EndedBy && ended.How != registry.EndedDrop
	switch {
	case dropped:
		text += fmt.Sprintf("; %s dropped it at %s", moorage.NameOf(ended.By), ended.At.UTC().Format(time.RFC3339))
	case ended.EndedBy != "":
		text += " by " + moorage.NameOf(ended.EndedBy)
	}
	return text
}

// droppedSlack is the assumed maximum difference between the clocks of the nodes and of the store.
const droppedSlack = time.Minute

// aboveEnded returns the containers of an object at the time of its drop, if they still exist. A
// container that may be younger than the drop does not count, because an earlier one had its name.
func (p *parts) aboveEnded(ctx context.Context, ended registry.Dropped) ([]access.Object, error) {
	namespace := ended.Ident.Namespace
	path, err := p.directory.Path(ctx, ended.Ident.Warehouse, namespace)
	switch kind := moorage.KindOf(err); {
	case err == nil, kind == moorage.KindNoSuchNamespace:
		return path.AboveAt(ended.At.Add(-droppedSlack)), nil
	case kind == moorage.KindNoSuchWarehouse:
		return nil, nil
	}
	return nil, err
}

// fileOfEnded returns the metadata file of an ended table or view at the time of its drop. It
// returns "" if the log no longer has the drop.
func (p *parts) fileOfEnded(ctx context.Context, ended registry.Dropped) (string, error) {
	if ended.Change.IsZero() {
		return "", nil
	}
	records, err := p.ledger.Get(ctx, registry.ChangeKey(ended.Change))
	if err != nil || !records[0].Exists() {
		return "", err
	}
	change, err := registry.DecodeChange(records[0])
	if err != nil {
		return "", nil // the log is damaged; moorage doctor --deep reports it
	}
	for _, item := range change.Items {
		if item.ID == ended.ID {
			return item.PreviousMetadataLocation, nil
		}
	}
	return "", nil
}
