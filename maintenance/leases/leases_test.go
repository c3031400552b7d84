package leases_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/maintenance/leases"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }

var (
	table = registry.ID{15: 1}
	other = registry.ID{15: 2}

	ben = moorage.Caller{Name: "ben"}
)

// fixture has leases over a memory store with a stopped clock.
type fixture struct {
	*leases.Leases
	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, now: time.Unix(1_800_000_000, 0).UTC()}
	store := memory.NewWithClock(rand.NewChaCha8([32]byte{1}), func() time.Time { return f.now })
	f.Leases = leases.New(registrytest.Ledger(store))
	return f
}

func (f *fixture) take(caller moorage.Caller, scope string) (leases.Granted, error) {
	return f.Take(f.t.Context(), caller, leases.Request{Pointer: table, Scope: scope, Holder: "job of " + caller.Name})
}

func (f *fixture) mustTake(caller moorage.Caller, scope string) leases.Granted {
	f.t.Helper()
	granted, err := f.take(caller, scope)
	if err != nil {
		f.t.Fatal(err)
	}
	return granted
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		held, asked string
		collide     bool
	}{
		{"*", "*", true}, {"*", "job:compaction", true}, {"part:0a", "*", true},
		{"part:0a", "part:0a", true}, {"part:0a", "part:0b", false}, {"job:compaction", "part:0a", false},
		{"job:compaction", "job:compaction", true}, {"job:compaction", "job:orphans", false},
	} {
		f := newFixture(t)
		f.mustTake(ann, tt.held)
		_, err := f.take(ben, tt.asked)
		held, isHeld := errors.AsType[*leases.HeldError](err)
		if tt.collide != isHeld || tt.collide && (moorage.KindOf(err) != moorage.KindAlreadyExists || held.Holder != "job of ann" || held.Scope != tt.held) {
			t.Errorf("%s is held, %s is asked for: %v", tt.held, tt.asked, err)
		}
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, change := range map[string]func(*leases.Request){
		"no scope":        func(r *leases.Request) { r.Scope = "" },
		"another scope":   func(r *leases.Request) { r.Scope = "table" },
		"two scopes":      func(r *leases.Request) { r.Scope = "*\npart:0a" },
		"no holder":       func(r *leases.Request) { r.Holder = "" },
		"long holder":     func(r *leases.Request) { r.Holder = fmt.Sprintf("%0201d", 1) },
		"short life":      func(r *leases.Request) { r.TTL = time.Second },
		"long life":       func(r *leases.Request) { r.TTL = 2 * time.Hour },
		"negative wait":   func(r *leases.Request) { r.Wait = -1 },
		"longer than max": func(r *leases.Request) { r.Wait = time.Hour },
	} {
		request := leases.Request{Pointer: table, Scope: "*", Holder: "x"}
		change(&request)
		if _, err := f.Take(t.Context(), ann, request); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if granted := f.mustTake(ann, "*"); granted.Token != 1 {
		t.Errorf("a refused request took a token: %d", granted.Token)
	}
}

// A silent holder loses its lease when the lease expires, and not a moment earlier. Its next call
// reports the loss, and its token is not granted again.
func TestExpiry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.mustTake(ann, "*")
	f.now = f.now.Add(leases.TTLDefault - 1)
	if _, err := f.take(ben, "*"); err == nil {
		t.Fatal("a live lease was passed over")
	}
	f.now = f.now.Add(1)
	second := f.mustTake(ben, "*")
	if second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
	renewed, lost, err := f.Renew(t.Context(), ann, []registry.LeaseID{first.ID})
	if err != nil || len(renewed) > 0 || len(lost) != 1 || lost[0] != first.ID {
		t.Errorf("renewed %v, lost %v, %v", renewed, lost, err)
	}
	if err := f.Release(t.Context(), ann, first.ID, leases.OwnLeases); err != nil {
		t.Errorf("release of a lost lease: %v", err)
	}
	if held, _, err := f.List(t.Context(), leases.Filter{}, "", 10); err != nil || len(held) != 1 || held[0].ID != second.ID {
		t.Errorf("held are %v, %v", held, err)
	}
}

// A lease works only for the caller that took it.
func TestOtherCallers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	held := f.mustTake(ann, "*")
	f.now = f.now.Add(time.Minute)
	if _, lost, err := f.Renew(t.Context(), ben, []registry.LeaseID{held.ID}); err != nil || len(lost) != 1 {
		t.Errorf("another caller renewed: lost %v, %v", lost, err)
	}
	if err := f.Release(t.Context(), ben, held.ID, leases.OwnLeases); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("another caller released: %v", err)
	}
	if renewed, _, err := f.Renew(t.Context(), ann, []registry.LeaseID{held.ID}); err != nil || len(renewed) != 1 || !renewed[0].Expires.Equal(f.now.Add(leases.TTLDefault)) {
		t.Errorf("the holder renewed %v, %v", renewed, err)
	}
	if err := f.Release(t.Context(), ben, held.ID, leases.AnybodysLeases); err != nil {
		t.Errorf("an operator released: %v", err)
	}
	if again := f.mustTake(ben, "*"); again.Token != held.Token+1 {
		t.Errorf("token %d after %d", again.Token, held.Token)
	}
}

// Renewing or releasing several leases does not affect the others.
func TestSeveral(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.mustTake(ann, "part:0a"), f.mustTake(ann, "part:0b")
	elsewhere, err := f.Take(t.Context(), ann, leases.Request{Pointer: other, Scope: "*", Holder: "job of ann"})
	if err != nil {
		t.Fatal(err)
	}
	f.mustTake(ben, "part:0c")
	if err := f.Release(t.Context(), ann, a.ID, leases.OwnLeases); err != nil {
		t.Fatal(err)
	}
	renewed, lost, err := f.Renew(t.Context(), ann, []registry.LeaseID{a.ID, b.ID, elsewhere.ID})
	if err != nil || len(renewed) != 2 || len(lost) != 1 || lost[0] != a.ID {
		t.Errorf("renewed %v, lost %v, %v", renewed, lost, err)
	}
	if n, err := f.ReleaseHolder(t.Context(), ann, "job of ann"); err != nil || n != 2 {
		t.Errorf("released %d, %v", n, err)
	}
	if held, _, err := f.List(t.Context(), leases.Filter{}, "", 10); err != nil || len(held) != 1 || held[0].Caller != "ben" {
		t.Errorf("held are %v, %v", held, err)
	}
}

// A waiting caller gets the lease when it becomes free. A caller that stops waiting returns at
// once.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := leases.New(registrytest.Ledger(memory.New(rand.NewChaCha8([32]byte{2}))))
		request := leases.Request{Pointer: table, Scope: "*", Holder: "x", TTL: 20 * time.Second, Wait: time.Minute}
		if _, err := s.Take(t.Context(), ann, request); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := s.Take(t.Context(), ben, request); err != nil || time.Since(began) > 23*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := s.Take(ctx, ann, request); err == nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v, want that the wait ends with the context", time.Since(began), err)
		}
	})
}

// Tokens only grow while several processes take and release leases, on every store. That holds
// whichever call of the store fails or loses its answer.
func TestTokensNeverRepeat(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		faulty := registrytest.Faulty(store, func(call int, method string) registrytest.Action {
			switch {
			case method == registrytest.MethodApply && call%7 == 3:
				return registrytest.Lose
			case call%11 == 5:
				return registrytest.Fail
			}
			return registrytest.Pass
		})
		var mu sync.Mutex
		seen := make(map[uint64]bool)
		var group sync.WaitGroup
		for process := range 4 {
			group.Go(func() {
				s := leases.New(registrytest.Ledger(faulty))
				for i := range 15 { // a lease whose answer was lost blocks others for a while
					scope := fmt.Sprintf("part:%x", process*15+i)
					granted, err := s.Take(t.Context(), ann, leases.Request{Pointer: table, Scope: scope, Holder: "x"})
					if err != nil {
						continue
					}
					mu.Lock()
					if seen[granted.Token] {
						t.Errorf("token %d was given out twice", granted.Token)
					}
					seen[granted.Token] = true
					mu.Unlock()
					_ = s.Release(t.Context(), ann, granted.ID, leases.OwnLeases)
				}
			})
		}
		group.Wait()
		record, err := store.Get(t.Context(), registry.LeaseKey(table))
		if err != nil {
			t.Fatal(err)
		}
		lease, err := registry.Decode[registry.Lease](record[0])
		for token := range seen {
			if err != nil || token > lease.Last {
				t.Errorf("token %d was given out, and the record has %+v, %v", token, lease, err)
			}
		}
		if len(seen) == 0 {
			t.Error("nobody got a lease")
		}
	})
}
