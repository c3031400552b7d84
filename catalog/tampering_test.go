package catalog_test

import (
	"slices"
	"strings"

	"moorage/ledger"
	"moorage/registry"
)

// tampering changes the records of a store behind the catalog's back.
type tampering struct{ *fixture }

// record returns the only record of table whose ID ends in suffix and whose state is one of states.
func (f tampering) record(table registry.Table, suffix string, states ...registry.State) registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
	if err != nil {
		f.t.Fatal(err)
	}
	records = slices.DeleteFunc(records, func(r registry.Record) bool {
		return !strings.HasSuffix(r.Key.ID, suffix) || !slices.Contains(states, r.State)
	})
	if len(records) != 1 {
		f.t.Fatalf("%d records of %v end in %q, want 1", len(records), table, suffix)
	}
	return records[0]
}

func (f tampering) write(writes ...registry.Write) {
	f.t.Helper()
	if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes}); err != nil {
		f.t.Fatal(err)
	}
}

// put writes a value under a key.
func (f tampering) put(key registry.Key, state registry.State, value registry.Value) {
	f.t.Helper()
	encoded, err := registry.Encode(value)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(registry.Put(key, state, encoded))
}

func (f tampering) remove(record registry.Record) {
	f.t.Helper()
	f.write(registry.Delete(record.Key))
}

// recordOf returns the pointer's record of what is called name in ns, and its value.
func (f tampering) recordOf(name string) (registry.Record, registry.Pointer) {
	f.t.Helper()
	records, err := f.store.List(f.ctx, registry.TablePointer, "", "", registry.ListLimitMax)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, record := range records {
		if value, err := ledger.Decode[registry.Pointer](record); err != nil {
			f.t.Fatal(err)
		} else if value.Name == name {
			return record, value
		}
	}
	f.t.Fatalf("no pointer is called %s", name)
	return registry.Record{}, registry.Pointer{}
}
