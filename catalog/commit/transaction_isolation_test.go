package commit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/locks"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// newIsolation returns a fixture with the tables "a" and "b" and with locks that exclude nothing,
// so that only conditions isolate its transactions.
func newIsolation(t testing.TB, change ...func(*catalog.Config)) *catalogkit.Fixture {
	t.Helper()
	f := catalogkit.New(t, append(change, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })...)
	f.Create("a")
	f.Create("b")
	return f
}

// asEmpty returns two commits: one that requires main to have no snapshot, and one that adds a
// snapshot to main.
func asEmpty(f *catalogkit.Fixture, name string) (required, appended catalog.CommitRequest) {
	f.T.Helper()
	table, err := f.LoadTable(f.Ctx, ident(name))
	if err != nil {
		f.T.Fatal(err)
	}
	return catalogkit.CommitRequest(f.T, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`), catalogkit.AppendSnapshot(f.T, table, 1, 0, 1)
}

// Two transactions each write a table that the other requires to be unchanged. One of them is
// refused.
func TestNoWriteSkew(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := newIsolation(t, hook.OnCreate)
	requireA, writeA := asEmpty(f, "a")
	requireB, writeB := asEmpty(f, "b")
	hook.Once(func() { // the first transaction has checked everything, and writes its file
		if err := f.Transact(catalogkit.On("b", requireB), catalogkit.On("a", writeA)); err != nil {
			t.Error(err)
		}
	})
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", requireA), catalogkit.On("b", writeB)), moorage.KindCommitFailed)
	table, err := f.LoadTable(f.Ctx, ident("b"))
	if err != nil || table.Document.HasSnapshot(1) {
		t.Errorf("both were written: %v", err)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// If two transactions were built on the same versions, one of them is refused, no matter which
// table they share.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	for _, shared := range []string{"a", "b"} {
		t.Run(shared, func(t *testing.T) {
			t.Parallel()
			hook := &catalogkit.Hook{}
			f := newIsolation(t, hook.OnCreate)
			f.Create("c")
			_, writeShared := asEmpty(f, shared)
			_, writeOther := asEmpty(f, "c")
			_, writeA := asEmpty(f, "a")
			_, writeB := asEmpty(f, "b")
			hook.Once(func() {
				if err := f.Transact(catalogkit.On(shared, writeShared), catalogkit.On("c", writeOther)); err != nil {
					t.Error(err)
				}
			})
			second := catalog.CommitRequest{Requirements: writeShared.Requirements, Updates: catalogkit.SetProperty(t, "lost", "no").Updates}
			changes := []catalog.TableChange{catalogkit.On("a", writeA), catalogkit.On("b", writeB)}
			for i := range changes {
				if changes[i].Ident.Name == shared {
					changes[i].CommitRequest = second
				}
			}
			catalogkit.WantKind(t, f.Transact(changes...), moorage.KindCommitFailed)
			f.WantProperty(shared, "lost", "")
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// If a transaction's requirements hold after another commit, the transaction keeps that commit's
// change.
func TestTransactionKeepsOthersUpdates(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := newIsolation(t, hook.OnCreate)
	hook.Once(func() {
		if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "first", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "first", "1"))); err != nil {
			t.Error(err)
		}
	})
	if err := f.Transact(catalogkit.On("b", catalogkit.SetProperty(t, "second", "1")), catalogkit.On("a", catalogkit.SetProperty(t, "second", "1"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f.WantProperty(name, "first", "1")
		f.WantProperty(name, "second", "1")
	}
	f.WantClean()
}

// callStore calls before and after each Apply.
type callStore struct {
	registry.Store
	before, after func()
}

func (s *callStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.before()
	etags, err := s.Store.Apply(ctx, batch)
	s.after()
	return etags, err
}

// readAround reads the tables "a" and "b" in both orders between any two steps of a transaction
// that sets the property n. It returns the pairs of values, in the order of the reads.
func readAround(t *testing.T, changes func(f *catalogkit.Fixture) []catalog.TableChange) (seen [][2]string) {
	t.Helper()
	hook := &catalogkit.Hook{}
	store := &callStore{}
	f := newIsolation(t, hook.OnCreate, func(c *catalog.Config) {
		store.Store, store.before, store.after = c.Store, func() {}, func() {}
		c.Store = store
	})
	node, err := catalogkit.NewInstance(func() catalog.Config { c := f.Config; c.Store = store.Store; return c }())
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		table, err := node.LoadTable(f.Ctx, ident(name))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := table.Document.Property("n")
		return got
	}
	var mu sync.Mutex
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, [2]string{value("a"), value("b")}, [2]string{value("b"), value("a")})
	}
	request := changes(f)
	store.before, store.after = look, look
	var again func()
	again = func() { look(); hook.Once(again) }
	hook.Once(again)
	if err := f.Transact(request...); err != nil {
		t.Fatal(err)
	}
	hook.Once(nil)
	store.before, store.after = func() {}, func() {}
	look()
	if last := seen[len(seen)-1]; last != [2]string{"1", "1"} {
		t.Errorf("the transaction has happened, but a reader sees %q", last)
	}
	return seen
}

func setOnBoth(t *testing.T) func(*catalogkit.Fixture) []catalog.TableChange {
	return func(*catalogkit.Fixture) []catalog.TableChange {
		return []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))}
	}
}

// No part of a transaction is visible before all of it is committed.
func TestNoDirtyRead(t *testing.T) {
	t.Parallel()
	seen := readAround(t, setOnBoth(t))
	if len(seen) < 10 {
		t.Fatalf("looked %d times only", len(seen))
	}
	for i, values := range seen {
		if values[0] != values[1] {
			t.Errorf("look %d sees half of a transaction: %q", i, values)
		}
	}
}

// After a reader has seen a transaction in one table, it sees the transaction in all tables.
func TestNoFuzzyRead(t *testing.T) {
	t.Parallel()
	met := false
	for i, values := range readAround(t, setOnBoth(t)) {
		for _, value := range values {
			if met && value != "1" {
				t.Errorf("look %d does not see what was seen before: %q", i, values)
			}
			met = met || value == "1"
		}
	}
}

// While a transaction is in progress, another request creates a table that the transaction should
// create. The transaction does not replace that table, and changes nothing else. A transaction also
// fails if a namespace in which it creates a table is dropped in the meantime.
func TestNoPhantomCreate(t *testing.T) {
	t.Parallel()
	t.Run("table", func(t *testing.T) {
		t.Parallel()
		hook := &catalogkit.Hook{}
		f := newIsolation(t, hook.OnCreate)
		hook.Once(func() { f.Create("new") })
		err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/elsewhere")))
		catalogkit.WantKind(t, err, moorage.KindCommitFailed)
		f.WantProperty("a", "n", "")
		f.WantNoTransactions()
		f.WantClean()
	})
	t.Run("namespace", func(t *testing.T) {
		t.Parallel()
		hook := &catalogkit.Hook{}
		f := newIsolation(t, hook.OnCreate)
		inner := moorage.Namespace{"ns", "inner"}
		if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, inner, nil); err != nil {
			t.Fatal(err)
		}
		hook.Once(func() {
			if err := f.DropNamespace(f.Ctx, catalogkit.Warehouse, inner); err != nil {
				t.Error(err)
			}
		})
		made := catalog.TableChange{
			Ident:         moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: inner, Name: "new"},
			CommitRequest: catalogkit.CommitCreateRequest(t, "file:///wh/ns/inner/new"),
		}
		catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), made), moorage.KindNoSuchNamespace)
		f.WantProperty("a", "n", "")
		f.WantClean()
	})
}

// Many writers run transactions over pairs of tables. Each transaction moves a unit from one table
// to the other, so the sum over all tables must stay the same. Only conditions isolate the
// transactions.
func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	const tables, writers, rounds = 4, 8, 25
	f := catalogkit.New(t, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	for i := range tables {
		f.Create(fmt.Sprintf("t%d", i))
	}
	var group sync.WaitGroup
	done := make([]int, writers)
	for w := range writers {
		group.Go(func() {
			for r := range rounds {
				from, to := (w+r)%tables, (w+r*3+1)%tables
				if from == to {
					continue
				}
				err := transfer(f, t, fmt.Sprintf("t%d", from), fmt.Sprintf("t%d", to))
				switch {
				case err == nil:
					done[w]++
				case moorage.KindOf(err) != moorage.KindCommitFailed:
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	sum, all := 0, 0
	for i := range tables {
		sum += balance(f, t, fmt.Sprintf("t%d", i))
	}
	for _, n := range done {
		all += n
	}
	if sum != 0 || all == 0 {
		t.Errorf("%d transfers have left the sum %d", all, sum)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// transfer moves a unit between two tables, unless one of them changes in the meantime.
func transfer(f *catalogkit.Fixture, t testing.TB, from, to string) error {
	move := func(name string, by int) (catalog.TableChange, error) {
		table, err := f.LoadTable(f.Ctx, ident(name))
		if err != nil {
			return catalog.TableChange{}, err
		}
		n := 0
		if text, ok := table.Document.Property("n"); ok {
			if _, err := fmt.Sscan(text, &n); err != nil {
				return catalog.TableChange{}, err
			}
		}
		head, next := "null", int64(1)
		if id, ok := table.Document.CurrentSnapshotID(); ok {
			head, next = fmt.Sprint(id), id+1
		}
		parent := ""
		if head != "null" {
			parent = fmt.Sprintf(`"parent-snapshot-id":%s,`, head)
		}
		return catalogkit.On(name, catalogkit.CommitRequest(t, fmt.Sprintf(`[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}]`, head),
			fmt.Sprintf(`[{"action":"set-properties","updates":{"n":"%d"}},
				{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s/metadata/%d.avro","summary":{"operation":"append"},"schema-id":0}},
				{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
				n+by, next, parent, next, f.Clock.Now().UnixMilli(), table.Document.Location(), next, next))), nil
	}
	out, err := move(from, -1)
	if err != nil {
		return err
	}
	in, err := move(to, 1)
	if err != nil {
		return err
	}
	return f.Transact(out, in)
}

func balance(f *catalogkit.Fixture, t testing.TB, name string) int {
	table, err := f.LoadTable(f.Ctx, ident(name))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if text, ok := table.Document.Property("n"); ok {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
