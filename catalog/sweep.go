package catalog

import (
	"context"
	"errors"
	"time"

	"moorage/registry"
)

// sweepPages bounds how much of a table one round reads, in pages of scanPage records. What a round looks for is days
// old and can wait for another one; reading all pointers and a week of changes every minute would cost more than
// the commits that made them.
const sweepPages = 10

// slowScan goes through a table in parts, one each round, over and over.
type slowScan struct {
	table registry.Table
	after string // where the last round ended
}

// next visits the records of the next part. After an error the round that follows begins with the same page.
func (s *slowScan) next(ctx context.Context, c *Catalog, visit func(registry.Record) error) error {
	for range sweepPages {
		records, err := c.store.List(ctx, s.table, "", s.after, scanPage)
		if err != nil {
			return storeError("catalog.slowScan", err)
		}
		for _, record := range records {
			if err := errors.Join(ctx.Err(), visit(record)); err != nil {
				return err
			}
		}
		if len(records) < scanPage {
			s.after = ""
			return nil
		}
		s.after = records[len(records)-1].Key.ID
	}
	return nil
}

// sweeps is how far the sweep has come. It belongs to whoever runs one.
type sweeps struct {
	windows, fences slowScan
}

func newSweeps() *sweeps {
	return &sweeps{slowScan{table: registry.TablePointer}, slowScan{table: registry.TableChange}}
}

// endWindows ends the pointers that were dropped longer than the undrop window ago and have no purge
// to wait for: the table can no longer come back, its claims are free. Its files stay.
func (c *Catalog) endWindows(ctx context.Context) error {
	limit := c.now().Add(-c.undropWindow)
	return c.sweeps.windows.next(ctx, c, func(record registry.Record) error {
		if record.State != registry.StateDropped {
			return nil
		}
		pointer, err := decode[registry.Pointer](record)
		if err == nil && pointer.Since.Before(limit) && pointer.Task.IsZero() {
			err = c.endPointer(ctx, OpEndWindow, pointer.ID, registry.StateDropped)
		}
		return err
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
	return c.forgetFences(ctx, limit)
}

// forgetFences deletes the fences that are older than limit.
func (c *Catalog) forgetFences(ctx context.Context, limit time.Time) error {
	var old []registry.Write
	err := c.sweeps.fences.next(ctx, c, func(record registry.Record) error {
		if record.State != registry.StateVoid || len(old) == forgetPage {
			return nil // a fence too many is met again
		}
		change, err := decode[registry.Change](record)
		if err == nil && change.Time.Before(limit) {
			old = append(old, registry.Delete(record.Key))
		}
		return err
	})
	return errors.Join(err, c.forget(ctx, old))
}

func (c *Catalog) forget(ctx context.Context, deletes []registry.Write) error {
	if len(deletes) == 0 {
		return nil
	}
	_, err := c.store.Apply(ctx, registry.Batch{Writes: deletes})
	return storeError("catalog.forget", err)
}
