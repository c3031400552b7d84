package moorage_test

import (
	"context"
	"testing"
	"time"

	"moorage"
)

// TestIdentitiesAreToldApart: the identity of a new principal differs from that of a deleted one of
// the same name.
func TestIdentitiesAreToldApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{"corp:ann", "key:12#3", "system:purge", "anonymous"} {
		for _, identity := range []string{
			moorage.IdentityOf(name, 0), moorage.IdentityOf(name, 1), moorage.IdentityOf(name, 12), moorage.AnyIdentityOf(name),
		} {
			if seen[identity] {
				t.Errorf("two have the identity %s", identity)
			}
			seen[identity] = true
			if got := moorage.NameOf(identity); got != name {
				t.Errorf("the name in %s is %s, want %s", identity, got, name)
			}
		}
	}
	if c := (moorage.Caller{}); !c.IsNobody() || c.IsActing() {
		t.Error("a caller without a name is somebody")
	}
	if c := moorage.System("purge"); c.IsNobody() || c.Name != "system:purge" || moorage.Anonymous().IsNobody() {
		t.Errorf("a job of the server is %q", c.Name)
	}
}

// TestContextsCarryTheRequest puts the data about a request into a context. Work that outlives the
// client's connection still has these data.
func TestContextsCarryTheRequest(t *testing.T) {
	t.Parallel()
	bare := t.Context()
	if _, found := moorage.CallerOf(bare); found || moorage.RequestID(bare) != "" {
		t.Error("a context without a request has one")
	}
	ctx, leave := context.WithCancel(bare)
	ctx = moorage.WithRequestID(ctx, "r1")
	ctx = moorage.WithCaller(ctx, moorage.Caller{Name: "corp:ann"})
	ctx = moorage.WithArrival(ctx, moorage.Arrival{From: "b:1", Key: "k"})
	kept, end := moorage.Detached(ctx, time.Hour)
	defer end()
	leave()
	caller, found := moorage.CallerOf(kept)
	arrival, forwarded := moorage.ArrivalOf(kept)
	if !found || caller.Name != "corp:ann" || !forwarded || arrival.From != "b:1" || moorage.RequestID(kept) != "r1" {
		t.Errorf("caller %v, arrival %v, request %q", caller, arrival, moorage.RequestID(kept))
	}
	if kept.Err() != nil {
		t.Errorf("detached work ends with its client: %v", kept.Err())
	}
	if deadline, ok := kept.Deadline(); !ok || time.Until(deadline) > time.Hour {
		t.Errorf("it ends at %v", deadline)
	}
	end()
	if kept.Err() == nil {
		t.Error("it does not end")
	}
}
