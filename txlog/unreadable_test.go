package txlog_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// damages returns contents that make the record of a transaction unreadable.
func damages(t *testing.T, e txlog.Entry) map[string]registry.Write {
	t.Helper()
	key := registry.TransactionKey(e.ID)
	whole, err := registry.Encode(e.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]registry.Write{
		"another type": registry.Put(key, registry.StatePending, []byte(`{"id":7}`)),
		"empty":        registry.Put(key, registry.StateCommitted, []byte(`{}`)),
		"another's":    registry.Put(key, registry.StatePending, bytes.ReplaceAll(whole, []byte(e.ID.String()), []byte(someID.String()))),
		"of no state":  registry.Put(key, registry.StateLive, whole),
	}
}

func apply(t *testing.T, store registry.Store, writes ...registry.Write) {
	t.Helper()
	if _, err := store.Apply(t.Context(), registry.Batch{Writes: writes}); err != nil {
		t.Fatal(err)
	}
}

// An unreadable transaction is in the log like the others, with only its id. No step of it can be
// taken.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		log, e := begun(t, store)
		_, other := begun(t, store)
		for name, damage := range damages(t, e) {
			apply(t, store, damage, registry.Put(registry.TaskKey(e.ID), registry.StateBlocked, []byte(`{}`)))
			got := now(t, log, e)
			if got.Unreadable == nil || !strings.Contains(got.Unreadable.Error(), registry.TransactionKey(e.ID).String()) || got.State != damage.State || got.ETag == e.ETag || got.ID != e.ID || len(got.Files) > 0 {
				t.Errorf("%s: got %+v", name, got)
			}
			all, err := log.Unfinished(t.Context(), registry.ID{}, 10)
			ids := []registry.ID{e.ID, other.ID}
			slices.SortFunc(ids, func(a, b registry.ID) int { return bytes.Compare(a[:], b[:]) })
			if err != nil || len(all) != 2 || all[0].ID != ids[0] || all[1].ID != ids[1] {
				t.Errorf("%s: the log is %+v (%v)", name, all, err)
			}

			_, extended := log.Extend(t.Context(), got, nil, []string{"a2"})
			_, _, committed := got.Commit(nil)
			_, aborted := log.Abort(t.Context(), got)
			_, abortedSince := log.Abort(t.Context(), e)
			finished := log.Finish(t.Context(), other, got)
			for step, err := range map[string]error{"extend": extended, "commit": committed, "abort": aborted, "abort of what it was": abortedSince, "finish": finished} {
				if err == nil {
					t.Errorf("%s: %s was not refused", name, step)
				}
			}
			if now(t, log, got).ETag != got.ETag || !now(t, log, other).Exists() {
				t.Errorf("%s: a step that was refused changed something", name)
			}
		}

		apply(t, store, registry.Delete(registry.TransactionKey(e.ID)))
		if condition, failed := registry.FailedCondition(commit(t.Context(), store, e, e.Files...)); !failed || condition.Key != registry.TransactionKey(e.ID) {
			t.Error("a coordinator whose transaction was forgotten went on")
		}
	})
}

// Records whose keys are not ids are skipped in lists by id, whatever the size of the pages, but
// All returns them.
func TestKeysThatAreNoIDs(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		log := txlog.New(registrytest.Ledger(store))
		var want []registry.ID
		for range 5 {
			_, e := begun(t, store)
			want = append(want, e.ID)
		}
		slices.SortFunc(want, func(a, b registry.ID) int { return bytes.Compare(a[:], b[:]) })
		keys := []string{registry.ID{}.String(), " ", strings.ToUpper("0000000000000000000000000000abcd"), want[0].String() + "x", want[0].String() + "y", want[3].String() + "x", "x", "y", "z"}
		for _, key := range keys {
			apply(t, store, registry.Put(registry.Key{Table: registry.TableTransaction, ID: key}, registry.StatePending, []byte(`{}`)))
		}
		for limit := 1; limit < 15; limit++ {
			var ids []registry.ID
			for after := (registry.ID{}); ; {
				page, err := log.Unfinished(t.Context(), after, limit)
				if err != nil || len(page) > limit {
					t.Fatalf("a page of %d: %+v (%v)", limit, page, err)
				}
				for _, e := range page {
					ids, after = append(ids, e.ID), e.ID
				}
				if len(page) < limit {
					break
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("in pages of %d: %v", limit, ids)
			}
		}
		var told []string
		whole := 0
		for e, err := range log.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Unreadable == nil {
				whole++
			} else if e.ID.IsZero() && e.State == registry.StatePending {
				told = append(told, e.Unreadable.Error())
			}
		}
		for _, key := range keys {
			if !slices.Contains(told, fmt.Sprintf("the key transaction/%s holds no id", key)) {
				t.Errorf("nothing is told of %q: %q", key, told)
			}
		}
		if whole != len(want) || len(told) != len(keys) {
			t.Errorf("%d transactions, and %q", whole, told)
		}
	})
}

// TestAll reads a log of several pages, and stops when the loop ends.
func TestAll(t *testing.T) {
	t.Parallel()
	store := memory.New(rand.Reader)
	var writes []registry.Write
	for i := range 2001 {
		id := registry.ID{0: byte(i >> 8), 1: byte(i), 15: 1}
		value := fmt.Appendf(nil, `{"id":%q}`, id)
		if i%3 == 0 {
			value = []byte(`[]`)
		}
		writes = append(writes, registry.Put(registry.TransactionKey(id), registry.StatePending, value))
	}
	for batch := range slices.Chunk(writes, 500) {
		apply(t, store, batch...)
	}
	n := 0
	for e, err := range txlog.New(registrytest.Ledger(store)).All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if registry.TransactionKey(e.ID) != writes[n].Key || (e.Unreadable != nil) != (n%3 == 0) {
			t.Fatalf("entry %d: %+v", n, e)
		}
		n++
	}
	if n != len(writes) {
		t.Errorf("%d entries, want %d", n, len(writes))
	}
	for range txlog.New(registrytest.Ledger(store)).All(t.Context()) {
		n--
		break
	}
	if n != len(writes)-1 {
		t.Error("it did not stop")
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var told []error
	for _, err := range txlog.New(registrytest.Ledger(store)).All(t.Context()) {
		told = append(told, err)
	}
	if len(told) != 1 || !errors.Is(told[0], registry.ErrClosed) {
		t.Errorf("got %v, want ErrClosed and no more", told)
	}
}
