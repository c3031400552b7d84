package retention

import (
	"cmp"
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// scanPages bounds how much of a table one round reads, in pages of ledger.ScanPage records. A
// round searches for records that are days old, which can wait for the next round. Reading all
// pointers and a week of changes every minute would cost more than the commits that made them.
const scanPages = 10

// scan reads a table, or a part of it, repeatedly: one part of it in each round.
type scan struct {
	ledger *ledger.Ledger
	table  registry.Table
	prefix string // of the IDs
	until  string // the first ID that is excluded; empty means none
	after  string // where the last round ended
}

func newScan(records *ledger.Ledger, table registry.Table) scan {
	return scan{ledger: records, table: table}
}

// next visits the records of the next part. After an error, the next round begins with the same
// page. A record that cannot be read does not stop the scan: it is the error if there is no other.
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

// isUnread reports whether err may mean that a record cannot be read. Any other failure of this
// kind recurs at once, and is reported again.
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

// advance continues after page, and reports whether page was the last one. Then the next round
// begins again.
func (s *scan) advance(page []registry.Record) (last bool) {
	if registry.IsLastPage(page, ledger.ScanPage) {
		s.after = ""
		return true
	}
	s.after = page[len(page)-1].Key.ID
	return false
}
