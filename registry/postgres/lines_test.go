package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/locks"
	"moorage/registry"
	"moorage/testkit/loopback"
)

// TestCloseOfAServerThatStandsStill closes a store and leases whose server accepts everything and
// answers nothing. Calls in progress are cut off, and their outcome is unknown. The test tries a
// few times and judges the fastest, because this machine may be stopped at times.
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

// closeStandingStill returns how long it takes to close a store and leases whose server has
// stopped. Their calls were sent earlier, and wait for locks on the server.
func closeStandingStill(t *testing.T) (took time.Duration) {
	t.Helper()
	schema := migrated(t)
	dsn, err := url.Parse(server.DSN() + schema)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(dsn.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	dsn.Host = proxy.Addr()
	application := "still" + strings.TrimPrefix(schema, "&search_path=")
	store := openStore(t, dsn.String()+"&application_name="+application, Options{})
	leases := openLeases(t, dsn.String()+"&application_name="+application)
	holder, err := pgx.Connect(t.Context(), server.DSN()+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE moorage_warehouse, moorage_lease_session"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	begin := func(call func() error) <-chan error {
		result := make(chan error, 1)
		go func() {
			result <- call()
			end()
		}()
		return result
	}
	applied := begin(func() error { _, err := store.Apply(t.Context(), faultBatch(1, false)); return err })
	got := begin(func() error { _, err := store.Get(t.Context(), registry.WarehouseKey("w")); return err })
	opened := begin(func() error { return leases.Open(t.Context(), locks.Session{Name: "a"}) })
	awaitLocks(t, application, 3, ended)
	proxy.Stall()
	defer proxy.Restore()
	began := time.Now()
	for _, close := range []func() error{store.Close, leases.Close, store.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-applied; !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("apply: %v, want ErrUnknown", err)
	}
	for name, result := range map[string]<-chan error{"get": got, "open": opened} {
		if err := <-result; err == nil {
			t.Errorf("%s, which was cut off: no error", name)
		}
	}
	return time.Since(began)
}
