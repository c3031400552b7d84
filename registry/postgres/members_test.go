package postgres

import (
	"slices"
	"testing"
	"time"

	"moorage/locks"
)

// Every join and every leave raises the number of the view, however a session ends. Nothing else
// raises it.
func TestMembers(t *testing.T) {
	t.Parallel()
	leases := newLeases(t, "")
	open := func(name, version string) {
		t.Helper()
		if err := leases.Open(t.Context(), locks.Session{Name: name, Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	join := func(session, address string) {
		t.Helper()
		if err := leases.Join(t.Context(), session, address); err != nil {
			t.Fatal(err)
		}
	}
	var last int64
	expect := func(what string, raised bool, want ...member) {
		t.Helper()
		for range 2 { // a second read finds the same
			number, members, err := leases.Members(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(members, want) {
				t.Fatalf("%s: members %v, want %v", what, members, want)
			}
			if raised && number <= last || !raised && number != last {
				t.Fatalf("%s: number %d after %d, want it raised: %t", what, number, last, raised)
			}
			last, raised = number, false
		}
	}
	open("a", "v1")
	open("b", "v2")
	open("c", "v1")
	last, _, _ = leases.Members(t.Context())
	expect("no address", false)
	join("b", "b:1")
	b := member{"b", "b:1", "v2"}
	expect("b joins", true, b)
	join("b", "b:1")
	join("nobody", "n:1")
	expect("b joins again, and a session that is not there", false, b)
	join("a", "a:1")
	a := member{"a", "a:1", "v1"}
	expect("a joins", true, a, b)
	if _, _, err := leases.Renew(t.Context(), "a", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	expect("a heartbeat", false, a, b)
	join("a", "a:2")
	a.Address = "a:2"
	expect("a moves", true, a, b)
	if err := leases.End(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	expect("b ends", true, a)
	join("c", "c:1")
	join("a", "")
	expect("c joins and a leaves", true, member{"c", "c:1", "v1"})
	leases.pass(t, time.Minute)
	if _, err := leases.Reap(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	expect("c is silent for too long", true)
}
