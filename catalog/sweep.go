package catalog

import (
	"context"

	"moorage/registry"
)

// endWindows ends the pointers that were dropped longer than the undrop window ago and have no purge
// to wait for: the table can no longer come back, its claims are free. Its files stay.
func (c *Catalog) endWindows(ctx context.Context) error {
	limit := c.now().Add(-c.undropWindow)
	return c.scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateDropped {
			return true, ctx.Err()
		}
		pointer, err := decode[registry.Pointer](record)
		if err != nil {
			return true, err
		}
		if pointer.Since.Before(limit) && pointer.Task.IsZero() {
			return true, c.endPointer(ctx, OpEndWindow, pointer.ID, registry.StateDropped)
		}
		return true, nil
	})
}

// forgetPage is how many change records are deleted in one Apply.
const forgetPage = 1000

// forgetChanges deletes change records older than the retention, oldest first, then the fences among
// them, which are in no order.
func (c *Catalog) forgetChanges(ctx context.Context) error {
	limit := c.now().Add(-c.changeRetention)
	for {
		changes, err := c.store.Changes(ctx, 0, forgetPage)
		if err != nil {
			return storeError("catalog.forgetChanges", err)
		}
		var old []registry.Write
		for _, change := range changes {
			if change.Change.Time.Before(limit) {
				old = append(old, registry.Delete(registry.ChangeKey(change.Change.ID)))
			}
		}
		if err := c.forget(ctx, old); err != nil {
			return err
		}
		if len(old) < forgetPage {
			break
		}
	}
	var old []registry.Write
	err := c.scan(ctx, registry.TableChange, "", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateVoid {
			return true, ctx.Err()
		}
		change, err := decode[registry.Change](record)
		if err == nil && change.Time.Before(limit) {
			old = append(old, registry.Delete(record.Key))
		}
		return len(old) < forgetPage, err
	})
	if err != nil {
		return err
	}
	return c.forget(ctx, old)
}

func (c *Catalog) forget(ctx context.Context, deletes []registry.Write) error {
	if len(deletes) == 0 {
		return nil
	}
	_, err := c.store.Apply(ctx, registry.Batch{Writes: deletes})
	return storeError("catalog.forget", err)
}
