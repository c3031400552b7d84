package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	engine "github.com/cockroachdb/pebble/v2"

	"moorage/registry"
)

// view is the state of the engine after a sync. It is closed when its last user
// releases it; the store itself is a user of the newest one.
type view struct {
	snapshot *engine.Snapshot
	users    atomic.Int64
}

// newView returns a view of the engine's latest state, for one user. What was written last must
// have been synced.
func newView(db *engine.DB) *view {
	v := &view{snapshot: db.NewSnapshot()}
	v.users.Store(1)
	return v
}

// release gives the view back.
func (v *view) release() error {
	if v.users.Add(-1) > 0 {
		return nil
	}
	return v.snapshot.Close()
}

// read calls use with what is stored under key, which use must not keep, and tells
// whether there is something.
func (v *view) read(key []byte, use func(stored []byte) error) (found bool, err error) {
	stored, closer, err := v.snapshot.Get(key)
	if errors.Is(err, engine.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the store: %w", err)
	}
	err = use(stored)
	if closeErr := closer.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("read the store: %w", closeErr)
	}
	return true, err
}

// record returns the record at key, zero if there is none. It overwrites *buf.
func (v *view) record(key registry.Key, buf *[]byte) (record registry.Record, err error) {
	*buf = appendRecordKey((*buf)[:0], key)
	_, err = v.read(*buf, func(stored []byte) (err error) {
		record, err = wholeRecord(key, stored)
		return err
	})
	return record, err
}

// header returns the header of the record at key, zero if there is none. It overwrites *buf.
func (v *view) header(key registry.Key, buf *[]byte) (h header, err error) {
	*buf = appendRecordKey((*buf)[:0], key)
	_, err = v.read(*buf, func(stored []byte) (err error) {
		h, _, err = splitRecord(key, stored)
		return err
	})
	return h, err
}

// change returns the change that the engine keeps the ID of under a place.
func (v *view) change(placeKey, id []byte) (registry.PositionedChange, error) {
	position, err := splitPosition(placeKey[1:])
	if err != nil {
		return registry.PositionedChange{}, err
	}
	record, err := v.record(registry.Key{Table: registry.TableChange, ID: string(id)}, new([]byte))
	if err != nil {
		return registry.PositionedChange{}, err
	}
	change, err := registry.Decode[registry.Change](record)
	if err != nil {
		return registry.PositionedChange{}, fmt.Errorf("read the change at position %d: %w", position, err)
	}
	return registry.PositionedChange{Position: position, Change: change}, nil
}

// scanCheck is how many keys scan visits between looks at its context.
const scanCheck = 256

// scan calls visit with the keys from lower to upper (exclusive) and what is stored there, in
// byte order, at most limit times. visit must not keep what it is given.
func (v *view) scan(ctx context.Context, lower, upper []byte, limit int, visit func(key, stored []byte) error) (err error) {
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	iter, err := v.snapshot.NewIter(&engine.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	defer func() {
		if closeErr := iter.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("read the store: %w", closeErr)
		}
	}()
	visited := 0
	for valid := iter.First(); valid && visited < limit; valid = iter.Next() {
		if visited%scanCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		stored, err := iter.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read the store: %w", err)
		}
		if err := visit(iter.Key(), stored); err != nil {
			return err
		}
		visited++
	}
	return nil // Close returns what ended the iteration early
}
