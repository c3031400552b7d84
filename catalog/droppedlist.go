package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/history"
	"moorage/registry"
	"moorage/storage"
)

// Bounds of one page of dropped objects.
const (
	// Not every record becomes a row. A page looks at up to droppedLookedTimes records for each row
	// that it may return, but always at up to droppedLookedMin records.
	droppedLookedMin, droppedLookedTimes = 1000, 10
	// droppedReadMin is the minimum number of records that are read at once, even if few rows are
	// wanted.
	droppedReadMin = 100
	// droppedStatsMax is the maximum number of metadata files that a list by name checks for
	// existence.
	droppedStatsMax = 10
	// droppedStatPatience bounds how long a list waits for one such check.
	droppedStatPatience = 2 * time.Second
)

// UndropYes is the value of DroppedRow.Undrop for an object that can be restored.
const UndropYes = "yes"

// DroppedListing selects dropped objects.
type DroppedListing struct {
	Warehouse string
	Namespace moorage.Namespace // empty for the whole warehouse
	Recursive bool              // include objects from namespaces below Namespace
	Name      string            // the last name; empty for all names. It requires a Namespace
	Ended     bool              // include objects that have ended for good, if the log still has them
	ID        registry.ID       // only the dropped object with this id; zero for all
}

// DroppedRow is a dropped object in a list.
type DroppedRow struct {
	ID    registry.ID
	Kind  string // registry.ItemTable, ItemView, or for an ended namespace ItemNamespace
	Ident moorage.Identifier
	UUID  string
	State registry.State // StateDropped, StatePurging or StateEnded
	At    time.Time      // of the drop, by the store's clock
	By    string         // the caller of the drop; empty if unknown
	// Change is the change that dropped the object. It is zero if unknown.
	Change registry.ID
	// EndsAt is the time, by the store's clock, after which the object can no longer be restored.
	// It is zero if the object cannot be restored now.
	EndsAt           time.Time
	Purge            string // history.PurgeNone or another constant of its group
	MetadataLocation string // empty for an object that has ended
	Summary          *registry.Summary
	// Undrop is UndropYes, or one sentence that explains why the object cannot be restored.
	Undrop string
	// Ended, How and EndedBy are as in registry.Dropped.
	Ended        time.Time
	How, EndedBy string
}

// List returns a page of the dropped objects that the caller may describe, by namespace and name,
// and for equal names latest drop first. A page can be short or empty without being the last. To
// get the next page, pass next as page.After. next is empty on the last page. A list by name also
// checks that the metadata files exist.
//
// Errors: KindBadRequest, KindNoSuchWarehouse, KindUnavailable.
func (d Dropped) List(ctx context.Context, of DroppedListing, page moorage.Page) (
	rows []DroppedRow, next string, err error) {
	rows, next, err = d.catalog.listDropped(ctx, of, page)
	return rows, next, moorage.Annotate("catalog.List", of.Warehouse, err)
}

func (c *Catalog) listDropped(ctx context.Context, of DroppedListing, page moorage.Page) (
	rows []DroppedRow, next string, err error) {
	if err := moorage.ValidateWarehouse(of.Warehouse); err != nil {
		return nil, "", err
	}
	if len(of.Namespace) > 0 {
		if err := of.Namespace.Validate(); err != nil {
			return nil, "", err
		}
	} else if of.Name != "" {
		return nil, "", moorage.Errorf(moorage.KindBadRequest, "The name of a dropped object needs its namespace")
	}
	by, on := c.asker(gate.ListDropped), moorage.Identifier{Warehouse: of.Warehouse}
	path, err := c.directory.PathFor(ctx, by, access.See, on)
	if err != nil {
		return nil, "", err
	}
	err = c.directory.RecheckAt(ctx, by, access.See, path, on, func(ctx context.Context) (err error) {
		rows, next, err = c.pageOfDropped(ctx, path.Warehouse, of, page)
		return err
	})
	return rows, next, err
}

// droppedPage makes one page of a list of dropped objects.
type droppedPage struct {
	*parts
	of   DroppedListing
	who  *access.Who        // nil if the caller sees everything
	made map[access.ID]bool // the containers in which the caller created an object
	// paths caches the paths of namespaces that occurred on the page. Each has the existing part.
	paths map[string]*directory.Path
	rows  []DroppedRow
	keys  []string // the key of each row's record
}

// prefix returns the prefix of the records that a list selects.
func (l DroppedListing) prefix(warehouse registry.ID) string {
	switch {
	case l.Name != "":
		return registry.DroppedNamePrefix(warehouse, l.Namespace, l.Name)
	case l.Recursive || len(l.Namespace) == 0:
		return registry.DroppedPrefix(warehouse, l.Namespace)
	}
	return registry.DroppedNamesPrefix(warehouse, l.Namespace)
}

// pageOfDropped returns the page of a list that begins at page.After. It reads records until the
// page is full, or until it has looked at the maximum number of records.
func (c *Catalog) pageOfDropped(ctx context.Context, warehouse registry.Warehouse, of DroppedListing,
	page moorage.Page) (rows []DroppedRow, next string, err error) {
	p := &droppedPage{parts: c.parts, of: of, paths: make(map[string]*directory.Path)}
	if p.who, err = c.guard.ForLists(ctx, c.caller); err != nil {
		return nil, "", err
	}
	if p.who != nil {
		if p.made, err = c.guard.MadeIn(ctx, c.caller); err != nil {
			return nil, "", err
		}
	}
	prefix, list := of.prefix(warehouse.ID), "dropped "+warehouse.ID.String()
	if !of.ID.IsZero() {
		if prefix, err = c.keyOfDropped(ctx, prefix, of.ID); err != nil || prefix == "" {
			return nil, "", err
		}
	}
	after, isOpen := strings.CutPrefix(page.After, openMark)
	if !isOpen {
		if after, err = c.guard.UnsealPage(ctx, list, after); err != nil {
			return nil, "", err
		}
	}
	if after != "" {
		after = prefix + after
	}
	if page.Limit <= 0 {
		page.Limit = registry.ListLimitMax
	}
	lookedMax := max(droppedLookedMin, droppedLookedTimes*page.Limit)
	for looked := 0; ; {
		// Most records may yield no row, so wanting few rows is no reason to read few records.
		limit := min(max(page.Limit-len(p.rows), droppedReadMin), lookedMax-looked, registry.ListLimitMax)
		records, err := c.ledger.List(ctx, registry.TableDropped, prefix, after, limit)
		if err != nil {
			return nil, "", err
		}
		if err := p.add(ctx, records); err != nil {
			return nil, "", err
		}
		isCut := len(p.rows) > page.Limit
		if !isCut && registry.IsLastPage(records, limit) {
			return p.rows, "", nil
		}
		after = records[len(records)-1].Key.ID
		if looked += len(records); len(p.rows) < page.Limit && looked < lookedMax {
			continue
		}
		if isCut {
			p.rows, after = p.rows[:page.Limit], p.keys[page.Limit-1]
		}
		next, err := c.guard.SealPage(ctx, c.random, list, strings.TrimPrefix(after, prefix))
		if err == nil && !strings.HasPrefix(next, gate.SealedMark) {
			next = openMark + next
		}
		return p.rows, next, err
	}
}

// openMark is the prefix of a position that is not encrypted. A position has several names, and is
// not taken for a name with this prefix. See browse.openMark.
const openMark = gate.SealedMark + "dropped:"

// keyOfDropped returns the ID in the key of the dropped record for pointer id. It returns "" if
// there is no such dropped pointer, or if the ID does not begin with prefix.
func (p *parts) keyOfDropped(ctx context.Context, prefix string, id registry.ID) (string, error) {
	records, err := p.ledger.Get(ctx, registry.PointerKey(id))
	if err != nil || !records[0].State.IsDropped() {
		return "", err
	}
	pointer, err := registry.Decode[registry.Pointer](records[0])
	if err != nil {
		return "", nil // moorage doctor --deep reports damaged records
	}
	key := pointer.DroppedKey(records[0].State).ID
	if !strings.HasPrefix(key, prefix) {
		return "", nil
	}
	return key, nil
}

// add adds the rows of records. A record gets no row if its pointer is not dropped, or was dropped
// at another time: a node of version 0.1.0 left such a record.
func (p *droppedPage) add(ctx context.Context, records []registry.Record) error {
	var values []registry.Dropped
	var kept []registry.Record
	var keys []registry.Key
	for _, record := range records {
		value, err := registry.Decode[registry.Dropped](record)
		if err != nil || record.State != registry.StateDropped && !p.of.Ended {
			continue // moorage doctor --deep reports damaged records
		}
		values, kept = append(values, value), append(kept, record)
		keys = append(keys, registry.PointerKey(value.ID))
	}
	if len(keys) == 0 {
		return nil
	}
	pointers, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	var dropped []droppedPointer
	var rows []int // the index in p.rows of each element of dropped
	for i, value := range values {
		if kept[i].State == registry.StateEnded {
			err = p.addEnded(ctx, kept[i].Key, value)
		} else {
			var d droppedPointer
			var shown bool
			if d, shown, err = p.dropped(ctx, kept[i].Key, pointers[i]); shown {
				dropped, rows = append(dropped, d), append(rows, len(p.rows))
				p.rows, p.keys = append(p.rows, p.rowOf(value, d)), append(p.keys, kept[i].Key.ID)
			}
		}
		if err != nil {
			return err
		}
	}
	why, err := p.whyNot(ctx, dropped)
	for i, text := range why {
		p.rows[rows[i]].Undrop = text
	}
	return err
}

// addEnded adds the row of an object that has ended, if the caller may describe it. What counts is
// the nearest container that still exists. key is the key of its record.
func (p *droppedPage) addEnded(ctx context.Context, key registry.Key, value registry.Dropped) error {
	if p.who != nil {
		path, err := p.path(ctx, value.Ident.Warehouse, value.Ident.Namespace)
		if err != nil || !p.describes(path.AboveAt(value.At.Add(-droppedSlack))) {
			return err
		}
	}
	row := p.rowOf(value, droppedPointer{})
	row.State, row.Undrop = registry.StateEnded, "It "+endedHow(value)+"."
	if value.Kind == registry.ItemNamespace {
		row.Undrop = "A namespace does not come back itself: make it again."
	}
	p.rows, p.keys = append(p.rows, row), append(p.keys, key.ID)
	return nil
}

// dropped returns the dropped object of a pointer record. shown is false if the dropped record with
// this key does not belong to the pointer, or if the caller may not describe the object.
func (p *droppedPage) dropped(ctx context.Context, key registry.Key, record registry.Record) (
	d droppedPointer, shown bool, err error) {
	d.record = record
	if d.pointer, err = registry.Decode[registry.Pointer](record); err != nil ||
		!record.State.IsDropped() || d.pointer.DroppedKey(record.State) != key {
		return d, false, nil
	}
	path, err := p.path(ctx, d.pointer.Warehouse, d.pointer.Namespace)
	if err != nil {
		return d, false, err
	}
	if d.above = path.Above(); path.ID() != d.pointer.NamespaceID { // like directory.AboveOf
		d.above = d.above[len(d.above)-1:]
	}
	return d, p.describes(append([]access.Object{directory.ObjectOf(d.pointer)}, d.above...)), nil
}

// describes reports whether the caller may describe the object at path.
func (p *droppedPage) describes(path []access.Object) bool { return p.allows(path, seesDropped()) }

// allows reports whether the caller has a privilege on the object at path.
func (p *droppedPage) allows(path []access.Object, asked access.Privileges) bool {
	if p.who == nil {
		return true
	}
	for i := range path {
		path[i].OwnsInside = p.made[path[i].ID]
	}
	return p.who.Decide(path, asked).Outcome == access.Allow
}

// path returns the existing part of the path to a namespace.
func (p *droppedPage) path(ctx context.Context, warehouse string, namespace moorage.Namespace) (
	*directory.Path, error) {
	key := strings.Join(namespace, "\x00")
	if path, known := p.paths[key]; known {
		return path, nil
	}
	path, err := p.directory.Path(ctx, warehouse, namespace)
	if err != nil && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
		return nil, err
	}
	p.paths[key] = path
	return path, nil
}

// rowOf returns the row of a dropped object. d is zero for an object that has ended.
func (p *droppedPage) rowOf(value registry.Dropped, d droppedPointer) DroppedRow {
	row := DroppedRow{
		ID: value.ID, Kind: value.Kind, Ident: value.Ident, UUID: value.UUID, State: d.record.State, At: value.At,
		By: value.By, Change: value.Change, Purge: history.PurgeNone, Ended: value.Ended, How: value.How,
		EndedBy: value.EndedBy, MetadataLocation: d.pointer.MetadataLocation,
	}
	if d.pointer.ID.IsZero() {
		return row
	}
	row.Summary = d.pointer.LastIn(d.record.State).Summary
	row.Purge, row.EndsAt = history.PurgeOf(d.pointer, d.record.State, p.undropWindow)
	return row
}

// whyNot returns, for each dropped object, UndropYes or the reason why it cannot be restored. Only
// callers with the right to create objects in the namespace learn that another object has its name
// or location. They could find that out by a create anyway.
func (p *droppedPage) whyNot(ctx context.Context, dropped []droppedPointer) ([]string, error) {
	why := make([]string, len(dropped))
	var keys []registry.Key
	var of []int // the index in dropped of each key
	for i, d := range dropped {
		why[i] = UndropYes
		path, err := p.path(ctx, d.pointer.Warehouse, d.pointer.Namespace)
		if err != nil {
			return nil, err
		}
		switch {
		case d.record.State == registry.StatePurging && d.pointer.Task.IsZero():
			why[i] = "Its purge had begun when it was called off, so some of its files may be gone."
			continue
		case d.record.State == registry.StatePurging:
			why[i] = fmt.Sprintf("Its purge began at %s.", d.pointer.Since.UTC().Format(time.RFC3339))
			continue
		case path.Depth() < len(d.pointer.Namespace):
			why[i] = "Its namespace is gone: make the namespace, or choose another name."
		case !p.allows(path.Above(), gate.Undrop.Needs(gate.OfContainer, gate.Always)):
			continue
		default:
			keys, of = append(keys, registry.EntryKey(path.ID(), d.pointer.Name)), append(of, i)
		}
		claimed := d.pointer.Claims
		if p.of.Name == "" { // for many rows, check only the present location
			claimed = claimed[max(0, len(claimed)-1):]
		}
		for _, location := range claimed {
			keys, of = append(keys, registry.LocationKey(location)), append(of, i)
		}
	}
	if len(keys) > 0 {
		records, err := p.ledger.Get(ctx, keys...)
		if err != nil {
			return nil, err
		}
		for i, record := range records {
			if text := whyTaken(record, dropped[of[i]].pointer.ID); text != "" {
				why[of[i]] = text
			}
		}
	}
	if p.of.Name == "" {
		return why, nil
	}
	for i, d := range dropped[:min(len(dropped), droppedStatsMax)] {
		if d.record.State == registry.StateDropped && p.isFileGone(ctx, d.pointer) {
			why[i] = "Its metadata file is gone, so an engine has deleted its files."
		}
	}
	return why, nil
}

// whyTaken returns why record prevents the restoration of the dropped pointer id. record belongs to
// the pointer's name or to one of its locations. The result is empty if the record prevents
// nothing.
func whyTaken(record registry.Record, id registry.ID) string {
	switch {
	case !record.Exists():
	case record.Key.Table == registry.TableEntry:
		return "A live table or view has its name: choose another name, or replace that one."
	case record.State == registry.StateOwner:
		claim, err := registry.Decode[registry.LocationClaim](record)
		if err == nil && claim.Pointer != id {
			return "Another table or view has its location."
		}
	}
	return ""
}

// isFileGone reports whether a dropped object's metadata file is certainly missing.
func (p *droppedPage) isFileGone(ctx context.Context, pointer registry.Pointer) bool {
	path, err := p.path(ctx, pointer.Warehouse, pointer.Namespace)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, droppedStatPatience)
	defer cancel()
	_, err = path.Storage.Stat(ctx, pointer.MetadataLocation)
	return errors.Is(err, storage.ErrNotFound)
}
