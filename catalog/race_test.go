package catalog_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/locks"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/scale"
)

// race is two clients, a and b, with conflicting requests.
type race struct {
	name    string
	prepare func(f *catalogkit.Fixture) // sets up the initial state; may be nil
	a, b    catalogkit.RaceClient
	// ends are all possible ends: the answers to a and b, and then the existing objects. Each must
	// occur, except those with a leading question mark. Ends in which a client failed with
	// KindUnavailable are left out, because that client has changed nothing.
	ends []string
	// leaves is true if unnamed files of an ended table may be left.
	leaves bool
}

// counted is the answer of a client that does the same several times.
type counted int

func (n counted) Error() string { return fmt.Sprintf("%d times", int(n)) }

// repeat is a client that makes the same call several times. Its answer is the number of successes.
func repeat(times int, client catalogkit.RaceClient) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		done := counted(0)
		for range times {
			if client(ctx, c) == nil {
				done++
			}
		}
		return done
	}
}

// raceSystem is the environment of a race, which its clients share.
type raceSystem struct {
	name  string
	locks func() locks.Manager
	nodes int // if 2, each client has its own node
}

// raceSystems returns the systems. Under the race detector, it leaves out the last one to save
// time.
func raceSystems() []raceSystem {
	systems := []raceSystem{{"local locks", localLocks, 1}, {"two nodes", catalogkit.NoLocks, 2}}
	if !scale.On {
		systems = append(systems, raceSystem{"no locks", catalogkit.NoLocks, 1})
	}
	return systems
}

// raceOrders is the number of random orders of a race's calls, in addition to the enumerated ones.
const raceOrders = 20 / scale.Factor

// Two clients change names at the same time. Each table keeps one name, in an existing namespace.
// Each name leads to a table, and no unnamed file is left. This holds in any order of the calls of
// the store, with locks that exclude and with locks that do not.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, system := range raceSystems() {
		for _, r := range races(t) {
			t.Run(system.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				seen := map[string]bool{}
				for _, clients := range [][2]string{{"a", "b"}, {"b", "a"}} {
					r.enumerate(t, system, clients[0], clients[1], seen)
				}
				random := rand.New(rand.NewPCG(catalogkit.NewSeed(t), 0))
				for range raceOrders {
					r.run(t, system, withBreaks(random, anyOrder(random)), nil, seen)
				}
				for _, end := range r.ends {
					if !strings.HasPrefix(end, "?") && !seen[end] {
						t.Errorf("it never ended with: %s", end)
					}
				}
			})
		}
	}
}

// The store loses answers of writes. Such a write has happened, never happens, or happens only
// after the race. The races have the same ends, and no others.
func TestRacesWithLostAnswers(t *testing.T) {
	t.Parallel()
	for _, system := range raceSystems() {
		for _, r := range races(t) {
			t.Run(system.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(catalogkit.NewSeed(t), 0))
				seen := map[string]bool{}
				for range raceOrders {
					fates := make([]fate, 8)
					for i := range fates {
						fates[i] = fate(random.IntN(int(happensLater) + 1))
					}
					r.run(t, system, anyOrder(random), fates, seen)
				}
			})
		}
	}
}

// enumerate runs the race in every order with two switches between its clients. Under the race
// detector, it runs only a sample of these orders.
func (r race) enumerate(t *testing.T, system raceSystem, first, second string, seen map[string]bool) {
	t.Helper()
	for firstCalls := 0; ; firstCalls++ {
		anyReached := false
		for secondCalls := 1; ; secondCalls += scale.Factor {
			next, reached := twoSwitches(first, second, firstCalls, secondCalls)
			r.run(t, system, next, nil, seen)
			if !reached() {
				break
			}
			anyReached = true
		}
		if !anyReached {
			return
		}
	}
}

// run runs the race once, and checks that its end is one of r.ends.
func (r race) run(t *testing.T, system raceSystem, next schedule, fates []fate, seen map[string]bool) {
	t.Helper()
	end := r.runClients(t, system, next, fates, r.a, r.b)
	seen[end.String()] = true
	switch unavailable := moorage.KindUnavailable.String(); {
	case slices.Contains(r.ends, end.String()), slices.Contains(r.ends, "?"+end.String()):
	case end.a == unavailable && end.b == unavailable: // nothing was changed; likewise below
		r.wantEnd(t, end, r.runClients(t, system, inTurn, nil, nil, nil))
	case end.a == unavailable:
		r.wantEnd(t, end, r.runClients(t, system, inTurn, nil, nil, r.b))
	case end.b == unavailable:
		r.wantEnd(t, end, r.runClients(t, system, inTurn, nil, r.a, nil))
	default:
		t.Fatalf("it ended with: %s", end)
	}
}

// wantEnd fails the test unless a race in which clients failed with KindUnavailable ended as it
// does without these clients.
func (r race) wantEnd(t *testing.T, got, without raceEnd) {
	t.Helper()
	if without.a != "" && without.a != got.a || without.b != "" && without.b != got.b || without.there != got.there {
		t.Fatalf("it ended with: %s, and without the unavailable client with: %s", got, without)
	}
}

// raceEnd is the end of a race: the answer to each client, or "" if the client is missing, and the
// existing objects.
type raceEnd struct{ a, b, there string }

func (e raceEnd) String() string { return strings.TrimSpace(e.a + ", " + e.b + ": " + e.there) }

// runClients runs a and b. One or both may be missing. It checks the invariants that hold after any
// end.
func (r race) runClients(t *testing.T, system raceSystem, next schedule, fates []fate, a, b catalogkit.RaceClient) (end raceEnd) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &steppedStore{waiting: map[string]chan struct{}{}}
		files := &catalogkit.FileCount{There: map[string]bool{}}
		f := catalogkit.New(t, func(c *catalog.Config) {
			store.Store = c.Store
			open := c.OpenStorage
			c.Store, c.Locks, c.Now, c.Logger = store, system.locks(), nil, slog.New(unlooked{files})
			c.OpenStorage = func(place storage.Place) (storage.Store, error) {
				opened, err := open(place)
				return &catalogkit.CountedFiles{Store: opened, Count: files}, err
			}
		})
		if r.prepare != nil {
			r.prepare(f)
		}
		nodes := [2]*catalogkit.Instance{f.Instance, f.Instance}
		if system.nodes == 2 {
			var err error
			if nodes[1], err = catalogkit.NewInstance(f.Config); err != nil {
				t.Fatal(err)
			}
		}
		clients := map[string]func(context.Context){}
		if a != nil {
			clients["a"] = func(ctx context.Context) { end.a = answerOf(a(ctx, nodes[0])) }
		}
		if b != nil {
			clients["b"] = func(ctx context.Context) { end.b = answerOf(b(ctx, nodes[1])) }
		}
		store.fates = fates
		runSchedule(t, store, next, clients)
		if err := store.release(f.Ctx); err != nil {
			t.Error(err)
		}
		end.there = strings.Join(inventory(f, nodes[:]), " ")
		time.Sleep(max(directory.DroppingStale, commit.TransactionDeadline) + time.Second) // so unfinished work looks dead
		putBackAll(f, f.Instance, nil)
		if err := f.Recovery().RunOnce(f.Ctx); err != nil {
			t.Error(err)
		}
		f.WantClean()
		if !r.leaves {
			f.WantOnlyNamedFiles(files)
		}
	})
	return end
}

func answerOf(err error) string {
	switch err := err.(type) {
	case nil:
		return "done"
	case counted:
		return err.Error()
	}
	return moorage.KindOf(err).String()
}

// putBackAll undoes dead drops, as a create below parent and below each namespace in it would.
func putBackAll(f *catalogkit.Fixture, c *catalogkit.Instance, parent moorage.Namespace) {
	f.T.Helper()
	if _, err := c.Directory.LivePath(f.Ctx, catalogkit.Warehouse, parent); err != nil {
		f.T.Fatal(err)
	}
	children, _, err := c.ListNamespaces(f.Ctx, catalogkit.Warehouse, parent, moorage.Page{})
	if err != nil {
		f.T.Fatal(err)
	}
	for _, child := range children {
		putBackAll(f, c, child)
	}
}

// contents returns the objects of kind k that a node lists in a namespace, such as "ns:t" or
// "ns:view v". Each object must load.
func contents(f *catalogkit.Fixture, c *catalogkit.Instance, k *directory.Kind, ns moorage.Namespace) []string {
	f.T.Helper()
	list, prefix := c.ListTables, strings.Join(ns, "/")+":"
	load := func(ident moorage.Identifier) error { _, err := c.LoadTable(f.Ctx, ident); return err }
	if k == directory.View() {
		list, prefix = c.ListViews, prefix+"view "
		load = func(ident moorage.Identifier) error { _, err := c.LoadView(f.Ctx, ident); return err }
	}
	names, _, err := list(f.Ctx, catalogkit.Warehouse, ns, moorage.Page{})
	if err != nil {
		f.T.Fatal(err)
	}
	var there []string
	for _, name := range names {
		if err := load(moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: ns, Name: name}); err != nil {
			f.T.Errorf("%s is listed: %v", name, err)
		}
		there = append(there, prefix+name)
	}
	return there
}

// inventory returns the namespaces, tables and views listed by nodes. The names of tables and views
// contain a colon. Each of them must load.
func inventory(f *catalogkit.Fixture, nodes []*catalogkit.Instance) []string {
	f.T.Helper()
	var there []string
	var visit func(c *catalogkit.Instance, parent moorage.Namespace)
	visit = func(c *catalogkit.Instance, parent moorage.Namespace) {
		namespaces, _, err := c.ListNamespaces(f.Ctx, catalogkit.Warehouse, parent, moorage.Page{})
		if err != nil {
			f.T.Fatal(err)
		}
		for _, ns := range namespaces {
			there = append(there, strings.Join(ns, "/"))
			there = append(there, contents(f, c, directory.Table(), ns)...)
			there = append(there, contents(f, c, directory.View(), ns)...)
			visit(c, ns)
		}
	}
	for _, node := range nodes {
		visit(node, nil)
	}
	slices.Sort(there)
	return slices.Compact(there)
}
