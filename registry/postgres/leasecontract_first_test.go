package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// If a contender fails while it holds leases, the contenders that wait for them end too.
func TestFirstErrorEndsLeaseContention(t *testing.T) {
	t.Parallel()
	refusal := errors.New("refused")
	var refuse sync.Once
	leases := locktest.NewLeasesAround(locktest.NewMemoryLeases(time.Now))
	leases.SetHook(func(_ context.Context, method string, call func()) (err error) {
		if method == "Release" {
			refuse.Do(func() { err = refusal })
		}
		if err == nil {
			call()
		}
		return err
	})
	var nodes []*node
	for i := range contenders {
		nodes = append(nodes, leaseStore{Leases: leases}.begin(t, fmt.Sprint("node ", i)))
	}
	held := witness{held: make(map[string][]locks.Mode)}
	if err := together(t.Context(), nodes, held.getThrough); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the error of the Release that failed", err)
	}
	if tries := leases.Calls("Try"); tries >= takerAttemptsMax {
		t.Errorf("%d tries for what nobody gives back", tries)
	}
}
