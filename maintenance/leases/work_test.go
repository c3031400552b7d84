package leases_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

const kind = "compaction"

var ann, bob = moorage.Caller{Name: "ann"}, moorage.Caller{Name: "bob"}

// world holds due tables, over a store whose clock the test moves.
type world struct {
	*leases.Work
	t      *testing.T
	ctx    context.Context
	mu     sync.Mutex // guards now
	now    time.Time
	moved  func(time.Time) // sets the store's clock, if the store has its own
	store  registry.Store
	ledger *ledger.Ledger
	leases *leases.Leases
	tables []registry.ID
	// refused holds the tables that no caller may write to.
	refused map[registry.ID]bool
	// unasked means that no policy requires work. stale means that a policy requires work, but the
	// node does not know that yet.
	unasked, stale bool
	// meanwhile is called after the node has read the current policies.
	meanwhile func()
	// away holds the tables whose storage is unavailable.
	away map[registry.ID]bool
	log  bytes.Buffer

	catalog *catalog.Catalog
}

// reader finds tables for the server. It cannot read the documents of tables in away.
type reader struct {
	leases.Tables
	away map[registry.ID]bool
}

func (r reader) TableByID(ctx context.Context, id registry.ID) (*catalog.Version, registry.Pointer, error) {
	if r.away[id] {
		return nil, registry.Pointer{}, moorage.Errorf(moorage.KindUnavailable, "the storage is away")
	}
	return r.Tables.TableByID(ctx, id)
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	if w.moved != nil {
		w.moved(w.now)
	}
}

var must = testkit.Must

// newWorld returns a world over a store in memory.
func newWorld(t *testing.T, tables int) *world {
	t.Helper()
	return newWorldOver(t, tables, inMemory)
}

func inMemory(w *world) registry.Store {
	return memory.NewWithClock(rand.NewChaCha8([32]byte{1}), w.time)
}

// newWorldOver is like newWorld, over the store that open makes. The store uses the world's clock.
func newWorldOver(t *testing.T, tables int, open func(w *world) registry.Store) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), refused: map[registry.ID]bool{}, away: map[registry.ID]bool{}, meanwhile: func() {}}
	w.store = open(w)
	files := memorystorage.New()
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Now: w.time, Random: rand.NewChaCha8([32]byte{2}), Logger: slog.New(slog.DiscardHandler)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(storage.Place) (storage.Store, error) { return files, nil },
	})
	must(t, err)
	anybody := made.As(moorage.Anonymous())
	_, err = anybody.Warehouses().Create(w.ctx, warehouses.Spec{Name: "w", Location: "file:///wh"})
	must(t, err)
	_, err = anybody.CreateNamespace(w.ctx, "w", moorage.Namespace{"ns"}, nil)
	must(t, err)
	w.ledger = registrytest.LedgerDeps(ledger.Config{Store: w.store, Now: w.time, Random: rand.NewChaCha8([32]byte{3})}).Ledger
	w.leases = leases.New(w.ledger)
	maintained := made.As(moorage.System("expire")).Tables()
	for n := range tables {
		ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: fmt.Sprint("t", n)}
		_, err := anybody.CreateTable(w.ctx, ident, catalog.CreateTableRequest{
			Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
		})
		must(t, err)
		id, err := maintained.Find(w.ctx, ident)
		must(t, err)
		w.tables = append(w.tables, id)
		w.due(id, w.now)
	}
	w.catalog = made
	w.Work = w.over(w.ledger)
	return w
}

// over returns a Work that uses the given ledger.
func (w *world) over(records *ledger.Ledger) *leases.Work {
	find := w.catalog.Pointers()
	return leases.NewWork(leases.WorkConfig{
		Ledger: records, Leases: leases.New(records), Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Tables: reader{w.catalog.As(moorage.System("expire")).Tables(), w.away},
		Find: func(ctx context.Context, caller moorage.Caller, ident moorage.Identifier) (registry.ID, string, error) {
			id, uuid, err := find.FindForLease(ctx, moorage.Anonymous(), ident)
			if err == nil && w.refused[id] {
				err = moorage.Errorf(moorage.KindForbidden, "no")
			}
			return id, uuid, err
		},
		Rules: func(ctx context.Context, _ registry.Pointer, document *metadata.Document, fresh bool) (
			policy.Rules, []registry.Condition, error) {
			rules := policy.Effective(nil, document.Properties())
			rule := rules[policy.Compaction]
			rule.Enabled = !w.unasked && (fresh || !w.stale)
			rules[policy.Compaction] = rule
			if !fresh {
				return rules, nil, nil
			}
			_, unchanged, err := policy.New(records, nil).ReloadFor(ctx, "w")
			w.meanwhile()
			return rules, unchanged, err
		},
	})
}

// due makes compaction of a table due.
func (w *world) due(table registry.ID, at time.Time) {
	w.t.Helper()
	schedule := w.schedule(table)
	change, err := schedule.Move(schedule.Value.With(registry.KindSchedule{Kind: kind, Due: at}))
	must(w.t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	must(w.t, err)
}

func (w *world) schedule(table registry.ID) due.Schedule {
	w.t.Helper()
	schedule, err := due.ReadSchedules(w.ctx, w.ledger, table)
	must(w.t, err)
	return schedule[0]
}

func workRequest() leases.WorkRequest {
	return leases.WorkRequest{Kinds: []string{kind}, Holder: "spark 17", TTL: time.Minute}
}

// claim gets an assignment. It fails the test if there is none.
func (w *world) claim(caller moorage.Caller) leases.Assignment {
	w.t.Helper()
	claimed, found, err := w.Assign(w.ctx, caller, workRequest())
	if err != nil || !found {
		w.t.Fatalf("Claim: %v, %v", found, err)
	}
	return claimed
}

func (w *world) wantNothing(caller moorage.Caller, why string) {
	w.t.Helper()
	if claimed, found, err := w.Assign(w.ctx, caller, workRequest()); err != nil || found {
		w.t.Errorf("%s: %+v, %v", why, claimed, err)
	}
}

func (w *world) wantKind(err error, kind moorage.Kind, why string) {
	w.t.Helper()
	if err == nil || moorage.KindOf(err) != kind {
		w.t.Errorf("%s: %v, want %v", why, err, kind)
	}
}

// A piece of work goes through its life: it is leased, renewed and finished, and then replaced with
// a run.
func TestWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	claimed := w.claim(ann)
	if claimed.Table.Name != "t0" || claimed.Lease.Scope != "job:"+kind || claimed.TableUUID == "" ||
		claimed.Rule.Values["targetFileSizeMB"].Number != 512<<20 {
		t.Errorf("claimed %+v", claimed)
	}
	if due, err := w.store.List(w.ctx, registry.TableDue, "", "", 10); err != nil || len(due) != 0 {
		t.Errorf("it is still due: %v, %v", due, err)
	}
	w.wantNothing(bob, "it is in hand")
	w.advance(50 * time.Second)
	lease, err := w.Progress(w.ctx, ann, claimed.Job)
	if err != nil || lease.Expires.Sub(w.time()) != time.Minute {
		t.Errorf("Progress = %+v, %v", lease, err)
	}
	_, err = w.Progress(w.ctx, bob, claimed.Job)
	w.wantKind(err, moorage.KindForbidden, "progress of another")
	w.wantKind(w.Finish(w.ctx, bob, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}), moorage.KindForbidden, "the end of another")
	w.wantKind(w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: "well"}), moorage.KindBadRequest, "an unknown outcome")
	must(t, w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone, Files: 3, Bytes: 5}))
	w.wantKind(w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}), moorage.KindNotFound, "a second end")
	runs, err := w.store.List(w.ctx, registry.TableRun, "", "", 10)
	must(t, err)
	run, err := registry.Decode[registry.Run](runs[0])
	if err != nil || len(runs) != 1 || run.Outcome != leases.OutcomeDone || run.Totals.Files != 3 || run.Holder != "spark 17" || run.Caller != "ann" {
		t.Errorf("runs: %+v, %v", run, err)
	}
	if job := w.schedule(w.tables[0]).Value.Job(kind); job.Outcome != leases.OutcomeDone || !job.Due.IsZero() || !job.Last.Equal(w.time()) {
		t.Errorf("schedule: %+v", job)
	}
	if held, _, err := w.leases.List(w.ctx, leases.Filter{}, "", 10); err != nil || len(held) > 0 {
		t.Errorf("leases: %v, %v", held, err)
	}
	w.due(w.tables[0], w.time())
	if again := w.claim(ann); again.Lease.Token <= claimed.Lease.Token {
		t.Errorf("the token %d comes after %d", again.Lease.Token, claimed.Lease.Token)
	}
}

// Work is handed out again if its program has died or sleeps. A program that slept cannot end the
// work.
func TestWorkOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	first := w.claim(ann)
	w.advance(time.Minute)
	w.wantNothing(bob, "it failed a moment ago")
	_, err := w.Progress(w.ctx, ann, first.Job)
	w.wantKind(err, moorage.KindNotFound, "progress behind the end of the lease")
	w.advance(time.Minute)
	second := w.claim(bob)
	w.wantKind(w.Finish(w.ctx, ann, first.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}), moorage.KindNotFound, "the sleeper's end")
	must(t, w.Finish(w.ctx, bob, second.Job, leases.AssignmentResult{Outcome: leases.OutcomeNothing}))
	if tries := w.schedule(w.tables[0]).Value.Job(kind).Tries; tries != 0 {
		t.Errorf("%d tries are left", tries)
	}
	third := func() { w.due(w.tables[0], w.time()) }
	third()
	claimed := w.claim(ann)
	w.advance(time.Minute)
	// The lease has ended, but no search has found that yet.
	_, err = w.Progress(w.ctx, ann, claimed.Job)
	w.wantKind(err, moorage.KindCommitFailed, "progress of a lost lease")
	w.wantKind(w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}), moorage.KindCommitFailed, "the end of a lost lease")
}

// Work that fails becomes due again later, and is blocked in the end.
func TestWorkThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for try := range 5 {
		claimed := w.claim(ann)
		must(t, w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeFailed, Error: "no\nroom"}))
		w.wantNothing(ann, "it has just failed")
		w.advance(time.Minute << try)
	}
	w.advance(24 * time.Hour)
	w.wantNothing(ann, "it is blocked")
	blocked, err := w.store.Get(w.ctx, registry.DueBlockedKey(w.tables[0], kind))
	if err != nil || !blocked[0].Exists() {
		t.Errorf("it is not blocked: %v", err)
	}
	if job := w.schedule(w.tables[0]).Value.Job(kind); job.Held != due.HeldBlocked || job.Error != "no; room" {
		t.Errorf("schedule: %+v", job)
	}
}

// No caller gets work on a table that it may not write to, or more than 16 pieces of work. No work
// is handed out that is not due, paused, leased or held, or on a mirror.
func TestWorkThatIsNotHandedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 18)
	w.refused[w.tables[0]] = true
	for range 16 {
		if claimed := w.claim(ann); claimed.Table.Name == "t0" {
			t.Error("work on a table that ann may not write to")
		}
	}
	_, _, err := w.Assign(w.ctx, ann, workRequest())
	w.wantKind(err, moorage.KindTooManyRequests, "the 17th piece")
	w.claim(bob)
	w.wantNothing(bob, "what is left is refused")
	w = newWorld(t, 1)
	w.unasked = true
	w.wantNothing(ann, "no policy asks for it")
	if job := w.schedule(w.tables[0]).Value.Job(kind); !job.Due.IsZero() {
		t.Errorf("what no policy asks for is due at %s", job.Due)
	}
	w = newWorld(t, 1)
	w.stale = true
	w.claim(ann)
	w = newWorld(t, 1)
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t0"}
	anybody := w.catalog.As(moorage.Anonymous())
	left, err := anybody.LoadTable(w.ctx, table)
	must(t, err)
	must(t, anybody.DropTable(w.ctx, table, catalog.DropOptions{})) // the mirror gets its pointer
	must(t, anybody.Mirrors().Put(w.ctx, access.Table, table, "https://old.example.com", left.MetadataLocation))
	w.wantNothing(ann, "it is a mirror")
	must(t, anybody.Mirrors().End(w.ctx, access.Table, table, left.MetadataLocation))
	w.claim(ann)
	w = newWorld(t, 1)
	w.due(w.tables[0], w.time().Add(time.Hour))
	w.wantNothing(ann, "it is not due yet")
	w.due(w.tables[0], w.time())
	lease, err := w.leases.Take(w.ctx, bob, leases.Request{Pointer: w.tables[0], Scope: leases.ScopeAll, Holder: "bob"})
	must(t, err)
	w.wantNothing(ann, "bob has the table")
	must(t, w.leases.Release(w.ctx, bob, lease.ID, leases.OwnLeases))
	value, err := registry.Encode(registry.Pauses{Pauses: []registry.Pause{{Scope: registry.ScopeServer}}})
	must(t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
	must(t, err)
	w.wantNothing(ann, "the server is paused")
	w = newWorld(t, 1)
	w.stale, w.meanwhile = true, func() {
		_, err := w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
		must(t, err)
	}
	w.wantNothing(ann, "the server is paused meanwhile")
	for _, bad := range []leases.WorkRequest{{}, {Kinds: []string{jobs.KindOrphans}, Holder: "x"}, {Kinds: []string{kind}, Holder: "x", Wait: time.Hour}} {
		_, _, err := w.Assign(w.ctx, ann, bad)
		w.wantKind(err, moorage.KindBadRequest, fmt.Sprint(bad))
	}
}

// If many callers ask at once, each piece of work goes to one of them.
func TestWorkGoesToOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8)
	var mu sync.Mutex // guards got
	got := map[string]int{}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for {
				claimed, found, err := w.Assign(w.ctx, moorage.Caller{Name: fmt.Sprint("c", n)}, workRequest())
				if err != nil || !found {
					if err != nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				got[claimed.Table.Name]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(got) != 8 {
		t.Errorf("work on %d of 8 tables was handed out", len(got))
	}
	for table, times := range got {
		if times != 1 {
			t.Errorf("work on %s was handed out %d times", table, times)
		}
	}
}

// While one storage is unavailable, tables in other storages are still handed out. The work of dead
// programs is still taken back.
func TestWorkWhileStorageIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15)
	dead := w.claim(ann)
	for n, id := range w.tables {
		w.away[id] = n != 14
	}
	w.advance(time.Minute)
	var claimed leases.Assignment
	for found := false; !found; {
		var err error
		if claimed, found, err = w.Assign(w.ctx, bob, workRequest()); err != nil {
			t.Fatal(err)
		}
		if w.advance(time.Second); w.time().Sub(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)) > 5*time.Minute {
			t.Fatal("nothing is found behind the tables whose storage is away")
		}
	}
	if claimed.Table.Name != "t14" {
		t.Errorf("claimed %+v", claimed)
	}
	if _, err := w.Progress(w.ctx, ann, dead.Job); moorage.KindOf(err) != moorage.KindNotFound {
		t.Errorf("what the dead had is not taken back: %v", err)
	}
	if job := w.schedule(dead.Lease.ID.Pointer).Value.Job(kind); job.Tries != 1 || job.Due.IsZero() {
		t.Errorf("schedule of what the dead had: %+v", job)
	}
	w.log.Reset()
	w.wantNothing(bob, "the others are away")
	if !strings.Contains(w.log.String(), "the storage is away") {
		t.Errorf("the log says %q", w.log.String())
	}
}
