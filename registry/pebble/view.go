package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	engine "github.com/cockroachdb/pebble/v2"

	"moorage/registry"
)

// view is the state of the engine after a sync. When its last user releases a view, the view is
// retired: closed in the background. The store itself is a user of the newest view.
type view struct {
	snapshot *engine.Snapshot
	users    atomic.Int64
	retired  *retired
}

// newView returns a view of the engine's latest state, for one user. The last write must have been
// synced.
func newView(db *engine.DB, retired *retired) *view {
	v := &view{snapshot: db.NewSnapshot(), retired: retired}
	v.users.Store(1)
	return v
}

// release ends one use of the view. It does not wait.
func (v *view) release() {
	if v.users.Add(-1) == 0 {
		v.retired.add(v)
	}
}

// retired closes unused views in its own goroutine. The engine blocks the call that closes a
// snapshot while it syncs the list of its files. It is safe for concurrent use.
type retired struct {
	arrived sync.Cond      // on mu: the fields below have changed
	closer  sync.WaitGroup // the goroutine that runs loop

	// mu guards the fields below. No lock is taken under it.
	mu    sync.Mutex
	views []*view
	ended bool
}

func (r *retired) start() {
	r.arrived.L = &r.mu
	r.closer.Go(r.loop)
}

// add queues a view to be closed.
func (r *retired) add(v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views = append(r.views, v)
	r.arrived.Signal()
}

// loop closes views until stop is called and no view is left.
func (r *retired) loop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.views) == 0 {
			if r.ended {
				return
			}
			r.arrived.Wait()
		}
		views := r.views
		r.views = nil
		r.mu.Unlock()
		for _, v := range views {
			// Close fails only if the snapshot was already closed.
			_ = v.snapshot.Close()
		}
		r.mu.Lock()
	}
}

// stop waits until all views are closed.
func (r *retired) stop() {
	r.mu.Lock()
	r.ended = true
	r.arrived.Signal()
	r.mu.Unlock()
	r.closer.Wait()
}

// read calls the function use with the stored value of key, and reports whether there is one. The
// function must not retain its argument.
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

// record returns the record at key, or the zero record if there is none. It overwrites *buf.
func (v *view) record(key registry.Key, buf *[]byte) (record registry.Record, err error) {
	*buf = appendRecordKey((*buf)[:0], key)
	_, err = v.read(*buf, func(stored []byte) (err error) {
		record, err = wholeRecord(key, stored)
		return err
	})
	return record, err
}

// header returns the header of the record at key, or the zero header if there is none. It
// overwrites *buf.
func (v *view) header(key registry.Key, buf *[]byte) (h header, err error) {
	*buf = appendRecordKey((*buf)[:0], key)
	_, err = v.read(*buf, func(stored []byte) (err error) {
		h, _, err = splitRecord(key, stored)
		return err
	})
	return h, err
}

// change returns the change whose ID is stored at placeKey.
func (v *view) change(placeKey, id []byte) (registry.PositionedChange, error) {
	position, err := splitPosition(placeKey[1:])
	if err != nil {
		return registry.PositionedChange{}, err
	}
	key := registry.Key{Table: registry.TableChange, ID: string(id)}
	record, err := v.record(key, new([]byte))
	if err != nil {
		return registry.PositionedChange{}, err
	}
	record.Key = key // also for a missing record
	return registry.PlacedChange(position, record), nil
}

// scanCheck is the number of keys that scan visits between two checks of its context.
const scanCheck = 256

// scan calls visit with the keys from lower to upper (exclusive) and their stored values, in byte
// order, at most limit times. visit must not retain its arguments.
func (v *view) scan(ctx context.Context, lower, upper []byte, limit int,
	visit func(key, stored []byte) error) (err error) {
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
	return nil // Close returns the error if one ended the iteration early
}
