package storagetest_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"moorage/storage"
	"moorage/storage/file"
	"moorage/storage/memory"
	"moorage/testkit/storagetest"
)

func pass(int, string) storagetest.Action { return storagetest.Pass }

// TestFaultyPasses tests a faulty store without faults against the contract.
func TestFaultyPasses(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (storage.Store, string) {
		root := filepath.Join(t.TempDir(), "w")
		store, err := file.New([]string{root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return storagetest.Faulty(store, pass), root
	}
	storagetest.Run(t, open)
	storagetest.RunBatcher(t, open)
	storagetest.RunFolders(t, open)
	storagetest.RunLocal(t, open)
}

const location = "memory://w/a"

// call is a call of one method, with a check whether it took effect.
type call struct {
	make     func(context.Context, *storagetest.FaultyStore) error
	happened func(inner storage.Store) bool // nil for a read
}

func calls() map[string]call {
	exists := func(location string) func(storage.Store) bool {
		return func(inner storage.Store) bool {
			_, err := inner.Stat(context.Background(), location)
			return err == nil
		}
	}
	return map[string]call{
		storagetest.MethodCreate: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			return s.Create(ctx, location+"/new", nil)
		}, exists(location + "/new")},
		storagetest.MethodDelete: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			return s.Delete(ctx, location)
		}, func(inner storage.Store) bool { return !exists(location)(inner) }},
		storagetest.MethodStat: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			_, err := s.Stat(ctx, location)
			return err
		}, nil},
		storagetest.MethodReadRange: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			_, err := s.ReadRange(ctx, location, 1, 2)
			return err
		}, nil},
		storagetest.MethodOpen: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			body, _, err := s.Open(ctx, location)
			if err == nil {
				err = body.Close()
			}
			return err
		}, nil},
		storagetest.MethodMakeFolder: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			return s.MakeFolder(ctx, location+"/folder")
		}, nil},
		storagetest.MethodRemoveEmptyFolder: {func(ctx context.Context, s *storagetest.FaultyStore) error {
			_, err := s.RemoveEmptyFolder(ctx, location+"/folder", 0)
			return err
		}, nil},
	}
}

func TestFaulty(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		action             storagetest.Action
		err, happens, dies bool
	}{
		{"pass", storagetest.Pass, false, true, false},
		{"fail", storagetest.Fail, true, false, false},
		{"lose", storagetest.Lose, true, true, false},
		{"die", storagetest.Die, true, false, true},
		{"die after", storagetest.DieAfter, true, true, true},
	} {
		for method, call := range calls() {
			t.Run(tt.name+"/"+method, func(t *testing.T) {
				t.Parallel()
				inner := memory.New()
				if err := inner.Create(t.Context(), location, []byte("body")); err != nil {
					t.Fatal(err)
				}
				var asked []string
				faulty := storagetest.Faulty(inner, func(k int, method string) storagetest.Action {
					asked = append(asked, method)
					return storagetest.Nth(1, tt.action)(k, method)
				})
				if _, err := faulty.Stat(t.Context(), location); err != nil {
					t.Fatal(err)
				}
				if err := call.make(t.Context(), faulty); errors.Is(err, storagetest.ErrInjected) != tt.err || (err != nil) != tt.err {
					t.Errorf("%v, want an injected error: %t", err, tt.err)
				}
				if call.happened != nil && call.happened(inner) != tt.happens {
					t.Errorf("it happened: %t, want %t", !tt.happens, tt.happens)
				}
				if faulty.Dead() != tt.dies || faulty.Calls() != 2 || asked[1] != method {
					t.Errorf("dead: %t after %d calls, %q", faulty.Dead(), faulty.Calls(), asked)
				}
				if err := faulty.Delete(t.Context()); errors.Is(err, storagetest.ErrInjected) != tt.dies {
					t.Errorf("a later call: %v", err)
				}
			})
		}
	}
}

func TestFaultyIsAsLocalAsItsStore(t *testing.T) {
	t.Parallel()
	local := memory.New()
	if !storagetest.Faulty(local, pass).MayBeGone(location) {
		t.Error("a store in memory is not local")
	}
	if storagetest.Faulty(struct{ storage.Store }{local}, pass).MayBeGone(location) {
		t.Error("a store that says nothing is local")
	}
}
