package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/txlog"
)

// transactionOver returns a transaction over the named tables, with two files for each. It began
// two minutes ago, and its deadline was one minute later.
func transactionOver(f *catalogkit.Fixture, names ...string) txlog.Transaction {
	f.T.Helper()
	id, err := f.Ledger.NewID()
	if err != nil {
		f.T.Fatal(err)
	}
	transaction := txlog.Transaction{
		ID: id, Warehouse: catalogkit.Warehouse, Place: txlog.Place{Roots: []string{"file:///wh"}},
		Began: f.Clock.Now().Add(-2 * time.Minute), Deadline: f.Clock.Now().Add(-time.Minute),
	}
	for _, name := range names {
		found, err := f.Directory.Find(f.Ctx, directory.Table(), ident(name))
		if err != nil {
			f.T.Fatal(err)
		}
		transaction.Participants = append(transaction.Participants, txlog.Participant{Ident: ident(name), Pointer: found.Pointer.ID, ETag: registry.ETag{1}, Writes: true})
		for try := range 2 {
			transaction.Files = append(transaction.Files, fmt.Sprintf("file:///wh/ns/%s/metadata/%s-%d.metadata.json", name, id, try))
		}
	}
	return transaction
}

// abandon leaves an unfinished transaction over a table, and one of its two files. Its coordinator
// is long gone.
func abandon(f *catalogkit.Fixture, name string) txlog.Entry {
	f.T.Helper()
	entry, err := f.Transactions.Begin(f.Ctx, transactionOver(f, name))
	if err != nil {
		f.T.Fatal(err)
	}
	f.Write(entry.Files[0])
	return entry
}

// abandonCommitted leaves a committed transaction over a table. The transaction published the
// second of its files, and both files exist.
func abandonCommitted(f *catalogkit.Fixture, name string) txlog.Entry {
	f.T.Helper()
	entry, err := f.Transactions.Begin(f.Ctx, transactionOver(f, name))
	if err != nil {
		f.T.Fatal(err)
	}
	f.Write(entry.Files...)
	condition, write, err := entry.Commit(entry.Files[1:])
	if err != nil {
		f.T.Fatal(err)
	}
	if _, err := f.Store.Apply(f.Ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}}); err != nil {
		f.T.Fatal(err)
	}
	committed, found, err := f.Transactions.Get(f.Ctx, entry.ID)
	if err != nil || !found {
		f.T.Fatal(err)
	}
	return committed
}

// wantFiles fails the test unless exactly the files in want are left of a transaction's files.
func wantFiles(f *catalogkit.Fixture, entry txlog.Entry, want ...string) {
	f.T.Helper()
	for _, file := range entry.Files {
		_, err := f.Files.Stat(f.Ctx, file)
		if there := err == nil; there != slices.Contains(want, file) || !there && !errors.Is(err, storage.ErrNotFound) {
			f.T.Errorf("%s: there is %t (%v), want %t", file, there, err, !there)
		}
	}
}

// wantEnded fails the test unless nothing is left of transactions in the store.
func wantEnded(f *catalogkit.Fixture) {
	f.T.Helper()
	for _, table := range []registry.Table{registry.TableTransaction, registry.TableTask} {
		if records, err := f.Store.List(f.Ctx, table, "", "", 100); err != nil || len(records) != 0 {
			f.T.Errorf("%d records are left in %s (%v)", len(records), table, err)
		}
	}
}
