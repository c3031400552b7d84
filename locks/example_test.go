package locks_test

import (
	"context"
	"errors"
	"fmt"

	"moorage"
	"moorage/locks"
)

// A rename takes the locks of both shards and the pointer in one call, and does its work under the
// hold's context.
func Example() {
	manager := locks.NewLocal(locks.LocalConfig{})
	timeouts := locks.NewTimeouts()
	ns := locks.NamespacePath("sales", moorage.Namespace{"eu", "orders"})
	rename := locks.Request{Writes: []locks.Path{ns.Shard(11), ns.Shard(4), locks.Warehouse("sales").Pointer("0f7c")}}

	hold, err := manager.Acquire(context.Background(), rename, locks.Options{Timeout: timeouts.Structural})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release()

	for _, grant := range locks.Plan(rename) {
		fmt.Println(grant)
	}
	transaction := locks.Request{Writes: []locks.Path{locks.Warehouse("sales").Pointer("0f7c")}}
	_, err = manager.Acquire(context.Background(), transaction, locks.Options{NonBlocking: true})
	fmt.Println(errors.Is(err, locks.ErrConflict), err)
	// Output:
	// WA /sales
	// W /sales/@0f7c
	// WA /sales/eu
	// WA /sales/eu/orders
	// W /sales/eu/orders/#4
	// W /sales/eu/orders/#b
	// true locks: held by another operation: W /sales/@0f7c
}
