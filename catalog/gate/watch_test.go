package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// lossy is a store that loses the answers of the next Applies. The field happens decides whether
// they take effect.
type lossy struct {
	registry.Store
	happens []bool
	later   []registry.Batch // batches that may still be applied
}

func (l *lossy) Unwrap() registry.Store { return l.Store }

func (l *lossy) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if len(l.happens) == 0 {
		return l.Store.Apply(ctx, batch)
	}
	happens := l.happens[0]
	l.happens = l.happens[1:]
	if !happens {
		l.later = append(l.later, batch)
		return nil, registry.ErrUnknown
	}
	_, err := l.Store.Apply(ctx, batch)
	return nil, errors.Join(err, registry.ErrUnknown)
}

// world is a store with access control enabled, and a guard that watches its Applies.
type world struct {
	t       *testing.T
	lossy   *lossy
	guard   *Guard
	watched registry.Store
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, lossy: &lossy{Store: memory.New(rand.Reader)}}
	w.guard = New(Config{Store: w.lossy, Alone: true})
	w.watched = w.guard.Watch(w.lossy)
	writes, err := ledger.Encode(
		ledger.Put(registry.EpochKey(), registry.StateNone, registry.Epoch{Number: 1}),
		ledger.Put(registry.AccessStoreKey(), registry.StateNone, registry.AccessStore{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.watched.Apply(t.Context(), registry.Batch{Writes: writes}); err != nil {
		t.Fatal(err)
	}
	return w
}

// disable disables a principal, or enables it again.
func (w *world) disable(name string, disabled bool) error {
	policy, err := registrytest.Ledger(w.watched).ChangePolicy(w.t.Context(),
		ledger.Put(registry.PrincipalKey(name), registry.StateNone, registry.Principal{Disabled: disabled}))
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.watched.Apply(w.t.Context(), registry.Batch{Conditions: policy.Conditions, Writes: policy.Writes})
	return err
}

// isLetIn reports whether the guard admits a principal to the server, as for a request.
func (w *world) isLetIn(name string) bool {
	err := w.guard.look(w.t.Context())
	if err == nil {
		err = w.guard.Decide(w.t.Context(), Question{
			Caller: moorage.Caller{Name: name, Source: moorage.SourceKey}, Verb: ListWarehouses, Asked: access.See,
		})
	}
	if kind := moorage.KindOf(err); err != nil && kind != moorage.KindNotAuthorized {
		w.t.Fatal(err)
	}
	return err == nil
}

// A change of policy with a lost answer applies from the moment when it takes effect. A change that
// takes effect instead of it applies at once, although both have the same epoch.
func TestLostChangeOfPolicy(t *testing.T) {
	t.Parallel()
	const ann, bob = "key:ann", "key:bob"
	t.Run("happened", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.lossy.happens = []bool{true}
		if err := w.disable(ann, true); !errors.Is(err, registry.ErrUnknown) {
			t.Fatal(err)
		}
		if w.isLetIn(ann) {
			t.Error("she is let in")
		}
	})
	t.Run("happens later", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.lossy.happens = []bool{false}
		if err := w.disable(ann, true); !errors.Is(err, registry.ErrUnknown) {
			t.Fatal(err)
		}
		if !w.isLetIn(ann) {
			t.Error("she is refused before it happens")
		}
		if _, err := w.lossy.Store.Apply(t.Context(), w.lossy.later[0]); err != nil {
			t.Fatal(err)
		}
		if w.isLetIn(ann) {
			t.Error("she is let in")
		}
	})
	t.Run("another one comes instead", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.lossy.happens = []bool{false}
		if err := w.disable(ann, true); !errors.Is(err, registry.ErrUnknown) {
			t.Fatal(err)
		}
		if !w.isLetIn(bob) {
			t.Error("he is refused")
		}
		if err := w.disable(bob, true); err != nil {
			t.Fatal(err)
		}
		if w.isLetIn(bob) || !w.isLetIn(ann) {
			t.Errorf("he is let in: %t, she is: %t", w.isLetIn(bob), w.isLetIn(ann))
		}
		if _, wanted := w.guard.Key(); wanted {
			t.Error("requests still read the epoch")
		}
	})
}
