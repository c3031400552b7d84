package catalog

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"moorage"
	"moorage/metadata"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
)

// handmade is a history of one group that is written by hand, with the files that it needs.
type handmade struct {
	t      *testing.T
	files  map[string][]byte
	events []historyEvent
}

// version makes the version that call makes of the one at base, or of a new table, and its file.
func (h *handmade) version(call historyCall, location, base, table string) *Table {
	h.t.Helper()
	call.table = ""
	request, err := call.request()
	if err != nil {
		h.t.Fatal(err)
	}
	env := metadata.Env{Now: newClock().Now(), BaseLocation: base, NewUUID: func() string { return table }}
	var document *metadata.Document
	if raw, ok := h.files[base]; ok {
		if document, err = metadata.Parse(raw); err == nil {
			document, err = document.Apply(request.Updates, env)
		}
	} else {
		document, err = metadata.Create(metadata.CreateTable{
			Location: "file:///wh/t", Schema: []byte(testSchema), Properties: map[string]string{propAuthor: call.id},
		}, env)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.files[location] = document.Raw()
	return &Table{Identifier: call.ident(), MetadataLocation: location, Document: document}
}

// add adds an event that begins and ends as given.
func (h *handmade) add(from, to int64, call historyCall, answer historyAnswer) {
	h.events = append(h.events, historyEvent{call, answer, from, to})
}

func (h *handmade) next(action historyAction, name int) historyCall {
	return historyCall{id: fmt.Sprintf("0.%d", len(h.events)), action: action, name: name}
}

// create adds a call that made a table; this one and those below happen one after the other.
func (h *handmade) create(name int, location, table string) {
	call := h.next(actCreate, name)
	h.add(h.now(), h.now(), call, historyAnswer{table: h.version(call, location, "", table)})
}

func (h *handmade) set(name int, base, location string) {
	call := h.next(actSet, name)
	h.add(h.now(), h.now(), call, historyAnswer{table: h.version(call, location, base, "")})
}

func (h *handmade) load(name int, location string) {
	document, err := metadata.Parse(h.files[location])
	if err != nil {
		h.t.Fatal(err)
	}
	h.done(actLoad, name, historyAnswer{table: &Table{MetadataLocation: location, Document: document}})
}

func (h *handmade) done(action historyAction, name int, answer historyAnswer) {
	h.add(h.now(), h.now(), h.next(action, name), answer)
}

func (h *handmade) refused(action historyAction, name int, kind moorage.Kind) {
	h.done(action, name, historyAnswer{err: moorage.Errorf(kind, "refused")})
}

func (h *handmade) rename(name, to int) {
	call := h.next(actRename, name)
	call.to = to
	h.add(h.now(), h.now(), call, historyAnswer{})
}

func (h *handmade) now() int64 { return int64(10 * (len(h.events) + 1)) }

// stretch makes the last event's call end later, so that those after it are at the same time.
func (h *handmade) stretch(to int64) { h.events[len(h.events)-1].to = to }

// The checker tells good histories from bad ones.
func TestHistoryChecker(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		history func(h *handmade)
		right   bool
	}{
		{"commits one after the other", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.load(0, "b") }, true},
		{"lost update", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.set(0, "a", "c") }, false},
		{"lost update, both at once", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.set(0, "a", "c")
			h.stretch(1000)
		}, false},
		{"stale load", func(h *handmade) { h.create(0, "a", "x"); h.set(0, "a", "b"); h.load(0, "a") }, false},
		{"load during a commit", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.load(0, "a")
			h.load(0, "b")
		}, true},
		{"load goes back", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			h.stretch(1000)
			h.load(0, "b")
			h.load(0, "a")
		}, false},
		{"created twice", func(h *handmade) { h.create(0, "a", "x"); h.create(0, "b", "y") }, false},
		{"dropped twice", func(h *handmade) {
			h.create(0, "a", "x")
			h.done(actDrop, 0, historyAnswer{})
			h.done(actDrop, 0, historyAnswer{})
		}, false},
		{"dropped and still there", func(h *handmade) { h.create(0, "a", "x"); h.done(actDrop, 0, historyAnswer{}); h.load(0, "a") }, false},
		{"commit undone by unregister", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			document, _ := metadata.Parse(h.files["a"])
			h.done(actUnregister, 0, historyAnswer{table: &Table{MetadataLocation: "a", Document: document}})
		}, false},
		{"renamed", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.refused(actLoad, 0, moorage.KindNoSuchTable)
			h.set(1, "a", "b")
		}, true},
		{"renamed and under both names", func(h *handmade) { h.create(0, "a", "x"); h.rename(0, 1); h.load(1, "a"); h.load(0, "a") }, false},
		{"renamed and under no name", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.refused(actExists, 1, moorage.KindNoSuchTable)
		}, false},
		{"list shows two names of one table", func(h *handmade) {
			h.create(0, "a", "x")
			h.rename(0, 1)
			h.stretch(1000)
			h.done(actList, 0, historyAnswer{listed: [historyNames]bool{true, true}})
		}, false},
		{"commit on what another table had", func(h *handmade) {
			h.create(0, "a", "x")
			h.done(actDrop, 0, historyAnswer{})
			h.create(0, "b", "y")
			h.set(0, "a", "c")
		}, false},
		{"refused without a reason", func(h *handmade) { h.create(0, "a", "x"); h.refused(actSet, 0, moorage.KindCommitFailed) }, false},
		{"unavailable without a fault", func(h *handmade) { h.create(0, "a", "x"); h.refused(actSet, 0, moorage.KindUnavailable) }, false},
		{"unknown, and never happened", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(actDrop, 0, moorage.KindCommitUnknown)
			h.load(0, "a")
		}, true},
		{"unknown, and happened late", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(actDrop, 0, moorage.KindCommitUnknown)
			h.load(0, "a")
			h.refused(actLoad, 0, moorage.KindNoSuchTable)
		}, true},
		{"unknown, and happened twice", func(h *handmade) {
			h.create(0, "a", "x")
			h.refused(actDrop, 0, moorage.KindCommitUnknown)
			h.refused(actLoad, 0, moorage.KindNoSuchTable)
			h.create(0, "b", "y")
			h.refused(actLoad, 0, moorage.KindNoSuchTable)
		}, false},
		{"a commit that lost what was there", func(h *handmade) {
			h.create(0, "a", "x")
			h.set(0, "a", "b")
			call := h.next(actSet, 0)
			call.client = 1
			wrong := h.version(call, "c", "a", "")
			h.files["c"] = []byte(strings.Replace(string(wrong.Document.Raw()), `"metadata-file":"a"`, `"metadata-file":"b"`, 1))
			document, err := metadata.Parse(h.files["c"])
			if err != nil {
				h.t.Fatal(err)
			}
			h.add(h.now(), h.now(), call, historyAnswer{table: &Table{MetadataLocation: "c", Document: document}})
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &handmade{t: t, files: map[string][]byte{}}
			tt.history(h)
			k, err := newHistoryChecker(h.files, false)
			if err != nil {
				t.Fatal(err)
			}
			problems, result, _ := k.judge(h.events)
			if right := len(problems) == 0 && result == porcupine.Ok; right != tt.right {
				t.Errorf("judged %v with the problems %q", result, problems)
			}
		})
	}
}

// The same workload as in TestHistory, over stores that each break one promise: the checker must notice.
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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			seed := newSeed(t)
			random := newLockedRandom(seed)
			clean := memoryregistry.New(random)
			system := newHistorySystem(t, clean, historyParts{store: tt.store(clean), locks: noLocks, nodes: 2, random: random})
			// Without drops and renames: a commit that ignores them leads names nowhere, and calls wait for that to end.
			size := historySize{writers: 16, commits: 40, steady: true}
			history := runHistory(t.Context(), system, size, seed)
			k, err := newHistoryChecker(system.files.all(), false)
			if err != nil {
				t.Fatal(err)
			}
			if _, result, _ := k.judge(history.events); result != porcupine.Illegal {
				t.Errorf("the checker says %v; %s", result, history.summary())
			}
		})
	}
}

// carelessStore is a store in which every ETagIs of a commit holds.
type carelessStore struct{ registry.Store }

func (s *carelessStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change == nil || batch.Change.Operation != string(OpCommit) {
		return s.Store.Apply(ctx, batch)
	}
	runtime.Gosched() // let others build on what this one was built on
	var kept []registry.Condition
	for _, condition := range batch.Conditions {
		if condition.Kind != registry.CondETagIs {
			kept = append(kept, condition)
		}
	}
	batch.Conditions = kept
	return s.Store.Apply(ctx, batch)
}

// forgetfulStore says of some commits that they happened, and does nothing.
type forgetfulStore struct {
	registry.Store

	mu    sync.Mutex // guards count
	count int
}

func (s *forgetfulStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change == nil || batch.Change.Operation != string(OpCommit) {
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

// staleStore answers some reads with the version before the last that it answered.
type staleStore struct {
	registry.Store

	mu     sync.Mutex // guards the fields below
	count  int
	before map[registry.Key][2]registry.Record // the last two versions that were answered
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
