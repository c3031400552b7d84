package pebble

import (
	"context"
	"errors"
	"time"

	"moorage/registry"
)

// enter returns the newest view, to be given back with leave.
func (s *Store) enter(ctx context.Context) (*view, error) {
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

// leave ends what enter began.
func (s *Store) leave(v *view) {
	v.release()
	s.readers.Done()
}

// Time implements registry.Clock.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	v, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	s.leave(v)
	return s.now(), nil
}

// Get implements registry.Store.
func (s *Store) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
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

// List implements registry.Store.
func (s *Store) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record,
	error) {
	var records []registry.Record
	bytes := 0
	err := s.list(ctx, table, prefix, after, limit, func(key registry.Key, stored []byte) error {
		record, err := wholeRecord(key, stored)
		if err != nil {
			return err
		}
		records = append(records, record)
		if bytes += len(record.Value); bytes >= registry.ListBytesMax {
			return errPageFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return records, nil
}

// errPageFull ends a scan that has read as much as a page may hold.
var errPageFull = errors.New("page is full")

// ListKeys implements registry.Store.
func (s *Store) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	var records []registry.Record
	err := s.list(ctx, table, prefix, after, limit, func(key registry.Key, stored []byte) error {
		h, _, err := splitRecord(key, stored)
		records = append(records, h.record(key))
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// list calls visit with the keys of a page and what is stored there, which visit must not keep.
func (s *Store) list(ctx context.Context, table registry.Table, prefix, after string, limit int,
	visit func(registry.Key, []byte) error) error {
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
		return visit(registry.Key{Table: table, ID: string(engineKey[recordPrefixBytes:])}, stored)
	})
}

// Changes implements registry.Store.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
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

// buffer returns a buffer for an engine's key, which goes back to s.buffers.
func (s *Store) buffer() *[]byte {
	if buf, ok := s.buffers.Get().(*[]byte); ok {
		return buf
	}
	return new([]byte)
}
