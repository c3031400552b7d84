package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
)

// DropTable takes a table's name away, and keeps the pointer and its claims for the undrop window.
// With options.Purge the same Apply writes a task. A worker then deletes the files, once no version
// of the table may have to be answered again (see Once). The metadata file need not exist.
//
// Errors: KindNoSuchTable, KindUnavailable, KindCommitUnknown. Durable when it returns. Source:
// REST specification, dropTable.
func (c *Catalog) DropTable(ctx context.Context, ident moorage.Identifier, options DropOptions) error {
	const op = "catalog.DropTable"
	err := c.withNamed(ctx, aTable, OpDropTable, ident, func(ctx context.Context, n named) error {
		return c.tryDrop(ctx, aTable, n, options)
	})
	if err == nil && options.Purge {
		c.kickPurge()
	}
	return moorage.Annotate(op, ident.String(), err)
}

// UnregisterTable takes a table's name away and forgets the table at once. It deletes no files. It
// returns the last version, which contains every commit that happened.
//
// Errors: those of DropTable, and those of LoadTable, because the answer needs the metadata file.
// Source: REST specification, unregisterTable.
func (c *Catalog) UnregisterTable(ctx context.Context, ident moorage.Identifier) (*Table, error) {
	const op = "catalog.UnregisterTable"
	var last *version
	err := c.withNamed(ctx, aTable, OpUnregister, ident, func(ctx context.Context, n named) (err error) {
		last, err = c.tryUnregister(ctx, n)
		return err
	})
	return last.table(), moorage.Annotate(op, ident.String(), err)
}

// named is a table or view for an operation on both its name and its pointer. The operation reads
// one after the other, under its locks.
type named struct {
	ident   moorage.Identifier
	entry   directory.Entry
	pointer *directory.Found
}

// conditions requires that neither the name nor the pointer has changed since.
func (n named) conditions() []registry.Condition {
	return []registry.Condition{
		registry.ETagIs(n.entry.Record.Key, n.entry.Record.ETag),
		registry.ETagIs(n.pointer.Record.Key, n.pointer.Record.ETag),
	}
}

// withNamed calls try with the table or view called ident until try returns something other than
// ledger.ErrRetry. Meanwhile it holds the locks that operation takes on the shard and the pointer.
func (c *Catalog) withNamed(ctx context.Context, k *kind, operation Operation, ident moorage.Identifier,
	try func(context.Context, named) error) error {
	if err := ident.Validate(); err != nil {
		return err
	}
	found, err := c.directory.Find(ctx, k.Kind, ident)
	if err != nil {
		return err
	}
	hold, err := c.lock(ctx, operation, lockScope{
		warehouse: ident.Warehouse,
		names:     []moorage.Identifier{ident},
		pointers:  []registry.ID{found.Pointer.ID},
	})
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		n, err := c.readNamed(ctx, k, ident)
		if err != nil {
			return err
		}
		return try(ctx, n)
	})
}

// readNamed reads the name and the pointer of a table or view.
func (c *Catalog) readNamed(ctx context.Context, k *kind, ident moorage.Identifier) (named, error) {
	found, err := c.directory.Find(ctx, k.Kind, ident)
	if err != nil {
		return named{}, err
	}
	records, err := c.ledger.Get(ctx, registry.EntryKey(found.Pointer.NamespaceID, ident.Name), found.Record.Key)
	if err != nil {
		return named{}, err
	}
	if !records[0].Exists() || records[1].ETag != found.Record.ETag {
		return named{}, ledger.ErrRetry
	}
	value, err := ledger.Decode[registry.Entry](records[0])
	if err != nil {
		return named{}, err
	}
	if value.Pointer != found.Pointer.ID {
		return named{}, ledger.ErrRetry
	}
	return named{ident, directory.Entry{Record: records[0], Value: value}, found}, nil
}

func (c *Catalog) tryDrop(ctx context.Context, k *kind, n named, options DropOptions) error {
	change, err := c.ledger.NewChange(ctx, string(k.drop), n.ident)
	if err != nil {
		return err
	}
	dropped := n.pointer.Pointer
	if dropped.Since, err = c.ledger.Time(ctx); err != nil {
		return err
	}
	dropped.Storage, dropped.WarehouseID = n.pointer.Place.Options, n.pointer.Warehouse
	puts := []ledger.Write{ledger.Put(n.pointer.Record.Key, registry.StateDropped, &dropped)}
	if options.Purge {
		if dropped.Task, err = c.ledger.NewID(); err != nil {
			return err
		}
		task := registry.Task{
			ID: dropped.Task, Kind: registry.TaskPurge, Pointer: dropped.ID,
			Created: c.now(), NotBefore: dropped.ReplayableUntil,
		}
		puts = append(puts, ledger.Put(registry.TaskKey(task.ID), registry.StateNone, task))
	}
	writes, err := ledger.Encode(puts...)
	if err != nil {
		return err
	}
	_, err = c.apply(ctx, change, registry.Batch{
		Conditions: n.conditions(),
		Writes:     append(writes, registry.Delete(n.entry.Record.Key)),
	}, Outcome{})
	return ledger.RetryOnConflict(err)
}

func (c *Catalog) tryUnregister(ctx context.Context, n named) (*version, error) {
	document, err := c.documents.Current(ctx, n.pointer)
	if err != nil {
		return nil, err
	}
	change, err := c.ledger.NewChange(ctx, string(OpUnregister), n.ident)
	if err != nil {
		return nil, err
	}
	conditions, deletes, err := c.locations.Release(ctx, n.pointer.Pointer)
	if err != nil {
		return nil, err
	}
	last := newVersion(n.pointer, n.ident, document)
	_, err = c.apply(ctx, change, registry.Batch{
		Conditions: slices.Concat(n.conditions(), conditions),
		Writes:     append(deletes, registry.Delete(n.entry.Record.Key), registry.Delete(n.pointer.Record.Key)),
	}, last.outcome())
	if err != nil {
		return nil, ledger.RetryOnConflict(err)
	}
	return last, nil
}
