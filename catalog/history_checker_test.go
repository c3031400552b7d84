package catalog_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"moorage/catalog/gate"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
)

// The workload of TestHistory runs over stores that each break one promise. The checker must detect
// that.
func TestHistoryOfBrokenStores(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		store func(registry.Store) registry.Store
	}{
		{"every version condition of a commit holds", func(s registry.Store) registry.Store { return &carelessStore{Store: s} }},
		{"a commit in a hundred is lost", func(s registry.Store) registry.Store { return &forgetfulStore{Store: s} }},
		{"a read in a hundred is old", func(s registry.Store) registry.Store {
			return &staleStore{Store: s, before: map[registry.Key][2]registry.Record{}}
		}},
	}
	for _, tt := range tests {
		for _, groups := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, groups %t", tt.name, groups), func(t *testing.T) {
				t.Parallel()
				seed := catalogkit.NewSeed(t)
				random := newLockedRandom(seed)
				clean := memoryregistry.New(random)
				system := newHistorySystem(t, clean, historyParts{store: tt.store(clean), locks: catalogkit.NoLocks, nodes: 2, random: random})
				// There are no drops and renames: a commit that ignores them leaves names without a
				// table, and other calls would wait for that to end.
				size := historySize{writers: 16, commits: 40, steady: true}
				if groups {
					system, size.groups = forceGroups(t, system), groupHistoryGroups
				}
				history := runHistory(t.Context(), system, size, seed)
				k, err := histories.NewChecker(system.files.all(), false)
				if err != nil {
					t.Fatal(err)
				}
				if _, result := k.Judge(history.Events); result != porcupine.Illegal {
					t.Errorf("the checker says %v; %s", result, history.Summary())
				}
			})
		}
	}
}

// carelessStore is a store that treats every ETagIs condition of a commit as met.
type carelessStore struct{ registry.Store }

func (s *carelessStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change == nil || batch.Change.Operation != string(gate.Commit) {
		return s.Store.Apply(ctx, batch)
	}
	runtime.Gosched() // let others build on the same version
	var kept []registry.Condition
	for _, condition := range batch.Conditions {
		if condition.Kind != registry.CondETagIs {
			kept = append(kept, condition)
		}
	}
	batch.Conditions = kept
	return s.Store.Apply(ctx, batch)
}

// forgetfulStore reports success for some commits without applying them.
type forgetfulStore struct {
	registry.Store

	mu    sync.Mutex // guards count
	count int
}

func (s *forgetfulStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change == nil || batch.Change.Operation != string(gate.Commit) {
		return s.Store.Apply(ctx, batch)
	}
	s.mu.Lock()
	s.count++
	forget := s.count%100 == 0
	s.mu.Unlock()
	if forget {
		return make([]registry.ETag, len(batch.Writes)), nil
	}
	return s.Store.Apply(ctx, batch)
}

// staleStore answers some reads with an earlier version than it last returned.
type staleStore struct {
	registry.Store

	mu     sync.Mutex // guards the fields below
	count  int
	before map[registry.Key][2]registry.Record // the last two versions that were returned
}

func (s *staleStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := s.Store.Get(ctx, keys...)
	if err != nil || len(keys) != 1 || keys[0].Table != registry.TablePointer {
		return records, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.before[keys[0]]
	if records[0].ETag != known[1].ETag {
		known = [2]registry.Record{known[1], records[0]}
		s.before[keys[0]] = known
	}
	if s.count++; s.count%100 == 0 && known[0].Exists() {
		records[0] = known[0]
	}
	return records, nil
}
