package commit_test

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
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// Changes of one table are grouped, however many changes of other tables come between them.
func TestTransactionChangesTablesByTurns(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	tables := []string{"a", "b", "c"}
	var changes []catalog.TableChange
	for round := range 3 {
		for _, table := range tables {
			if round == 0 {
				f.Create(table)
			}
			changes = append(changes, catalogkit.On(table, catalogkit.SetProperty(t, fmt.Sprint("n", round), table)))
		}
	}
	if err := f.Transact(changes...); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for _, table := range tables {
			f.WantProperty(table, fmt.Sprint("n", round), table)
		}
	}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	b := f.Create("b")
	f.Create("c")
	err := f.Transact(
		catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")),
		catalogkit.On("b", catalogkit.AppendSnapshot(t, b, 1, 0, 1)),
		catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new")),
		catalogkit.On("c", catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)),
	)
	if err != nil {
		t.Fatal(err)
	}
	f.WantProperty("a", "n", "1")
	table, err := f.LoadTable(f.Ctx, ident("b"))
	if err != nil || !table.Document.HasSnapshot(1) {
		t.Errorf("the append did not happen: %v", err)
	}
	if err := f.TableExists(f.Ctx, ident("new")); err != nil {
		t.Error(err)
	}
	changes, err := f.Store.Changes(f.Ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	last := changes[len(changes)-1].Change
	if last.Operation != string(gate.Transaction) || len(last.Versions) != 4 { // three pointers and an entry
		t.Errorf("the change is %s with %d versions", last.Operation, len(last.Versions))
	}
	f.WantNoTransactions()
	f.WantClean()
}

// A refused transaction changes no table, and leaves no file and no record.
func TestTransactionRefused(t *testing.T) {
	t.Parallel()
	holds := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[{"action":"set-properties","updates":{"n":"1"}}]`)
	fails := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
	many := make([]catalog.TableChange, catalog.TransactionChangesMax+1)
	for i := range many {
		many[i] = catalogkit.On(fmt.Sprintf("t%d", i), holds)
	}
	inWarehouse := catalogkit.On("a", holds)
	inWarehouse.Ident.Warehouse = "other"
	rows := []struct {
		name    string
		changes []catalog.TableChange
		kind    moorage.Kind
		text    string // part of the message
	}{
		{"nothing", nil, moorage.KindBadRequest, "no table changes"},
		{"too many", many, moorage.KindBadRequest, "at most 256"},
		{"another warehouse", []catalog.TableChange{catalogkit.On("b", holds), inWarehouse}, moorage.KindBadRequest, "not in the warehouse"},
		{"no such table", []catalog.TableChange{catalogkit.On("a", holds), catalogkit.On("missing", holds)}, moorage.KindNoSuchTable, "missing"},
		{"no such namespace", []catalog.TableChange{catalogkit.On("a", holds), {Ident: moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"x"}, Name: "a"}, CommitRequest: holds}}, moorage.KindNoSuchTable, "x.a"},
		{"a requirement of the last", []catalog.TableChange{catalogkit.On("a", holds), catalogkit.On("b", fails)}, moorage.KindCommitFailed, "ns.b"},
		{"an update of the last", []catalog.TableChange{catalogkit.On("a", holds), catalogkit.On("b", catalogkit.CommitRequest(t, `[]`, `[{"action":"set-current-schema","schema-id":9}]`))}, moorage.KindIllegalArgument, "ns.b"},
		{"the second of two changes of one table", []catalog.TableChange{catalogkit.On("a", holds), catalogkit.On("b", holds), catalogkit.On("b", fails)}, moorage.KindCommitFailed, "ns.b"},
		{"create of what is there", []catalog.TableChange{catalogkit.On("b", holds), catalogkit.On("a", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))}, moorage.KindCommitFailed, "already exists"},
		{"create twice", []catalog.TableChange{catalogkit.On("b", holds), catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/x")), catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/x"))}, moorage.KindCommitFailed, "already exists"},
		{"create two at one place", []catalog.TableChange{catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/x")), catalogkit.On("y", catalogkit.CreateWithUUID(t, "file:///wh/ns/x", 2))}, moorage.KindBadRequest, "lies within that of another table of the transaction"},
		{"create one within the other", []catalog.TableChange{catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/x")), catalogkit.On("y", catalogkit.CreateWithUUID(t, "file:///wh/ns/x/y", 2))}, moorage.KindBadRequest, "lies within that of another table of the transaction"},
		{"create two with one uuid", []catalog.TableChange{catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/x")), catalogkit.On("y", catalogkit.CommitCreateRequest(t, "file:///wh/ns/y"))}, moorage.KindAlreadyExists, "UUID"},
		{"create where a table lives", []catalog.TableChange{catalogkit.On("b", holds), catalogkit.On("x", catalogkit.CommitCreateRequest(t, "file:///wh/ns/a"))}, moorage.KindBadRequest, "another table"},
		{"one table only, refused", []catalog.TableChange{catalogkit.On("a", fails)}, moorage.KindCommitFailed, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			files := &catalogkit.FileCount{There: map[string]bool{}}
			f := catalogkit.New(t, catalogkit.CountFiles(files))
			f.Create("a")
			f.Create("b")
			before := len(files.There)
			err := f.Transact(row.changes...)
			catalogkit.WantKind(t, err, row.kind)
			if text := moorage.MessageOf(err); !strings.Contains(text, row.text) {
				t.Errorf("message %q, want %q in it", text, row.text)
			}
			for _, name := range []string{"a", "b"} {
				f.WantProperty(name, "n", "")
			}
			for _, name := range []string{"x", "y"} {
				catalogkit.WantKind(t, f.TableExists(f.Ctx, ident(name)), moorage.KindNoSuchTable)
			}
			if len(files.There) != before {
				t.Errorf("%d files before, %d after", before, len(files.There))
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// Changes of one table are applied in their order, as one version.
func TestTransactionOfOneTableTwice(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprintf("others %t", others), func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			a := f.Create("a")
			f.Create("b")
			changes := []catalog.TableChange{catalogkit.On("a", catalogkit.AppendSnapshot(t, a, 1, 0, 1)), catalogkit.On("a", catalogkit.AppendSnapshot(t, a, 2, 1, 2))}
			if others {
				changes = append(changes, catalogkit.On("b", catalogkit.SetProperty(t, "n", "1")))
			}
			if err := f.Transact(changes...); err != nil {
				t.Fatal(err)
			}
			table, err := f.LoadTable(f.Ctx, ident("a"))
			if err != nil {
				t.Fatal(err)
			}
			if current, _ := table.Document.CurrentSnapshotID(); current != 2 || len(table.Document.MetadataLog()) != 1 {
				t.Errorf("current snapshot %d, %d versions before it", current, len(table.Document.MetadataLog()))
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// A transaction of one table is a commit: no lock, no record.
func TestTransactionOfOneTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Locks.Reset()
	if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	if err := f.Transact(catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))); err != nil {
		t.Fatal(err)
	}
	for _, call := range f.Locks.Calls() {
		for _, name := range call.Named() {
			if strings.Contains(name, "@") {
				t.Errorf("took %s", name)
			}
		}
	}
	f.WantProperty("a", "n", "1")
	f.WantClean()
}

// The answer of an append to several tables was lost. A retry is answered with success.
func TestTransactionReplayWithoutKey(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	a, b := f.Create("a"), f.Create("b")
	f.Create("c")
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.AppendSnapshot(t, a, 1, 0, 1)), catalogkit.On("b", catalogkit.AppendSnapshot(t, b, 1, 0, 1)),
		catalogkit.On("c", catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`))}
	if err := f.Transact(changes...); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(f.Ctx, ident("a"), catalogkit.AppendSnapshot(t, a, 2, 1, 2)); err != nil {
		t.Fatal(err)
	}
	if err := f.Transact(changes...); err != nil {
		t.Errorf("the replay of what happened: %v", err)
	}
	_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, changes)
	})
	if err != nil {
		t.Errorf("the replay of what happened, under a key that the first one did not have: %v", err)
	}
	// One of them has not happened.
	catalogkit.WantKind(t, f.Transact(changes[0], catalogkit.On("b", catalogkit.AppendSnapshot(t, b, 3, 1, 2))), moorage.KindCommitFailed)
	f.WantClean()
}

// The files of a try that loses to another commit are recorded before they are written, and deleted
// afterwards.
func TestTransactionBuiltAnew(t *testing.T) {
	t.Parallel()
	files := &catalogkit.FileCount{There: map[string]bool{}}
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnCreate, catalogkit.CountFiles(files))
	f.Create("a")
	f.Create("b")
	before := len(files.There)
	hook.Once(func() {
		if _, err := f.Commit(f.Ctx, ident("a"), catalogkit.SetProperty(t, "other", "1")); err != nil {
			t.Error(err)
		}
	})
	if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		f.WantProperty(name, "n", "1")
	}
	f.WantProperty("a", "other", "1")
	if got := len(files.There); got != before+3 {
		t.Errorf("%d files before, %d after; want the three that were published", before, got)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// A coordinator that was taken for dead and aborted cannot continue. The files that it then writes
// stay: their names are so old that other clients may have registered them.
func TestTransactionAbortedByOthers(t *testing.T) {
	t.Parallel()
	files := &catalogkit.FileCount{There: map[string]bool{}}
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnCreate, catalogkit.CountFiles(files))
	f.Create("a")
	f.Create("b")
	before := len(files.There)
	hook.Once(func() { // it pauses for a long time between its record and its files
		f.Clock.Advance(commit.TransactionDeadline + txlog.LockPatience + 1)
		if err := f.Recovery().RunOnce(f.Ctx); err != nil {
			t.Error(err)
		}
	})
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))), moorage.KindUnavailable)
	for _, name := range []string{"a", "b"} {
		f.WantProperty(name, "n", "")
	}
	if got := len(files.There); got > before+2 { // the second is not written if the first has already failed
		t.Errorf("%d files before, %d after, want two that came late at most", before, got)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// While one transaction works on a table, another transaction on that table is refused at once and
// holds no lock. A transaction that may wait succeeds.
func TestTransactionMeetsLock(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnCreate)
	for _, name := range []string{"a", "b", "c"} {
		f.Create(name)
	}
	hook.Once(func() {
		err := f.Transact(catalogkit.On("c", catalogkit.SetProperty(t, "m", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "m", "1")))
		catalogkit.WantKind(t, err, moorage.KindCommitFailed)
		if message := moorage.MessageOf(err); !strings.Contains(message, "the table "+ident("b").String()+";") {
			t.Errorf("it does not say which table is held: %q", message)
		}
		if err := f.Transact(catalogkit.On("c", catalogkit.SetProperty(t, "alone", "1"))); err != nil {
			t.Errorf("a table that nobody works on: %v", err)
		}
	})
	if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))); err != nil {
		t.Fatal(err)
	}
	f.WantProperty("b", "m", "")
	if err := f.Transact(catalogkit.On("b", catalogkit.SetProperty(t, "m", "1")), catalogkit.On("c", catalogkit.SetProperty(t, "m", "1"))); err != nil {
		t.Errorf("what was refused holds a lock: %v", err)
	}
	f.WantClean()
}

// If the whole warehouse is locked, the refusal names no table.
func TestTransactionMeetsLockOfAll(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Create("b")
	hold, err := f.Locks.Acquire(f.Ctx, locks.Request{Writes: []locks.Path{locks.Warehouse(catalogkit.Warehouse)}}, locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	err = f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1")))
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if message := moorage.MessageOf(err); !strings.Contains(message, "one of the tables") {
		t.Errorf("the client is answered %q", message)
	}
}

// A transaction that may wait for a lock gets the lock when it is released. If it is not released,
// the transaction changes nothing.
func TestTransactionWaitsForLock(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{true, false} {
		t.Run(fmt.Sprintf("released %t", released), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := catalogkit.New(t, func(c *catalog.Config) { c.Now, c.TransactionWait = time.Now, time.Minute })
				f.Create("a")
				f.Create("b")
				hold, err := f.Locks.Acquire(f.Ctx, catalogkit.PointerLocks(f.PointerOf("b").ID), locks.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer hold.Release()
				began := time.Now()
				if released {
					time.AfterFunc(catalog.TransactionWaitMax-time.Second, hold.Release)
				}
				err = f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1")))
				switch waited := time.Since(began); {
				case released && err != nil:
					t.Errorf("after %s: %v", waited, err)
				case !released && moorage.KindOf(err) != moorage.KindCommitFailed:
					t.Errorf("the lock was never free: %v", err)
				case !released && (waited < catalog.TransactionWaitMax || waited > catalog.TransactionWaitMax+time.Second):
					t.Errorf("waited %s, which is bounded by %s", waited, catalog.TransactionWaitMax)
				}
				f.WantNoTransactions()
				f.WantClean()
			})
		})
	}
}

// If a client disconnects in the middle of a transaction, the transaction stays atomic, and no lock
// is left.
func TestTransactionOfGoneClient(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnCreate)
	f.Create("a")
	f.Create("b")
	ctx, cancel := context.WithCancel(f.Ctx)
	hook.Once(cancel)
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))}
	if err := f.CommitTransaction(ctx, catalogkit.Warehouse, changes); err != nil {
		t.Errorf("answered %v", err)
	}
	for _, name := range []string{"a", "b"} {
		f.WantProperty(name, "n", "1")
	}
	if err := f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "2")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "2"))); err != nil {
		t.Errorf("a lock was left: %v", err)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// The largest allowed transaction fits into one Apply of each store, whatever its changes are.
func TestLargestTransaction(t *testing.T) {
	t.Parallel()
	for name, open := range stores.Kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, func(c *catalog.Config) {
				c.Store = catalogkit.ClockedStore{Store: open(t, newLockedRandom(1)), Now: c.Now}
			})
			creates, changes := make([]catalog.TableChange, catalog.TransactionChangesMax), make([]catalog.TableChange, catalog.TransactionChangesMax)
			for i := range creates {
				name := fmt.Sprintf("t%03d", i)
				creates[i] = catalogkit.On(name, catalogkit.CreateWithUUID(t, fmt.Sprintf("file:///wh/%03d/ns/deep/%s", i, name), i+1))
				changes[i] = catalogkit.On(name, catalogkit.SetProperty(t, "n", "1"))
			}
			if err := f.Transact(creates...); err != nil {
				t.Fatal(err)
			}
			if err := f.Transact(changes...); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"t000", "t255"} {
				f.WantProperty(name, "n", "1")
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// A transaction over tables whose total metadata is too large is refused, whatever their number,
// and changes nothing.
func TestTransactionTooLarge(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	bounded := func(bytes int64) *catalogkit.Instance {
		config := f.Config
		config.TransactionBytes = bytes
		node, err := catalogkit.NewInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	var changes []catalog.TableChange
	var bytes int64
	for i := range 2 * commit.FilesAtOnce {
		name := fmt.Sprintf("t%d", i)
		bytes += int64(len(f.Create(name).Document.Raw()))
		changes = append(changes, catalogkit.On(name, catalogkit.SetProperty(t, "n", "1")))
	}
	catalogkit.WantKind(t, bounded(bytes-1).CommitTransaction(f.Ctx, catalogkit.Warehouse, changes), moorage.KindTooLarge)
	f.WantProperty("t0", "n", "")
	if err := bounded(bytes).CommitTransaction(f.Ctx, catalogkit.Warehouse, changes); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	f.WantProperty("t0", "n", "1")
	f.WantNoTransactions()
	f.WantClean()
}

// A transaction is refused if a table's metadata folder is outside the reach of the warehouse.
// Nothing of the transaction is left: neither files of other tables nor a record that could never
// be removed.
func TestTransactionOutside(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"file:///elsewhere", "s3://bucket/wh", "no location", "file:///wh/../elsewhere"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			files := &catalogkit.FileCount{There: map[string]bool{}}
			f := catalogkit.New(t, catalogkit.CountFiles(files))
			f.Create("a")
			f.Create("b")
			before := len(files.There)
			changes := []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "write.metadata.path", folder))}
			err := f.Transact(changes...)
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
			if text := moorage.MessageOf(err); !strings.Contains(text, "(table "+ident("b").String()+")") {
				t.Errorf("it does not say which table: %s", text)
			}
			if len(files.There) != before {
				t.Errorf("%d files before, %d after", before, len(files.There))
			}
			f.WantProperty("a", "n", "")
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}
