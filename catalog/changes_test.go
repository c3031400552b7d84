package catalog

import (
	"testing"

	"moorage"
	"moorage/registry"
)

// Every mutation leaves a record of what it did: who asked for what, and which version of each
// record followed which. The versions of a record, in the order of the changes, have no gap.
func TestChangeRecords(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			f, unregistered := newCrashFixture(t, m.operation, func(*Config) {})
			before, err := f.store.Changes(f.ctx, 0, registry.ListLimitMax)
			if err != nil {
				t.Fatal(err)
			}
			ctx := moorage.WithRequestID(moorage.WithPrincipal(f.ctx, "ann"), "request 1")
			if _, err := mutations(t, unregistered)[n].run(ctx, f.Catalog); err != nil {
				t.Fatal(err)
			}
			changes, err := f.store.Changes(f.ctx, 0, registry.ListLimitMax)
			if err != nil {
				t.Fatal(err)
			}
			if len(changes) == len(before) {
				t.Fatal("nothing was recorded")
			}
			last := changes[len(changes)-1].Change
			if last.Operation != string(m.operation) || last.Principal != "ann" || last.RequestID != "request 1" || !last.Time.Equal(f.clock.Now()) {
				t.Errorf("the last change is %+v", last)
			}
			newest := map[registry.Key]registry.ETag{}
			for _, change := range changes {
				if len(change.Change.Versions) == 0 {
					t.Errorf("%s names no record", change.Change.Operation)
				}
				for _, version := range change.Change.Versions {
					if !version.Old.IsZero() && version.Old != newest[version.Key] {
						t.Errorf("%s changed %s from %s, which was at %s", change.Change.Operation, version.Key, version.Old, newest[version.Key])
					}
					newest[version.Key] = version.New
				}
			}
			for key, etag := range newest {
				records, err := f.store.Get(f.ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				if records[0].ETag != etag {
					t.Errorf("%s is at %s, and the changes end at %s", key, records[0].ETag, etag)
				}
			}
		})
	}
}
