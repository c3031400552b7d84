package catalog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/locks"
	"moorage/registry"
)

// newIsolation returns a fixture with the tables "a" and "b" whose locks protect nothing, so that
// only conditions keep its transactions apart.
func newIsolation(t testing.TB, change ...func(*catalog.Config)) *fixture {
	t.Helper()
	f := newFixture(t, append(change, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })...)
	f.create("a")
	f.create("b")
	return f
}

// asEmpty returns a commit that requires main to have no snapshot, and one that gives it one.
func (f *fixture) asEmpty(name string) (required, appended catalog.CommitRequest) {
	f.t.Helper()
	table, err := f.LoadTable(f.ctx, ident(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return commitRequest(f.t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`), appendSnapshot(f.t, table, 1, 0, 1)
}

// Two transactions each write what the other requires to be unwritten: one of them is refused.
func TestNoWriteSkew(t *testing.T) {
	t.Parallel()
	hook := &hook{}
	f := newIsolation(t, hook.onCreate)
	requireA, writeA := f.asEmpty("a")
	requireB, writeB := f.asEmpty("b")
	hook.once(func() { // the first has checked everything, and writes its file
		if err := f.transact(on("b", requireB), on("a", writeA)); err != nil {
			t.Error(err)
		}
	})
	wantKind(t, f.transact(on("a", requireA), on("b", writeB)), moorage.KindCommitFailed)
	table, err := f.LoadTable(f.ctx, ident("b"))
	if err != nil || table.Document.HasSnapshot(1) {
		t.Errorf("both were written: %v", err)
	}
	f.wantNoTransactions()
	f.wantClean()
}

// Two transactions were built on the same versions. One of them is refused, no matter which table
// they share.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	for _, shared := range []string{"a", "b"} {
		t.Run(shared, func(t *testing.T) {
			t.Parallel()
			hook := &hook{}
			f := newIsolation(t, hook.onCreate)
			f.create("c")
			_, writeShared := f.asEmpty(shared)
			_, writeOther := f.asEmpty("c")
			_, writeA := f.asEmpty("a")
			_, writeB := f.asEmpty("b")
			hook.once(func() {
				if err := f.transact(on(shared, writeShared), on("c", writeOther)); err != nil {
					t.Error(err)
				}
			})
			second := catalog.CommitRequest{Requirements: writeShared.Requirements, Updates: setProperty(t, "lost", "no").Updates}
			changes := []catalog.TableChange{on("a", writeA), on("b", writeB)}
			for i := range changes {
				if changes[i].Ident.Name == shared {
					changes[i].CommitRequest = second
				}
			}
			wantKind(t, f.transact(changes...), moorage.KindCommitFailed)
			f.wantProperty(shared, "lost", "")
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}

// A transaction whose requirements hold on what another commit made keeps that commit's change.
func TestTransactionKeepsOthersUpdates(t *testing.T) {
	t.Parallel()
	hook := &hook{}
	f := newIsolation(t, hook.onCreate)
	hook.once(func() {
		if err := f.transact(on("a", setProperty(t, "first", "1")), on("b", setProperty(t, "first", "1"))); err != nil {
			t.Error(err)
		}
	})
	if err := f.transact(on("b", setProperty(t, "second", "1")), on("a", setProperty(t, "second", "1"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f.wantProperty(name, "first", "1")
		f.wantProperty(name, "second", "1")
	}
	f.wantClean()
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

// readAround looks at the tables "a" and "b" in both orders between any two steps of a transaction
// that sets the property n. It returns the values seen, the first table's first.
func readAround(t *testing.T, changes func(f *fixture) []catalog.TableChange) (seen [][2]string) {
	t.Helper()
	hook := &hook{}
	store := &callStore{}
	f := newIsolation(t, hook.onCreate, func(c *catalog.Config) {
		store.Store, store.before, store.after = c.Store, func() {}, func() {}
		c.Store = store
	})
	node, err := newInstance(func() catalog.Config { c := f.config; c.Store = store.Store; return c }())
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		table, err := node.LoadTable(f.ctx, ident(name))
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
	again = func() { look(); hook.once(again) }
	hook.once(again)
	if err := f.transact(request...); err != nil {
		t.Fatal(err)
	}
	hook.once(nil)
	store.before, store.after = func() {}, func() {}
	look()
	if last := seen[len(seen)-1]; last != [2]string{"1", "1"} {
		t.Errorf("the transaction has happened, but a reader sees %q", last)
	}
	return seen
}

func setOnBoth(t *testing.T) func(*fixture) []catalog.TableChange {
	return func(*fixture) []catalog.TableChange {
		return []catalog.TableChange{on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))}
	}
}

// Nothing of a transaction is seen before all of it is true.
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

// Who has seen a transaction in one table sees it in all tables from then on.
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

// A table that a transaction is to create appears while it works. The transaction does not replace
// it, and changes nothing else. A transaction also fails if a namespace in which it makes a table
// goes meanwhile.
func TestNoPhantomCreate(t *testing.T) {
	t.Parallel()
	t.Run("table", func(t *testing.T) {
		t.Parallel()
		hook := &hook{}
		f := newIsolation(t, hook.onCreate)
		hook.once(func() { f.create("new") })
		err := f.transact(on("a", setProperty(t, "n", "1")), on("new", commitCreateRequest(t, "file:///wh/ns/elsewhere")))
		wantKind(t, err, moorage.KindCommitFailed)
		f.wantProperty("a", "n", "")
		f.wantNoTransactions()
		f.wantClean()
	})
	t.Run("namespace", func(t *testing.T) {
		t.Parallel()
		hook := &hook{}
		f := newIsolation(t, hook.onCreate)
		inner := moorage.Namespace{"ns", "inner"}
		if _, err := f.CreateNamespace(f.ctx, testWarehouse, inner, nil); err != nil {
			t.Fatal(err)
		}
		hook.once(func() {
			if err := f.DropNamespace(f.ctx, testWarehouse, inner); err != nil {
				t.Error(err)
			}
		})
		made := catalog.TableChange{moorage.Identifier{Warehouse: testWarehouse, Namespace: inner, Name: "new"}, commitCreateRequest(t, "file:///wh/ns/inner/new")}
		wantKind(t, f.transact(on("a", setProperty(t, "n", "1")), made), moorage.KindNoSuchNamespace)
		f.wantProperty("a", "n", "")
		f.wantClean()
	})
}

// Transactions of many writers over pairs of tables keep the sum over all tables. Each transaction
// moves a unit from one table to the other. Only conditions keep them apart.
func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	const tables, writers, rounds = 4, 8, 25
	f := newFixture(t, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	for i := range tables {
		f.create(fmt.Sprintf("t%d", i))
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
				err := f.transfer(t, fmt.Sprintf("t%d", from), fmt.Sprintf("t%d", to))
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
		sum += f.balance(t, fmt.Sprintf("t%d", i))
	}
	for _, n := range done {
		all += n
	}
	if sum != 0 || all == 0 {
		t.Errorf("%d transfers have left the sum %d", all, sum)
	}
	f.wantNoTransactions()
	f.wantClean()
}

// transfer moves a unit between two tables, if nobody changes either meanwhile.
func (f *fixture) transfer(t testing.TB, from, to string) error {
	move := func(name string, by int) (catalog.TableChange, error) {
		table, err := f.LoadTable(f.ctx, ident(name))
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
		return on(name, commitRequest(t, fmt.Sprintf(`[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}]`, head),
			fmt.Sprintf(`[{"action":"set-properties","updates":{"n":"%d"}},
				{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s/metadata/%d.avro","summary":{"operation":"append"},"schema-id":0}},
				{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
				n+by, next, parent, next, f.clock.Now().UnixMilli(), table.Document.Location(), next, next))), nil
	}
	out, err := move(from, -1)
	if err != nil {
		return err
	}
	in, err := move(to, 1)
	if err != nil {
		return err
	}
	return f.transact(out, in)
}

func (f *fixture) balance(t testing.TB, name string) int {
	table, err := f.LoadTable(f.ctx, ident(name))
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
