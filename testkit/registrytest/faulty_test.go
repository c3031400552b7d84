package registrytest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// TestFaultyPasses tests a faulty store without faults against the contract.
func TestFaultyPasses(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(*testing.T) registry.Store {
		pass := func(int, string) registrytest.Action { return registrytest.Pass }
		return registrytest.Faulty(memory.New(rand.Reader), pass).TakeMalformed()
	})
}

var (
	keyA = registry.LocationKey("a")
	putA = registry.Batch{Writes: []registry.Write{registry.Put(keyA, registry.StateOwner, nil)}}
)

func exists(t *testing.T, store registry.Store) bool {
	t.Helper()
	records, err := store.Get(t.Context(), keyA)
	if err != nil {
		t.Fatal(err)
	}
	return records[0].Exists()
}

func TestFaultyApply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		action   registrytest.Action
		want     error
		happened bool
		dead     bool
	}{
		{"pass", registrytest.Pass, nil, true, false},
		{"fail", registrytest.Fail, registry.ErrUnavailable, false, false},
		{"lose", registrytest.Lose, registry.ErrUnknown, true, false},
		{"delay", registrytest.Delay, registry.ErrUnknown, false, false},
		{"die", registrytest.Die, registry.ErrUnavailable, false, true},
		{"die after", registrytest.DieAfter, registry.ErrUnknown, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inner := memory.New(rand.Reader)
			faulty := registrytest.Faulty(inner, registrytest.Nth(1, tt.action))
			if exists(t, faulty) {
				t.Fatal("record in an empty store")
			}
			_, err := faulty.Apply(t.Context(), putA)
			if !errors.Is(err, tt.want) || (tt.want != nil && !errors.Is(err, registrytest.ErrInjected)) {
				t.Errorf("apply: %v, want %v", err, tt.want)
			}
			if exists(t, inner) != tt.happened {
				t.Errorf("the Apply happened: %t, want %t", !tt.happened, tt.happened)
			}
			if faulty.Dead() != tt.dead || faulty.Calls() != 2 {
				t.Errorf("dead: %t after %d calls, want %t after 2", faulty.Dead(), faulty.Calls(), tt.dead)
			}
			_, err = faulty.Get(t.Context(), keyA)
			if errors.Is(err, registry.ErrUnavailable) != tt.dead || (err != nil) != tt.dead {
				t.Errorf("a later Get: %v, dead: %t", err, tt.dead)
			}
		})
	}
}

func TestFaultyReads(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, registry.Store) error{
		registrytest.MethodGet: func(ctx context.Context, s registry.Store) error {
			_, err := s.Get(ctx, keyA)
			return err
		},
		registrytest.MethodList: func(ctx context.Context, s registry.Store) error {
			_, err := s.List(ctx, registry.TableLocation, "", "", 1)
			return err
		},
		registrytest.MethodChanges: func(ctx context.Context, s registry.Store) error {
			_, err := s.Changes(ctx, 0, 1)
			return err
		},
	}
	for method, call := range calls {
		for action := registrytest.Pass; action <= registrytest.DieAfter; action++ {
			var asked string
			faulty := registrytest.Faulty(memory.New(rand.Reader), func(_ int, method string) registrytest.Action {
				asked = method
				return action
			})
			err := call(t.Context(), faulty)
			if errors.Is(err, registry.ErrUnavailable) != (action != registrytest.Pass) {
				t.Errorf("%s, action %d: %v", method, action, err)
			}
			if asked != method {
				t.Errorf("the plan was asked about %q, want %q", asked, method)
			}
		}
	}
}

func TestFaultyDelayedApplyHappensAtRelease(t *testing.T) {
	t.Parallel()
	inner := memory.New(rand.Reader)
	faulty := registrytest.Faulty(inner, registrytest.NthApply(1, registrytest.Delay))
	if _, err := faulty.Apply(t.Context(), registry.Batch{}); err != nil {
		t.Fatal(err)
	}
	value := []byte("before")
	if _, err := faulty.Apply(t.Context(), registry.Batch{
		Conditions: []registry.Condition{registry.Absent(keyA)},
		Writes:     []registry.Write{registry.Put(keyA, registry.StateOwner, value)},
	}); !errors.Is(err, registry.ErrUnknown) {
		t.Fatalf("apply: %v, want ErrUnknown", err)
	}
	copy(value, "after!")
	if exists(t, faulty) || faulty.Delayed() != 1 {
		t.Fatalf("%d Applies delayed, want 1 that has not happened", faulty.Delayed())
	}
	if errs := faulty.Release(t.Context()); len(errs) != 1 || errs[0] != nil {
		t.Fatalf("release: %v", errs)
	}
	records, err := inner.Get(t.Context(), keyA)
	if err != nil || string(records[0].Value) != "before" {
		t.Errorf("after the release: %q, %v", records[0].Value, err)
	}
	if errs := faulty.Release(t.Context()); len(errs) != 0 || faulty.Delayed() != 0 {
		t.Errorf("a second release: %v", errs)
	}
}

func TestFaultyDelayedApplyIsHeldToItsConditions(t *testing.T) {
	t.Parallel()
	faulty := registrytest.Faulty(memory.New(rand.Reader), registrytest.Nth(0, registrytest.Delay))
	fenced := registry.Batch{Change: &registry.Change{ID: registry.ID{1}}, Writes: putA.Writes}
	if _, err := faulty.Apply(t.Context(), fenced); !errors.Is(err, registry.ErrUnknown) {
		t.Fatalf("apply: %v, want ErrUnknown", err)
	}
	fence := registry.ChangeKey(fenced.Change.ID)
	if _, err := faulty.Apply(t.Context(), registry.Batch{
		Conditions: []registry.Condition{registry.Absent(fence)},
		Writes:     []registry.Write{registry.Put(fence, registry.StateVoid, []byte("{}"))},
	}); err != nil {
		t.Fatal(err)
	}
	errs := faulty.Release(t.Context())
	if c, refused := registry.FailedCondition(errors.Join(errs...)); !refused || c != registry.Absent(fence) {
		t.Errorf("release after the fence: %v, want it refused by the fence", errs)
	}
	if exists(t, faulty) {
		t.Error("a fenced Apply happened")
	}
}
