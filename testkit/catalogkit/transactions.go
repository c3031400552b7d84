package catalogkit

import (
	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit"
)

// Write makes files that nothing reads.
func (f *Fixture) Write(locations ...string) {
	f.T.Helper()
	for _, location := range locations {
		if err := f.Files.Create(f.Ctx, location, []byte("{}")); err != nil {
			f.T.Fatal(err)
		}
	}
}

// On returns the part of a transaction that applies request to the table called name.
func On(name string, request catalog.CommitRequest) catalog.TableChange {
	return catalog.TableChange{Ident: testkit.Ident(name), CommitRequest: request}
}

// Transact commits changes as one transaction.
func (f *Fixture) Transact(changes ...catalog.TableChange) error {
	return f.CommitTransaction(f.Ctx, Warehouse, changes)
}

// WantProperty fails the test unless the table has the property with that value. If want is empty,
// the table must not have the property.
func (f *Fixture) WantProperty(name, key, want string) {
	f.T.Helper()
	table, err := f.LoadTable(f.Ctx, testkit.Ident(name))
	if err != nil {
		f.T.Fatal(err)
	}
	if got, _ := table.Document.Property(key); got != want {
		f.T.Errorf("property %s of %s is %q, want %q", key, name, got, want)
	}
}

// WantNoTransactions fails the test if the log holds any transaction.
func (f *Fixture) WantNoTransactions() {
	f.T.Helper()
	entries, err := f.Transactions.Unfinished(f.Ctx, registry.ID{}, 10)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, entry := range entries {
		f.T.Errorf("transaction %s is left over, %s", entry.ID, entry.State)
	}
}
