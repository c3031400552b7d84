package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage/internal/worker"
	"moorage/registry"
)

// gatherFixture is a gatherer whose statements wait for the test to answer them, or to end.
type gatherFixture struct {
	gatherer
	sent chan *sentStatement
}

type sentStatement struct {
	ctx    context.Context
	keys   []registry.Key
	answer chan error // the statement's error; with nil, it finds all keys
}

func newGatherFixture(t *testing.T) *gatherFixture {
	f := &gatherFixture{sent: make(chan *sentStatement, 100)}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	f.gatherer = gatherer{read: func(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
		statement := &sentStatement{ctx, keys, make(chan error)}
		f.sent <- statement
		select {
		case err := <-statement.answer:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over: // the test has stopped answering
			return nil, context.Canceled
		}
		var read []registry.Record
		for _, key := range keys {
			read = append(read, registry.Record{Key: key, ETag: registry.ETag{1}})
		}
		return read, nil
	}}
	return f
}

// gatherResult is the result of a call of get.
type gatherResult struct {
	records []registry.Record
	err     error
}

// call reads keys in the background.
func (f *gatherFixture) call(ctx context.Context, keys ...registry.Key) <-chan gatherResult {
	result := make(chan gatherResult, 1)
	go func() {
		records, err := f.get(ctx, keys)
		result <- gatherResult{records, err}
	}()
	return result
}

// fill sends the maximum number of statements, and returns them.
func (f *gatherFixture) fill(t *testing.T) []*sentStatement {
	t.Helper()
	var statements []*sentStatement
	for i := range statementsMax {
		f.call(t.Context(), gatherKey(-1-i))
		statements = append(statements, <-f.sent)
	}
	return statements
}

func gatherKey(n int) registry.Key {
	return registry.Key{Table: registry.TablePointer, ID: fmt.Sprint(n)}
}

func TestGatherJoinsWhenBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		one := f.call(t.Context(), gatherKey(1))
		two := f.call(t.Context(), gatherKey(2), gatherKey(3))
		synctest.Wait()
		if len(f.sent) != 0 {
			t.Fatalf("%d statements more than %d are under way", len(f.sent), statementsMax)
		}
		busy[0].answer <- nil
		joined := <-f.sent
		if len(joined.keys) != 3 {
			t.Fatalf("the calls that waited became a statement of %v", joined.keys)
		}
		// A call that begins now must see all earlier commits. The statement in progress may have
		// missed some.
		late := f.call(t.Context(), gatherKey(1))
		synctest.Wait()
		joined.answer <- nil
		if r := <-one; r.err != nil || len(r.records) != 1 || r.records[0].Key != gatherKey(1) {
			t.Errorf("first call: %v", r)
		}
		if r := <-two; r.err != nil || len(r.records) != 2 || r.records[1].Key != gatherKey(3) {
			t.Errorf("second call: %v", r)
		}
		second := <-f.sent
		if !slices.Equal(second.keys, []registry.Key{gatherKey(1)}) {
			t.Errorf("the late call became a statement of %v", second.keys)
		}
		second.answer <- nil
		if r := <-late; r.err != nil {
			t.Errorf("late call: %v", r)
		}
		for _, statement := range busy[1:] {
			statement.answer <- nil
		}
		synctest.Wait()
		if f.underWay != 0 {
			t.Errorf("%d statements are under way after the last", f.underWay)
		}
	})
}

func TestGatherIsDirectWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		ctx, cancel := context.WithCancel(t.Context())
		result := f.call(ctx, gatherKey(1))
		<-f.sent
		cancel() // a statement for a single call ends with the call
		if r := <-result; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v", r.err)
		}
		synctest.Wait()
		if f.underWay != 0 {
			t.Errorf("%d statements are under way after the last", f.underWay)
		}
	})
}

func TestGatherOutlivesCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := f.call(ctx, gatherKey(1)), f.call(t.Context(), gatherKey(2))
		synctest.Wait()
		busy[0].answer <- nil
		joined := <-f.sent
		cancel()
		if r := <-gone; !errors.Is(r.err, context.Canceled) {
			t.Errorf("the call that went away: %v", r.err)
		}
		if joined.ctx.Err() != nil {
			t.Error("its statement ended with it")
		}
		joined.answer <- nil
		if r := <-stays; r.err != nil {
			t.Errorf("the other call: %v", r.err)
		}
		for _, statement := range busy[1:] {
			statement.answer <- nil
		}
	})
}

// Nothing is read for a call that ended before its statement was sent.
func TestGatherForgetsWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		ctx, cancel := context.WithCancel(t.Context())
		gone := f.call(ctx, gatherKey(1))
		synctest.Wait()
		cancel()
		if r := <-gone; !errors.Is(r.err, context.Canceled) {
			t.Errorf("the call that went away: %v", r.err)
		}
		for _, statement := range busy {
			statement.answer <- nil
		}
		synctest.Wait()
		if len(f.sent) != 0 || f.underWay != 0 {
			t.Errorf("%d statements were sent for nobody, %d are under way", len(f.sent), f.underWay)
		}
	})
}

func TestGatherTellsAllOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		one, two := f.call(t.Context(), gatherKey(1)), f.call(t.Context(), gatherKey(2))
		synctest.Wait()
		busy[0].answer <- registry.ErrClosed // fails only its own call
		joined := <-f.sent
		joined.answer <- registry.ErrUnavailable
		for _, result := range []<-chan gatherResult{one, two} {
			if r := <-result; !errors.Is(r.err, registry.ErrUnavailable) {
				t.Errorf("got %v", r.err)
			}
		}
		for _, statement := range busy[1:] {
			statement.answer <- nil
		}
	})
}

// If a shared statement panics, all of its calls return an error, and another statement can begin.
func TestGatherPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		read := f.read
		f.read = func(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
			if len(keys) == 2 {
				panic("out of range")
			}
			return read(ctx, keys)
		}
		one, two := f.call(t.Context(), gatherKey(1)), f.call(t.Context(), gatherKey(2))
		synctest.Wait()
		busy[0].answer <- nil
		for _, result := range []<-chan gatherResult{one, two} {
			if panicked, ok := errors.AsType[*worker.PanicError]((<-result).err); !ok || panicked.Value != "out of range" {
				t.Errorf("got %v", panicked)
			}
		}
		for _, statement := range busy[1:] {
			statement.answer <- nil
		}
		synctest.Wait()
		if f.underWay != 0 {
			t.Errorf("%d statements are under way after the last", f.underWay)
		}
	})
}

// Over a real server, each call that shares a statement gets its own records, in the requested
// order.
func TestGetJoined(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	for n := range 3 {
		if _, err := store.Apply(t.Context(), put(n)); err != nil {
			t.Fatal(err)
		}
	}
	pointer := func(n int) registry.Key { return registry.PointerKey(faultID(n)) }
	change := func(n int) registry.Key { return registry.ChangeKey(faultID(n)) }
	asked := [][]registry.Key{
		{pointer(2), pointer(0), change(1)},
		{pointer(7), pointer(2)}, // 7 does not exist
		{change(1), registry.TaskKey(faultID(1)), pointer(2)},
	}
	var statements atomic.Int64
	store.gets.read = func(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
		statements.Add(1)
		return store.readKeys(ctx, keys)
	}
	var direct [][]registry.Record
	for _, keys := range asked {
		records, err := store.Get(t.Context(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		direct = append(direct, records)
	}
	if !direct[0][0].Exists() || direct[1][0].Exists() || !direct[2][0].Exists() {
		t.Fatalf("alone they read %v", direct)
	}
	store.gets.underWay = statementsMax
	statements.Store(0)
	var group sync.WaitGroup
	for i, keys := range asked {
		group.Go(func() {
			records, err := store.Get(t.Context(), keys...)
			if err != nil || !reflect.DeepEqual(records, direct[i]) {
				t.Errorf("together: got %v (%v), want %v", records, err, direct[i])
			}
		})
	}
	for waiting := 0; waiting < len(asked); runtime.Gosched() {
		store.gets.mu.Lock()
		waiting = len(store.gets.waiting)
		store.gets.mu.Unlock()
	}
	for range statementsMax {
		store.gets.next()
	}
	group.Wait()
	if got := statements.Load(); got != 1 {
		t.Errorf("%d statements, want one for all", got)
	}
}

func TestGatherPassesTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), slowStatement/2)
		defer cancel()
		hasty, patient := f.call(ctx, gatherKey(1)), f.call(t.Context(), gatherKey(2))
		if r := <-hasty; !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("a call whose context ended: %v", r.err)
		}
		passing := <-f.sent
		if time.Since(began) != slowStatement || !slices.Equal(passing.keys, []registry.Key{gatherKey(2)}) {
			t.Errorf("%v was sent after %s", passing.keys, time.Since(began))
		}
		passing.answer <- nil
		if r := <-patient; r.err != nil {
			t.Errorf("got %v", r.err)
		}
		for _, statement := range busy {
			statement.answer <- nil
		}
		synctest.Wait()
		if f.underWay != 0 || len(f.sent) != 0 {
			t.Errorf("%d statements are under way and %d were sent for nobody", f.underWay, len(f.sent))
		}
	})
}

func TestGatherKeepsStatementsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGatherFixture(t)
		busy := f.fill(t)
		many := make([]registry.Key, joinedKeysMax)
		for i := range many {
			many[i] = gatherKey(i)
		}
		large := f.call(t.Context(), append(many, gatherKey(-9))...) // too large to be joined, so it does not wait
		alone := <-f.sent
		if len(alone.keys) != joinedKeysMax+1 {
			t.Fatalf("a call of %d keys was sent as one of %d", joinedKeysMax+1, len(alone.keys))
		}
		alone.answer <- nil
		if r := <-large; r.err != nil || len(r.records) != joinedKeysMax+1 {
			t.Errorf("got %d records, %v", len(r.records), r.err)
		}
		f.call(t.Context(), many...)
		synctest.Wait()
		f.call(t.Context(), gatherKey(1))
		synctest.Wait()
		busy[0].answer <- nil
		first := <-f.sent
		if len(first.keys) != joinedKeysMax {
			t.Errorf("%d keys were joined, at most %d may be", len(first.keys), joinedKeysMax)
		}
		first.answer <- nil
		second := <-f.sent
		if len(second.keys) != 1 {
			t.Errorf("then %d keys were joined, want the one that is left", len(second.keys))
		}
		second.answer <- nil
		for _, statement := range busy[1:] {
			statement.answer <- nil
		}
	})
}
