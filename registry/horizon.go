package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HorizonKey is the key of the record that says how far the order of changes was deleted.
func HorizonKey() Key { return Key{TableCursor, "horizon"} }

// RetentionKey is the key of the record in which the sweep notes how long changes have been there.
func RetentionKey() Key { return Key{TableCursor, "retention"} }

// Horizon is the value of the record HorizonKey. Only a first part of the order of changes is ever
// deleted. The Apply that deletes changes writes the horizon too. Without a record nothing was
// deleted.
type Horizon struct {
	Unknown
	// Position is the position of the last change that was deleted, or a later one. It is zero if
	// nothing was deleted.
	Position Position `json:"position"`
}

// Retention is the value of the record RetentionKey.
type Retention struct {
	Unknown
	// Time is when the sweep looked last, by the store's clock.
	Time time.Time `json:"time"`
	// Elapsed is how long sweeps have run in all. It only grows, and no faster than time passes,
	// whatever the clocks say.
	Elapsed time.Duration `json:"elapsed-ns"`
	// Marks say how far the order reached at some of these times, the oldest first.
	Marks []Mark `json:"marks,omitempty"`
}

// Mark says that the order of changes reached up to a position, or further, when so much time had
// elapsed.
type Mark struct {
	Position Position      `json:"position"`
	Elapsed  time.Duration `json:"elapsed-ns"`
}

// ErrForgotten says that changes which a reader has not read were deleted.
var ErrForgotten = errors.New("registry: changes were deleted that were not read")

// ReadHorizon returns the horizon of a store, zero if nothing was deleted. A reader that wants all
// changes that are left begins there. Errors are those of Store.Get, and an error for a record that
// cannot be read.
func ReadHorizon(ctx context.Context, store Store) (Horizon, error) {
	records, err := store.Get(ctx, HorizonKey())
	if err != nil || !records[0].Exists() {
		return Horizon{}, err
	}
	return Decode[Horizon](records[0])
}

// Follow returns what Store.Changes does, for a reader that has read all changes up to after. It
// returns ErrForgotten if the next ones may have been deleted. Then the reader must look at the
// records themselves, and may go on behind the horizon. Other errors are those of Store.Changes and
// ReadHorizon.
func Follow(ctx context.Context, store Store, after Position, limit int) ([]PositionedChange, error) {
	page, err := store.Changes(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	// Read after the page: changes that were deleted before the page was read are behind this
	// horizon.
	horizon, err := ReadHorizon(ctx, store)
	if err != nil {
		return nil, err
	}
	if horizon.Position > after {
		return nil, fmt.Errorf("%w: up to position %d, the reader is at %d", ErrForgotten, horizon.Position, after)
	}
	return page, nil
}

// Head returns a position that has a change, such that no change was behind it when Head was
// called. If there is no change behind from it returns from, which must be a position that was
// given away, or zero. It reads few changes: steps that double lead past the head, and halving
// leads back to it. Errors are those of Store.Changes.
func Head(ctx context.Context, store Store, from Position) (Position, error) {
	next := func(after Position) (Position, error) {
		page, err := store.Changes(ctx, after, 1)
		if err != nil || len(page) == 0 {
			return 0, err
		}
		return page[0].Position, nil
	}
	head, past := from, from // nothing is behind past
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
		case found > past: // it came meanwhile
			return found, nil
		case found > 0:
			head = found
		default:
			past = middle
		}
	}
	return head, nil
}
