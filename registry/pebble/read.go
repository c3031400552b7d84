package pebble

import (
	"context"

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
func (s *Store) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if err := registry.CheckList(table, limit); err != nil {
		return nil, err
	}
	lower := appendRecordKey(nil, registry.Key{Table: table, ID: prefix})
	upper := afterPrefix(lower)
	if after != "" && after >= prefix {
		lower = append(appendRecordKey(nil, registry.Key{Table: table, ID: after}), 0)
	}
	v, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave(v)
	var records []registry.Record
	err = v.scan(ctx, lower, upper, limit, func(engineKey, stored []byte) error {
		key := registry.Key{Table: table, ID: string(engineKey[recordPrefixBytes:])}
		record, err := wholeRecord(key, stored)
		records = append(records, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	return records, nil
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
