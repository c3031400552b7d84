package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/registry"
)

// DropTable takes a table's name away. The pointer and its claims are kept for the undrop window; with
// options.Purge a task, written in the same Apply, has a worker delete the files, once none of the table's versions may have to
// be answered again (see Once). The metadata file need not be there.
//
// Errors: KindNoSuchTable, KindUnavailable, KindCommitUnknown. Durable when it returns.
// Source: REST specification, dropTable.
func (c *Catalog) DropTable(ctx context.Context, ident moorage.Identifier, options DropOptions) error {
	const op = "catalog.DropTable"
	err := c.withNamedTable(ctx, OpDropTable, ident, func(ctx context.Context, t namedTable) error {
		return c.tryDrop(ctx, t, options)
	})
	if err == nil && options.Purge {
		c.workers.purge.Kick()
	}
	return moorage.Annotate(op, ident.String(), err)
}

// UnregisterTable takes a table's name away and forgets it, at once; its files are left alone. It
// returns the last version, in which every commit that happened is.
//
// Errors: those of DropTable, and of LoadTable: the answer needs the metadata file.
// Source: REST specification, unregisterTable.
func (c *Catalog) UnregisterTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	const op = "catalog.UnregisterTable"
	var last *Table
	err := c.withNamedTable(ctx, OpUnregister, ident, func(ctx context.Context, t namedTable) (err error) {
		last, err = c.tryUnregister(ctx, t)
		return err
	})
	if err != nil {
		return nil, moorage.Annotate(op, ident.String(), err)
	}
	return last, nil
}

// namedTable is a table whose name and pointer were read one after the other, under the locks
// of an operation that works on both.
type namedTable struct {
	ident   moorage.Identifier
	entry   entry
	pointer *resolved
}

// conditions requires that neither the name nor the pointer changed since.
func (t namedTable) conditions() []registry.Condition {
	return []registry.Condition{
		registry.ETagIs(t.entry.record.Key, t.entry.record.ETag),
		registry.ETagIs(t.pointer.record.Key, t.pointer.record.ETag),
	}
}

// withNamedTable calls try with the table called ident, with the locks that operation takes on its
// shard and its pointer held, until it returns something else than errAgain.
func (c *Catalog) withNamedTable(ctx context.Context, operation Operation, ident moorage.Identifier, try func(context.Context, namedTable) error) error {
	if err := ident.Validate(); err != nil {
		return err
	}
	found, err := c.resolveTable(ctx, ident)
	if err != nil {
		return err
	}
	hold, err := c.lock(ctx, operation, lockScope{
		warehouse: ident.Warehouse,
		names:     []moorage.Identifier{ident},
		pointers:  []registry.ID{found.pointer.ID},
	})
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, cancel := detached(hold.Context(), requestTimeout)
	defer cancel()
	return c.attempts(ctx, moorage.KindUnavailable, func(int) error {
		table, err := c.readNamedTable(ctx, ident)
		if err != nil {
			return err
		}
		return try(ctx, table)
	})
}

// readNamedTable reads the name and the pointer of a table.
func (c *Catalog) readNamedTable(ctx context.Context, ident moorage.Identifier) (namedTable, error) {
	found, err := c.resolveTable(ctx, ident)
	if err != nil {
		return namedTable{}, err
	}
	records, err := c.get(ctx, registry.EntryKey(found.pointer.NamespaceID, ident.Name), found.record.Key)
	if err != nil {
		return namedTable{}, err
	}
	if !records[0].Exists() || records[1].ETag != found.record.ETag {
		return namedTable{}, errAgain
	}
	value, err := decode[registry.Entry](records[0])
	if err != nil {
		return namedTable{}, err
	}
	if value.Pointer != found.pointer.ID {
		return namedTable{}, errAgain
	}
	return namedTable{ident, entry{records[0], value}, found}, nil
}

func (c *Catalog) tryDrop(ctx context.Context, t namedTable, options DropOptions) error {
	change, err := c.newChange(ctx, string(OpDropTable), t.ident)
	if err != nil {
		return err
	}
	dropped := t.pointer.pointer
	dropped.Since = c.now()
	dropped.Storage = t.pointer.place.Options
	puts := []put{{t.pointer.record.Key, registry.StateDropped, &dropped}}
	if options.Purge {
		if dropped.Task, err = c.newID(); err != nil {
			return err
		}
		task := registry.Task{ID: dropped.Task, Kind: registry.TaskPurge, Pointer: dropped.ID, Created: c.now(), NotBefore: dropped.ReplayableUntil}
		puts = append(puts, put{registry.TaskKey(task.ID), registry.StateNone, task})
	}
	writes, err := encodePuts(puts...)
	if err != nil {
		return err
	}
	return again(c.apply(ctx, change, registry.Batch{
		Conditions: t.conditions(),
		Writes:     append(writes, registry.Delete(t.entry.record.Key)),
	}))
}

func (c *Catalog) tryUnregister(ctx context.Context, t namedTable) (*Table, error) {
	document, err := c.currentDocument(ctx, t.pointer)
	if err != nil {
		return nil, err
	}
	change, err := c.newChange(ctx, string(OpUnregister), t.ident)
	if err != nil {
		return nil, err
	}
	conditions, deletes, err := c.release(ctx, t.pointer.pointer)
	if err != nil {
		return nil, err
	}
	last := newTable(t.ident, t.pointer.pointer.ID, t.pointer.pointer.MetadataLocation, document, t.pointer.storage)
	err = again(c.applyAnswering(ctx, change, registry.Batch{
		Conditions: slices.Concat(t.conditions(), conditions),
		Writes:     append(deletes, registry.Delete(t.entry.record.Key), registry.Delete(t.pointer.record.Key)),
	}, Outcome{Table: last}))
	if err != nil {
		return nil, err
	}
	return last, nil
}
