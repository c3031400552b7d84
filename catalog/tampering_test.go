package catalog_test

import (
	"moorage/ledger"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

func removeRecord(f catalogkit.Tampering, record registry.Record) {
	f.T.Helper()
	f.Write(registry.Delete(record.Key))
}

// recordOf returns the pointer record of the object called name in ns, and its value.
func recordOf(f catalogkit.Tampering, name string) (registry.Record, registry.Pointer) {
	f.T.Helper()
	records, err := f.Store.List(f.Ctx, registry.TablePointer, "", "", registry.ListLimitMax)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, record := range records {
		if value, err := ledger.Decode[registry.Pointer](record); err != nil {
			f.T.Fatal(err)
		} else if value.Name == name {
			return record, value
		}
	}
	f.T.Fatalf("no pointer is called %s", name)
	return registry.Record{}, registry.Pointer{}
}
