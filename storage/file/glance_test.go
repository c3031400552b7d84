package file

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
)

// panicking is a file system that panics in Seen.
type panicking struct{ absentFS }

func (panicking) Seen(string) bool { panic(errors.New("no answer")) }

// Lookers wait for the next look, lookersMax at most, and end when the Store is closed.
func TestLookersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := New([]string{t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		location := store.roots[0].location.String() + "/f"
		if err := store.Create(t.Context(), location, []byte("content")); err != nil {
			t.Fatal(err)
		}
		var looks sync.WaitGroup
		for range 16 * lookersMax {
			looks.Go(func() {
				if store.MayBeGone(location) || !store.MayBeGone(location+"-absent") {
					t.Error("wrong answer")
				}
			})
		}
		looks.Wait()
		synctest.Wait()
		if waiting := store.calls.lookers.waiting.Load(); waiting < 1 || waiting > lookersMax {
			t.Errorf("%d lookers wait, want 1 to %d", waiting, lookersMax)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		// The bubble fails if a goroutine in it does not end.
		store.MayBeGone(location)
	})
}

// If a look panics, the panic reaches its caller. Neither a slot nor a looker is lost.
func TestLookPanics(t *testing.T) {
	t.Parallel()
	store, err := NewOpener().open([]string{filepath.Join(t.TempDir(), "root")}, openRoot)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	files := store.roots[0].files
	location := store.roots[0].location.String() + "/f"
	for range 2 * callsMax {
		store.roots[0].files = panicking{}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			store.MayBeGone(location)
		}()
		store.roots[0].files = files
		if !store.MayBeGone(location) {
			t.Fatal("what is not there is not missed")
		}
	}
}
