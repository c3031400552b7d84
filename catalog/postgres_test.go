package catalog_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/locks"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storetest"
)

var longFlag = flag.Bool("long", false, "all rounds and all port calls over PostgreSQL, not a part of them")

// postgresSystem is a system of nodes over one database, which never fails.
func postgresSystem(manager func() locks.Manager, nodes int) func(*testing.T, *lockedRandom) *historySystem {
	return func(t *testing.T, random *lockedRandom) *historySystem {
		dsn := stores.NewDatabase(t)
		parts := historyParts{locks: manager, nodes: nodes, random: random}
		for range nodes {
			parts.stores = append(parts.stores, storetest.OpenNode(t, dsn, random))
		}
		return newHistorySystem(t, parts.stores[0], parts)
	}
}

// faultyPostgresSystem is a system of two nodes over one database that loses answers.
func faultyPostgresSystem(t *testing.T, random *lockedRandom) *historySystem {
	dsn := stores.NewDatabase(t)
	parts := historyParts{locks: catalogkit.NoLocks, nodes: 2, random: random}
	var late []*registrytest.FaultyStore
	for range parts.nodes {
		chance := random.Rand()
		faulty := registrytest.Faulty(storetest.OpenNode(t, dsn, random), func(_ int, method string) registrytest.Action {
			n := chance.IntN(1000)
			switch {
			case n < 5:
				return registrytest.Fail
			case n < 40 && method == registrytest.MethodApply:
				return registrytest.Lose
			case n < 75 && method == registrytest.MethodApply:
				return registrytest.Delay
			}
			return registrytest.Pass
		})
		late = append(late, faulty)
		parts.stores = append(parts.stores, faulty)
	}
	system := newHistorySystem(t, storetest.OpenNode(t, dsn, random), parts)
	system.faults = true
	system.disturb = func(ctx context.Context) error {
		var answers []error
		for _, store := range late {
			answers = append(answers, store.Release(ctx)...)
		}
		return lateAnswers(answers)
	}
	return system
}

// newNodes returns n catalogs over one database. They share the files of a fixture and the locks of
// manager.
func newNodes(t *testing.T, n int, manager locks.Manager) []*catalogkit.Fixture {
	t.Helper()
	dsn, random := stores.NewDatabase(t), newLockedRandom(1)
	first := catalogkit.New(t, func(c *catalog.Config) { c.Store, c.Locks = storetest.OpenNode(t, dsn, random), manager })
	nodes := []*catalogkit.Fixture{first}
	for len(nodes) < n {
		config := first.Config
		config.Store = storetest.OpenNode(t, dsn, random)
		made, err := catalogkit.NewInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		other := *first
		other.Instance, other.Store, other.Config = made, config.Store, config
		nodes = append(nodes, &other)
	}
	return nodes
}

// rounds returns the number of rounds of a race over two nodes.
func rounds(plain int) int {
	if *longFlag {
		return 10_000
	}
	return plain
}

// atOnce runs calls at the same time and returns their answers.
func atOnce(calls ...func() error) []error {
	answers := make([]error, len(calls))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() {
			<-start
			answers[i] = call()
		})
	}
	close(start)
	group.Wait()
	return answers
}

const (
	// dropWorkers is the number of concurrent rounds.
	dropWorkers = 8
	// If one side has not won yet, the rounds are extended, to at most dropMore times as many.
	dropMore = 20
)

// A namespace is dropped on one node while another node creates a table in it and a namespace below
// it. All acknowledged objects exist. No object is in a missing namespace.
func TestDropAgainstCreate(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, 2, locks.GrantAll{})
	var next, dropped, kept atomic.Int64
	last := int64(rounds(200 / scale.Factor))
	goesOn := func(round int64) bool {
		return round <= last || round <= dropMore*last && (dropped.Load() == 0 || kept.Load() == 0)
	}
	var workers sync.WaitGroup
	for range dropWorkers {
		workers.Go(func() {
			for round := next.Add(1); goesOn(round) && !t.Failed(); round = next.Add(1) {
				done, err := dropAgainstCreate(t.Context(), nodes, round)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				if done {
					dropped.Add(1)
				} else {
					kept.Add(1)
				}
			}
		})
	}
	workers.Wait()
	if dropped.Load() == 0 || kept.Load() == 0 {
		t.Errorf("%d were dropped and %d kept, so there was no race", dropped.Load(), kept.Load())
	}
	nodes[0].WantClean()
}

// unlessDropStoodStill returns call with a retry. call can fail with KindUnavailable after it has
// waited for the drop for the maximum time, if the drop makes no progress on this machine. Then
// call is repeated. A call that begins after the drop has nothing to wait for, so its failure
// counts.
func unlessDropStoodStill(over *atomic.Bool, call func() error) func() error {
	return func() error {
		for {
			late, began := over.Load(), time.Now()
			err := call()
			if late || moorage.KindOf(err) != moorage.KindUnavailable || time.Since(began) < directory.LiveWait {
				return err
			}
		}
	}
}

// dropAgainstCreate is one round. It reports whether the namespace was dropped.
func dropAgainstCreate(ctx context.Context, nodes []*catalogkit.Fixture, round int64) (dropped bool, err error) {
	ns := moorage.Namespace{fmt.Sprintf("round%d", round)}
	table := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: "t"}
	below := ns.Child("below")
	if _, err := nodes[0].CreateNamespace(ctx, catalogkit.Warehouse, ns, nil); err != nil {
		return false, err
	}
	one, other := nodes[round%2], nodes[(round+1)%2]
	var over atomic.Bool
	answers := atOnce(
		func() error {
			defer over.Store(true)
			return one.DropNamespace(ctx, catalogkit.Warehouse, ns)
		},
		unlessDropStoodStill(&over, func() error {
			_, err := other.CreateTable(ctx, table, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return err
		}),
		unlessDropStoodStill(&over, func() error {
			_, err := other.CreateNamespace(ctx, catalogkit.Warehouse, below, nil) // also creates ns if it is gone
			return err
		}),
	)
	dropped, created := answers[0] == nil, answers[1] == nil
	switch {
	case !dropped && moorage.KindOf(answers[0]) != moorage.KindNamespaceNotEmpty:
		return dropped, fmt.Errorf("drop the namespace: %w", answers[0])
	case !created && moorage.KindOf(answers[1]) != moorage.KindNoSuchNamespace:
		return dropped, fmt.Errorf("create the table: %w", answers[1])
	case answers[2] != nil:
		return dropped, fmt.Errorf("create the namespace below: %w", answers[2])
	}
	for _, node := range nodes {
		if err := node.TableExists(ctx, table); (err == nil) != created {
			return dropped, fmt.Errorf("create answered %v, and then the table: %v", answers[1], err)
		}
		if _, err := node.LoadNamespace(ctx, catalogkit.Warehouse, below); err != nil {
			return dropped, fmt.Errorf("the namespace below: %w", err)
		}
	}
	return dropped, nil
}

// Two nodes rename a table back and forth in opposite directions, within a namespace and between
// two. No rename waits for ever, and every reader sees one name.
func TestOppositeRenames(t *testing.T) {
	t.Parallel()
	for name, manager := range map[string]locks.Manager{"no locks": catalogkit.NoLocks(), "local locks": localLocks()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := newNodes(t, 2, manager)
			if _, err := nodes[0].CreateNamespace(t.Context(), catalogkit.Warehouse, moorage.Namespace{"other"}, nil); err != nil {
				t.Fatal(err)
			}
			here, there := ident("a"), ident("b")
			elsewhere := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other"}, Name: "t"}
			nodes[0].Create("a")
			ways := [][2]moorage.Identifier{{here, there}, {there, elsewhere}, {elsewhere, here}, {there, here}, {elsewhere, there}, {here, elsewhere}}
			renamed := 0
			for round := range rounds(60 / scale.Factor) {
				var calls []func() error
				for i, way := range ways {
					calls = append(calls, func() error { return nodes[(i+round)%2].RenameTable(t.Context(), way[0], way[1]) })
				}
				calls = append(calls, func() error { return wantOneName(t.Context(), nodes[round%2]) })
				for i, err := range atOnce(calls...) {
					switch kind := moorage.KindOf(err); {
					case err == nil && i < len(ways):
						renamed++
					case err == nil:
					case i == len(ways), kind != moorage.KindNoSuchTable && kind != moorage.KindAlreadyExists:
						t.Fatalf("round %d: call %d: %v", round, i, err)
					}
				}
			}
			if renamed == 0 {
				t.Error("no rename was done")
			}
			found := 0
			for _, at := range []moorage.Identifier{here, there, elsewhere} {
				if nodes[0].TableExists(t.Context(), at) == nil {
					found++
				}
			}
			if found != 1 {
				t.Errorf("the table has %d names, want 1", found)
			}
			nodes[0].WantClean()
		})
	}
}

// wantOneName returns an error if the namespace has more than one name. It may have none, because
// the table can be in the other namespace.
func wantOneName(ctx context.Context, f *catalogkit.Fixture) error {
	names, _, err := f.ListTables(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
	if err == nil && len(names) > 1 {
		err = fmt.Errorf("one table has the names %q", names)
	}
	return err
}
