package gate_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/registry"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storetest"
)

var revokesFlag = flag.Int("revokes", 150, "how often a privilege is revoked on one node and asked for on the others")

// policyHistory is a privilege that is repeatedly granted and revoked while other goroutines check
// it.
type policyHistory struct {
	t     *testing.T
	seed  uint64
	nodes [3]atomic.Pointer[catalogkit.Secured]
	// begun and answered count the changes of the privilege. Changes with odd numbers grant it.
	begun, answered atomic.Uint64
	asked, allowed  atomic.Uint64
	ticks           [4]chan struct{} // an element for each change that begins; one channel per node and one for the commits
}

// each calls do a few times for each tick, until the channel is closed.
func (h *policyHistory) each(ticks <-chan struct{}, do func()) {
	for range ticks {
		for range 3 {
			do()
		}
	}
}

// look checks the privilege at a node. If no change is in progress, the answer must agree with the
// last answered change.
func (h *policyHistory) look(ctx context.Context, node int) {
	before := h.answered.Load()
	_, err := h.nodes[node].Load().Named(catalogkit.BobName).LoadTable(ctx, ident("t"))
	if h.begun.Load() != before {
		return // this request overlaps a change: either answer is right
	}
	h.asked.Add(1)
	switch kind := moorage.KindOf(err); {
	case err == nil:
		h.allowed.Add(1)
		if before%2 == 0 {
			h.t.Errorf("node %d lets a request in that began after revoke %d was answered", node, before/2)
		}
	case kind == moorage.KindNoSuchWarehouse && before%2 == 1:
		h.t.Errorf("node %d refuses a request that began after grant %d was answered: %v", node, before/2, err)
	case kind != moorage.KindNoSuchWarehouse:
		h.t.Errorf("node %d: %v", node, err)
	}
}

// change grants or revokes the privilege at a node.
func (h *policyHistory) change(ctx context.Context, node int, revoke bool) {
	for _, ticks := range h.ticks {
		select {
		case ticks <- struct{}{}:
		default: // it is still busy with the previous tick
		}
	}
	h.begun.Add(1)
	_, err := h.nodes[node].Load().Admin().ChangeGrants(ctx, []grants.Change{
		{Revoke: revoke, Object: catalogkit.OnTable("t"), Grantee: catalogkit.BobName, Privileges: access.Read},
	})
	if err != nil {
		h.t.Errorf("change policy at node %d: %v", node, err)
	}
	h.answered.Add(1)
}

// run makes a number of changes of the privilege, at one node after another. It checks each node as
// soon as a change is answered. Now and then, it replaces a node by a new one with an empty cache.
func (h *policyHistory) run(ctx context.Context, rounds int, restart func() *catalogkit.Secured) {
	random := rand.New(rand.NewPCG(h.seed, 0))
	for round := range rounds {
		for _, revoke := range []bool{false, true} {
			at := random.IntN(len(h.nodes))
			h.change(ctx, at, revoke)
			for i := range h.nodes {
				h.look(ctx, (at+1+i)%len(h.nodes))
			}
		}
		if round%20 == 19 {
			h.nodes[random.IntN(len(h.nodes))].Store(restart())
		}
		if h.t.Failed() {
			return
		}
	}
}

// After a change of policy was answered, it applies to every request that begins later, on each of
// three nodes, while these commit to the table.
func TestRevokeHoldsAtOnce(t *testing.T) {
	t.Parallel()
	seed := catalogkit.NewSeed(t)
	random := newLockedRandom(seed)
	dsn := stores.NewDatabase(t)
	files := memorystorage.New()
	share := func(config *catalog.Config) {
		config.OpenStorage = func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) }
	}
	stores := make([]registry.Store, 3)
	for i := range stores {
		stores[i] = storetest.OpenNode(t, dsn, random)
	}
	h := &policyHistory{t: t, seed: seed}
	first := catalogkit.NewSecured(t, stores[0], false, share)
	first.Populate()
	h.nodes[0].Store(first)
	h.nodes[1].Store(catalogkit.Secure(t, stores[1], false, share))
	h.nodes[2].Store(catalogkit.Secure(t, stores[2], false, share))

	var others sync.WaitGroup
	for i := range h.ticks {
		h.ticks[i] = make(chan struct{}, 1)
	}
	for i := range h.nodes {
		others.Go(func() { h.each(h.ticks[i], func() { h.look(t.Context(), i) }) })
	}
	commits := 0
	others.Go(func() {
		h.each(h.ticks[3], func() {
			owner := h.nodes[commits%3].Load().Named(catalogkit.AnnName)
			if _, err := owner.Commit(t.Context(), ident("t"), catalogkit.SetProperty(t, "commit", strconv.Itoa(commits))); err != nil {
				t.Errorf("commit: %v", err)
			}
			commits++
		})
	})
	h.run(t.Context(), *revokesFlag, func() *catalogkit.Secured { return catalogkit.Secure(t, stores[int(h.begun.Load())%3], false, share) })
	for _, ticks := range h.ticks {
		close(ticks)
	}
	others.Wait()
	t.Logf("%d changes, %d commits; of %d requests between them %d were let in",
		h.answered.Load(), commits, h.asked.Load(), h.allowed.Load())
	if h.allowed.Load() == 0 || h.allowed.Load() == h.asked.Load() || commits == 0 {
		t.Error("that shows nothing")
	}
}
