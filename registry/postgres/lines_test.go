package postgres

import (
	"errors"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"moorage/internal/tcptest"
	"moorage/registry"
)

// TestCloseOfAServerThatStandsStill closes a store, and leases, whose server takes everything and answers nothing. What is under way then is cut
// off, and does not pass for something that certainly did not happen. It does so a few times at most and looks at the quickest: during the
// others this machine may have stood still too.
func TestCloseOfAServerThatStandsStill(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for len(took) < 4 && !t.Failed() {
		took = append(took, closeStandingStill(t))
		if took[len(took)-1] <= 4*closePatience {
			return
		}
	}
	t.Errorf("closing took %s, want %s at most", took, 4*closePatience)
}

// closeStandingStill returns how long it took to close a store and leases whose server stands still.
func closeStandingStill(t *testing.T) (took time.Duration) {
	t.Helper()
	dsn, err := url.Parse(server.DSN() + migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := tcptest.New(dsn.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	dsn.Host = proxy.Addr()
	store, err := Open(t.Context(), dsn.String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := OpenLeases(t.Context(), dsn.String())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Stall()
	defer proxy.Restore()
	var calls sync.WaitGroup
	begin := func(call func() error, used *Store) {
		calls.Go(func() {
			if call() == nil {
				t.Error("a call that was cut off: no error")
			}
		})
		for used.pool.Stat().AcquiredConns() == 0 {
			runtime.Gosched()
		}
	}
	begin(func() error {
		_, err := store.Apply(t.Context(), faultBatch(1, false)) // on the connection that there is
		if !errors.Is(err, registry.ErrUnknown) {
			t.Errorf("apply: %v, want ErrUnknown", err)
		}
		return err
	}, store)
	begin(func() error { _, err := store.Get(t.Context(), registry.WarehouseKey("w")); return err }, store)
	begin(func() error { return leases.Open(t.Context(), "a") }, leases.connections)
	began := time.Now()
	for _, close := range []func() error{store.Close, leases.Close, store.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
	calls.Wait()
	return time.Since(began)
}
