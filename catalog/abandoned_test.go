package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// transactionOver returns a transaction over tables that began two minutes ago and had one minute.
// It has two files for each table.
func (f *fixture) transactionOver(names ...string) txlog.Transaction {
	f.t.Helper()
	id, err := f.ledger.NewID()
	if err != nil {
		f.t.Fatal(err)
	}
	transaction := txlog.Transaction{
		ID: id, Warehouse: testWarehouse, Place: txlog.Place{Roots: []string{"file:///wh"}},
		Began: f.clock.Now().Add(-2 * time.Minute), Deadline: f.clock.Now().Add(-time.Minute),
	}
	for _, name := range names {
		found, err := f.directory.Find(f.ctx, directory.Table(), ident(name))
		if err != nil {
			f.t.Fatal(err)
		}
		transaction.Participants = append(transaction.Participants, txlog.Participant{Ident: ident(name), Pointer: found.Pointer.ID, ETag: registry.ETag{1}, Writes: true})
		for try := range 2 {
			transaction.Files = append(transaction.Files, fmt.Sprintf("file:///wh/ns/%s/metadata/%s-%d.metadata.json", name, id, try))
		}
	}
	return transaction
}

// abandon leaves a transaction over a table, and one of its two files. Its coordinator, long gone,
// did not end it.
func (f *fixture) abandon(name string) txlog.Entry {
	f.t.Helper()
	entry, err := f.transactions.Begin(f.ctx, f.transactionOver(name))
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(entry.Files[0])
	return entry
}

// abandonCommitted leaves a committed transaction over a table. It published the second of its
// files; both are there.
func (f *fixture) abandonCommitted(name string) txlog.Entry {
	f.t.Helper()
	entry, err := f.transactions.Begin(f.ctx, f.transactionOver(name))
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(entry.Files...)
	condition, write, err := entry.Commit(entry.Files[1:])
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.store.Apply(f.ctx, registry.Batch{Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}}); err != nil {
		f.t.Fatal(err)
	}
	committed, found, err := f.transactions.Get(f.ctx, entry.ID)
	if err != nil || !found {
		f.t.Fatal(err)
	}
	return committed
}

// write makes files that nothing reads.
func (f *fixture) write(locations ...string) {
	f.t.Helper()
	for _, location := range locations {
		if err := f.files.Create(f.ctx, location, []byte("{}")); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wantFiles fails the test unless exactly those of a transaction's files are there that want names.
func (f *fixture) wantFiles(entry txlog.Entry, want ...string) {
	f.t.Helper()
	for _, file := range entry.Files {
		_, err := f.files.Stat(f.ctx, file)
		if there := err == nil; there != slices.Contains(want, file) || !there && !errors.Is(err, storage.ErrNotFound) {
			f.t.Errorf("%s: there is %t (%v), want %t", file, there, err, !there)
		}
	}
}

// wantEnded fails the test unless nothing is left of transactions in the store.
func (f *fixture) wantEnded() {
	f.t.Helper()
	for _, table := range []registry.Table{registry.TableTransaction, registry.TableTask} {
		if records, err := f.store.List(f.ctx, table, "", "", 100); err != nil || len(records) != 0 {
			f.t.Errorf("%d records are left in %s (%v)", len(records), table, err)
		}
	}
}
