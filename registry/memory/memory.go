// Package memory is the store that keeps its records in memory. It is the reference model of
// registry.Store, and the store of `serve --store memory`.
//
// It fulfils the whole contract of registry.Store except durability: when the process ends, the
// records are lost. One mutex orders all calls, so each call happens at one moment. The package
// must not rely on anything outside the contract in registry.
package memory

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"moorage/registry"
)

// Store keeps records in memory. It is safe for concurrent use.
type Store struct {
	random io.Reader        // read only with mu held for writing
	now    func() time.Time // the store's clock

	// mu guards the fields below. No lock is taken under it, and it is never held during a wait.
	mu      sync.RWMutex
	closed  bool
	records map[registry.Key]*registry.Record
	ids     map[registry.Table]*btree.Set[string] // the IDs in records, in byte order
	last    registry.Position                     // the last assigned position
	changes []positioned                          // by position
}

// positioned is the place of a change record in the order of changes.
type positioned struct {
	position registry.Position
	key      registry.Key
}

var _ registry.Store = (*Store)(nil)

// New returns an empty store that draws its ETags from random. If random is not safe for concurrent
// use, it must not be read elsewhere at the same time.
func New(random io.Reader) *Store { return NewWithClock(random, time.Now) }

// NewWithClock is like New, with now as the store's clock. It must be safe for concurrent use.
func NewWithClock(random io.Reader, now func() time.Time) *Store {
	s := &Store{
		random:  random,
		now:     now,
		records: make(map[registry.Key]*registry.Record),
		ids:     make(map[registry.Table]*btree.Set[string]),
	}
	for _, table := range registry.Tables() {
		s.ids[table] = new(btree.Set[string])
	}
	s.putLocked(registry.FormatRecord())
	return s
}

// Time implements registry.Clock.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usableLocked(ctx); err != nil {
		return time.Time{}, err
	}
	return s.now(), nil
}

// Get implements registry.Store.
func (s *Store) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if err := registry.CheckKeys(keys); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usableLocked(ctx); err != nil {
		return nil, err
	}
	records := make([]registry.Record, len(keys))
	for i, key := range keys {
		records[i] = s.recordLocked(key)
	}
	return records, nil
}

// List implements registry.Store.
func (s *Store) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record,
	error) {
	var records []registry.Record
	bytes := 0
	err := s.list(ctx, table, prefix, after, limit, func(record registry.Record) bool {
		records = append(records, record)
		bytes += len(record.Value)
		return bytes < registry.ListBytesMax
	})
	return records, err
}

// ListKeys implements registry.Store.
func (s *Store) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	var records []registry.Record
	err := s.list(ctx, table, prefix, after, limit, func(record registry.Record) bool {
		record.Value = nil
		records = append(records, record)
		return true
	})
	return records, err
}

// list calls visit for the records of a page, until visit returns false.
func (s *Store) list(ctx context.Context, table registry.Table, prefix, after string, limit int,
	visit func(registry.Record) bool) error {
	if err := registry.CheckList(table, limit); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usableLocked(ctx); err != nil {
		return err
	}
	visited := 0
	s.ids[table].Ascend(max(prefix, after), func(id string) bool {
		if id == after {
			return true
		}
		if visited == limit || !strings.HasPrefix(id, prefix) {
			return false
		}
		visited++
		return visit(*s.records[registry.Key{Table: table, ID: id}])
	})
	return nil
}

// Apply implements registry.Store. It never returns ErrUnknown.
func (s *Store) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if err := batch.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(ctx); err != nil {
		return nil, err
	}
	etags, err := batch.NewETags(s.random)
	if err != nil {
		return nil, err
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		return nil, err
	}
	for i, condition := range sealed.Conditions {
		if !condition.Met(s.recordLocked(condition.Key)) {
			return nil, &registry.FailedError{Index: i, Condition: condition}
		}
	}
	s.writeLocked(sealed, etags)
	return etags[:len(batch.Writes):len(batch.Writes)], nil
}

// writeLocked executes the writes of sealed, whose conditions hold. mu must be held.
func (s *Store) writeLocked(sealed registry.Batch, etags []registry.ETag) {
	unplaced := make(map[registry.Key]bool) // change records that lose their place in the order
	for i, w := range sealed.Writes {
		if w.Key.Table == registry.TableChange && s.records[w.Key] != nil {
			unplaced[w.Key] = true
		}
		if w.Delete {
			s.deleteLocked(w.Key)
			continue
		}
		s.putLocked(registry.Record{Key: w.Key, ETag: etags[i], State: w.State, Value: w.Value})
	}
	if len(unplaced) > 0 {
		s.changes = slices.DeleteFunc(s.changes, func(p positioned) bool { return unplaced[p.key] })
	}
	if sealed.Change != nil {
		s.last++
		s.changes = append(s.changes, positioned{s.last, registry.ChangeKey(sealed.Change.ID)})
	}
}

// Changes implements registry.Store.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usableLocked(ctx); err != nil {
		return nil, err
	}
	start, _ := slices.BinarySearchFunc(s.changes, after, func(p positioned, after registry.Position) int {
		if p.position <= after {
			return -1
		}
		return 1
	})
	var changes []registry.PositionedChange
	for _, p := range s.changes[start:] {
		if len(changes) == limit {
			break
		}
		changes = append(changes, registry.PlacedChange(p.position, *s.records[p.key]))
	}
	return changes, nil
}

// Close implements registry.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// usableLocked returns why a call must fail, or nil if the call may continue. mu must be held.
func (s *Store) usableLocked(ctx context.Context) error {
	if s.closed {
		return registry.ErrClosed
	}
	return ctx.Err()
}

// recordLocked returns the record at key, the zero Record if there is none. mu must be held.
func (s *Store) recordLocked(key registry.Key) registry.Record {
	if record := s.records[key]; record != nil {
		return *record
	}
	return registry.Record{}
}

// putLocked stores record, in place of an earlier record at its key. mu must be held.
func (s *Store) putLocked(record registry.Record) {
	if place := s.records[record.Key]; place != nil {
		*place = record
		return
	}
	added := record
	s.records[record.Key] = &added
	s.ids[record.Key.Table].Insert(record.Key.ID)
}

// deleteLocked removes the record at key, if there is one. mu must be held.
func (s *Store) deleteLocked(key registry.Key) {
	s.ids[key.Table].Delete(key.ID)
	delete(s.records, key)
}
