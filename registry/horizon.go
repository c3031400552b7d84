package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HorizonKey is the key of the record of the position up to which changes were deleted.
func HorizonKey() Key { return Key{TableCursor, "horizon"} }

// RetentionKey is the key of the record in which the sweep tracks the age of changes.
func RetentionKey() Key { return Key{TableCursor, "retention"} }

// Horizon is the value of the record HorizonKey. Changes are only ever deleted from the beginning
// of their order. The Apply that deletes changes also writes the horizon. If there is no record, no
// change has been deleted.
type Horizon struct {
	Unknown
	// Position is the position of the last deleted change, or a later position. It is zero if no
	// change has been deleted.
	Position Position `json:"position"`
}

// Retention is the value of the record RetentionKey.
type Retention struct {
	Unknown
	// Time is when the sweep last ran, by the store's clock.
	Time time.Time `json:"time"`
	// Elapsed is the time that has passed between sweeps, in total. It only grows, and never faster
	// than time passes, whatever the clocks show.
	Elapsed time.Duration `json:"elapsed-ns"`
	// Marks lists positions that the order of changes had reached at some values of Elapsed, oldest
	// first.
	Marks []Mark `json:"marks,omitempty"`
}

// Mark is a position that the order of changes had reached, or passed, at some value of Elapsed.
type Mark struct {
	Position Position      `json:"position"`
	Elapsed  time.Duration `json:"elapsed-ns"`
}

// ErrForgotten means that changes may have been deleted before the reader read them.
var ErrForgotten = errors.New("registry: changes were deleted that were not read")

// ReadHorizon returns the horizon of a store. It is zero if no change has been deleted. A reader of
// all remaining changes begins there. It returns the errors of Store.Get, and an error for an
// unreadable record.
func ReadHorizon(ctx context.Context, store Store) (Horizon, error) {
	records, err := store.Get(ctx, HorizonKey())
	if err != nil || !records[0].Exists() {
		return Horizon{}, err
	}
	return Decode[Horizon](records[0])
}

// Follow is Store.Changes for a reader that has read all changes up to after. It returns
// ErrForgotten if the next changes may have been deleted. Then the reader must read the records
// themselves, and may continue after the horizon. The other errors come from Store.Changes and
// ReadHorizon.
func Follow(ctx context.Context, store Store, after Position, limit int) ([]PositionedChange, error) {
	page, err := store.Changes(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	// Read the horizon after the page, so that it covers every change that was deleted before the
	// page was read.
	horizon, err := ReadHorizon(ctx, store)
	if err != nil {
		return nil, err
	}
	if horizon.Position > after {
		return nil, fmt.Errorf("%w: up to position %d, the reader is at %d", ErrForgotten, horizon.Position, after)
	}
	return page, nil
}

// Head returns the position of the last change, or of one that was added during the call. If there
// is no change after from, it returns from, which must be zero or the position of a change. It
// reads few changes: it doubles its steps until it is past the head, then halves them. It returns
// the errors of Store.Changes.
func Head(ctx context.Context, store Store, from Position) (Position, error) {
	next := func(after Position) (Position, error) {
		page, err := store.Changes(ctx, after, 1)
		if err != nil || len(page) == 0 {
			return 0, err
		}
		return page[0].Position, nil
	}
	head, past := from, from // no change is after past
	for step := Position(0); ; step = max(1, 2*step) {
		past = head + step
		found, err := next(past)
		if err != nil {
			return 0, err
		}
		if found == 0 {
			break
		}
		head = found
	}
	for head < past {
		middle := head + (past-head)/2
		found, err := next(middle)
		switch {
		case err != nil:
			return 0, err
		case found > past: // a change was added during the search
			return found, nil
		case found > 0:
			head = found
		default:
			past = middle
		}
	}
	return head, nil
}
