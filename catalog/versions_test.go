package catalog_test

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// version parses the name of a version.
func version(f *catalogkit.Fixture, text string) catalog.VersionName {
	f.T.Helper()
	name, err := catalog.ParseVersion(text, f.Clock.Now())
	if err != nil {
		f.T.Fatal(err)
	}
	return name
}

// threeVersions creates the table t, and commits the snapshots 10 and 11 and a property, an hour
// apart. It returns the versions.
func threeVersions(f *catalogkit.Fixture) []*catalog.Table {
	f.T.Helper()
	all := []*catalog.Table{f.Create("t")}
	for i := range int64(2) {
		f.Clock.Advance(time.Hour)
		parent := ""
		if i > 0 {
			parent = `"parent-snapshot-id":10,`
		}
		next, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(f.T, `[]`, fmt.Sprintf(
			`[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"file:///wh/ns/t/metadata/snap-%d.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`,
			10+i, parent, i+1, f.Clock.Now().UnixMilli(), i, 10+i)))
		if err != nil {
			f.T.Fatal(err)
		}
		all = append(all, next)
	}
	f.Clock.Advance(time.Hour)
	next, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(f.T, `[]`, `[{"action":"set-properties","updates":{"k":"v"}}]`))
	if err != nil {
		f.T.Fatal(err)
	}
	return append(all, next)
}

// Versions are found by their distance from the present version, by file, and by time.
func TestVersions(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	all := threeVersions(f)
	at := func(i int) string {
		return time.UnixMilli(all[i].Document.LastUpdatedMS()).Add(time.Second).UTC().Format(time.RFC3339)
	}
	for text, want := range map[string]int{
		"now": 3, "now~0": 3, "now~1": 2, "now~3": 0, path.Base(all[1].MetadataLocation): 1, path.Base(all[3].MetadataLocation): 3,
		at(0): 0, at(2): 2, at(3): 3, "0s": 3, "90m": 1,
	} {
		found, err := f.LoadVersion(f.Ctx, ident("t"), version(f, text))
		if err != nil || found.Location != all[want].MetadataLocation || found.Document.LastUpdatedMS() != all[want].Document.LastUpdatedMS() {
			t.Errorf("%s is %s, %v; want version %d", text, found.Location, err, want)
		}
	}
	for text, want := range map[string]moorage.Kind{
		"now~4": moorage.KindNotFound, "1.metadata.json": moorage.KindNotFound, "2001-01-01T00:00:00Z": moorage.KindNotFound,
		"10": moorage.KindBadRequest, "main": moorage.KindBadRequest,
	} {
		_, err := f.LoadVersion(f.Ctx, ident("t"), version(f, text))
		catalogkit.WantKind(t, err, want)
	}
	if err := f.Files.Delete(f.Ctx, all[1].MetadataLocation); err != nil {
		t.Fatal(err)
	}
	_, err := f.LoadVersion(f.Ctx, ident("t"), version(f, "now~2"))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	_, err = f.LoadVersion(f.Ctx, ident("none"), version(f, "now"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
}

// The ID of a change, or its first six digits, names the version after the change, even if the
// metadata log no longer has the file. The ID of another table's change is not found.
func TestVersionsByChange(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	all := threeVersions(f)
	f.Create("u")
	changes, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, each := range changes {
		id, item := each.Change.ID.String(), each.Change.Items[0]
		at := slices.IndexFunc(all, func(table *catalog.Table) bool { return table.MetadataLocation == item.MetadataLocation })
		for _, text := range []string{id, id[:8], id[:6]} {
			got, err := f.LoadVersion(f.Ctx, ident("t"), version(f, text))
			if at < 0 {
				catalogkit.WantKind(t, err, moorage.KindNotFound)
				continue
			}
			if found++; err != nil || got.Location != all[at].MetadataLocation {
				t.Errorf("%s is %s, %v; want version %d", text, got.Location, err, at)
			}
		}
		if item.Ident.Name != "t" || at != 1 {
			continue
		}
		name := version(f, id[:8])
		if rolled, err := f.Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: name, DryRun: true}); err != nil || rolled.IsEmpty() {
			t.Errorf("rollback to %s: %+v, %v", id, rolled, err)
		}
	}
	if found != 3*len(all) {
		t.Errorf("%d versions are found", found)
	}
	for _, text := range []string{"abcde", "1234d5", "12345d"} { // the last one is not a time either
		_, err = f.LoadVersion(f.Ctx, ident("t"), version(f, text))
		want := moorage.KindNotFound
		if text == "abcde" {
			want = moorage.KindBadRequest
		}
		catalogkit.WantKind(t, err, want)
	}
}

// A file named in the log of a registered file is read only if it lies in a location of the table,
// because it may belong to another table.
func TestVersionsStayInTheTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	all := threeVersions(f)
	f.Allow(catalogkit.Warehouse, "file:///elsewhere")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"set-location","location":"file:///elsewhere/t"}]`)); err != nil {
		t.Fatal(err)
	}
	moved, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.UnregisterTable(f.Ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	registered, err := f.RegisterTable(f.Ctx, ident("u"), catalog.RegisterRequest{MetadataLocation: moved.MetadataLocation})
	if err != nil {
		t.Fatal(err)
	}
	log := registered.Document.MetadataLog()
	if log[0].MetadataLocation != all[0].MetadataLocation {
		t.Fatalf("the log is %v", log)
	}
	_, err = f.LoadVersion(f.Ctx, ident("u"), version(f, "now~"+strconv.Itoa(len(log))))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
}

// A difference shows the effects of the commits between two versions.
func TestDiff(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	all := threeVersions(f)
	found, err := f.Diff(f.Ctx, ident("t"), version(f, "now~3"), version(f, "now"))
	if err != nil {
		t.Fatal(err)
	}
	if found.From.Location != all[0].MetadataLocation || found.To.Location != all[3].MetadataLocation {
		t.Errorf("from %s to %s", found.From.Location, found.To.Location)
	}
	if len(found.Snapshots.Added) != 2 || found.Properties.Set["k"][1] == nil || found.Schema != nil {
		t.Errorf("the difference is %+v", found.Difference)
	}
}

// A rollback is a commit. Its target can be a version, a time or a snapshot, with or without the
// other parts of the metadata. Another rollback undoes it.
func TestRollback(t *testing.T) {
	t.Parallel()
	head := func(table catalog.TableVersion) int64 {
		id, _ := table.Document.CurrentSnapshotID()
		return id
	}
	for _, tt := range []struct {
		asked    catalog.RollbackRequest
		to       string
		want     int64 // the new head
		property bool
	}{
		{catalog.RollbackRequest{}, "now~2", 10, true},
		{catalog.RollbackRequest{All: true}, "now~2", 10, false},
		{catalog.RollbackRequest{}, "10", 10, true},
		{catalog.RollbackRequest{}, "90m", 10, true},
		{catalog.RollbackRequest{DryRun: true}, "now~2", 11, true},
		{catalog.RollbackRequest{}, "now", 11, true},
	} {
		f := catalogkit.New(t)
		before := threeVersions(f)
		tt.asked.To = version(f, tt.to)
		done, err := f.Rollback(f.Ctx, ident("t"), tt.asked)
		if err != nil {
			t.Errorf("%s: %v", tt.to, err)
			continue
		}
		_, has := done.Table.Document.Property("k")
		if head(done.Table) != tt.want || has != tt.property {
			t.Errorf("%s with %+v: main is at %d, and the property is there: %v", tt.to, tt.asked, head(done.Table), has)
		}
		if done.Was.Location != before[3].MetadataLocation || (done.Table.Location == done.Was.Location) != (tt.want == 11) {
			t.Errorf("%s: from %s to %s", tt.to, done.Was.Location, done.Table.Location)
		}
		if tt.want == 11 {
			continue
		}
		back, err := f.Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: version(f, "now~1"), All: true})
		if _, has := back.Table.Document.Property("k"); err != nil || head(back.Table) != 11 || !has {
			t.Errorf("%s: taken back, main is at %d, %v", tt.to, head(back.Table), err)
		}
		f.WantClean()
	}
}

// Impossible rollbacks are refused, and change nothing.
func TestRollbackRefused(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	before := threeVersions(f)
	for text, want := range map[string]moorage.Kind{
		"12": moorage.KindNotFound, "none": moorage.KindNotFound, "now~9": moorage.KindNotFound, "2001-01-01T00:00:00Z": moorage.KindNotFound,
	} {
		_, err := f.Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: version(f, text)})
		catalogkit.WantKind(t, err, want)
	}
	_, err := f.Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: version(f, "10"), All: true})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	_, err = f.Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: version(f, "2h"), Ref: "audit"})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	loaded, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil || loaded.MetadataLocation != before[3].MetadataLocation {
		t.Errorf("the table is at %s, %v", loaded.MetadataLocation, err)
	}
}

// If a rollback is repeated with its key, it gets the same answer and changes nothing. This holds
// whether or not the first attempt changed anything, and whatever was committed in the meantime.
func TestRollbackAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to      string
		head    int // after the rollback
		refused bool
	}{"changed nothing": {"11", 11, false}, "changed something": {"10", 10, false}, "refused": {"12", 11, true}} {
		f := catalogkit.New(t)
		threeVersions(f)
		key := catalogkit.KeyOf(tt.to)
		roll := func() (catalog.RolledBack, error) {
			return f.Keyed(&key).Rollback(f.Ctx, ident("t"), catalog.RollbackRequest{To: version(f, tt.to)})
		}
		want := func(err error) {
			t.Helper()
			if (err != nil) != tt.refused || tt.refused && moorage.KindOf(err) != moorage.KindNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
		first, err := roll()
		want(err)
		for id := 12; id <= 13; id++ {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, fmt.Sprintf(
				`[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"parent-snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"file:///wh/ns/t/metadata/%d.avro","summary":{"operation":"append"},"schema-id":0}},
				{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]`, id, tt.head, id, f.Clock.Now().UnixMilli(), id, id)))
			must(t, err)
			tt.head = id
		}
		for _, removed := range []bool{false, true} {
			if removed {
				_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"remove-snapshots","snapshot-ids":[10,11]}]`))
				must(t, err)
			}
			before := f.PointerOf("t").MetadataLocation
			again, err := roll()
			want(err)
			if again.Table.Location != first.Table.Location && !tt.refused || f.PointerOf("t").MetadataLocation != before {
				t.Errorf("%s: answered %s, then %s", name, first.Table.Location, again.Table.Location)
			}
			if !tt.refused && (!again.IsEmpty() || again.Was.Location != again.Table.Location || len(again.Warnings) != 1) {
				t.Errorf("%s: the second answer has %+v", name, again.Rollback)
			}
		}
	}
}

// A name that is fixed means the same version later.
func TestFixedVersionNames(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"2h": "2026-01-02T00:04:05.000000678Z", "2026-01-02T03:04:05+01:00": "2026-01-02T02:04:05Z",
		"now~1": "now~1", "7.metadata.json": "7.metadata.json", "eod": "eod", "12": "12",
	} {
		name, err := catalog.ParseVersion(text, now)
		if err != nil || name.Fixed() != want {
			t.Errorf("%s is %s, %v; want %s", text, name.Fixed(), err, want)
		}
		again, err := catalog.ParseVersion(name.Fixed(), now.Add(time.Hour))
		if err != nil || again.Fixed() != want {
			t.Errorf("%s is %s later, %v", text, again.Fixed(), err)
		}
	}
}
