package catalog_test

import (
	"cmp"
	"slices"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit"
)

// Every mutation leaves a change record, with the caller, the verb, and the old and new version of
// each record. In the order of the changes, the versions of a record have no gap.
func TestChangeRecords(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			f, unregistered := newCrashFixture(t, m.operation, func(*catalog.Config) {})
			before, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
			if err != nil {
				t.Fatal(err)
			}
			ctx := moorage.WithRequestID(f.Ctx, "request 1")
			if _, err := mutations(t, unregistered)[n].run(ctx, f.Instance.Named("ann")); err != nil {
				t.Fatal(err)
			}
			changes, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
			if err != nil {
				t.Fatal(err)
			}
			if len(changes) == len(before) {
				t.Fatal("nothing was recorded")
			}
			last := changes[len(changes)-1].Change
			caller := "ann"
			if m.operation == gate.Purge || m.operation == gate.EndWindow { // jobs of the server
				caller = "system:" + string(m.operation)
			}
			if last.Operation != string(m.operation) || last.Principal != caller || last.RequestID != "request 1" || !last.Time.Equal(f.Clock.Now()) {
				t.Errorf("the last change is %+v", last)
			}
			ends := map[gate.Verb]string{
				gate.Purge: registry.EndedPurge, gate.EndWindow: registry.EndedWindow, gate.Unregister: registry.EndedUnregister,
				gate.DropNamespace: registry.EndedDrop, gate.Forget: registry.EndedForget,
			}
			if how, ended := ends[m.operation], last.Items[0].Ended; ended != "" || how != "" {
				records, err := f.Store.Get(f.Ctx, registry.Key{Table: registry.TableDropped, ID: cmp.Or(ended, "none")})
				testkit.Must(t, err)
				gone, err := registry.Decode[registry.Dropped](records[0])
				if err != nil || records[0].State != registry.StateEnded || gone.How != how || gone.EndedBy != caller || gone.EndedChange != last.ID || gone.ID != last.Items[0].ID {
					t.Errorf("%s ended as %+v, %v", ended, gone, err)
				}
			}
			newest := map[registry.Key]registry.ETag{}
			for _, change := range changes {
				if len(change.Change.Versions) == 0 {
					t.Errorf("%s names no record", change.Change.Operation)
				}
				if len(change.Change.Items) == 0 {
					t.Errorf("%s names no object", change.Change.Operation)
				}
				for _, version := range change.Change.Versions {
					if version.Key.Table == registry.TablePointer && !slices.ContainsFunc(change.Change.Items, func(item registry.Item) bool {
						return registry.PointerKey(item.ID) == version.Key && (item.Kind == registry.ItemTable || item.Kind == registry.ItemView) &&
							item.UUID != "" && item.MetadataLocation+item.PreviousMetadataLocation != ""
					}) {
						t.Errorf("%s changed %s, and names the objects %+v", change.Change.Operation, version.Key, change.Change.Items)
					}
					if !version.Old.IsZero() && version.Old != newest[version.Key] {
						t.Errorf("%s changed %s from %s, which was at %s", change.Change.Operation, version.Key, version.Old, newest[version.Key])
					}
					newest[version.Key] = version.New
				}
			}
			for key, etag := range newest {
				records, err := f.Store.Get(f.Ctx, key)
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
