package leases_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"moorage"
	"moorage/maintenance/leases"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// A job takes a lease on a table, and sends the id of the lease with each commit.
func ExampleLeases() {
	ctx, caller := context.Background(), moorage.Anonymous()
	s := leases.New(registrytest.Ledger(memory.New(rand.Reader)))
	request := leases.Request{Pointer: registry.ID{15: 7}, Scope: leases.ScopeAll, Holder: "spark 17"}
	granted, err := s.Take(ctx, caller, request)
	fmt.Println("X-Moorage-Lease:", granted.ID, err)
	fmt.Println(s.Release(ctx, caller, granted.ID, leases.OwnLeases))
	// Output:
	// X-Moorage-Lease: 00000000000000000000000000000007-1 <nil>
	// <nil>
}
