package pebble

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
	"moorage/testkit/registrytest"
)

// TestStoreWithSmallTables checks the store against the contract while its engine constantly
// rotates the log, flushes and compacts.
func TestStoreWithSmallTables(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(t *testing.T) registry.Store { return openStore(t, vfs.NewMem(), smallTables) })
}

// queued waits until n requests are in the queue.
func queued(s *instance, n int) {
	for {
		s.queue.mu.Lock()
		length := len(s.queue.requests)
		s.queue.mu.Unlock()
		if length >= n {
			return
		}
		runtime.Gosched()
	}
}

// applying applies a batch in a goroutine, and returns the channel of its error.
func applying(ctx context.Context, s *instance, batch registry.Batch) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Apply(ctx, batch)
		done <- err
	}()
	return done
}

func TestConcurrentAppliesShareASync(t *testing.T) {
	t.Parallel()
	const clients = 64
	g := newGate(isLogSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), asItIs)
	defer closeStore(t, s)
	before := g.count()
	g.close()
	first := applying(t.Context(), s, testPut("first", "1"))
	<-g.arrived
	var others []<-chan error
	for i := range clients {
		others = append(others, applying(t.Context(), s, testPut(fmt.Sprint(i), "1")))
	}
	queued(s, clients)
	g.open()
	for i, done := range append(others, first) {
		if err := <-done; err != nil {
			t.Errorf("apply %d: %v", i, err)
		}
	}
	if syncs := g.count() - before; syncs != 2 {
		t.Errorf("%d Applies took %d syncs, want 2", clients+1, syncs)
	}
}

func TestReadersSeeNothingThatIsNotDurable(t *testing.T) {
	t.Parallel()
	g := newGate(isLogSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), asItIs)
	defer closeStore(t, s)
	if _, err := s.Apply(t.Context(), testPut("a", "old")); err != nil {
		t.Fatal(err)
	}
	g.close()
	batch := testPut("a", "new")
	batch.Writes = append(batch.Writes, registry.Put(testKey("b"), registry.StateOwner, nil))
	batch.Change = testChange(1)
	done := applying(t.Context(), s, batch)
	<-g.arrived

	// The batch is in the engine, and its sync is delayed. Reads return the previous state at once.
	if got := value(t, s, "a"); got != "old" {
		t.Errorf("Get answered %q before the sync, want old", got)
	}
	records, err := s.List(t.Context(), registry.TableLocation, "", "", 10)
	if err != nil || len(records) != 1 || string(records[0].Value) != "old" {
		t.Errorf("List answered %v, %v before the sync, want the old record", records, err)
	}
	changes, err := s.Changes(t.Context(), 0, 10)
	if err != nil || len(changes) != 0 {
		t.Errorf("Changes answered %v, %v before the sync", changes, err)
	}
	select {
	case err := <-done:
		t.Errorf("Apply answered %v before the sync", err)
	default:
	}

	g.open()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "a"); got != "new" {
		t.Errorf("Get answered %q after the sync, want new", got)
	}
	if changes, err = s.Changes(t.Context(), 0, 10); err != nil || len(changes) != 1 {
		t.Errorf("Changes answered %v, %v after the sync, want one", changes, err)
	}
}

// TestReadersDoNotWaitForTheEnginesFiles delays the sync at the end of a flush. Calls that do not
// need it continue, including a read in a view that was replaced in the meantime.
func TestReadersDoNotWaitForTheEnginesFiles(t *testing.T) {
	t.Parallel()
	g := newGate(isManifestSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), func(options *engine.Options) {
		smallTables(options)
		options.MemTableStopWritesThreshold = 1000 // otherwise the engine makes writes wait for the flush
	})
	defer closeStore(t, s)
	g.close()
	for flushing := false; !flushing; {
		if _, err := s.Apply(t.Context(), testPut("a", string(make([]byte, 1<<10)))); err != nil {
			t.Fatal(err)
		}
		select {
		case <-g.arrived:
			flushing = true
		default:
		}
	}
	v, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), testPut("a", "last")); err != nil {
		t.Fatal(err)
	}
	s.leave(v)
	if got := value(t, s, "a"); got != "last" {
		t.Errorf("Get answers %q, want last", got)
	}
	if records, err := s.List(t.Context(), registry.TableLocation, "", "", 1); err != nil || len(records) != 1 {
		t.Errorf("List answers %v, %v", records, err)
	}
	g.open()
}

// TestLosersHearItAfterTheSync makes requests of one group conflict. A refusal because of a record
// of the group must wait for the sync. A refusal because of an older record need not.
func TestLosersHearItAfterTheSync(t *testing.T) {
	t.Parallel()
	g := newGate(isLogSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), asItIs)
	defer closeStore(t, s)
	if _, err := s.Apply(t.Context(), testPut("old", "1")); err != nil {
		t.Fatal(err)
	}
	g.close()
	first := applying(t.Context(), s, testPut("first", "1"))
	<-g.arrived
	batches := []registry.Batch{
		{Conditions: []registry.Condition{registry.Absent(testKey("new"))}, Writes: testPut("new", "winner").Writes},
		{Conditions: []registry.Condition{registry.Absent(testKey("new"))}, Writes: testPut("new", "loser").Writes},
		{Conditions: []registry.Condition{registry.StateIs(testKey("new"), registry.StateOwner)}},
		{Conditions: []registry.Condition{registry.StateIs(testKey("old"), registry.StateBelow)}},
	}
	var answers []<-chan error
	for i, batch := range batches {
		answers = append(answers, applying(t.Context(), s, batch))
		queued(s, i+1)
	}
	// Release the first group; the second then waits for its own sync.
	g.mu.Lock()
	held := g.shut
	g.shut = make(chan struct{})
	g.mu.Unlock()
	close(held)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	if _, refused := registry.FailedCondition(<-answers[3]); !refused {
		t.Error("the batch with a condition on an old record was not refused")
	}
	for i, answer := range answers[:3] {
		select {
		case err := <-answer:
			t.Errorf("batch %d was answered %v before the sync", i, err)
		default:
		}
	}
	g.open()
	if err := <-answers[0]; err != nil {
		t.Errorf("winner: %v", err)
	}
	if _, refused := registry.FailedCondition(<-answers[1]); !refused {
		t.Error("the loser was not refused")
	}
	if err := <-answers[2]; err != nil {
		t.Errorf("condition on a record of the group: %v", err)
	}
}

func TestApplyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g := newGate(isLogSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), asItIs)
	defer closeStore(t, s)
	g.close()
	ctx, cancel := context.WithCancel(t.Context())
	written := applying(ctx, s, testPut("written", "1"))
	<-g.arrived
	waiting := applying(ctx, s, testPut("waiting", "1"))
	queued(s, 1)
	cancel()
	if err := <-written; !errors.Is(err, registry.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("an Apply that is being written: %v, want ErrUnknown and context.Canceled", err)
	}
	if err := <-waiting; errors.Is(err, registry.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("an Apply that waits: %v, want context.Canceled and not ErrUnknown", err)
	}
	g.open()
	if _, err := s.Apply(t.Context(), testPut("later", "1")); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "written"); got != "1" {
		t.Errorf("the Apply that was being written left %q, want 1", got)
	}
	if got := value(t, s, "waiting"); got != "" {
		t.Errorf("the Apply that was withdrawn left %q", got)
	}
}

func TestCloseCarriesOutWhatIsQueued(t *testing.T) {
	t.Parallel()
	g := newGate(isLogSync)
	fs := vfs.NewMem()
	s := openStore(t, hooked(fs, g.hook), asItIs)
	g.close()
	first := applying(t.Context(), s, testPut("first", "1"))
	<-g.arrived
	second := applying(t.Context(), s, testPut("second", "1"))
	queued(s, 1)
	var closing sync.WaitGroup
	closing.Go(func() { closeStore(t, s) })
	for isClosed := false; !isClosed; runtime.Gosched() {
		s.queue.mu.Lock()
		isClosed = s.queue.closed
		s.queue.mu.Unlock()
	}
	if _, err := s.Apply(t.Context(), testPut("late", "1")); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("an Apply while the store closes: %v, want ErrClosed", err)
	}
	g.open()
	closing.Wait()
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	s = openStore(t, fs, asItIs)
	defer closeStore(t, s)
	if value(t, s, "first") != "1" || value(t, s, "second") != "1" {
		t.Error("an acknowledged record is missing after the store was opened again")
	}
}

// TestLargeGroupsAreSplit queues more data than fits into one group.
func TestLargeGroupsAreSplit(t *testing.T) {
	t.Parallel()
	g := newGate(isLogSync)
	s := openStore(t, hooked(vfs.NewMem(), g.hook), asItIs)
	defer closeStore(t, s)
	before := g.count()
	g.close()
	first := applying(t.Context(), s, testPut("first", "1"))
	<-g.arrived
	large := string(make([]byte, groupBytesMax*2/3))
	answers := []<-chan error{first}
	for i := range 3 {
		answers = append(answers, applying(t.Context(), s, testPut(fmt.Sprint(i), large)))
		queued(s, i+1)
	}
	g.open()
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if syncs := g.count() - before; syncs < 4 {
		t.Errorf("%d syncs for groups of %d bytes, want one for each", syncs, len(large))
	}
}

func TestChangesBehindDamage(t *testing.T) {
	t.Parallel()
	s := openStore(t, vfs.NewMem(), asItIs)
	defer closeStore(t, s)
	registrytest.ReadsBehindDamage(t, s, func(key registry.Key, value []byte) {
		stored, closer, err := s.db.Get(appendRecordKey(nil, key))
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		_, old, err := splitRecord(key, stored)
		if err != nil {
			t.Fatal(err)
		}
		damaged := slices.Concat(stored[:len(stored)-len(old)], value)
		if err := s.db.Set(appendRecordKey(nil, key), damaged, engine.Sync); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEnginePanicsAtALook makes the engine panic while the committer reads for a request. That
// request gets an error, and the committer continues with the others.
func TestEnginePanicsAtALook(t *testing.T) {
	t.Parallel()
	s := openStore(t, vfs.NewMem(), asItIs)
	defer closeStore(t, s)
	gone := newView(s.db, &s.retired)
	if err := gone.snapshot.Close(); err != nil { // the engine panics on reads in it
		t.Fatal(err)
	}
	g := &group{view: gone, buf: new([]byte), batch: s.db.NewBatch(), written: make(map[registry.Key]header)}
	defer g.batch.Close()
	reading := &request{conditions: []registry.Condition{registry.Absent(testKey("a"))}, answer: make(chan error, 1)}
	change := registry.ChangeKey(testChange(1).ID)
	replacing := &request{writes: []storedWrite{{key: testKey("a"), stored: []byte{}}, {key: change}}, answer: make(chan error, 1)}
	for _, r := range []*request{reading, replacing} {
		g.decide(r)
		select {
		case err := <-r.answer:
			if _, refused := registry.FailedCondition(err); err == nil || refused || errors.Is(err, registry.ErrUnknown) {
				t.Errorf("answered %v", err)
			}
		default:
			t.Error("not answered")
		}
	}
	if len(g.applied) > 0 || len(g.written) > 0 || !g.batch.Empty() {
		t.Errorf("the group has %d requests and %d records", len(g.applied), len(g.written))
	}
	writing := &request{writes: []storedWrite{{key: testKey("b"), stored: []byte{}}}, answer: make(chan error, 1)}
	if g.decide(writing); len(g.applied) != 1 {
		t.Error("the group does not go on")
	}
}
