package catalogkit

import (
	"slices"
	"strings"

	"moorage/registry"
	"moorage/testkit"
)

// Rewrite replaces a file's content. If the server did not write a file, the file's owner may
// replace it like this.
func (f *Fixture) Rewrite(location string, body []byte) {
	f.T.Helper()
	if err := f.Files.Delete(f.Ctx, location); err != nil {
		f.T.Fatal(err)
	}
	if err := f.Files.Create(f.Ctx, location, body); err != nil {
		f.T.Fatal(err)
	}
}

// List returns all records of a table.
func (f Tampering) List(table registry.Table) []registry.Record {
	f.T.Helper()
	records, err := f.Store.List(f.Ctx, table, "", "", registry.ListLimitMax)
	testkit.Must(f.T, err)
	return records
}

// Tampering changes the records of a store behind the catalog's back.
type Tampering struct{ *Fixture }

// Tamper returns a Tampering that changes the records of f.
func Tamper(f *Fixture) Tampering { return Tampering{f} }

// Record returns the only record of table whose ID ends in suffix and whose state is one of states.
func (f Tampering) Record(table registry.Table, suffix string, states ...registry.State) registry.Record {
	f.T.Helper()
	records, err := f.Store.List(f.Ctx, table, "", "", registry.ListLimitMax)
	if err != nil {
		f.T.Fatal(err)
	}
	records = slices.DeleteFunc(records, func(r registry.Record) bool {
		return !strings.HasSuffix(r.Key.ID, suffix) || !slices.Contains(states, r.State)
	})
	if len(records) != 1 {
		f.T.Fatalf("%d records of %v end in %q, want 1", len(records), table, suffix)
	}
	return records[0]
}

// Write applies writes without a condition.
func (f Tampering) Write(writes ...registry.Write) {
	f.T.Helper()
	if _, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: writes}); err != nil {
		f.T.Fatal(err)
	}
}

// Put writes a value under a key.
func (f Tampering) Put(key registry.Key, state registry.State, value registry.Value) {
	f.T.Helper()
	encoded, err := registry.Encode(value)
	if err != nil {
		f.T.Fatal(err)
	}
	f.Write(registry.Put(key, state, encoded))
}
