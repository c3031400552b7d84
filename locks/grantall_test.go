package locks_test

import (
	"context"
	"errors"
	"testing"

	"moorage/locks"
)

func TestGrantAll(t *testing.T) {
	t.Parallel()
	var manager locks.Manager = locks.GrantAll{}
	request := locks.Request{Writes: []locks.Path{locks.Warehouse("wh")}}
	var holds []locks.Hold
	for range 2 {
		hold, err := manager.Acquire(t.Context(), request, locks.Options{NonBlocking: true})
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, hold)
	}
	holds[0].Release()
	holds[0].Release()
	if holds[0].Context().Err() == nil || holds[1].Context().Err() != nil {
		t.Error("Release must end the context of its own hold only")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := manager.Acquire(ctx, request, locks.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: got %v, want context.Canceled", err)
	}
}
