package locks_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"moorage/locks"
	"moorage/testkit/locktest"
)

func TestRecorder(t *testing.T) {
	runContract(t, contract{
		New: func(*testing.T) locks.Manager {
			return locktest.NewRecorder(locks.NewLocal(locks.LocalConfig{}))
		},
	})
}

func TestRecorderCalls(t *testing.T) {
	t.Parallel()
	recorder := locktest.NewRecorder(locks.NewLocal(locks.LocalConfig{}))
	ns := locks.Warehouse("wh").Namespace("ns")
	rename := locks.Request{Writes: []locks.Path{ns.Shard(3), locks.Warehouse("wh").Pointer("1")}, Reads: []locks.Path{ns.Shard(2)}}
	hold, err := recorder.Acquire(t.Context(), rename, locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refused := locks.Request{Writes: []locks.Path{ns}}
	if _, err := recorder.Acquire(context.WithoutCancel(hold.Context()), refused, locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	under := hold.Context()
	hold.Release()
	after, err := recorder.Acquire(context.WithoutCancel(under), refused, locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	after.Release()

	calls := recorder.Calls()
	if len(calls) != 3 {
		t.Fatalf("calls: got %d, want 3", len(calls))
	}
	var grants []string
	for _, grant := range calls[0].Grants {
		grants = append(grants, grant.String())
	}
	if want := []string{"WA /wh", "W /wh/@1", "WA /wh/ns", "R /wh/ns/#2", "W /wh/ns/#3"}; !slices.Equal(grants, want) {
		t.Errorf("grants: got %q, want %q", grants, want)
	}
	if got, want := calls[0].Named(), []string{"W /wh/@1", "R /wh/ns/#2", "W /wh/ns/#3"}; !slices.Equal(got, want) {
		t.Errorf("named: got %q, want %q", got, want)
	}
	for i, want := range []locktest.Call{{}, {Err: locks.ErrConflict, Nested: true, Options: locks.Options{NonBlocking: true}}, {}} {
		if got := calls[i]; !errors.Is(got.Err, want.Err) || got.Nested != want.Nested || got.Options != want.Options {
			t.Errorf("call %d: got %v %t %+v, want %v %t %+v", i, got.Err, got.Nested, got.Options, want.Err, want.Nested, want.Options)
		}
	}
	if recorder.Reset(); len(recorder.Calls()) != 0 {
		t.Error("calls after Reset: want none")
	}
}
