package recovery_test

import (
	"crypto/rand"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// A copy of a store has no jobs that could delete files, no held leases, and no tokens that the
// original may have issued. It is a different store. It begins no job until an operator resumes
// maintenance.
func TestCancelDeletionsEndsMaintenance(t *testing.T) {
	t.Parallel()
	store, table, now := memory.New(rand.Reader), registry.ID{15: 1}, time.Unix(1_800_000_000, 0).UTC()
	l := registrytest.Ledger(store)
	writes, err := ledger.Encode(
		ledger.Put(registry.JobKey(table, "snapshots"), registry.StateDeleting, registry.Job{Pointer: table}),
		ledger.Put(registry.LeaseKey(table), registry.StateNone, registry.Lease{Last: 41, Holds: []registry.Hold{{Token: 41}}}),
		ledger.Put(registry.StoreIDKey(), registry.StateNone, registry.StoreID{ID: table}),
		ledger.Put(registry.PauseKey(), registry.StateNone, registry.Pauses{Pauses: []registry.Pause{{Scope: "t/x", Reason: "ours"}}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, store, append(writes, registry.Put(registry.JobKey(table, "orphans"), registry.StateWaiting, []byte("{")))...)
	for _, want := range []int{2, 0} {
		if cancelled, err := recovery.CancelDeletions(t.Context(), l, now); err != nil || cancelled.Jobs != want {
			t.Fatalf("cancelled %+v, %v; want %d jobs", cancelled, err, want)
		}
	}
	if jobs, err := store.List(t.Context(), registry.TableJob, "", "", 10); err != nil || len(jobs) > 0 {
		t.Errorf("left jobs %v, %v", jobs, err)
	}
	records, err := store.Get(t.Context(), registry.LeaseKey(table), registry.PauseKey())
	if err != nil {
		t.Fatal(err)
	}
	if lease, err := registry.Decode[registry.Lease](records[0]); err != nil || len(lease.Holds) > 0 || lease.Last <= 1<<32 {
		t.Errorf("left the lease %+v, %v", lease, err)
	}
	if found, err := store.Get(t.Context(), registry.StoreIDKey()); err != nil || found[0].Exists() {
		t.Errorf("the copy has the id of the original, %s, %v", found[0].Value, err)
	}
	pauses, err := registry.Decode[registry.Pauses](records[1])
	if err != nil || len(pauses.Pauses) != 2 || pauses.Pauses[0].Scope != registry.ScopeServer || pauses.Pauses[0].Reason != "restored" {
		t.Errorf("pauses are %+v, %v", pauses, err)
	}
}

// A store without maintenance is not paused.
func TestCancelDeletionsPausesNothingThatIsOff(t *testing.T) {
	t.Parallel()
	store := memory.New(rand.Reader)
	if _, err := recovery.CancelDeletions(t.Context(), registrytest.Ledger(store), time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	if records, err := store.Get(t.Context(), registry.PauseKey()); err != nil || records[0].Exists() {
		t.Errorf("there is the pause %s, %v", records[0].Value, err)
	}
}
