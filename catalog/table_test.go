package catalog_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
)

func TestTableLife(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created := f.create("t")
	if want := "file:///wh/ns/t/metadata/00000-"; !strings.HasPrefix(created.MetadataLocation, want) {
		t.Errorf("metadata location %s, want prefix %s", created.MetadataLocation, want)
	}
	first, err := f.Commit(f.ctx, ident("t"), appendSnapshot(t, created, 10, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if want := "file:///wh/ns/t/metadata/00001-"; !strings.HasPrefix(first.MetadataLocation, want) {
		t.Errorf("metadata location %s, want prefix %s", first.MetadataLocation, want)
	}
	if log := first.Document.MetadataLog(); len(log) != 1 || log[0].MetadataLocation != created.MetadataLocation {
		t.Errorf("metadata log %v, want the location of the created version", log)
	}
	loaded, err := f.LoadTable(f.ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.MetadataLocation != first.MetadataLocation {
		t.Errorf("loaded %s, want %s", loaded.MetadataLocation, first.MetadataLocation)
	}
	_, err = f.Commit(f.ctx, ident("t"), appendSnapshot(t, created, 11, 0, 2))
	wantKind(t, err, moorage.KindCommitFailed)
	same, err := f.Commit(f.ctx, ident("t"), commitRequest(t, `[]`, `[]`))
	if err != nil || same.MetadataLocation != first.MetadataLocation {
		t.Errorf("empty commit answered %v, %v; want the present version", same, err)
	}
	if err := f.RenameTable(f.ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadTable(f.ctx, ident("t"))
	wantKind(t, err, moorage.KindNoSuchTable)
	f.wantClean()
	if err := f.DropTable(f.ctx, ident("u"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadTable(f.ctx, ident("u"))
	wantKind(t, err, moorage.KindNoSuchTable)
	wantKind(t, f.DropTable(f.ctx, ident("u"), catalog.DropOptions{}), moorage.KindNoSuchTable)
	f.wantClean()
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	request := catalog.CreateTableRequest{Schema: []byte(testSchema)}
	_, err := f.CreateTable(f.ctx, ident("t"), request)
	wantKind(t, err, moorage.KindAlreadyExists)
	if want := "Table already exists: ns.t"; moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	missing := moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{"no"}, Name: "t"}
	_, err = f.CreateTable(f.ctx, missing, request)
	wantKind(t, err, moorage.KindNoSuchNamespace)
	missing.Warehouse = "no"
	_, err = f.CreateTable(f.ctx, missing, request)
	wantKind(t, err, moorage.KindNoSuchWarehouse)
	for _, location := range []string{"file:///elsewhere/t", "file:///wh", "file:///wh/ns/t", "file:///wh/ns/t/inner", "file:///wh/ns", "relative", "file:///wh/../etc"} {
		request.Location = location
		_, err = f.CreateTable(f.ctx, ident("u"), request)
		wantKind(t, err, moorage.KindBadRequest)
	}
	f.wantClean()
}

func TestCreateTableAgainGetsAnotherLocation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.create("t")
	if err := f.RenameTable(f.ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	second := f.create("t")
	if first.Document.Location() == second.Document.Location() {
		t.Errorf("both tables live at %s", first.Document.Location())
	}
	f.wantClean()
}

// A namespace called like a table: neither may live within the other.
func TestNamespaceCalledLikeATable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("a")
	inner := moorage.Namespace{"ns", "a"}
	if _, err := f.CreateNamespace(f.ctx, testWarehouse, inner, nil); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []bool{false, true} {
		request := catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: stage}
		table, err := f.CreateTable(f.ctx, moorage.Identifier{Warehouse: testWarehouse, Namespace: inner, Name: "t"}, request)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(table.Document.Location(), "file:///wh/ns/a/") {
			t.Errorf("%s lies within the table ns.a", table.Document.Location())
		}
		if !stage {
			f.wantClean()
			if err := f.DropTable(f.ctx, table.Identifier, catalog.DropOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestExplicitLocationPassesFromDroppedTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := catalog.CreateTableRequest{Schema: []byte(testSchema), Location: "file:///wh/x/t/"}
	for range 3 {
		table, err := f.CreateTable(f.ctx, ident("t"), request)
		if err != nil {
			t.Fatal(err)
		}
		if want := "file:///wh/x/t"; table.Document.Location() != want {
			t.Errorf("location %s, want %s", table.Document.Location(), want)
		}
		f.wantClean()
		if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.wantClean()
}

func TestStagedCreate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	staged, err := f.CreateTable(f.ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true})
	if err != nil {
		t.Fatal(err)
	}
	if staged.MetadataLocation != "" {
		t.Errorf("a staged table has the metadata location %s", staged.MetadataLocation)
	}
	wantKind(t, f.TableExists(f.ctx, ident("t")), moorage.KindNoSuchTable)
	create := commitRequest(t, `[{"type":"assert-create"}]`, `[
		{"action":"assign-uuid","uuid":"`+staged.Document.UUID()+`"},
		{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":`+testSchema+`},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":"`+staged.Document.Location()+`"}]`)
	table, err := f.Commit(f.ctx, ident("t"), create)
	if err != nil {
		t.Fatal(err)
	}
	if table.Document.UUID() != staged.Document.UUID() || table.Document.Location() != staged.Document.Location() {
		t.Errorf("made %s at %s, want %s at %s", table.Document.UUID(), table.Document.Location(), staged.Document.UUID(), staged.Document.Location())
	}
	_, err = f.Commit(f.ctx, ident("t"), create)
	wantKind(t, err, moorage.KindCommitFailed)
	if want := "Requirement failed: table already exists"; moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	f.wantClean()
}

func TestRegister(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	request := catalog.RegisterRequest{MetadataLocation: table.MetadataLocation}
	_, err := f.RegisterTable(f.ctx, ident("t"), request)
	wantKind(t, err, moorage.KindAlreadyExists)
	_, err = f.RegisterTable(f.ctx, ident("u"), request)
	wantKind(t, err, moorage.KindAlreadyExists) // the table-uuid is live under another name
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	back, err := f.RegisterTable(f.ctx, ident("u"), request)
	if err != nil {
		t.Fatal(err)
	}
	if back.MetadataLocation != table.MetadataLocation {
		t.Errorf("registered %s, want %s", back.MetadataLocation, table.MetadataLocation)
	}
	f.wantClean() // no task is left: the purge was called off
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.LoadTable(f.ctx, ident("u")); err != nil {
		t.Fatal(err)
	}
	_, err = f.RegisterTable(f.ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: "file:///wh/no.metadata.json"})
	wantKind(t, err, moorage.KindNotFound)
	_, err = f.RegisterTable(f.ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: "file:///etc/passwd"})
	wantKind(t, err, moorage.KindBadRequest)
}

func TestRegisterOverwrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created := f.create("t")
	changed, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	back, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: created.MetadataLocation, Overwrite: true})
	if err != nil || back.MetadataLocation != created.MetadataLocation {
		t.Fatalf("overwrite with an older version: %v, %v", back, err)
	}
	f.wantClean()
	other := f.create("other")
	if _, err := f.UnregisterTable(f.ctx, ident("other")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: other.MetadataLocation, Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
	// The replaced table was dropped, not lost. Its file must not be so young that it may be.
	f.clock.Advance(3 * time.Minute)
	if _, err := f.RegisterTable(f.ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: changed.MetadataLocation}); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	last, err := f.UnregisterTable(f.ctx, ident("t"))
	if err != nil || last.MetadataLocation != table.MetadataLocation {
		t.Fatalf("unregister: %v, %v", last, err)
	}
	_, err = f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
	wantKind(t, err, moorage.KindNoSuchTable)
	if _, err := f.files.Stat(f.ctx, table.MetadataLocation); err != nil {
		t.Errorf("the metadata file is gone: %v", err)
	}
	if again := f.create("t"); !strings.HasPrefix(again.Document.Location(), table.Document.Location()+"-") {
		t.Errorf("location %s, want %s with a suffix: files are left there", again.Document.Location(), table.Document.Location())
	}
	f.wantClean()
}

func TestPurge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	next, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{table.MetadataLocation, next.MetadataLocation} {
		if _, err := f.files.Stat(f.ctx, location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s is still there (%v)", location, err)
		}
	}
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %v", report, err)
	}
	if again := f.create("t"); again.Document.Location() != table.Document.Location() {
		t.Errorf("location %s, want the free %s", again.Document.Location(), table.Document.Location())
	}
}

// The file is looked for even while its document is kept in memory.
func TestMissingMetadataFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	if err := f.files.Delete(f.ctx, table.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	_, err := f.LoadTable(f.ctx, ident("t"))
	wantKind(t, err, moorage.KindNotFound)
	want := "Failed to open input stream for file: " + table.MetadataLocation
	if moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	f.create("u")
	err = f.transact(on("u", setProperty(t, "n", "1")), on("t", setProperty(t, "n", "1")))
	wantKind(t, err, moorage.KindNotFound)
	if want += " (table " + ident("t").String() + ")"; moorage.MessageOf(err) != want {
		t.Errorf("a transaction has the message %q, want %q", moorage.MessageOf(err), want)
	}
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Errorf("drop without the file: %v", err)
	}
}

// unreachableFiles is storage that cannot be asked what it has.
type unreachableFiles struct{ storage.Store }

func (unreachableFiles) MayBeGone(string) bool { return true }

func (unreachableFiles) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{}, errors.New("input/output error")
}

func (unreachableFiles) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return nil, storage.Info{}, errors.New("input/output error")
}

// A document that is kept is served as long as its file is not known to be missing.
func TestUnreachableMetadataFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *catalog.Config) {
		wrapStorage(c, func(inner storage.Store) storage.Store { return unreachableFiles{inner} })
	})
	f.create("t")
	if _, err := f.LoadTable(f.ctx, ident("t")); err != nil {
		t.Errorf("load of a document that is kept: %v", err)
	}
	_, err := f.other(f.store).LoadTable(f.ctx, ident("t"))
	wantKind(t, err, moorage.KindUnavailable)
}
