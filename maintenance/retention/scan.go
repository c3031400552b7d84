package retention

import (
	"cmp"
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// scanPages is the maximum number of pages that one round reads of a table. A page has
// ledger.ScanPage records. The records that a round searches for are days old, so they can wait for
// a later round. Reading all pointers and a week of changes every minute would cost more than the
// commits that wrote them.
const scanPages = 10

// scan reads a table, or a part of a table, repeatedly. Each round reads the next pages.
type scan struct {
	ledger *ledger.Ledger
	table  registry.Table
	prefix string // the common prefix of the IDs
	until  string // the first excluded ID; empty means no end
	after  string // where the last round ended
}

func newScan(records *ledger.Ledger, table registry.Table) scan {
	return scan{ledger: records, table: table}
}

// next visits the records of the next pages. After an error, the next round begins with the same
// page. An unreadable record does not stop the scan. Its error is returned unless another error
// occurs.
func (s *scan) next(ctx context.Context, visit func(registry.Record) error) error {
	var unread error
	for range scanPages {
		records, err := s.page(ctx)
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

// isUnread reports whether err may mean that a record cannot be read. A different cause with the
// same kind of error also makes the next call fail, and that call reports it.
func isUnread(err error) bool { return err != nil && moorage.KindOf(err) == moorage.KindInternal }

// page returns the next records.
func (s *scan) page(ctx context.Context) ([]registry.Record, error) {
	records, err := s.ledger.List(ctx, s.table, s.prefix, s.after, ledger.ScanPage)
	if err != nil {
		return nil, ledger.StoreError("retention.page", err)
	}
	if s.until != "" {
		records = slices.DeleteFunc(records, func(record registry.Record) bool { return record.Key.ID >= s.until })
	}
	return records, nil
}

// advance continues after page, and reports whether page was the last one. After the last page, the
// next round begins at the start.
func (s *scan) advance(page []registry.Record) (last bool) {
	if registry.IsLastPage(page, ledger.ScanPage) {
		s.after = ""
		return true
	}
	s.after = page[len(page)-1].Key.ID
	return false
}
