package commit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	files "moorage/storage/memory"
)

// newPipeline returns a pipeline over stores in memory, and its ledger.
func newPipeline(authorizer gate.Authorizer) (*commit.Pipeline, *ledger.Ledger, error) {
	log := slog.New(slog.DiscardHandler)
	deps, err := ledger.New(ledger.Config{Store: memory.New(rand.Reader), Now: time.Now, Random: rand.Reader, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	records := deps.Ledger
	lake := files.New()
	names := directory.New(directory.Config{
		Ledger: records, Now: time.Now, Logger: log, Gate: authorizer,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return lake.Within(place.Roots) },
	})
	return commit.New(commit.Config{
		Gate: authorizer, Ledger: records, Locks: locks.NewLocal(locks.LocalConfig{}), Directory: names,
		Claims: claims.New(records), Documents: documents.New(records, names, 1<<20, time.Now, log),
		Now: time.Now, Logger: log,
		IdempotencyLifetime: time.Minute, KickPurge: func() {}, KickRecovery: func() {},
	}), records, nil
}

// makeWarehouse returns the intent of caller to create a warehouse. The intent requires that the
// name is free, and writes the warehouse.
func makeWarehouse(caller moorage.Caller, records *ledger.Ledger, name string) commit.Intent {
	key := registry.WarehouseKey(name)
	return commit.Intent{
		Caller: caller, Verb: gate.CreateWarehouse, On: []moorage.Identifier{{Warehouse: name}},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) ([]registry.Record, error) {
			return records.Get(ctx, key)
		}, func(attempt *commit.Attempt, found []registry.Record) (*commit.Plan, error) {
			if found[0].Exists() {
				return nil, moorage.Errorf(moorage.KindAlreadyExists, "Warehouse already exists: %s", name)
			}
			value := registry.Warehouse{ID: attempt.Change.ID, Location: "file:///lake", Since: attempt.Now}
			writes, err := ledger.Encode(ledger.Put(key, registry.StateLive, value))
			return &commit.Plan{Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes}, err
		}),
	}
}

// An intent has the caller, the request, and a function that plans it. The pipeline plans the
// intent on the present records, and carries out the plan with one write or refuses it.
func ExamplePipeline() {
	ctx := context.Background()
	pipeline, records, err := newPipeline(gate.AdmitAll())
	if err != nil {
		fmt.Println(err)
		return
	}
	intent := makeWarehouse(moorage.Caller{Name: "ann"}, records, "sales")
	for range 2 {
		_, err := pipeline.Submit(ctx, intent)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// Warehouse already exists: sales
}
