package clocks_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"moorage/maintenance/clocks"
	"moorage/registry"
	"moorage/registry/memory"
)

// TestDoubt: a clock is believed as long as the newest change of a caller is near it.
func TestDoubt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	store := memory.NewWithClock(rand.Reader, func() time.Time { return now })
	change := func(principal string) {
		t.Helper()
		id, err := registry.NewID(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Apply(t.Context(), registry.Batch{Change: &registry.Change{ID: id, Principal: principal, Time: now}})
		if err != nil {
			t.Fatal(err)
		}
	}
	isOwn := func(principal string) bool { return strings.HasPrefix(principal, "system:") }
	clock := clocks.New(store, isOwn)
	want := func(at string, doubted bool) {
		t.Helper()
		for name, c := range map[string]*clocks.Clock{"": clock, "a new process": clocks.New(store, isOwn)} {
			why, err := c.Doubt(t.Context())
			if err != nil || (why != "") != doubted {
				t.Errorf("%s, %s: %q, %v; want doubt: %t", at, name, why, err, doubted)
			}
		}
	}
	want("without a change", true)
	change("ann")
	want("after a change", false)
	now = now.Add(time.Hour)
	want("an hour later", false)
	now = now.Add(time.Second)
	want("later", true)
	change("system:expire")
	want("after a change of a job", true)
	change("anonymous")
	want("after a change of a caller", false)
	now = now.Add(-time.Minute)
	want("set back a little", false)
	now = now.Add(-time.Second)
	want("set back", true)
	now = now.AddDate(5, 0, 0)
	want("set far ahead", true)
}
