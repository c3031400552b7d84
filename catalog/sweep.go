package catalog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// sweepPages bounds how much of a table one round reads, in pages of ledger.ScanPage records. What a round looks for is days
// old and can wait for another one; reading all pointers and a week of changes every minute would cost more than
// the commits that made them.
const sweepPages = 10

// slowScan goes through a table in parts, one each round, over and over.
type slowScan struct {
	table registry.Table
	after string // where the last round ended
}

// next visits the records of the next part. After an error the round that follows begins with the same page, unless it is that
// a record cannot be read, which keeps the round from no other.
func (s *slowScan) next(ctx context.Context, c *Catalog, visit func(registry.Record) error) error {
	var unread error
	for range sweepPages {
		records, err := s.page(ctx, c)
		if err != nil {
			return err
		}
		for _, record := range records {
			err := visit(record)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case isUnread(err):
				unread = cmp.Or(unread, err)
			case err != nil:
				return err
			}
		}
		if s.advance(records) {
			break
		}
	}
	return unread
}

// isUnread tells whether err may say that a record cannot be read. What else it may say fails again at once, and is reported again.
func isUnread(err error) bool { return err != nil && moorage.KindOf(err) == moorage.KindInternal }

// page returns the records that come next.
func (s *slowScan) page(ctx context.Context, c *Catalog) ([]registry.Record, error) {
	records, err := c.ledger.List(ctx, s.table, "", s.after, ledger.ScanPage)
	return records, ledger.StoreError("catalog.page", err)
}

// advance goes on behind page, and tells whether that was the last; then the next begins again.
func (s *slowScan) advance(page []registry.Record) (last bool) {
	if registry.IsLastPage(page, ledger.ScanPage) {
		s.after = ""
		return true
	}
	s.after = page[len(page)-1].Key.ID
	return false
}

// sweeps is how far the sweep has come. It belongs to whoever runs one.
type sweeps struct {
	windows, fences, folders slowScan

	keys      keySweep
	marked    time.Time                  // when this process marked the order of changes last, by its own clock; zero: never
	oldFences map[registry.Key]seenFence // at most forgetPage
}

func newSweeps() *sweeps {
	return &sweeps{
		windows:   slowScan{table: registry.TablePointer},
		fences:    slowScan{table: registry.TableChange},
		keys:      keySweep{scan: slowScan{table: registry.TableIdempotency}},
		folders:   slowScan{table: registry.TableLocation},
		oldFences: make(map[registry.Key]seenFence),
	}
}

// endWindows ends the pointers that were dropped longer than the undrop window ago and have no purge
// to wait for: the table or view can no longer come back, its claims are free. Its files stay. So it does with those whose purge had begun
// and was called off longer ago.
func (c *Catalog) endWindows(ctx context.Context) error {
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return err
	}
	limit := now.Add(-c.undropWindow)
	over := func(state registry.State, pointer registry.Pointer) bool {
		return state.IsDropped() && pointer.Since.Before(limit) && pointer.Task.IsZero()
	}
	return c.sweeps.windows.next(ctx, c, func(record registry.Record) error {
		if !record.State.IsDropped() {
			return nil
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err == nil && over(record.State, pointer) {
			err = c.endPointer(ctx, OpEndWindow, pointer.ID, over)
		}
		return err
	})
}

// endPointer removes, in one Apply, a pointer that is over and the claims that it still holds. That somebody else did it, or has made something else of it, is not an error.
func (c *Catalog) endPointer(ctx context.Context, operation Operation, id registry.ID, over func(registry.State, registry.Pointer) bool) error {
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.PointerKey(id))
		if err != nil || !records[0].Exists() {
			return err
		}
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		if err != nil || !over(records[0].State, pointer) {
			return err
		}
		conditions, deletes, err := c.locations.Release(ctx, pointer)
		if err != nil {
			return err
		}
		change, err := c.ledger.NewChange(ctx, string(operation), pointer.Identifier())
		if err != nil {
			return err
		}
		_, err = c.ledger.Apply(ctx, ledger.Mutation{
			Change:     change,
			Conditions: slices.Concat([]registry.Condition{ledger.Unchanged(records[0])}, conditions),
			Writes:     append(deletes, registry.Delete(records[0].Key)),
		})
		return ledger.RetryOnConflict(err)
	})
}
