package pebble_test

import (
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/registrytest"
)

func open(t *testing.T, dir string, options pebble.Options) *pebble.Store {
	t.Helper()
	store, err := pebble.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(t *testing.T) registry.Store { return open(t, t.TempDir(), pebble.Options{}) })
}

func TestStoreDurable(t *testing.T) {
	t.Parallel()
	registrytest.RunDurable(t, func(t *testing.T) registrytest.Open {
		dir := t.TempDir()
		return func(t *testing.T) registry.Store { return open(t, dir, pebble.Options{}) }
	})
}

func TestTimeIsOfTheStoresClock(t *testing.T) {
	t.Parallel()
	want := time.Date(2031, 2, 3, 4, 5, 6, 7, time.UTC)
	store := open(t, t.TempDir(), pebble.Options{Now: func() time.Time { return want }})
	if got, err := store.Time(t.Context()); err != nil || !got.Equal(want) {
		t.Errorf("time: %s, %v; want %s", got, err, want)
	}
}
