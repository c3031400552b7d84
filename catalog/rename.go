package catalog

import (
	"context"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// RenameTable gives a table another name in the same warehouse. Its pointer, and the location of
// its metadata and data, stay.
//
// Errors: KindNoSuchTable for the source, KindNoSuchNamespace for the destination's namespace,
// KindAlreadyExists if there is a table or view at the destination (the source itself included),
// KindUnavailable, KindCommitUnknown. Durable when it returns.
// Source: REST specification, renameTable.
func (c *Catalog) RenameTable(ctx context.Context, from, to moorage.Identifier) error {
	return moorage.Annotate("catalog.RenameTable", from.String(), c.rename(ctx, aTable, from, to))
}

func (c *Catalog) rename(ctx context.Context, k *kind, from, to moorage.Identifier) error {
	for _, ident := range []moorage.Identifier{from, to} {
		if err := ident.Validate(); err != nil {
			return err
		}
	}
	if from.Warehouse != to.Warehouse {
		return moorage.Errorf(moorage.KindBadRequest, "Cannot rename %s to another warehouse", from)
	}
	found, err := c.directory.Find(ctx, k.Kind, from)
	if err != nil {
		return err
	}
	hold, err := c.lock(ctx, k.rename, lockScope{
		warehouse: from.Warehouse,
		names:     []moorage.Identifier{from, to},
		pointers:  []registry.ID{found.Pointer.ID},
	})
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error { return c.tryRename(ctx, k, from, to) })
}

func (c *Catalog) tryRename(ctx context.Context, k *kind, from, to moorage.Identifier) error {
	source, err := c.readNamed(ctx, k, from)
	if err != nil {
		return err
	}
	target, err := c.directory.LivePath(ctx, to.Warehouse, to.Namespace)
	if err != nil {
		return err
	}
	occupant, err := c.directory.ReadEntry(ctx, target, to.Name)
	if err != nil {
		return err
	}
	switch occupant.Record.State {
	case registry.StateNone:
	case aView.State:
		return moorage.Errorf(moorage.KindAlreadyExists, "Cannot rename %s to %s. View already exists", from, to)
	default:
		return moorage.Errorf(moorage.KindAlreadyExists, "Cannot rename %s to %s. Table already exists", from, to)
	}
	if from.Equal(to) {
		return ledger.ErrRetry // it was dropped since it was read
	}
	change, err := c.ledger.NewChange(ctx, string(k.rename), from)
	if err != nil {
		return err
	}
	pointer := source.pointer.Pointer
	pointer.Namespace, pointer.Name, pointer.NamespaceID = to.Namespace, to.Name, target.ID()
	targetKey, parent := registry.EntryKey(target.ID(), to.Name), target.Record()
	renamed := registry.Entry{Unknown: source.entry.Value.Unknown, Pointer: pointer.ID, Shard: registry.Shard(to.Name)}
	writes, err := ledger.Encode(
		ledger.Put(targetKey, k.State, renamed),
		ledger.Put(source.pointer.Record.Key, registry.StateLive, pointer),
	)
	if err != nil {
		return err
	}
	_, err = c.apply(ctx, change, registry.Batch{
		Conditions: append(source.conditions(), registry.ETagIs(parent.Key, parent.ETag), registry.Absent(targetKey)),
		Writes:     append(writes, registry.Delete(source.entry.Record.Key)),
	}, Outcome{})
	return ledger.RetryOnConflict(err)
}
