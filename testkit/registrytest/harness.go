package registrytest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// harness is the store of one test, with methods that fail the test on an error. Only the test's
// own goroutine may call them, except methods whose comment allows other goroutines.
type harness struct {
	*testing.T
	ctx   context.Context
	store registry.Store
}

// testTimeout is much longer than any test here takes, so it only fails stores that hang.
const testTimeout = 5 * time.Minute

func newHarness(t *testing.T, store registry.Store) *harness {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return &harness{T: t, ctx: ctx, store: store}
}

// apply applies a batch that must be accepted.
func (h *harness) apply(batch registry.Batch) []registry.ETag {
	h.Helper()
	etags, err := h.store.Apply(h.ctx, batch)
	if err != nil {
		h.Fatalf("apply: %v", err)
	}
	if len(etags) != len(batch.Writes) {
		h.Fatalf("apply answered %d etags for %d writes", len(etags), len(batch.Writes))
	}
	return etags
}

// put writes one record without a condition and returns its ETag.
func (h *harness) put(key registry.Key, state registry.State, value string) registry.ETag {
	h.Helper()
	return h.apply(registry.Batch{Writes: []registry.Write{registry.Put(key, state, []byte(value))}})[0]
}

// remove deletes one record without a condition.
func (h *harness) remove(key registry.Key) {
	h.Helper()
	h.apply(registry.Batch{Writes: []registry.Write{registry.Delete(key)}})
}

// refuse applies a batch in which the condition with this index must be the first to fail.
func (h *harness) refuse(batch registry.Batch, index int) {
	h.Helper()
	_, err := h.store.Apply(h.ctx, batch)
	var failed *registry.FailedError
	if !errors.As(err, &failed) {
		h.Fatalf("apply: %v, want a FailedError", err)
	}
	want := registry.Condition{}
	if index < len(batch.Conditions) {
		want = batch.Conditions[index]
	} else {
		want = registry.Absent(registry.ChangeKey(batch.Change.ID))
	}
	if failed.Index != index || failed.Condition != want {
		h.Fatalf("apply was refused by condition %d, %s; want %d, %s", failed.Index, failed.Condition, index, want)
	}
}

// exact returns a batch with a change. Its writes replace the present records, as Batch.Check
// requires. It may be called from any goroutine.
func (h *harness) exact(change *registry.Change, writes ...registry.Write) (registry.Batch, error) {
	batch := registry.Batch{Change: change}
	for _, w := range writes {
		records, err := h.store.Get(h.ctx, w.Key)
		if err != nil {
			return batch, err
		}
		condition := registry.Absent(w.Key)
		if records[0].Exists() {
			condition = registry.ETagIs(w.Key, records[0].ETag)
		}
		batch.Conditions, batch.Writes = append(batch.Conditions, condition), append(batch.Writes, w.Over(records[0]))
	}
	return batch, nil
}

// exactly is like exact, but ends the test on an error. Call it only from the test's own goroutine.
func (h *harness) exactly(change *registry.Change, writes ...registry.Write) registry.Batch {
	h.Helper()
	batch, err := h.exact(change, writes...)
	if err != nil {
		h.Fatal(err)
	}
	return batch
}

// get reads one record.
func (h *harness) get(key registry.Key) registry.Record {
	h.Helper()
	records, err := h.store.Get(h.ctx, key)
	if err != nil {
		h.Fatalf("get %s: %v", key, err)
	}
	if len(records) != 1 {
		h.Fatalf("get of one key answered %d records", len(records))
	}
	return records[0]
}

// list reads one page.
func (h *harness) list(table registry.Table, prefix, after string, limit int) []registry.Record {
	h.Helper()
	records, err := h.store.List(h.ctx, table, prefix, after, limit)
	if err != nil {
		h.Fatalf("list %s %q after %q: %v", table, prefix, after, err)
	}
	return records
}

// listKeys is like list, but reads no values.
func (h *harness) listKeys(table registry.Table, prefix, after string, limit int) []registry.Record {
	h.Helper()
	records, err := h.store.ListKeys(h.ctx, table, prefix, after, limit)
	if err != nil {
		h.Fatalf("list the keys of %s %q after %q: %v", table, prefix, after, err)
	}
	return records
}

// changes reads all changes after a position, a few at a time.
func (h *harness) changes(after registry.Position) []registry.PositionedChange {
	h.Helper()
	const limit = 7
	var all []registry.PositionedChange
	for {
		page, err := h.store.Changes(h.ctx, after, limit)
		if err != nil {
			h.Fatalf("changes after %d: %v", after, err)
		}
		for _, c := range page {
			if c.Position <= after {
				h.Fatalf("changes answered position %d behind %d", c.Position, after)
			}
			after = c.Position
		}
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
	}
}

// wantRecord fails the test unless got is this record.
func (h *harness) wantRecord(got registry.Record, key registry.Key, etag registry.ETag, state registry.State,
	value string) {
	h.Helper()
	if got.Key != key || got.ETag != etag || got.State != state || string(got.Value) != value {
		h.Fatalf("got %s, want %s", describe(got), describe(registry.Record{Key: key, ETag: etag, State: state,
			Value: []byte(value)}))
	}
}

// wantMissing fails the test unless key has no record and Get returns the zero Record.
func (h *harness) wantMissing(key registry.Key) {
	h.Helper()
	if got := h.get(key); !reflect.DeepEqual(got, registry.Record{}) {
		h.Fatalf("get %s: %s, want no record", key, describe(got))
	}
}

// wantIDs fails the test unless records have these IDs, in this order.
func (h *harness) wantIDs(records []registry.Record, want ...string) {
	h.Helper()
	got := []string{}
	for _, r := range records {
		got = append(got, r.Key.ID)
	}
	if len(got) != len(want) || (len(want) > 0 && !reflect.DeepEqual(got, want)) {
		h.Fatalf("got ids %q, want %q", got, want)
	}
}

// random returns the test's source of random choices.
func (h *harness) random() *rand.Rand {
	seed := uint64(1)
	if text := os.Getenv("MOORAGE_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			h.Fatalf("MOORAGE_SEED=%s: %v", text, err)
		}
		seed = given
	}
	h.Logf("MOORAGE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// together calls f(0) to f(n-1), each in its own goroutine. The calls begin when all goroutines are
// ready. together waits for them, and fails the test if one returns an error.
func (h *harness) together(n int, f func(i int) error) {
	h.Helper()
	start := make(chan struct{})
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		h.Fatal(err)
	}
}

// describe returns a record in one line, for messages.
func describe(r registry.Record) string {
	if !r.Exists() {
		return "no record"
	}
	return fmt.Sprintf("%s{etag %s, state %s, value %q}", r.Key, r.ETag, r.State, r.Value)
}

// id returns the n-th of the ids that a test uses.
func id(n int) registry.ID {
	var id registry.ID
	id[0] = 0xc0
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// key returns a key of a table with unrestricted IDs.
func key(id string) registry.Key { return registry.LocationKey(id) }

// change returns change record n, which differs from all others.
func change(n int) *registry.Change {
	return &registry.Change{
		ID:        id(n),
		Operation: fmt.Sprintf("operation %d", n),
		Ident:     moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a", "b"}, Name: strconv.Itoa(n)},
		Principal: "somebody",
		RequestID: "request",
		Time:      time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC),
	}
}

// isRefused reports whether err means that a condition did not hold.
func isRefused(err error) bool {
	_, refused := registry.FailedCondition(err)
	return refused
}
