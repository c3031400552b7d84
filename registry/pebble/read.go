package pebble

import (
	"context"
	"errors"
	"time"

	"moorage/registry"
)

// enter returns the newest view, to be returned with leave.
func (s *instance) enter(ctx context.Context) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.viewMu.RLock()
	defer s.viewMu.RUnlock()
	if s.view == nil {
		return nil, registry.ErrClosed
	}
	s.view.users.Add(1)
	s.readers.Add(1)
	return s.view, nil
}

// leave releases the view returned by enter.
func (s *instance) leave(v *view) {
	v.release()
	s.readers.Done()
}

// Time implements Store.Time.
func (s *instance) Time(ctx context.Context) (time.Time, error) {
	v, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	s.leave(v)
	return s.now(), nil
}

// Get implements Store.Get.
func (s *instance) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if err := registry.CheckKeys(keys); err != nil {
		return nil, err
	}
	v, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave(v)
	buf := s.buffer()
	defer s.buffers.Put(buf)
	records := make([]registry.Record, len(keys))
	for i, key := range keys {
		if records[i], err = v.record(key, buf); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// List implements Store.List.
func (s *instance) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record,
	error) {
	found := s.page()
	defer s.putPage(found)
	err := s.list(ctx, table, prefix, after, limit, func(id, stored []byte) error {
		value, err := found.add(table, id, stored)
		if err != nil {
			return err
		}
		if found.addValue(value); len(found.values) >= registry.ListBytesMax {
			return errPageFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return found.records(table, true), nil
}

// errPageFull ends a scan when its page is full.
var errPageFull = errors.New("page is full")

// ListKeys implements Store.ListKeys.
func (s *instance) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	found := s.page()
	defer s.putPage(found)
	err := s.list(ctx, table, prefix, after, limit, func(id, stored []byte) error {
		_, err := found.add(table, id, stored)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found.records(table, false), nil
}

// list calls visit for each key on a page, with its ID and its stored value. visit must not retain
// its arguments.
func (s *instance) list(ctx context.Context, table registry.Table, prefix, after string, limit int,
	visit func(id, stored []byte) error) error {
	if err := registry.CheckList(table, limit); err != nil {
		return err
	}
	lower := appendRecordKey(nil, registry.Key{Table: table, ID: prefix})
	upper := afterPrefix(lower)
	if after != "" && after >= prefix {
		lower = append(appendRecordKey(nil, registry.Key{Table: table, ID: after}), 0)
	}
	v, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.leave(v)
	return v.scan(ctx, lower, upper, limit, func(engineKey, stored []byte) error {
		return visit(engineKey[recordPrefixBytes:], stored)
	})
}

// Changes implements Store.Changes.
func (s *instance) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange,
	error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	v, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave(v)
	var changes []registry.PositionedChange
	lower := append(appendPlaceKey(nil, after), 0)
	err = v.scan(ctx, lower, afterPrefix([]byte{spacePosition}), limit, func(engineKey, id []byte) error {
		change, err := v.change(engineKey, id)
		changes = append(changes, change)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// buffer returns a buffer for an engine's key, to be returned to s.buffers.
func (s *instance) buffer() *[]byte {
	if buf, ok := s.buffers.Get().(*[]byte); ok {
		return buf
	}
	return new([]byte)
}
