package catalog

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// DropTable removes a table's name, and keeps the pointer and its claims for the undrop window. In
// that time the table can be restored. The same Apply writes a record with the end of the window.
// With options.Purge, the record has the time when the purge may begin instead: see
// metadata.PropPurgeDelay. Until then the table can be restored. If the purge has no delay, the
// Apply writes the task of the purge. A worker deletes the files as soon as no answer to a repeated
// request can need them (see registry.Pointer). The metadata file need not exist.
//
// Errors: KindNoSuchTable, KindUnavailable, KindCommitUnknown. Durable when it returns. Source:
// REST specification, dropTable.
func (c *Catalog) DropTable(ctx context.Context, ident moorage.Identifier, options DropOptions) error {
	_, err := c.submit(ctx, c.drop(c.asker(gate.DropTable), tableKind, ident, options))
	return moorage.Annotate("catalog.DropTable", ident.String(), err)
}

// drop returns the intent to drop a table or view.
func (p *parts) drop(by directory.Asker, k *kind, ident moorage.Identifier, options DropOptions) commit.Intent {
	met := gate.Always
	if options.Purge {
		met = gate.IfPurging
	}
	asked := k.drop.Needs(gate.OfObject, met)
	return commit.Intent{
		Verb: k.drop, On: []moorage.Identifier{ident},
		Look: func(ctx context.Context) (commit.Scope, error) { return p.scopeOf(ctx, by, asked, k, ident) },
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (dropping, error) {
			return p.readDropping(ctx, by, asked, k, ident, options)
		}, planDrop),
	}
}

// UnregisterTable removes a table's name and forgets the table at once. It deletes no files. It
// returns the last version, which contains every successful commit.
//
// Errors: the errors of DropTable, and also of LoadTable, because the answer needs the metadata
// file. Source: REST specification, unregisterTable.
func (c *Catalog) UnregisterTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	by := c.asker(gate.Unregister)
	outcome, err := c.submit(ctx, commit.Intent{
		Verb: gate.Unregister, On: []moorage.Identifier{ident},
		Look: func(ctx context.Context) (commit.Scope, error) {
			return c.scopeOf(ctx, by, by.Verb.Needs(gate.OfObject, gate.Always), tableKind, ident)
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (leaving, error) {
			return c.readLeaving(ctx, by, ident)
		}, planUnregister),
	})
	return tableOf(outcome.Version), moorage.Annotate("catalog.UnregisterTable", ident.String(), err)
}

// named is a table or view for an operation on both its name and its pointer. The operation
// requires that neither has changed since it was read.
type named struct {
	ident   moorage.Identifier
	entry   directory.Entry
	pointer *directory.Found
	path    *directory.Path      // of its namespace
	above   []registry.Condition // require unchanged containers, if protection can refuse the change
}

// conditions requires that the name and the pointer are unchanged.
func (n named) conditions() []registry.Condition {
	return append([]registry.Condition{
		registry.ETagIs(n.entry.Record.Key, n.entry.Record.ETag),
		registry.ETagIs(n.pointer.Record.Key, n.pointer.Record.ETag),
	}, n.above...)
}

// scopeOf returns the lock scope of a verb on the name and the pointer of a table or view, and on
// further names.
func (p *parts) scopeOf(ctx context.Context, by directory.Asker, asked access.Privileges, k *kind,
	ident moorage.Identifier, others ...moorage.Identifier) (commit.Scope, error) {
	if err := ident.Validate(); err != nil {
		return commit.Scope{}, err
	}
	found, err := p.directory.FindFor(ctx, by, asked, k.Kind, ident)
	if err != nil {
		return commit.Scope{}, err
	}
	return commit.Scope{
		Warehouse: ident.Warehouse, Names: append([]moorage.Identifier{ident}, others...),
		Pointers: []registry.ID{found.Pointer.ID},
	}, nil
}

// readNamed reads the name and the pointer of a table or view, with the path to its namespace, if
// the caller has the privileges asked.
func (p *parts) readNamed(ctx context.Context, by directory.Asker, asked access.Privileges, k *kind,
	ident moorage.Identifier) (named, error) {
	found, err := p.directory.FindFor(ctx, by, asked, k.Kind, ident)
	if err != nil {
		return named{}, err
	}
	path, entry, err := p.directory.PathAndEntry(ctx, ident)
	if moorage.KindOf(err) == moorage.KindNoSuchNamespace && err != nil {
		return named{}, ledger.ErrRetry // in the meantime, it was renamed and its namespace dropped
	}
	if err != nil {
		return named{}, err
	}
	if path.ID() != found.Pointer.NamespaceID || !entry.Record.Exists() || entry.Value.Pointer != found.Pointer.ID {
		return named{}, ledger.ErrRetry
	}
	// found may have come with an earlier version of the warehouse, see directory.WarehouseTrust.
	return named{ident: ident, entry: entry, pointer: p.directory.Along(path, found), path: path}, nil
}

// readUnprotected is like readNamed, for a change that protection can refuse.
func (p *parts) readUnprotected(ctx context.Context, by directory.Asker, asked access.Privileges, k *kind,
	ident moorage.Identifier) (named, error) {
	n, err := p.readNamed(ctx, by, asked, k, ident)
	if err == nil {
		n.above, err = unprotected(n.path, n.pointer.Pointer, ident)
	}
	return n, err
}

// dropping is a table or view that will be dropped, with the records that were read for it.
type dropping struct {
	named
	now   time.Time     // the present time by the store's clock
	task  registry.ID   // the id of the purge task; zero if there is no purge
	delay time.Duration // how long the purge waits
	bytes int64         // the total size of the files, zero if the metadata lacks it
	undo  time.Duration // how long a table that is dropped without a purge can be restored
	// keyLife is how long outcomes are kept.
	keyLife time.Duration
}

func (p *parts) readDropping(ctx context.Context, by directory.Asker, asked access.Privileges, k *kind,
	ident moorage.Identifier, options DropOptions) (d dropping, err error) {
	if d.named, err = p.readUnprotected(ctx, by, asked, k, ident); err != nil {
		return d, err
	}
	d.keyLife = p.keyLife
	if d.now, err = p.ledger.Time(ctx); err != nil {
		return d, err
	}
	d.undo = p.undropWindow
	if !options.Purge {
		return d, nil
	}
	if d.delay, err = p.purgeDelayIn(ctx, ident.Warehouse); err != nil {
		return d, err
	}
	if d.delay > 0 {
		d.bytes = p.bytesOf(ctx, d.pointer)
	}
	d.task, err = p.ledger.NewID()
	return d, err
}

// replayable returns the time until which the answer to a repeated request may need a version of
// the table. The result is at most keyLife from now, because a later time in the record was written
// by a clock that was ahead.
func (d dropping) replayable() time.Time {
	until := d.pointer.Pointer.ReplayableUntil
	if limit := d.now.Add(d.keyLife); until.After(limit) {
		return limit
	}
	return until
}

// purgeDelayIn returns the purge delay of a warehouse's tables.
func (p *parts) purgeDelayIn(ctx context.Context, warehouse string) (time.Duration, error) {
	path, err := p.directory.Path(ctx, warehouse, nil)
	if err != nil {
		return 0, err
	}
	if said, set := path.Warehouse.Properties[metadata.PropPurgeDelay]; set {
		return metadata.ParsePurgeDelay(said)
	}
	return p.purgeDelay, nil
}

// bytesPatience bounds how long a drop waits for the table's metadata file. The file has the number
// of bytes that the purge will free. That number is only for display, so the drop succeeds without
// it.
const bytesPatience = 2 * time.Second

// bytesOf returns the total size of the files in a table's current snapshot, or zero if the
// metadata does not have it.
func (p *parts) bytesOf(ctx context.Context, found *directory.Found) int64 {
	ctx, cancel := context.WithTimeout(ctx, bytesPatience)
	defer cancel()
	document, err := p.documents.Of(ctx, documents.RefOf(found.Pointer, found.Storage))
	if table, ok := document.(*metadata.Document); ok && err == nil {
		return max(0, table.Summary().Bytes)
	}
	return 0
}

// until returns the time, by the store's clock, until which the dropped object can be restored. A
// purge without a delay may begin at once.
func (d dropping) until() time.Time {
	if d.task.IsZero() {
		return d.now.Add(d.undo)
	}
	return d.now.Add(d.delay)
}

// told returns the log line for the drop.
func (d dropping) told() commit.Told {
	told := commit.Told{Attrs: []slog.Attr{
		slog.String("kind", nounOf(d.pointer.Pointer)), slog.String("ident", d.ident.String()),
		slog.String("warehouse", d.ident.Warehouse), slog.String("owner", moorage.NameOf(d.pointer.Pointer.Creator)),
		slog.Time("until", d.until()), slog.String("file", d.pointer.Pointer.MetadataLocation),
	}}
	switch {
	case d.task.IsZero():
		told.Message = "dropped: it comes back if its metadata file is registered in time"
	case d.delay > 0:
		told.Message = "dropped with its files, which are purged later: " +
			"it comes back if its metadata file is registered in time"
		told.Attrs = append(told.Attrs, slog.String("purge", d.task.String()), slog.Int64("bytes", d.bytes))
	default:
		told.Message = "dropped with its files, which are purged now"
		told.Attrs = append(told.Attrs, slog.String("purge", d.task.String()))
	}
	return told
}

// nounOf returns "table" or "view" for a pointer.
func nounOf(pointer registry.Pointer) string {
	if pointer.View {
		return "view"
	}
	return "table"
}

func planDrop(attempt *commit.Attempt, d dropping) (*commit.Plan, error) {
	dropped := d.pointer.Pointer
	dropped.Since, dropped.Dropped, dropped.Task, dropped.PurgeDelay = d.now, d.now, d.task, d.delay
	dropped.Storage, dropped.WarehouseID = d.pointer.Place.Options, d.pointer.Warehouse
	if !dropped.View {
		dropped.ReachableUntil = vending.ReachableUntil(d.now, d.pointer.Delegation, d.pointer.Storage)
	}
	dropped.Secret = d.pointer.Secret
	summary := dropped.LastIn(registry.StateLive).Summary
	dropped.Last = dropped.Written(registry.StateDropped, attempt.Change, summary)
	var end registry.Value = registry.Due{}
	switch {
	case dropped.PurgeWaits():
		dropped.ReplayableUntil = d.replayable() // a purge that has begun also waits until then
		end = registry.Due{Purge: true, Task: d.task, Warehouse: d.pointer.Warehouse, Bytes: d.bytes}
	case !d.task.IsZero():
		end = registry.Task{
			ID: d.task, Kind: registry.TaskPurge, Pointer: dropped.ID,
			Created: d.now, NotBefore: d.replayable(),
		}
	}
	writes, err := ledger.Encode(
		ledger.Replace(d.pointer.Record, registry.StateDropped, &dropped),
		ledger.Put(dropped.EndKey(), registry.StateNone, end),
		ledger.Put(dropped.DroppedKey(registry.StateDropped), registry.StateDropped,
			dropped.AsDropped(registry.StateDropped, attempt.Change)))
	item := registry.PointerItem(d.pointer.Pointer, registry.Pointer{})
	item.Purge = !d.task.IsZero()
	return &commit.Plan{
		Conditions: d.conditions(),
		Writes:     append(writes, ledger.Delete(d.entry.Record)),
		Items:      []registry.Item{item},
		Purges:     !d.task.IsZero() && !dropped.PurgeWaits(),
		Told:       d.told(),
	}, err
}

// leaving is a table that will be unregistered, with the records that were read for it.
type leaving struct {
	named
	document document
	gone     registry.Pointer     // the pointer in the form of a dropped one
	released []registry.Condition // they require that its claims and jobs are unchanged
	deletes  []registry.Write     // they delete its claims, jobs and labels
	policy   ledger.Policy        // it ends the table's grants
}

func (p *parts) readLeaving(ctx context.Context, by directory.Asker, ident moorage.Identifier) (
	l leaving, err error) {
	asked := by.Verb.Needs(gate.OfObject, gate.Always)
	if l.named, err = p.readUnprotected(ctx, by, asked, tableKind, ident); err != nil {
		return l, err
	}
	if l.document, err = p.documents.Current(ctx, l.pointer); err != nil {
		return l, err
	}
	ending := claims.Ending{How: registry.EndedUnregister, Lasting: true}
	if ending.Now, err = p.ledger.Time(ctx); err != nil {
		return l, err
	}
	ending.ReachableUntil = vending.ReachableUntil(ending.Now, l.pointer.Delegation, l.pointer.Storage)
	l.gone = l.pointer.Pointer
	l.gone.WarehouseID, l.gone.Dropped = l.pointer.Warehouse, ending.Now
	if l.released, l.deletes, err = p.claims.Release(ctx, l.gone, ending); err != nil {
		return l, err
	}
	// An unregister deletes no files, so the files that jobs were about to delete stay, too.
	conditions, deletes, err := p.claims.EndMaintenance(ctx, l.pointer.Pointer.ID)
	if err != nil {
		return l, err
	}
	l.released, l.deletes = append(l.released, conditions...), append(l.deletes, deletes...)
	if !l.pointer.Pointer.Labels.IsZero() {
		l.deletes = append(l.deletes, registry.Delete(registry.LabelKey(l.pointer.Pointer.ID)))
	}
	l.policy, err = p.ledger.EndGrants(ctx, l.pointer.Pointer.Granted, l.pointer.Pointer.ID)
	return l, err
}

func planUnregister(attempt *commit.Attempt, l leaving) (*commit.Plan, error) {
	item := registry.PointerItem(l.pointer.Pointer, registry.Pointer{})
	item.Ended = l.gone.DroppedKey(registry.StateDropped).ID
	ended := l.gone.AsDropped(registry.StateDropped, attempt.Change)
	ended.Ended, ended.How = l.gone.Dropped, registry.EndedUnregister
	ended.EndedBy, ended.EndedChange = attempt.Change.Principal, attempt.Change.ID
	writes, err := ledger.Encode(ledger.Put(l.gone.DroppedKey(registry.StateDropped), registry.StateEnded, ended))
	return &commit.Plan{
		Conditions: slices.Concat(l.conditions(), l.released, l.policy.Conditions),
		Writes: append(slices.Concat(writes, l.deletes, l.policy.Writes),
			ledger.Delete(l.entry.Record), ledger.Delete(l.pointer.Record),
			registry.Delete(registry.LeaseKey(l.pointer.Pointer.ID))),
		Items: []registry.Item{item},
		Told: commit.Told{Message: "unregistered: its files stay", Attrs: []slog.Attr{
			slog.String("kind", "table"), slog.String("ident", l.ident.String()),
			slog.String("warehouse", l.ident.Warehouse),
			slog.String("owner", moorage.NameOf(l.pointer.Pointer.Creator)),
			slog.String("file", l.pointer.Pointer.MetadataLocation),
		}},
		Answer: commit.Outcome{Version: commit.VersionOf(l.pointer, l.ident, l.document)},
	}, err
}
