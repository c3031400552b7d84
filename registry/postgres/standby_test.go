package postgres

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"moorage/registry"
	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
)

// newReplicated starts a server whose commits wait for a standby, and returns its store and the
// proxy between the two.
func newReplicated(t *testing.T) (*Store, *loopback.Proxy) {
	t.Helper()
	dsn, proxy := startReplicated(t)
	return openStore(t, dsn, Options{}), proxy
}

// startReplicated is like newReplicated, but opens no store.
func startReplicated(t *testing.T) (dsn string, proxy *loopback.Proxy) {
	t.Helper()
	primary, err := pgserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { primary.Stop() })
	target, err := url.Parse(primary.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err = loopback.NewProxy(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	target.Host = proxy.Addr()
	standby, err := primary.Standby(target.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.Stop() })
	if _, err := Migrate(t.Context(), primary.DSN()); err != nil {
		t.Fatal(err)
	}
	return primary.DSN(), proxy
}

// awaitStandbyWait waits until a commit waits for the standby, or until ended is closed. It reports
// whether a commit waits.
func awaitStandbyWait(t *testing.T, store *Store, ended <-chan struct{}) (waiting bool) {
	t.Helper()
	for !waiting {
		select {
		case <-ended:
			return false
		default:
		}
		const sql = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep')"
		if err := store.pool.QueryRow(t.Context(), sql).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// If an Apply gives up while the server waits for its standby, its outcome is unknown. No reader
// sees it until the standby has it. If the standby were promoted instead, it would be lost.
func TestUnseenUntilReplicated(t *testing.T) {
	t.Parallel()
	store, proxy := newReplicated(t)
	key := registry.WarehouseKey("w")
	proxy.Stall()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var applyErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, applyErr = store.Apply(ctx, registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateLive, []byte("{}"))}})
	}()
	awaitStandbyWait(t, store, ended)
	giveUp()
	<-ended
	if !errors.Is(applyErr, registry.ErrUnknown) {
		t.Fatalf("Apply: %v, want ErrUnknown", applyErr)
	}
	for began := time.Now(); time.Since(began) < time.Second; {
		records, err := store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if records[0].Exists() {
			t.Fatalf("after %s the record is seen, and the standby does not have it", time.Since(began))
		}
	}
	proxy.Restore()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		records, err := store.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if records[0].Exists() {
			return
		}
	}
}

// If a server is told to stop waiting for its standby, it shows writes that the standby does not
// have, and the outcome of the Apply is unknown. An Apply that only requires the write, and writes
// nothing, finds out whether the standby has it.
func TestAskingWaitsForReplication(t *testing.T) {
	t.Parallel()
	store, proxy := newReplicated(t)
	change := registry.Change{ID: registry.ID{1}, Operation: "test"}
	proxy.Stall()
	var applyErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, applyErr = store.Apply(t.Context(), registry.Batch{
			Conditions: []registry.Condition{registry.Absent(registry.WarehouseKey("w"))},
			Writes:     []registry.Write{registry.Put(registry.WarehouseKey("w"), registry.StateLive, []byte("{}"))}, Change: &change,
		})
	}()
	awaitStandbyWait(t, store, ended)
	const cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	if _, err := store.pool.Exec(t.Context(), cancel); err != nil {
		t.Fatal(err)
	}
	<-ended
	if !errors.Is(applyErr, registry.ErrUnknown) {
		t.Fatalf("Apply: %v, want ErrUnknown", applyErr)
	}
	records, err := store.Get(t.Context(), registry.ChangeKey(change.ID))
	if err != nil || !records[0].Exists() {
		t.Fatalf("%v, %v: the server hides what the standby does not have", records, err)
	}
	asks := registry.Batch{Conditions: []registry.Condition{registry.ETagIs(records[0].Key, records[0].ETag)}}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var askErr error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, askErr = store.Apply(ctx, asks)
	}()
	awaitStandbyWait(t, store, answered)
	giveUp()
	<-answered
	if !errors.Is(askErr, registry.ErrUnknown) {
		t.Errorf("asked while the standby does not have it: %v, want ErrUnknown", askErr)
	}
	proxy.Restore()
	if _, err := store.Apply(t.Context(), asks); err != nil {
		t.Errorf("asked again: %v", err)
	}
}
