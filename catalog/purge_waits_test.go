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
)

const purgeDelay = 7 * 24 * time.Hour

// waitingPurges has the purges of a fixture wait.
func waitingPurges(config *catalog.Config) { config.PurgeDelay = purgeDelay }

// wantFile fails the test unless a file is there, or is not.
func (f *fixture) wantFile(location string, there bool) {
	f.t.Helper()
	_, err := f.files.Stat(f.ctx, location)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		f.t.Fatal(err)
	}
	if (err == nil) != there {
		f.t.Errorf("%s is there: %t, want %t", location, err == nil, there)
	}
}

// waiting returns the records of the purges that wait, by their ids.
func (f *fixture) waiting() map[registry.ID]registry.Due {
	f.t.Helper()
	found := make(map[registry.ID]registry.Due)
	must(f.t, f.ledger.Scan(f.ctx, registry.TableDue, registry.WaitingPrefix(), "", func(record registry.Record) (bool, error) {
		due, err := registry.Decode[registry.Due](record)
		found[due.Task] = due
		return true, err
	}))
	return found
}

// dropWaiting drops the table t with a purge, and returns the id of that.
func (f *fixture) dropWaiting() registry.ID {
	f.t.Helper()
	must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	waiting := f.waiting()
	if len(waiting) != 1 {
		f.t.Fatalf("%d purges wait", len(waiting))
	}
	for id := range waiting {
		return id
	}
	return registry.ID{}
}

// TestPurgeWaits drops a table with a purge, takes it back, and drops it again. The files stay
// until the delay is over, not a moment longer than it takes a worker to look.
func TestPurgeWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, waitingPurges)
	table := f.create("t")
	first := f.dropWaiting()
	f.wantClean()
	f.clock.Advance(purgeDelay - time.Second)
	must(t, f.purgeAll(f.ctx))
	must(t, f.endWindows(f.ctx))
	f.wantFile(table.MetadataLocation, true)
	back, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	if back.Document.UUID() != table.Document.UUID() || len(f.waiting()) != 0 {
		t.Errorf("another table is back, or its purge waits on: %v", f.waiting())
	}
	f.clock.Advance(2 * purgeDelay)
	must(t, f.purgeAll(f.ctx))
	f.wantFile(table.MetadataLocation, true)
	f.wantClean()

	if second := f.dropWaiting(); second == first {
		t.Errorf("two purges have the id %s", second)
	}
	f.clock.Advance(purgeDelay + time.Second)
	must(t, f.purgeAll(f.ctx))
	f.wantFile(table.MetadataLocation, false)
	if len(f.waiting()) != 0 {
		t.Errorf("a purge is over and waits: %v", f.waiting())
	}
	f.wantClean()
}

// TestPurgeDelayOfAWarehouse has a warehouse say how long its purges wait.
func TestPurgeDelayOfAWarehouse(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{"0": 0, "0s": 0, "90m": 90 * time.Minute, "30d": 30 * 24 * time.Hour} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, waitingPurges)
			change := warehouses.Change{Properties: map[string]*string{metadata.PropPurgeDelay: &said}}
			_, err := f.Catalog.Warehouses().Change(f.ctx, testWarehouse, change)
			must(t, err)
			table := f.create("t")
			must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			if want > 0 {
				f.clock.Advance(want - time.Second)
				must(t, f.purgeAll(f.ctx))
				f.wantFile(table.MetadataLocation, true)
				f.clock.Advance(2 * time.Second)
			}
			must(t, f.purgeAll(f.ctx))
			f.wantFile(table.MetadataLocation, false)
			f.wantClean()
		})
	}
	f := newFixture(t)
	for _, said := range []string{"", "7", "-1h", "soon", "9999999d", "1h2"} {
		change := warehouses.Change{Properties: map[string]*string{metadata.PropPurgeDelay: &said}}
		_, err := f.Catalog.Warehouses().Change(f.ctx, testWarehouse, change)
		wantKind(t, err, moorage.KindBadRequest)
		_, err = f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "x", Location: "file:///x", Properties: map[string]string{metadata.PropPurgeDelay: said}})
		wantKind(t, err, moorage.KindBadRequest)
	}
}

// TestPurgeSaysWhatWaits has the drop, the warehouse and the worker say how much waits.
func TestPurgeSaysWhatWaits(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, waitingPurges, func(config *catalog.Config) { config.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.create("t")
	sized := strings.Replace(`[{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":1,"timestamp-ms":MS,"manifest-list":"`+
		table.Document.Location()+`/metadata/snap-7.avro","summary":{"operation":"append","total-files-size":"4711"},"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}]`, "MS", "1793534400000", 1)
	_, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, sized))
	must(t, err)
	id := f.dropWaiting()
	f.create("u")
	must(t, f.DropTable(f.ctx, ident("u"), catalog.DropOptions{Purge: true}))
	details, err := f.Catalog.Warehouses().Load(f.ctx, testWarehouse)
	must(t, err)
	if want := (warehouses.WaitingPurges{Tables: 2, Bytes: 4711}); details.Waiting != want {
		t.Errorf("the warehouse says %+v, want %+v", details.Waiting, want)
	}
	must(t, f.purgeAll(f.ctx))
	if stats := f.purges.Stats(); stats.Waiting != 2 || stats.WaitingBytes != 4711 {
		t.Errorf("the worker says %+v", stats)
	}
	first, next, err := f.purges.ListWaiting(f.ctx, "", 1)
	must(t, err)
	second, end, err := f.purges.ListWaiting(f.ctx, next, 1)
	must(t, err)
	listed := slices.Concat(first, second) // in the order of ids, which are drawn
	slices.SortFunc(listed, func(a, b purge.Waiting) int { return strings.Compare(a.Table.Name, b.Table.Name) })
	if len(first) != 1 || len(second) != 1 || end != "" || listed[1].Table.Name != "u" || listed[0].ID != id.String() || listed[0].Table.Name != "t" ||
		listed[0].Bytes != 4711 || !listed[0].Begins.Equal(f.clock.Now().Add(purgeDelay).Truncate(time.Second)) {
		t.Errorf("two wait: %+v and %+v, next %q", first, second, end)
	}
	until := f.clock.Now().Add(purgeDelay).Format("2006-01-02T15:04:05.000Z07:00")
	for _, want := range []string{"level=INFO", "ident=ns.t", "until=" + until, "purge=" + id.String(), "bytes=4711", "caller="} {
		if line, _, _ := strings.Cut(logs.String(), "\n"); !strings.Contains(line, want) {
			t.Errorf("the line about the drop lacks %q: %s", want, line)
		}
	}
}

// TestPurgeCalledForward makes a table at the location of a dropped one whose purge waits. The
// create begins the purge: from then on the dropped table cannot come back.
func TestPurgeCalledForward(t *testing.T) {
	t.Parallel()
	for _, row := range claimsAt() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			forwards := strings.HasPrefix(row.name, "create") || strings.HasPrefix(row.name, "stage") ||
				strings.HasPrefix(row.name, "commit of") || strings.HasPrefix(row.name, "transaction") || row.name == "view"
			var logs bytes.Buffer
			f := newFixture(t, waitingPurges, func(c *catalog.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			})
			f.allow(testWarehouse, "file:///")
			old := f.createAt("old", purgedTable)
			copied := strings.Replace(string(old.Document.Raw()), old.Document.UUID(), forgedUUID, 1)
			must(t, f.files.Create(f.ctx, elsewhere, []byte(copied)))
			must(t, f.DropTable(f.ctx, ident("old"), catalog.DropOptions{Purge: true}))
			if row.ready != nil {
				row.ready(f)
			}
			_, err := row.claim(f)
			back := func() error {
				_, err := f.RegisterTable(f.ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: old.MetadataLocation})
				return err
			}
			switch {
			case row.nests:
				wantKind(t, err, moorage.KindBadRequest)
				must(t, back())
			case !forwards:
				wantKind(t, err, moorage.KindCommitFailed)
				if said := moorage.MessageOf(err); !strings.Contains(said, "are kept until 2026-11-08T12:00:00Z") {
					t.Errorf("refused with %s", said)
				}
				must(t, back())
			default:
				wantKind(t, err, moorage.KindUnavailable)
				wantKind(t, back(), moorage.KindAlreadyExists)
				if said := logs.String(); strings.Count(said, "began the purge of a dropped table before its time") != 1 ||
					!strings.Contains(said, "dropped=ns.old create=ns.") {
					t.Errorf("the log says %s", said)
				}
				must(t, f.purgeAll(f.ctx))
				f.wantFile(old.MetadataLocation, false)
				_, err = row.claim(f)
				must(t, err)
			}
			f.wantClean()
		})
	}
}

// TestPurgeIsNotCalledForward shows creates that leave a purge alone which waits: one without a
// location, and one that can never succeed.
func TestPurgeIsNotCalledForward(t *testing.T) {
	t.Parallel()
	f := newFixture(t, waitingPurges)
	old := f.create("t")
	f.dropWaiting()
	location := old.Document.Location()
	if got := f.create("t").Document.Location(); !strings.HasPrefix(got, location+"-") {
		t.Errorf("a table is made at %s, and a dropped one has %s", got, location)
	}
	_, err := f.CreateTable(f.ctx, ident("bad"), catalog.CreateTableRequest{Schema: []byte(`{"type":"struct","fields":[{}]}`), Location: location})
	if err == nil || moorage.KindOf(err) == moorage.KindUnavailable {
		t.Errorf("a table without a sound schema: %v", err)
	}
	if len(f.waiting()) != 1 {
		t.Error("the purge waits no longer")
	}
	f.wantClean()
}

// TestPurgeIsCalledForwardByPurge: with access on, who has purge on the dropped table begins its
// purge. Others are told until when its files are kept.
func TestPurgeIsCalledForwardByPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, waitingPurges, func(config *catalog.Config) {
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake"})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	maker, owner := f.As(moorage.Caller{Name: "corp:maker"}), f.As(moorage.Caller{Name: "corp:owner"})
	dropped, err := owner.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	must(t, owner.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}))
	f.switchAccessOn("lake", map[string]string{"corp:maker": "create,locate,drop", "corp:owner": "create,locate"})
	request := catalog.CreateTableRequest{Schema: []byte(testSchema), Location: dropped.Document.Location()}
	_, err = maker.CreateTable(f.ctx, lakeIdent(), request)
	wantKind(t, err, moorage.KindCommitFailed)
	if said := moorage.MessageOf(err); !strings.Contains(said, "are kept until 2026-11-08T12:00:00Z") {
		t.Errorf("refused with %s", said)
	}
	if len(f.waiting()) != 1 {
		t.Fatal("the purge waits no longer")
	}
	_, err = owner.CreateTable(f.ctx, lakeIdent(), request)
	wantKind(t, err, moorage.KindUnavailable)
	if len(f.waiting()) != 0 {
		t.Error("the purge still waits")
	}
	must(t, f.purgeAll(f.ctx))
	_, err = maker.CreateTable(f.ctx, lakeIdent(), request)
	must(t, err)
}

// TestPurgeThatWaitsBegins begins a purge in the other ways: an operator says so; its warehouse is
// gone when its time comes; the clock was a year ahead when its table was dropped.
func TestPurgeThatWaitsBegins(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]func(f *fixture){
		"by an operator": func(f *fixture) {
			id := f.dropWaiting()
			must(f.t, f.purges.Retry(f.ctx, id))
			wantKind(f.t, f.purges.Retry(f.ctx, registry.ID{7}), moorage.KindNotFound)
		},
		"its warehouse is gone": func(f *fixture) {
			f.dropWaiting()
			must(f.t, f.DropNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns"}))
			must(f.t, f.Warehouses().Drop(f.ctx, testWarehouse))
			f.clock.Advance(purgeDelay + time.Second)
		},
		"the clock was ahead": func(f *fixture) {
			const year = 365 * 24 * time.Hour
			f.clock.Advance(year)
			f.dropWaiting()
			f.clock.Advance(-year)
			must(f.t, f.purgeAll(f.ctx))
			if len(f.waiting()) != 1 {
				f.t.Fatal("the purge does not wait")
			}
			f.clock.Advance(purgeDelay + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, waitingPurges)
			table := f.create("t")
			row(f)
			must(t, f.purgeAll(f.ctx))
			f.wantFile(table.MetadataLocation, false)
			f.wantClean()
		})
	}
}

// TestPurgeThatWaitsIsCancelled takes the purges out of a copy of a store. The table can come back
// there for the undrop window.
func TestPurgeThatWaitsIsCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, waitingPurges)
	table := f.create("t")
	f.dropWaiting()
	off, err := recovery.CancelDeletions(f.ctx, f.ledger, f.clock.Now())
	if err != nil || off.Purges != 1 || len(f.waiting()) != 0 {
		t.Errorf("cancelled %+v: %v", off, err)
	}
	f.wantClean()
	f.clock.Advance(undropWindow - time.Second)
	must(t, f.purgeAll(f.ctx))
	_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.wantClean()
}
