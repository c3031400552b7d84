package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/registry"
	"moorage/txlog"
)

// on returns the change of a transaction that request is to the table called name.
func on(name string, request catalog.CommitRequest) catalog.TableChange {
	return catalog.TableChange{Ident: ident(name), CommitRequest: request}
}

func (f *fixture) transact(changes ...catalog.TableChange) error {
	return f.CommitTransaction(f.ctx, testWarehouse, changes)
}

// wantProperty fails the test unless the table has the property with that value. An empty want
// means that it must not have it.
func (f *fixture) wantProperty(name, key, want string) {
	f.t.Helper()
	table, err := f.LoadTable(f.ctx, ident(name))
	if err != nil {
		f.t.Fatal(err)
	}
	if got, _ := table.Document.Property(key); got != want {
		f.t.Errorf("property %s of %s is %q, want %q", key, name, got, want)
	}
}

// wantNoTransactions fails the test if the log holds any.
func (f *fixture) wantNoTransactions() {
	f.t.Helper()
	entries, err := f.transactions.Unfinished(f.ctx, registry.ID{}, 10)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, entry := range entries {
		f.t.Errorf("transaction %s is left over, %s", entry.ID, entry.State)
	}
}

// Changes of one table stay together, however many of others stand between them.
func TestTransactionChangesTablesByTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tables := []string{"a", "b", "c"}
	var changes []catalog.TableChange
	for round := range 3 {
		for _, table := range tables {
			if round == 0 {
				f.create(table)
			}
			changes = append(changes, on(table, setProperty(t, fmt.Sprint("n", round), table)))
		}
	}
	if err := f.transact(changes...); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for _, table := range tables {
			f.wantProperty(table, fmt.Sprint("n", round), table)
		}
	}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("a")
	b := f.create("b")
	f.create("c")
	err := f.transact(
		on("a", setProperty(t, "n", "1")),
		on("b", appendSnapshot(t, b, 1, 0, 1)),
		on("new", commitCreateRequest(t, "file:///wh/ns/new")),
		on("c", commitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)),
	)
	if err != nil {
		t.Fatal(err)
	}
	f.wantProperty("a", "n", "1")
	table, err := f.LoadTable(f.ctx, ident("b"))
	if err != nil || !table.Document.HasSnapshot(1) {
		t.Errorf("the append did not happen: %v", err)
	}
	if err := f.TableExists(f.ctx, ident("new")); err != nil {
		t.Error(err)
	}
	changes, err := f.store.Changes(f.ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	last := changes[len(changes)-1].Change
	if last.Operation != string(gate.Transaction) || len(last.Versions) != 4 { // three pointers and an entry
		t.Errorf("the change is %s with %d versions", last.Operation, len(last.Versions))
	}
	f.wantNoTransactions()
	f.wantClean()
}

// What is refused changes nothing, on no table, and leaves no file and no record.
func TestTransactionRefused(t *testing.T) {
	t.Parallel()
	holds := commitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[{"action":"set-properties","updates":{"n":"1"}}]`)
	fails := commitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
	many := make([]catalog.TableChange, catalog.TransactionChangesMax+1)
	for i := range many {
		many[i] = on(fmt.Sprintf("t%d", i), holds)
	}
	inWarehouse := on("a", holds)
	inWarehouse.Ident.Warehouse = "other"
	rows := []struct {
		name    string
		changes []catalog.TableChange
		kind    moorage.Kind
		text    string // in the message
	}{
		{"nothing", nil, moorage.KindBadRequest, "no table changes"},
		{"too many", many, moorage.KindBadRequest, "at most 256"},
		{"another warehouse", []catalog.TableChange{on("b", holds), inWarehouse}, moorage.KindBadRequest, "not in the warehouse"},
		{"no such table", []catalog.TableChange{on("a", holds), on("missing", holds)}, moorage.KindNoSuchTable, "missing"},
		{"no such namespace", []catalog.TableChange{on("a", holds), {moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{"x"}, Name: "a"}, holds}}, moorage.KindNoSuchTable, "x.a"},
		{"a requirement of the last", []catalog.TableChange{on("a", holds), on("b", fails)}, moorage.KindCommitFailed, "ns.b"},
		{"an update of the last", []catalog.TableChange{on("a", holds), on("b", commitRequest(t, `[]`, `[{"action":"set-current-schema","schema-id":9}]`))}, moorage.KindIllegalArgument, "ns.b"},
		{"the second of two changes of one table", []catalog.TableChange{on("a", holds), on("b", holds), on("b", fails)}, moorage.KindCommitFailed, "ns.b"},
		{"create of what is there", []catalog.TableChange{on("b", holds), on("a", commitCreateRequest(t, "file:///wh/ns/new"))}, moorage.KindCommitFailed, "already exists"},
		{"create twice", []catalog.TableChange{on("b", holds), on("x", commitCreateRequest(t, "file:///wh/ns/x")), on("x", commitCreateRequest(t, "file:///wh/ns/x"))}, moorage.KindCommitFailed, "already exists"},
		{"create two at one place", []catalog.TableChange{on("x", commitCreateRequest(t, "file:///wh/ns/x")), on("y", createWithUUID(t, "file:///wh/ns/x", 2))}, moorage.KindBadRequest, "lies within that of another table of the transaction"},
		{"create one within the other", []catalog.TableChange{on("x", commitCreateRequest(t, "file:///wh/ns/x")), on("y", createWithUUID(t, "file:///wh/ns/x/y", 2))}, moorage.KindBadRequest, "lies within that of another table of the transaction"},
		{"create two with one uuid", []catalog.TableChange{on("x", commitCreateRequest(t, "file:///wh/ns/x")), on("y", commitCreateRequest(t, "file:///wh/ns/y"))}, moorage.KindAlreadyExists, "UUID"},
		{"create where a table lives", []catalog.TableChange{on("b", holds), on("x", commitCreateRequest(t, "file:///wh/ns/a"))}, moorage.KindBadRequest, "another table"},
		{"one table only, refused", []catalog.TableChange{on("a", fails)}, moorage.KindCommitFailed, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			files := &fileCount{there: map[string]bool{}}
			f := newFixture(t, countFiles(files))
			f.create("a")
			f.create("b")
			before := len(files.there)
			err := f.transact(row.changes...)
			wantKind(t, err, row.kind)
			if text := moorage.MessageOf(err); !strings.Contains(text, row.text) {
				t.Errorf("message %q, want %q in it", text, row.text)
			}
			for _, name := range []string{"a", "b"} {
				f.wantProperty(name, "n", "")
			}
			for _, name := range []string{"x", "y"} {
				wantKind(t, f.TableExists(f.ctx, ident(name)), moorage.KindNoSuchTable)
			}
			if len(files.there) != before {
				t.Errorf("%d files before, %d after", before, len(files.there))
			}
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}

// Changes of one table are applied in their order, as one version.
func TestTransactionOfOneTableTwice(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprintf("others %t", others), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a := f.create("a")
			f.create("b")
			changes := []catalog.TableChange{on("a", appendSnapshot(t, a, 1, 0, 1)), on("a", appendSnapshot(t, a, 2, 1, 2))}
			if others {
				changes = append(changes, on("b", setProperty(t, "n", "1")))
			}
			if err := f.transact(changes...); err != nil {
				t.Fatal(err)
			}
			table, err := f.LoadTable(f.ctx, ident("a"))
			if err != nil {
				t.Fatal(err)
			}
			if current, _ := table.Document.CurrentSnapshotID(); current != 2 || len(table.Document.MetadataLog()) != 1 {
				t.Errorf("current snapshot %d, %d versions before it", current, len(table.Document.MetadataLog()))
			}
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}

// A transaction of one table is a commit: no lock, no record.
func TestTransactionOfOneTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("a")
	f.locks.Reset()
	if err := f.transact(on("a", setProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	if err := f.transact(on("new", commitCreateRequest(t, "file:///wh/ns/new"))); err != nil {
		t.Fatal(err)
	}
	for _, call := range f.locks.Calls() {
		for _, name := range call.Named() {
			if strings.Contains(name, "@") {
				t.Errorf("took %s", name)
			}
		}
	}
	f.wantProperty("a", "n", "1")
	f.wantClean()
}

// The answer of an append to several tables was lost. A retry is answered that it happened.
func TestTransactionReplayWithoutKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.create("a"), f.create("b")
	f.create("c")
	changes := []catalog.TableChange{on("a", appendSnapshot(t, a, 1, 0, 1)), on("b", appendSnapshot(t, b, 1, 0, 1)),
		on("c", commitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`))}
	if err := f.transact(changes...); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(f.ctx, ident("a"), appendSnapshot(t, a, 2, 1, 2)); err != nil {
		t.Fatal(err)
	}
	if err := f.transact(changes...); err != nil {
		t.Errorf("the replay of what happened: %v", err)
	}
	_, err := f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
		return reply{}, c.CommitTransaction(ctx, testWarehouse, changes)
	})
	if err != nil {
		t.Errorf("the replay of what happened, under a key that the first one did not have: %v", err)
	}
	// One of them has not happened.
	wantKind(t, f.transact(changes[0], on("b", appendSnapshot(t, b, 3, 1, 2))), moorage.KindCommitFailed)
	f.wantClean()
}

// Files of a try that lost to another commit are recorded before they are written, and deleted
// after.
func TestTransactionBuiltAnew(t *testing.T) {
	t.Parallel()
	files := &fileCount{there: map[string]bool{}}
	hook := &hook{}
	f := newFixture(t, hook.onCreate, countFiles(files))
	f.create("a")
	f.create("b")
	before := len(files.there)
	hook.once(func() {
		if _, err := f.Commit(f.ctx, ident("a"), setProperty(t, "other", "1")); err != nil {
			t.Error(err)
		}
	})
	if err := f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f.wantProperty(name, "n", "1")
	}
	f.wantProperty("a", "other", "1")
	if got := len(files.there); got != before+3 {
		t.Errorf("%d files before, %d after; want the three that were published", before, got)
	}
	f.wantNoTransactions()
	f.wantClean()
}

// A coordinator that was taken for dead and aborted cannot go on. The files that it writes then
// stay: their names are so old that others may have registered them.
func TestTransactionAbortedByOthers(t *testing.T) {
	t.Parallel()
	files := &fileCount{there: map[string]bool{}}
	hook := &hook{}
	f := newFixture(t, hook.onCreate, countFiles(files))
	f.create("a")
	f.create("b")
	before := len(files.there)
	hook.once(func() { // it pauses for long between its record and its files
		f.clock.Advance(commit.TransactionDeadline + txlog.LockPatience + 1)
		if err := f.recovery().RunOnce(f.ctx); err != nil {
			t.Error(err)
		}
	})
	wantKind(t, f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))), moorage.KindUnavailable)
	for _, name := range []string{"a", "b"} {
		f.wantProperty(name, "n", "")
	}
	if got := len(files.there); got > before+2 { // the second is not written if the first has failed by then
		t.Errorf("%d files before, %d after, want two that came late at most", before, got)
	}
	f.wantNoTransactions()
	f.wantClean()
}

// One transaction works on a table. Another one of that table is refused at once, with nothing
// held, and one that may wait gets through.
func TestTransactionMeetsLock(t *testing.T) {
	t.Parallel()
	hook := &hook{}
	f := newFixture(t, hook.onCreate)
	for _, name := range []string{"a", "b", "c"} {
		f.create(name)
	}
	hook.once(func() {
		err := f.transact(on("c", setProperty(t, "m", "1")), on("b", setProperty(t, "m", "1")))
		wantKind(t, err, moorage.KindCommitFailed)
		if message := moorage.MessageOf(err); !strings.Contains(message, "the table "+ident("b").String()+";") {
			t.Errorf("it does not say which table is held: %q", message)
		}
		if err := f.transact(on("c", setProperty(t, "alone", "1"))); err != nil {
			t.Errorf("a table that nobody works on: %v", err)
		}
	})
	if err := f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	f.wantProperty("b", "m", "")
	if err := f.transact(on("b", setProperty(t, "m", "1")), on("c", setProperty(t, "m", "1"))); err != nil {
		t.Errorf("what was refused holds a lock: %v", err)
	}
	f.wantClean()
}

// Where all of the warehouse is held no table is named.
func TestTransactionMeetsLockOfAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("a")
	f.create("b")
	hold, err := f.locks.Acquire(f.ctx, locks.Request{Writes: []locks.Path{locks.Warehouse(testWarehouse)}}, locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	err = f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1")))
	wantKind(t, err, moorage.KindCommitFailed)
	if message := moorage.MessageOf(err); !strings.Contains(message, "one of the tables") {
		t.Errorf("the client is answered %q", message)
	}
}

// A transaction that may wait for a lock gets it when it is released, and changes nothing when it
// is not.
func TestTransactionWaitsForLock(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{true, false} {
		t.Run(fmt.Sprintf("released %t", released), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(c *catalog.Config) { c.Now, c.TransactionWait = time.Now, time.Minute })
				f.create("a")
				b := f.create("b")
				hold, err := f.locks.Acquire(f.ctx, pointerLocks(b.PointerID()), locks.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer hold.Release()
				began := time.Now()
				if released {
					time.AfterFunc(catalog.TransactionWaitMax-time.Second, hold.Release)
				}
				err = f.transact(on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1")))
				switch waited := time.Since(began); {
				case released && err != nil:
					t.Errorf("after %s: %v", waited, err)
				case !released && moorage.KindOf(err) != moorage.KindCommitFailed:
					t.Errorf("the lock was never free: %v", err)
				case !released && (waited < catalog.TransactionWaitMax || waited > catalog.TransactionWaitMax+time.Second):
					t.Errorf("waited %s, which is bounded by %s", waited, catalog.TransactionWaitMax)
				}
				f.wantNoTransactions()
				f.wantClean()
			})
		})
	}
}

// A client that goes away in the middle of a transaction tears nothing, and leaves no lock.
func TestTransactionOfGoneClient(t *testing.T) {
	t.Parallel()
	hook := &hook{}
	f := newFixture(t, hook.onCreate)
	f.create("a")
	f.create("b")
	ctx, cancel := context.WithCancel(f.ctx)
	hook.once(cancel)
	changes := []catalog.TableChange{on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "n", "1"))}
	if err := f.CommitTransaction(ctx, testWarehouse, changes); err != nil {
		t.Errorf("answered %v", err)
	}
	for _, name := range []string{"a", "b"} {
		f.wantProperty(name, "n", "1")
	}
	if err := f.transact(on("a", setProperty(t, "n", "2")), on("b", setProperty(t, "n", "2"))); err != nil {
		t.Errorf("a lock was left: %v", err)
	}
	f.wantNoTransactions()
	f.wantClean()
}

// The largest transaction there may be fits into one Apply of each store, whatever it asks for.
func TestLargestTransaction(t *testing.T) {
	t.Parallel()
	for name, open := range anyStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *catalog.Config) { c.Store = clockedStore{open(t, newLockedRandom(1)), c.Now} })
			creates, changes := make([]catalog.TableChange, catalog.TransactionChangesMax), make([]catalog.TableChange, catalog.TransactionChangesMax)
			for i := range creates {
				name := fmt.Sprintf("t%03d", i)
				creates[i] = on(name, createWithUUID(t, fmt.Sprintf("file:///wh/%03d/ns/deep/%s", i, name), i+1))
				changes[i] = on(name, setProperty(t, "n", "1"))
			}
			if err := f.transact(creates...); err != nil {
				t.Fatal(err)
			}
			if err := f.transact(changes...); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"t000", "t255"} {
				f.wantProperty(name, "n", "1")
			}
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}

// Tables whose metadata is too large together are refused, however many of them there are, and left
// as they are.
func TestTransactionTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bounded := func(bytes int64) *instance {
		config := f.config
		config.TransactionBytes = bytes
		node, err := newInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	var changes []catalog.TableChange
	var bytes int64
	for i := range 2 * commit.FilesAtOnce {
		name := fmt.Sprintf("t%d", i)
		bytes += int64(len(f.create(name).Document.Raw()))
		changes = append(changes, on(name, setProperty(t, "n", "1")))
	}
	wantKind(t, bounded(bytes-1).CommitTransaction(f.ctx, testWarehouse, changes), moorage.KindTooLarge)
	f.wantProperty("t0", "n", "")
	if err := bounded(bytes).CommitTransaction(f.ctx, testWarehouse, changes); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	f.wantProperty("t0", "n", "1")
	f.wantNoTransactions()
	f.wantClean()
}

// A table that wants its metadata where the warehouse does not reach is refused. Nothing of the
// transaction is left: neither files of other tables nor a record that nobody could ever clear
// away.
func TestTransactionOutside(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"file:///elsewhere", "s3://bucket/wh", "no location", "file:///wh/../elsewhere"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			files := &fileCount{there: map[string]bool{}}
			f := newFixture(t, countFiles(files))
			f.create("a")
			f.create("b")
			before := len(files.there)
			changes := []catalog.TableChange{on("a", setProperty(t, "n", "1")), on("b", setProperty(t, "write.metadata.path", folder))}
			err := f.transact(changes...)
			wantKind(t, err, moorage.KindBadRequest)
			if text := moorage.MessageOf(err); !strings.Contains(text, "(table "+ident("b").String()+")") {
				t.Errorf("it does not say which table: %s", text)
			}
			if len(files.there) != before {
				t.Errorf("%d files before, %d after", before, len(files.there))
			}
			f.wantProperty("a", "n", "")
			f.wantNoTransactions()
			f.wantClean()
		})
	}
}
