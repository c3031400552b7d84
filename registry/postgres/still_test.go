package postgres

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"moorage/registry"
	"moorage/testkit/loopback"
)

// TestReadsOfAServerThatStandsStill reads from a server that accepts everything and answers
// nothing. The contexts of the callers do not end. Each call returns ErrUnavailable, and not an
// error of its context.
func TestReadsOfAServerThatStandsStill(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(server.DSN() + migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(dsn.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	dsn.Host = proxy.Addr()
	store := openStore(t, dsn.String(), Options{})
	store.readTimeout = 500 * time.Millisecond
	if _, err := store.Apply(t.Context(), registry.Batch{Change: &registry.Change{ID: faultID(1)}}); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(ctx context.Context) error{
		"Get": func(ctx context.Context) error { _, err := store.Get(ctx, registry.WarehouseKey("w")); return err },
		"List": func(ctx context.Context) error {
			_, err := store.List(ctx, registry.TableWarehouse, "", "", 1)
			return err
		},
		"Changes":  func(ctx context.Context) error { _, err := store.Changes(ctx, 0, 1); return err },
		"Warnings": func(ctx context.Context) error { _, err := store.Warnings(ctx); return err },
	} {
		proxy.Restore()
		awaitHealthy(t, store) // there is a recently used connection
		proxy.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := read(ctx)
		if !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s = %v, want ErrUnavailable before its context ends", name, err)
		}
		cancel()
	}
	proxy.Restore()
	store.readTimeout = readTimeout // a slow machine must not look like a stopped server
	if changes, err := store.Changes(t.Context(), 0, 2); err != nil || len(changes) != 1 {
		t.Errorf("afterwards: %v, %v", changes, err)
	}
}
