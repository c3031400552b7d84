package catalog_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/testkit/pgserver"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
)

var longFlag = flag.Bool("long", false, "all rounds and all port calls over PostgreSQL, not a part of them")

// database starts the server of the tests that want one.
var database = sync.OnceValues(func() (*pgserver.Server, error) {
	// What a test's server forgets in a power cut does not matter here.
	return pgserver.Start("fsync=off", "synchronous_commit=off", "full_page_writes=off")
})

// databaseUsed is set by the first test that wants a database.
var databaseUsed sync.Once

func TestMain(m *testing.M) {
	code := m.Run()
	unused := false
	databaseUsed.Do(func() { unused = true })
	if !unused {
		if server, err := database(); err == nil {
			if err := server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// newDatabase returns what names an empty database with the tables of a store.
func newDatabase(t testing.TB) string {
	t.Helper()
	databaseUsed.Do(func() {})
	server, err := database()
	if err != nil {
		t.Fatal(err)
	}
	dsn, err := server.NewSchema(t.Context(), "test_"+strings.ToLower(rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// openPostgres returns a store over a database, as one node has it.
func openPostgres(t testing.TB, dsn string, random *lockedRandom) registry.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=8", postgres.Options{Random: random, AcquireTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newPostgres returns a store over a database of its own.
func newPostgres(t testing.TB, random *lockedRandom) registry.Store {
	t.Helper()
	return openPostgres(t, newDatabase(t), random)
}

// postgresSystem is a system of nodes over one database, which never fails.
func postgresSystem(manager func() locks.Manager, nodes int) func(*testing.T, *lockedRandom) *historySystem {
	return func(t *testing.T, random *lockedRandom) *historySystem {
		dsn := newDatabase(t)
		parts := historyParts{locks: manager, nodes: nodes, random: random}
		for range nodes {
			parts.stores = append(parts.stores, openPostgres(t, dsn, random))
		}
		return newHistorySystem(t, parts.stores[0], parts)
	}
}

// faultyPostgresSystem is a system of two nodes over one database that loses answers.
func faultyPostgresSystem(t *testing.T, random *lockedRandom) *historySystem {
	dsn := newDatabase(t)
	parts := historyParts{locks: noLocks, nodes: 2, random: random}
	var late []*registrytest.FaultyStore
	for range parts.nodes {
		chance := random.Rand()
		faulty := registrytest.Faulty(openPostgres(t, dsn, random), func(_ int, method string) registrytest.Action {
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
	system := newHistorySystem(t, openPostgres(t, dsn, random), parts)
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

// newNodes returns n catalogs over one database that share the files of a fixture, and the locks
// that it was given.
func newNodes(t *testing.T, n int, manager locks.Manager) []*fixture {
	t.Helper()
	dsn, random := newDatabase(t), newLockedRandom(1)
	first := newFixture(t, func(c *catalog.Config) { c.Store, c.Locks = openPostgres(t, dsn, random), manager })
	nodes := []*fixture{first}
	for len(nodes) < n {
		config := first.config
		config.Store = openPostgres(t, dsn, random)
		made, err := newInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		other := *first
		other.instance, other.store, other.config = made, config.Store, config
		nodes = append(nodes, &other)
	}
	return nodes
}

// rounds returns how many rounds a race over two nodes has.
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
	// dropWorkers is how many rounds of a race go on at once.
	dropWorkers = 8
	// dropMore is how many times as many rounds there are at most until either has won once.
	dropMore = 20
)

// A namespace is dropped on one node while another makes a table in it and a namespace below it.
// What was acknowledged is there. Nothing is in a namespace that is not there.
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
	nodes[0].wantClean()
}

// unlessDropStoodStill returns call with a retry. It makes call again if call was unavailable after
// it had waited for a drop as long as it may. On this machine the drop made no headway then. A call
// that began when the drop was over has nothing to wait for.
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
func dropAgainstCreate(ctx context.Context, nodes []*fixture, round int64) (dropped bool, err error) {
	ns := moorage.Namespace{fmt.Sprintf("round%d", round)}
	table := moorage.Identifier{Warehouse: testWarehouse, Namespace: ns, Name: "t"}
	below := ns.Child("below")
	if _, err := nodes[0].CreateNamespace(ctx, testWarehouse, ns, nil); err != nil {
		return false, err
	}
	one, other := nodes[round%2], nodes[(round+1)%2]
	var over atomic.Bool
	answers := atOnce(
		func() error {
			defer over.Store(true)
			return one.DropNamespace(ctx, testWarehouse, ns)
		},
		unlessDropStoodStill(&over, func() error {
			_, err := other.CreateTable(ctx, table, catalog.CreateTableRequest{Schema: []byte(testSchema)})
			return err
		}),
		unlessDropStoodStill(&over, func() error {
			_, err := other.CreateNamespace(ctx, testWarehouse, below, nil) // and ns, if that is gone
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
		if _, err := node.LoadNamespace(ctx, testWarehouse, below); err != nil {
			return dropped, fmt.Errorf("the namespace below: %w", err)
		}
	}
	return dropped, nil
}

// Two nodes rename a table to and fro, within a namespace and between two, against one another.
// Nobody waits for ever, and every reader sees one name.
func TestOppositeRenames(t *testing.T) {
	t.Parallel()
	for name, manager := range map[string]locks.Manager{"no locks": noLocks(), "local locks": localLocks()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := newNodes(t, 2, manager)
			if _, err := nodes[0].CreateNamespace(t.Context(), testWarehouse, moorage.Namespace{"other"}, nil); err != nil {
				t.Fatal(err)
			}
			here, there := ident("a"), ident("b")
			elsewhere := moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{"other"}, Name: "t"}
			nodes[0].create("a")
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
			nodes[0].wantClean()
		})
	}
}

// wantOneName returns an error if the namespace has more than one name. It may have none, because
// the table can be in the other namespace.
func wantOneName(ctx context.Context, f *fixture) error {
	names, _, err := f.ListTables(ctx, testWarehouse, moorage.Namespace{"ns"}, moorage.Page{})
	if err == nil && len(names) > 1 {
		err = fmt.Errorf("one table has the names %q", names)
	}
	return err
}
