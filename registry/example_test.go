package registry_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"moorage/registry"
	"moorage/registry/memory"
)

// A write that requires the version that was read is refused if another writer was faster.
func ExampleStore() {
	ctx := context.Background()
	var store registry.Store = memory.New(rand.Reader)
	defer store.Close()
	key := registry.LocationKey("/lake/orders")
	put := func(value string, condition registry.Condition) error {
		_, err := store.Apply(ctx, registry.Batch{
			Conditions: []registry.Condition{condition},
			Writes:     []registry.Write{registry.Put(key, registry.StateOwner, []byte(value))},
		})
		return err
	}
	fmt.Println(put("first", registry.Absent(key)))
	records, err := store.Get(ctx, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(put("second", registry.ETagIs(key, records[0].ETag)))
	_, failed := registry.FailedCondition(put("third", registry.ETagIs(key, records[0].ETag)))
	fmt.Println("condition failed:", failed)
	records, err = store.Get(ctx, key)
	fmt.Printf("%s %v\n", records[0].Value, err)
	// Output:
	// <nil>
	// <nil>
	// condition failed: true
	// second <nil>
}
