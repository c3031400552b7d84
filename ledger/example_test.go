package ledger_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// A mutation has a change record, conditions and writes. If another process was faster, Retry
// starts again with the reads.
func ExampleLedger() {
	ctx := context.Background()
	store := memory.New(rand.Reader)
	l := registrytest.Ledger(store)
	err := l.Retry(ctx, moorage.KindUnavailable, func(int) error {
		key := registry.WarehouseKey("sales")
		records, err := l.Get(ctx, key)
		if err != nil || records[0].Exists() {
			return err
		}
		change, err := l.NewChange(ctx, moorage.Caller{Name: "ann"}, "create-warehouse", moorage.Identifier{Warehouse: "sales"})
		if err != nil {
			return err
		}
		writes, err := ledger.Encode(ledger.Put(key, registry.StateLive, registry.Warehouse{Location: "s3://lake"}))
		if err != nil {
			return err
		}
		_, err = l.Apply(ctx, ledger.Mutation{Change: change, Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes})
		return ledger.RetryOnConflict(err)
	})
	fmt.Println(err)
	changes, err := store.Changes(ctx, 0, 10)
	for _, c := range changes {
		fmt.Println(c.Change.Principal, c.Change.Operation, c.Change.Versions[0].Key, err)
	}
	// Output:
	// <nil>
	// ann create-warehouse warehouse/sales <nil>
}
