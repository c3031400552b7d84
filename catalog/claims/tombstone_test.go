package claims_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// errRefused is the error for a claimant that may not live where another table has lived.
var errRefused = errors.New("refused")

// calls is a store that calls a hook before one of its calls.
type calls struct {
	registry.Store
	left int // the number of calls before that one
	do   func()
}

func (c *calls) next() {
	if do := c.do; do != nil {
		if c.left--; c.left < 0 {
			c.do = nil
			do()
		}
	}
}

func (c *calls) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	c.next()
	return c.Store.Get(ctx, keys...)
}

func (c *calls) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	c.next()
	return c.Store.List(ctx, table, prefix, after, limit)
}

func (c *calls) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	c.next()
	return c.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (c *calls) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	c.next()
	return c.Store.Apply(ctx, batch)
}

// world is a store in which pointers claim locations and give them up.
type world struct {
	t      *testing.T
	ledger *ledger.Ledger
	claims *claims.Claims
	store  *calls
}

func newWorld(t *testing.T) *world {
	t.Helper()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	inner := memory.NewWithClock(rand.NewChaCha8([32]byte{}), func() time.Time { return now })
	store := &calls{Store: inner}
	records := registrytest.Ledger(store)
	return &world{t, records, claims.New(records), store}
}

// claim makes a new table claim a location. If resettle is false, the table may not live where
// another table has lived.
func (w *world) claim(n byte, location string, resettle bool) error {
	id := registry.ID{n}
	who := claims.Claimant{Pointer: id, Fresh: true, FromMemory: true}
	if !resettle {
		who.MayResettle = func(context.Context, registry.Tombstone) error { return errRefused }
	}
	for range 10 {
		planned, err := w.claims.Plan(w.t.Context(), []string{"file:///wh"}, location, who)
		if errors.Is(err, ledger.ErrRetry) {
			who.FromMemory = false
			continue
		}
		if err != nil {
			return err
		}
		pointer := registry.Pointer{ID: id, TableUUID: fmt.Sprint(n), Claims: []string{planned.Normalised}, Name: fmt.Sprint(n)}
		writes, err := planned.Writes(ledger.Put(registry.PointerKey(id), registry.StateLive, pointer))
		if err != nil {
			return err
		}
		_, err = w.ledger.Step(w.t.Context(), registry.Batch{Conditions: planned.Conditions, Writes: writes})
		if _, failed := registry.FailedCondition(err); !failed {
			return err
		}
		who.FromMemory = false
	}
	return errors.New("lost ten races")
}

// end makes a table give up its location.
func (w *world) end(n byte, ending claims.Ending) error {
	key := registry.PointerKey(registry.ID{n})
	records, err := w.ledger.Get(w.t.Context(), key)
	if err != nil {
		return err
	}
	pointer, err := registry.Decode[registry.Pointer](records[0])
	if err != nil {
		return err
	}
	for range 10 {
		conditions, writes, err := w.claims.Release(w.t.Context(), pointer, ending)
		if err != nil {
			return err
		}
		_, err = w.ledger.Step(w.t.Context(), registry.Batch{Conditions: conditions, Writes: append(writes, registry.Delete(key))})
		if _, failed := registry.FailedCondition(err); !failed {
			return err
		}
	}
	return errors.New("lost ten races")
}

func (w *world) list(table registry.Table) map[string]registry.State {
	w.t.Helper()
	found := make(map[string]registry.State)
	err := w.ledger.Scan(w.t.Context(), table, "", "", func(record registry.Record) (bool, error) {
		found[record.Key.ID] = record.State
		return true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// wantSound fails the test if any locations nest, or if a claim could miss a tombstone.
func (w *world) wantSound() {
	w.t.Helper()
	locations := w.list(registry.TableLocation)
	for at, state := range locations {
		for other := range locations {
			if at != other && state == registry.StateOwner && locations[other] == registry.StateOwner && overlap(at, other) {
				w.t.Errorf("%s and %s are claimed", at, other)
			}
		}
	}
	for at := range w.list(registry.TableTombstone) {
		for folder := at; strings.Contains(folder, "file:///wh/"); folder = folder[:strings.LastIndexByte(folder, '/')] {
			if _, ok := locations[folder]; !ok {
				w.t.Errorf("%s has a tombstone, and %s no record", at, folder)
			}
		}
	}
}

var lasting = claims.Ending{How: registry.EndedUnregister, Lasting: true}

// TestClaimMeetsTombstone: a claim at, above or below a tombstone calls MayResettle.
func TestClaimMeetsTombstone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"file:///wh/a/b/c", "file:///wh/a/b", "file:///wh/a", "file:///wh/a/b/c/d", "file:///wh/a/b/c/d/e"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, err := range []error{w.claim(1, "file:///wh/a/b/c", true), w.end(1, lasting)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := w.claim(2, at, false); !errors.Is(err, errRefused) {
				t.Errorf("without the right: %v", err)
			}
			if err := w.claim(2, "file:///wh/beside", false); err != nil {
				t.Errorf("beside it: %v", err)
			}
			if err := w.claim(3, at, true); err != nil {
				t.Errorf("with the right: %v", err)
			}
			w.wantSound()
			if err := w.end(3, claims.Ending{How: registry.EndedPurge}); err != nil {
				t.Fatal(err)
			}
			if err := w.claim(4, at, false); !errors.Is(err, errRefused) {
				t.Errorf("after a purge of what lived there later: %v", err)
			}
			w.wantSound()
			if _, err := w.claims.Clear(t.Context(), []string{"file:///other"}, "file:///wh/a/b/c"); moorage.KindOf(err) != moorage.KindNotFound {
				t.Errorf("cleared for another warehouse: %v", err)
			}
			if left, err := w.claims.Clear(t.Context(), []string{"file:///wh"}, "file:///wh/a/b/c"); err != nil || left.Pointer != (registry.ID{1}) {
				t.Errorf("cleared %+v (%v)", left, err)
			}
			if err := w.claim(4, at, false); err != nil {
				t.Errorf("once it is cleared: %v", err)
			}
			w.wantSound()
		})
	}
}

// TestClaimRacesTombstone runs the end of another claim at each call of the store during a claim.
// The claim finds the owner or the owner's tombstone, or it takes effect first.
func TestClaimRacesTombstone(t *testing.T) {
	t.Parallel()
	const owned = "file:///wh/a/b/c"
	for _, at := range []string{owned, "file:///wh/a/b", "file:///wh/a", owned + "/d", owned + "/d/e"} {
		for name, between := range map[string]func(*world) error{
			"it ends":                   func(w *world) error { return w.end(1, lasting) },
			"it ends, another comes":    func(w *world) error { return errors.Join(w.end(1, lasting), w.claim(8, "file:///wh/a/b/x", true)) },
			"it is purged":              func(w *world) error { return w.end(1, claims.Ending{How: registry.EndedPurge}) },
			"it comes and ends":         func(w *world) error { return errors.Join(w.claim(1, owned, true), w.end(1, lasting)) },
			"it comes":                  func(w *world) error { return w.claim(1, owned, true) },
			"one above comes and ends":  func(w *world) error { return errors.Join(w.claim(1, "file:///wh/a", true), w.end(1, lasting)) },
			"one beneath comes, ends":   func(w *world) error { return errors.Join(w.claim(1, owned+"/d/e/f", true), w.end(1, lasting)) },
			"one beneath comes and has": func(w *world) error { return w.claim(1, owned+"/d/e/f", true) },
		} {
			t.Run(name+" "+at, func(t *testing.T) {
				t.Parallel()
				for k, met := 0, true; met; k++ {
					w := newWorld(t)
					if strings.HasPrefix(name, "it ends") || name == "it is purged" {
						if err := w.claim(1, owned, true); err != nil {
							t.Fatal(err)
						}
					} else if err := errors.Join(w.claim(7, at+"/gone", true), w.end(7, claims.Ending{How: registry.EndedPurge})); err != nil {
						t.Fatal(err) // the folders have records but no owner
					}
					met = false
					w.store.left, w.store.do = k, func() {
						met = true
						if err := between(w); err != nil {
							t.Errorf("between, at call %d: %v", k, err)
						}
					}
					err := w.claim(2, at, false)
					w.store.do = nil
					w.wantSound()
					for tombstone := range w.list(registry.TableTombstone) {
						if err == nil && overlap(tombstone, at) {
							t.Errorf("at call %d the claim passed, over the tombstone at %s", k, tombstone)
						}
					}
					if t.Failed() {
						t.Fatalf("at call %d: %v", k, err)
					}
				}
			})
		}
	}
}
