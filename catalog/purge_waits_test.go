package catalog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/maintenance/purge"
	"moorage/metadata"
	"moorage/recovery"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

const purgeDelay = 7 * 24 * time.Hour

// waitingPurges gives the purges of a fixture a delay.
func waitingPurges(config *catalog.Config) { config.PurgeDelay = purgeDelay }

// wantFile fails the test unless a file exists, or unless it is missing if there is false.
func wantFile(f *catalogkit.Fixture, location string, there bool) {
	f.T.Helper()
	_, err := f.Files.Stat(f.Ctx, location)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		f.T.Fatal(err)
	}
	if (err == nil) != there {
		f.T.Errorf("%s is there: %t, want %t", location, err == nil, there)
	}
}

// waiting returns the records of the waiting purges, by ID.
func waiting(f *catalogkit.Fixture) map[registry.ID]registry.Due {
	f.T.Helper()
	found := make(map[registry.ID]registry.Due)
	must(f.T, f.Ledger.Scan(f.Ctx, registry.TableDue, registry.WaitingPrefix(), "", func(record registry.Record) (bool, error) {
		due, err := registry.Decode[registry.Due](record)
		found[due.Task] = due
		return true, err
	}))
	return found
}

// dropWaiting drops the table t with a purge, and returns the purge's ID.
func dropWaiting(f *catalogkit.Fixture) registry.ID {
	f.T.Helper()
	must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
	waiting := waiting(f)
	if len(waiting) != 1 {
		f.T.Fatalf("%d purges wait", len(waiting))
	}
	for id := range waiting {
		return id
	}
	return registry.ID{}
}

// TestPurgeWaits drops a table with a purge, restores it, and drops it again. The files stay until
// the delay is over. After that, the next pass of a worker deletes them.
func TestPurgeWaits(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, waitingPurges)
	table := f.Create("t")
	first := dropWaiting(f)
	f.WantClean()
	f.Clock.Advance(purgeDelay - time.Second)
	must(t, f.PurgeAll(f.Ctx))
	must(t, f.EndWindows(f.Ctx))
	wantFile(f, table.MetadataLocation, true)
	back, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	if back.Document.UUID() != table.Document.UUID() || len(waiting(f)) != 0 {
		t.Errorf("another table is back, or its purge waits on: %v", waiting(f))
	}
	f.Clock.Advance(2 * purgeDelay)
	must(t, f.PurgeAll(f.Ctx))
	wantFile(f, table.MetadataLocation, true)
	f.WantClean()

	if second := dropWaiting(f); second == first {
		t.Errorf("two purges have the id %s", second)
	}
	f.Clock.Advance(purgeDelay + time.Second)
	must(t, f.PurgeAll(f.Ctx))
	wantFile(f, table.MetadataLocation, false)
	if len(waiting(f)) != 0 {
		t.Errorf("a purge is over and waits: %v", waiting(f))
	}
	f.WantClean()
}

// TestPurgeDelayOfAWarehouse sets the purge delay of a warehouse.
func TestPurgeDelayOfAWarehouse(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{"0": 0, "0s": 0, "90m": 90 * time.Minute, "30d": 30 * 24 * time.Hour} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, waitingPurges)
			change := warehouses.Change{Properties: map[string]*string{metadata.PropPurgeDelay: &said}}
			_, err := f.Catalog.Warehouses().Change(f.Ctx, catalogkit.Warehouse, change)
			must(t, err)
			table := f.Create("t")
			must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
			if want > 0 {
				f.Clock.Advance(want - time.Second)
				must(t, f.PurgeAll(f.Ctx))
				wantFile(f, table.MetadataLocation, true)
				f.Clock.Advance(2 * time.Second)
			}
			must(t, f.PurgeAll(f.Ctx))
			wantFile(f, table.MetadataLocation, false)
			f.WantClean()
		})
	}
	f := catalogkit.New(t)
	for _, said := range []string{"", "7", "-1h", "soon", "9999999d", "1h2"} {
		change := warehouses.Change{Properties: map[string]*string{metadata.PropPurgeDelay: &said}}
		_, err := f.Catalog.Warehouses().Change(f.Ctx, catalogkit.Warehouse, change)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
		_, err = f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "x", Location: "file:///x", Properties: map[string]string{metadata.PropPurgeDelay: said}})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
}

// TestPurgeSaysWhatWaits: the drop, the warehouse and the worker report how much data waits for a
// purge.
func TestPurgeSaysWhatWaits(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := catalogkit.New(t, waitingPurges, func(config *catalog.Config) { config.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.Create("t")
	sized := strings.Replace(`[{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":1,"timestamp-ms":MS,"manifest-list":"`+
		table.Document.Location()+`/metadata/snap-7.avro","summary":{"operation":"append","total-files-size":"4711"},"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}]`, "MS", "1793534400000", 1)
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, sized))
	must(t, err)
	id := dropWaiting(f)
	f.Create("u")
	must(t, f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{Purge: true}))
	details, err := f.Catalog.Warehouses().Load(f.Ctx, catalogkit.Warehouse)
	must(t, err)
	if want := (warehouses.WaitingPurges{Tables: 2, Bytes: 4711}); details.Waiting != want {
		t.Errorf("the warehouse says %+v, want %+v", details.Waiting, want)
	}
	must(t, f.PurgeAll(f.Ctx))
	if stats := f.Purges.Stats(); stats.Waiting != 2 || stats.WaitingBytes != 4711 {
		t.Errorf("the worker says %+v", stats)
	}
	first, next, err := f.Purges.ListWaiting(f.Ctx, "", 1)
	must(t, err)
	second, end, err := f.Purges.ListWaiting(f.Ctx, next, 1)
	must(t, err)
	listed := slices.Concat(first, second) // ordered by ID, and IDs are random
	slices.SortFunc(listed, func(a, b purge.Waiting) int { return strings.Compare(a.Table.Name, b.Table.Name) })
	if len(first) != 1 || len(second) != 1 || end != "" || listed[1].Table.Name != "u" || listed[0].ID != id.String() || listed[0].Table.Name != "t" ||
		listed[0].Bytes != 4711 || !listed[0].Begins.Equal(f.Clock.Now().Add(purgeDelay).Truncate(time.Second)) {
		t.Errorf("two wait: %+v and %+v, next %q", first, second, end)
	}
	until := f.Clock.Now().Add(purgeDelay).Format("2006-01-02T15:04:05.000Z07:00")
	for _, want := range []string{"level=INFO", "ident=ns.t", "until=" + until, "purge=" + id.String(), "bytes=4711", "caller="} {
		if line, _, _ := strings.Cut(logs.String(), "\n"); !strings.Contains(line, want) {
			t.Errorf("the line about the drop lacks %q: %s", want, line)
		}
	}
}

// TestPurgeCalledForward creates a table at the location of a dropped table whose purge waits. The
// create begins the purge, so the dropped table can no longer be restored.
func TestPurgeCalledForward(t *testing.T) {
	t.Parallel()
	for _, row := range claimsAt() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			forwards := strings.HasPrefix(row.name, "create") || strings.HasPrefix(row.name, "stage") ||
				strings.HasPrefix(row.name, "commit of") || strings.HasPrefix(row.name, "transaction") || row.name == "view"
			var logs bytes.Buffer
			f := catalogkit.New(t, waitingPurges, func(c *catalog.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			})
			f.Allow(catalogkit.Warehouse, "file:///")
			old := f.CreateAt("old", purgedTable)
			copied := strings.Replace(string(old.Document.Raw()), old.Document.UUID(), catalogkit.ForgedUUID, 1)
			must(t, f.Files.Create(f.Ctx, elsewhere, []byte(copied)))
			must(t, f.DropTable(f.Ctx, ident("old"), catalog.DropOptions{Purge: true}))
			if row.ready != nil {
				row.ready(f)
			}
			_, err := row.claim(f)
			back := func() error {
				_, err := f.RegisterTable(f.Ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: old.MetadataLocation})
				return err
			}
			switch {
			case row.nests:
				catalogkit.WantKind(t, err, moorage.KindBadRequest)
				must(t, back())
			case !forwards:
				catalogkit.WantKind(t, err, moorage.KindCommitFailed)
				if said := moorage.MessageOf(err); !strings.Contains(said, "are kept until 2026-11-08T12:00:00Z") {
					t.Errorf("refused with %s", said)
				}
				must(t, back())
			default:
				catalogkit.WantKind(t, err, moorage.KindUnavailable)
				catalogkit.WantKind(t, back(), moorage.KindAlreadyExists)
				if said := logs.String(); strings.Count(said, "began the purge of a dropped table before its time") != 1 ||
					!strings.Contains(said, "dropped=ns.old create=ns.") {
					t.Errorf("the log says %s", said)
				}
				must(t, f.PurgeAll(f.Ctx))
				wantFile(f, old.MetadataLocation, false)
				_, err = row.claim(f)
				must(t, err)
			}
			f.WantClean()
		})
	}
}

// TestPurgeIsNotCalledForward: a waiting purge is not begun by a create without a location, or by a
// create that can never succeed.
func TestPurgeIsNotCalledForward(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, waitingPurges)
	old := f.Create("t")
	dropWaiting(f)
	location := old.Document.Location()
	if got := f.Create("t").Document.Location(); !strings.HasPrefix(got, location+"-") {
		t.Errorf("a table is made at %s, and a dropped one has %s", got, location)
	}
	_, err := f.CreateTable(f.Ctx, ident("bad"), catalog.CreateTableRequest{Schema: []byte(`{"type":"struct","fields":[{}]}`), Location: location})
	if err == nil || moorage.KindOf(err) == moorage.KindUnavailable {
		t.Errorf("a table without a sound schema: %v", err)
	}
	if len(waiting(f)) != 1 {
		t.Error("the purge waits no longer")
	}
	f.WantClean()
}

// TestPurgeIsCalledForwardByPurge: with access control enabled, a create begins the purge only if
// its caller has purge on the dropped table. Other callers learn how long the files are kept.
func TestPurgeIsCalledForwardByPurge(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, waitingPurges, func(config *catalog.Config) {
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake"})
	must(t, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	maker, owner := f.As(moorage.Caller{Name: "corp:maker"}), f.As(moorage.Caller{Name: "corp:owner"})
	dropped, err := owner.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	must(t, owner.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}))
	f.SwitchAccessOn("lake", map[string]string{"corp:maker": "create,locate,drop", "corp:owner": "create,locate"})
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: dropped.Document.Location()}
	_, err = maker.CreateTable(f.Ctx, catalogkit.LakeIdent(), request)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if said := moorage.MessageOf(err); !strings.Contains(said, "are kept until 2026-11-08T12:00:00Z") {
		t.Errorf("refused with %s", said)
	}
	if len(waiting(f)) != 1 {
		t.Fatal("the purge waits no longer")
	}
	_, err = owner.CreateTable(f.Ctx, catalogkit.LakeIdent(), request)
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	if len(waiting(f)) != 0 {
		t.Error("the purge still waits")
	}
	must(t, f.PurgeAll(f.Ctx))
	_, err = maker.CreateTable(f.Ctx, catalogkit.LakeIdent(), request)
	must(t, err)
}

// TestPurgeThatWaitsBegins tests the other ways in which a purge begins. An operator begins it; its
// time comes and its warehouse is gone; or the clock was a year ahead at the drop.
func TestPurgeThatWaitsBegins(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]func(f *catalogkit.Fixture){
		"by an operator": func(f *catalogkit.Fixture) {
			id := dropWaiting(f)
			must(f.T, f.Purges.Retry(f.Ctx, id))
			catalogkit.WantKind(f.T, f.Purges.Retry(f.Ctx, registry.ID{7}), moorage.KindNotFound)
		},
		"its warehouse is gone": func(f *catalogkit.Fixture) {
			dropWaiting(f)
			must(f.T, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}))
			must(f.T, f.Warehouses().Drop(f.Ctx, catalogkit.Warehouse))
			f.Clock.Advance(purgeDelay + time.Second)
		},
		"the clock was ahead": func(f *catalogkit.Fixture) {
			const year = 365 * 24 * time.Hour
			f.Clock.Advance(year)
			dropWaiting(f)
			f.Clock.Advance(-year)
			must(f.T, f.PurgeAll(f.Ctx))
			if len(waiting(f)) != 1 {
				f.T.Fatal("the purge does not wait")
			}
			f.Clock.Advance(purgeDelay + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t, waitingPurges)
			table := f.Create("t")
			row(f)
			must(t, f.PurgeAll(f.Ctx))
			wantFile(f, table.MetadataLocation, false)
			f.WantClean()
		})
	}
}

// TestPurgeThatWaitsIsCancelled cancels the purges in a copy of a store. There, the table can be
// restored for the undrop window.
func TestPurgeThatWaitsIsCancelled(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, waitingPurges)
	table := f.Create("t")
	dropWaiting(f)
	off, err := recovery.CancelDeletions(f.Ctx, f.Ledger, f.Clock.Now())
	if err != nil || off.Purges != 1 || len(waiting(f)) != 0 {
		t.Errorf("cancelled %+v: %v", off, err)
	}
	f.WantClean()
	f.Clock.Advance(catalogkit.UndropWindow - time.Second)
	must(t, f.PurgeAll(f.Ctx))
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.WantClean()
}
