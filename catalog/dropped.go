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

// Dropped has the verbs on dropped tables and views, for one caller: see Catalog.Dropped. It is
// safe for concurrent use.
//
// It promises:
//
//   - A list shows what can come back, and why something cannot: TestListDropped.
//   - Each situation of an undrop has one answer, on each store: TestUndrop.
//   - An undrop, and what could stop it at the same time, end in one order: TestRaces, whose rows
//     of undropRaces enumerate the calls of the store between the two.
//   - The end of a table before its time leaves nothing that could bring it back: TestPurgeDropped,
//     TestForget.
type Dropped struct{ catalog *Catalog }

// Dropped returns the verbs on dropped tables and views, for the caller of c and the key of its
// request.
func (c *Catalog) Dropped() Dropped { return Dropped{c} }

// DroppedName identifies a dropped table or view: by its id, or else by its last name. Of several
// with one name it means the one that was dropped last.
type DroppedName struct {
	ID    registry.ID // zero: by Ident
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

// isOf reports whether n means objects of the pointer's kind.
func (n DroppedName) isOf(pointer registry.Pointer) bool {
	return n.Kind == access.Server || (n.Kind == access.View) == pointer.View
}

// none returns the error for a caller that finds nothing of the name n.
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

// droppedPointer is a dropped table or view, with its containers as far as they still exist. It may
// also be live or gone: the caller looks at the state of the record.
type droppedPointer struct {
	record  registry.Record
	pointer registry.Pointer
	above   []access.Object
	kept    []registry.Condition // for a change that protection refuses: see unprotectedDropped
}

// found returns d in the form that an access decision needs.
func (d droppedPointer) found() *directory.Found {
	return &directory.Found{Record: d.record, Pointer: d.pointer, Above: d.above}
}

// droppedByID returns the pointer with the id of name, whatever its state, if the caller has the
// privileges asked on it.
//
// Errors: KindNotFound, hidden if the caller does not see the object; KindForbidden.
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

// namesakesMax bounds how many dropped objects of one name a look by name reads.
const namesakesMax = 1000

// resolveDropped sets the id of a name without one. It is the object of that name that was dropped
// last, and that the caller sees. Without such an object it is the live table or view of that name.
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
		if err != nil || record.State != registry.StateDropped { // a damaged record is only a hint lost
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

// standing returns id if the pointer with it is dropped and belongs to the dropped record with this
// key. Otherwise it returns zero: a node of version 0.1.0 restored or ended the pointer, and left
// the record.
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

// liveOf returns the id of the live table or view called name, or zero if the caller sees none.
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

// endedError returns the error for a name whose objects cannot come back. If the caller may know
// it, the error says how the last object of that name ended, and how its files can be registered.
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

// endedHow describes the end of an object, after "it".
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

// droppedSlack is how much the clocks of the nodes and of the store may differ.
const droppedSlack = time.Minute

// aboveEnded returns the containers that an object had when it was dropped, as far as they still
// exist. A container that may be younger than the drop does not count: another one had its name.
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

// fileOfEnded returns the metadata file that an ended table or view had at its drop, as long as the
// log has that drop. Otherwise it is empty.
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
