package catalog_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storagetest"
	"moorage/txlog"
)

// takenFiles is a storage in which the first file to be created already exists.
type takenFiles struct {
	storage.Store
	taken *takenName
}

type takenName struct {
	once     sync.Once
	location string
}

func (f *takenFiles) Create(ctx context.Context, location string, body []byte) error {
	var err error
	f.taken.once.Do(func() {
		f.taken.location = location
		err = f.Store.Create(ctx, location, []byte("somebody else's"))
	})
	if err != nil {
		return err
	}
	return f.Store.Create(ctx, location, body)
}

// batched returns inner as a storage that can create several files together.
func batched(inner storage.Store) storage.Store {
	return storagetest.Faulty(inner, func(int, string) storagetest.Action { return storagetest.Pass })
}

// A transaction draws a name for its file, but another file already has that name. The transaction
// changes nothing and leaves that file alone.
func TestTransactionMeetsForeignFile(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(storage.Store) storage.Store{
		"one by one": func(inner storage.Store) storage.Store { return inner },
		"together":   batched,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, taken := &catalogkit.FileCount{There: map[string]bool{}}, &takenName{}
			f := catalogkit.New(t)
			f.Create("a")
			f.Create("b")
			config := f.Config
			catalogkit.CountFiles(files)(&config)
			catalogkit.WrapStorage(&config, func(inner storage.Store) storage.Store { return wrap(&takenFiles{inner, taken}) })
			node, err := catalogkit.NewInstance(config)
			if err != nil {
				t.Fatal(err)
			}
			err = node.CommitTransaction(f.Ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))})
			catalogkit.WantKind(t, err, moorage.KindUnavailable)
			if len(files.There) != 1 || !files.There[taken.location] {
				t.Errorf("left are %v, want %s", files.There, taken.location)
			}
			for _, name := range []string{"a", "b"} {
				f.WantProperty(name, "n", "")
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// Files that are created together are compressed in the same way as single files.
func TestTransactionCompressesTogether(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(c *catalog.Config) { catalogkit.WrapStorage(c, batched) })
	var changes []catalog.TableChange
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		f.Create(name)
		key, value := "n", fmt.Sprint(i)
		if i%2 == 0 {
			key, value = documents.PropMetadataCodec, "gzip"
		}
		changes = append(changes, catalogkit.On(name, catalogkit.SetProperty(t, key, value)))
	}
	if err := f.Transact(changes...); err != nil {
		t.Fatal(err)
	}
	node, err := catalogkit.NewInstance(f.Config) // with an empty cache of documents
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		table, err := node.LoadTable(f.Ctx, ident(name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := storage.ReadAll(f.Ctx, f.Files, table.MetadataLocation, 1<<20)
		if zipped := strings.HasPrefix(string(content), "\x1f\x8b"); err != nil || zipped != (i%2 == 0) {
			t.Errorf("%s: zipped is %t (%v)", table.MetadataLocation, zipped, err)
		}
	}
	f.WantClean()
}

// If other commits always come first, a transaction is rebuilt, a bounded number of times.
func TestTransactionGivesUp(t *testing.T) {
	t.Parallel()
	hook, files := &catalogkit.Hook{}, &catalogkit.FileCount{There: map[string]bool{}}
	f := catalogkit.New(t, catalogkit.CountFiles(files))
	f.Create("a")
	f.Create("b")
	config := f.Config
	hook.OnCreate(&config)
	node, err := catalogkit.NewInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	commits := 0
	var overtake func()
	overtake = func() {
		commits++
		if _, err := f.Commit(f.Ctx, ident("a"), catalogkit.SetProperty(t, "other", string(rune('a'+commits)))); err != nil {
			t.Error(err)
		}
		if commits < 2*commit.TransactionTriesMax {
			hook.Once(overtake)
		}
	}
	before := len(files.There)
	hook.Once(overtake)
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))}
	// In each try, the write of the first of two files triggers another commit.
	err = node.CommitTransaction(f.Ctx, catalogkit.Warehouse, changes)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if commits < commit.TransactionTriesMax || commits > 2*commit.TransactionTriesMax {
		t.Errorf("%d other commits, want one or two for each of %d tries", commits, commit.TransactionTriesMax)
	}
	if got := len(files.There) - before; got != commits {
		t.Errorf("%d files more, want the %d of the other commits", got, commits)
	}
	f.WantProperty("b", "n", "")
	f.WantNoTransactions()
	f.WantClean()
}

// A client sends an append to two nodes at the same time, without a key. The attempt that loses
// finds out that the append has happened.
func TestTransactionTwinWithoutKey(t *testing.T) {
	t.Parallel()
	hook, files := &catalogkit.Hook{}, &catalogkit.FileCount{There: map[string]bool{}}
	f := catalogkit.New(t, catalogkit.CountFiles(files), func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	a, b := f.Create("a"), f.Create("b")
	config := f.Config
	hook.OnCreate(&config)
	node, err := catalogkit.NewInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	changes := []catalog.TableChange{catalogkit.On("a", catalogkit.AppendSnapshot(t, a, 1, 0, 1)), catalogkit.On("b", catalogkit.AppendSnapshot(t, b, 1, 0, 1))}
	before := len(files.There)
	hook.Once(func() {
		if err := f.Transact(changes...); err != nil {
			t.Error(err)
		}
	})
	if err := node.CommitTransaction(f.Ctx, catalogkit.Warehouse, changes); err != nil {
		t.Errorf("the twin that lost: %v", err)
	}
	if got := len(files.There) - before; got != 2 || count(f, gate.Transaction) != 1 {
		t.Errorf("it happened %d times and has %d files, want once and 2", count(f, gate.Transaction), got)
	}
	f.WantNoTransactions()
	f.WantClean()
}

// A transaction is refused with KindBadRequest if its tables need more records than one Apply may
// have. That happens before anything is written.
func TestTransactionOfTooManyRecords(t *testing.T) {
	t.Parallel()
	folder := func(i int) string {
		return fmt.Sprintf("file:///wh/%d%s", i, strings.Repeat("/x", registry.BatchItemsMax/catalog.TransactionChangesMax))
	}
	for name, prepare := range map[string]func(f *catalogkit.Fixture){
		"new folders": func(*catalogkit.Fixture) {},
		"folders that are there": func(f *catalogkit.Fixture) {
			for i := range catalog.TransactionChangesMax {
				request := catalogkit.CreateWithUUID(t, folder(i)+"/other", catalog.TransactionChangesMax+i+1)
				if _, err := f.Commit(f.Ctx, ident(fmt.Sprintf("other%d", i)), request); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := &catalogkit.FileCount{There: map[string]bool{}}
			f := catalogkit.New(t, catalogkit.CountFiles(files))
			prepare(f)
			before := len(files.There)
			var changes []catalog.TableChange
			for i := range catalog.TransactionChangesMax {
				changes = append(changes, catalogkit.On(fmt.Sprintf("t%d", i), catalogkit.CreateWithUUID(t, folder(i)+"/t", i+1)))
			}
			err := f.Transact(changes...)
			catalogkit.WantKind(t, err, moorage.KindBadRequest)
			var needed, possible int
			if _, err := fmt.Sscanf(moorage.MessageOf(err), "Invalid transaction: its tables need %d records to be written or unchanged at once, at most %d are possible", &needed, &possible); err != nil ||
				needed <= possible || possible != registry.BatchItemsMax {
				t.Errorf("it says that %d are needed and %d possible: %v", needed, possible, err)
			}
			if len(files.There) > before {
				t.Errorf("%d files were made", len(files.There)-before)
			}
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// slowFiles creates no file before its context ends, except files of tables called "b".
type slowFiles struct{ storage.Store }

func (f slowFiles) Create(ctx context.Context, location string, body []byte) error {
	if strings.Contains(location, "/b/") {
		return f.Store.Create(ctx, location, body)
	}
	<-ctx.Done()
	return ctx.Err()
}

// A transaction whose files take too long gives up before others may abort it. It still cleans up.
func TestTransactionOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files := &catalogkit.FileCount{There: map[string]bool{}}
		f := catalogkit.New(t, catalogkit.CountFiles(files), func(c *catalog.Config) { c.Now = time.Now })
		f.Create("a")
		f.Create("b")
		config := f.Config
		catalogkit.WrapStorage(&config, func(inner storage.Store) storage.Store { return slowFiles{inner} })
		node, err := catalogkit.NewInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		before, began := len(files.There), time.Now()
		err = node.CommitTransaction(f.Ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))})
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
		if took := time.Since(began) + commit.SettleTimeout; took >= commit.TransactionDeadline {
			t.Errorf("it took %s with what may follow, and others may abort it after %s", took, commit.TransactionDeadline)
		}
		if got := len(files.There); got != before {
			t.Errorf("%d files before, %d after", before, got)
		}
		f.WantProperty("b", "n", "")
		f.WantNoTransactions()
		f.WantClean()
	})
}

// A transaction that fails against the present versions is refused before it takes locks.
func TestTransactionRefusedBeforeLocks(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Create("b")
	f.Locks.Reset()
	fails := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", fails)), moorage.KindCommitFailed)
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("missing", fails)), moorage.KindNoSuchTable)
	if calls := f.Locks.Calls(); len(calls) > 0 {
		t.Errorf("took %v", calls)
	}
}

// A transaction with only requirements is refused if one of them fails.
func TestTransactionOfRequirements(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	f.Create("b")
	holds := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)
	fails := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
	if err := f.Transact(catalogkit.On("a", holds), catalogkit.On("b", holds)); err != nil {
		t.Error(err)
	}
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", holds), catalogkit.On("b", fails)), moorage.KindCommitFailed)
}

// A transaction with only requirements may read its tables at different moments. It reads them
// again until all the versions existed at the same moment.
func TestTransactionOfRequirementsThatMove(t *testing.T) {
	t.Parallel()
	for _, breaks := range []bool{false, true} {
		t.Run(fmt.Sprintf("breaks %t", breaks), func(t *testing.T) {
			t.Parallel()
			hook := &catalogkit.Hook{}
			f := catalogkit.New(t)
			a := f.Create("a")
			f.Create("b")
			config := f.Config
			hook.OnOpen(&config)
			node, err := catalogkit.NewInstance(config) // which has to read the documents after the pointers
			if err != nil {
				t.Fatal(err)
			}
			meanwhile := catalogkit.SetProperty(t, "n", "1")
			if breaks {
				meanwhile = catalogkit.AppendSnapshot(t, a, 7, 0, 1)
			}
			met := false
			hook.Once(func() {
				met = true
				if _, err := f.Commit(f.Ctx, ident("a"), meanwhile); err != nil {
					t.Error(err)
				}
			})
			holds := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)
			err = node.CommitTransaction(f.Ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("a", holds), catalogkit.On("b", holds)})
			if !met {
				t.Error("nothing came between")
			}
			if breaks {
				catalogkit.WantKind(t, err, moorage.KindCommitFailed)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A table that is dropped while a transaction works on it no longer exists, even for a transaction
// that follows it by its table-uuid. Nothing is changed.
func TestTransactionMeetsDrop(t *testing.T) {
	t.Parallel()
	transactDuring(t, func(f *catalogkit.Fixture) error { return f.DropTable(f.Ctx, ident("a"), catalog.DropOptions{}) }, func(f *catalogkit.Fixture, _ bool, err error) {
		catalogkit.WantKind(f.T, err, moorage.KindNoSuchTable)
		f.WantProperty("b", "n", "")
	})
}

// If a table is renamed in the meantime, a transaction follows it if its requirements include the
// table-uuid. Otherwise the table is missing, and nothing is changed.
func TestTransactionMeetsRename(t *testing.T) {
	t.Parallel()
	transactDuring(t, func(f *catalogkit.Fixture) error { return f.RenameTable(f.Ctx, ident("a"), ident("z")) }, func(f *catalogkit.Fixture, pinned bool, err error) {
		want := "1"
		if !pinned {
			catalogkit.WantKind(f.T, err, moorage.KindNoSuchTable)
			want = ""
		} else if err != nil {
			f.T.Error(err)
		}
		f.WantProperty("z", "n", want)
		f.WantProperty("b", "n", want)
	})
}

// transactDuring sets a property of the tables a and b in one transaction, and calls the hook
// meanwhile in the middle of it. judge checks the outcome. It does so twice: with and without a
// requirement for the table-uuid of a.
func transactDuring(t *testing.T, meanwhile func(f *catalogkit.Fixture) error, judge func(f *catalogkit.Fixture, pinned bool, err error)) {
	t.Helper()
	for _, pinned := range []bool{true, false} {
		t.Run(fmt.Sprintf("pinned %t", pinned), func(t *testing.T) {
			t.Parallel()
			hook := &catalogkit.Hook{}
			f := catalogkit.New(t, hook.OnCreate, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
			a := f.Create("a")
			f.Create("b")
			hook.Once(func() {
				if err := meanwhile(f); err != nil {
					t.Error(err)
				}
			})
			request := catalogkit.SetProperty(t, "n", "1")
			if pinned {
				request.Requirements = catalogkit.CommitRequest(t, `[{"type":"assert-table-uuid","uuid":"`+a.Document.UUID()+`"}]`, `[]`).Requirements
			}
			judge(f, pinned, f.Transact(catalogkit.On("a", request), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))))
			f.WantNoTransactions()
			f.WantClean()
		})
	}
}

// While a transaction writes its files, its record has everything that recovery needs: its caller,
// its deadline, the expected versions of its tables, and the locations of its files.
func TestTransactionIsRecorded(t *testing.T) {
	t.Parallel()
	hook := &catalogkit.Hook{}
	f := catalogkit.New(t, hook.OnCreate)
	f.Create("a")
	f.Create("b")
	tables, err := f.Directory.FindAll(f.Ctx, directory.Table(), []moorage.Identifier{ident("a"), ident("b")})
	must(t, err)
	var noted []txlog.Entry
	hook.Once(func() {
		if noted, err = f.Transactions.Unfinished(f.Ctx, registry.ID{}, 10); err != nil {
			t.Error(err)
		}
	})
	required := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`, `[]`)
	f.Instance = f.Instance.Named("ann")
	if err := f.Transact(catalogkit.On("new", catalogkit.CommitCreateRequest(t, "file:///wh/ns/new")), catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", required)); err != nil {
		t.Fatal(err)
	}
	changes, err := f.Store.Changes(f.Ctx, 0, 100)
	if err != nil || len(noted) != 1 {
		t.Fatalf("%d records, %v", len(noted), err)
	}
	want := txlog.Transaction{
		ID: changes[len(changes)-1].Change.ID, Warehouse: catalogkit.Warehouse, Place: txlog.Place{Roots: []string{"file:///wh"}},
		Participants: []txlog.Participant{
			{Ident: ident("new"), Writes: true},
			{Ident: ident("a"), Pointer: tables[0].Pointer.ID, ETag: tables[0].Record.ETag, Writes: true},
			{Ident: ident("b"), Pointer: tables[1].Pointer.ID, ETag: tables[1].Record.ETag},
		},
		Began: f.Clock.Now(), Deadline: f.Clock.Now().Add(time.Minute), Principal: "ann",
	}
	for _, name := range []string{"new", "a"} {
		table, err := f.LoadTable(f.Ctx, ident(name))
		if err != nil {
			t.Fatal(err)
		}
		want.Files = append(want.Files, table.MetadataLocation)
	}
	if got := noted[0].Transaction; noted[0].State != registry.StatePending || !reflect.DeepEqual(got, want) {
		t.Errorf("recorded as %s\n%+v, want\n%+v", noted[0].State, got, want)
	}
}

// The answer of the one Apply is lost, and the store does not answer any more. The outcome cannot
// be determined, so the files stay. In fact, the transaction has happened.
func TestTransactionUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := catalogkit.New(t, func(c *catalog.Config) { silent.Store, c.Store = c.Store, silent })
	f.Create("a")
	f.Create("b")
	silent.arm(string(gate.Transaction))
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))), moorage.KindCommitUnknown)
	silent.disarm()
	for _, c := range []*catalogkit.Instance{f.Instance, f.Other(f.Store)} {
		node := *f
		node.Instance = c
		for _, name := range []string{"a", "b"} {
			node.WantProperty(name, "n", "1")
		}
	}
	f.WantNoTransactions()
	f.WantClean()
}
