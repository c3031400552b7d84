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
	"moorage/testkit/catalogkit"
)

func TestTableLife(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	created := f.Create("t")
	if want := "file:///wh/ns/t/metadata/00000-"; !strings.HasPrefix(created.MetadataLocation, want) {
		t.Errorf("metadata location %s, want prefix %s", created.MetadataLocation, want)
	}
	first, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, created, 10, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if want := "file:///wh/ns/t/metadata/00001-"; !strings.HasPrefix(first.MetadataLocation, want) {
		t.Errorf("metadata location %s, want prefix %s", first.MetadataLocation, want)
	}
	if log := first.Document.MetadataLog(); len(log) != 1 || log[0].MetadataLocation != created.MetadataLocation {
		t.Errorf("metadata log %v, want the location of the created version", log)
	}
	loaded, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.MetadataLocation != first.MetadataLocation {
		t.Errorf("loaded %s, want %s", loaded.MetadataLocation, first.MetadataLocation)
	}
	_, err = f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, created, 11, 0, 2))
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	same, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[]`))
	if err != nil || same.MetadataLocation != first.MetadataLocation {
		t.Errorf("empty commit answered %v, %v; want the present version", same, err)
	}
	if err := f.RenameTable(f.Ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadTable(f.Ctx, ident("t"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	f.WantClean()
	if err := f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = f.LoadTable(f.Ctx, ident("u"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	catalogkit.WantKind(t, f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{}), moorage.KindNoSuchTable)
	f.WantClean()
}

func TestCreateTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
	_, err := f.CreateTable(f.Ctx, ident("t"), request)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	if want := "Table already exists: ns.t"; moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	missing := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"no"}, Name: "t"}
	_, err = f.CreateTable(f.Ctx, missing, request)
	catalogkit.WantKind(t, err, moorage.KindNoSuchNamespace)
	missing.Warehouse = "no"
	_, err = f.CreateTable(f.Ctx, missing, request)
	catalogkit.WantKind(t, err, moorage.KindNoSuchWarehouse)
	for _, location := range []string{"file:///elsewhere/t", "file:///wh", "file:///wh/ns/t", "file:///wh/ns/t/inner", "file:///wh/ns", "relative", "file:///wh/../etc"} {
		request.Location = location
		_, err = f.CreateTable(f.Ctx, ident("u"), request)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	f.WantClean()
}

func TestCreateTableAgainGetsAnotherLocation(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	first := f.Create("t")
	if err := f.RenameTable(f.Ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	second := f.Create("t")
	if first.Document.Location() == second.Document.Location() {
		t.Errorf("both tables live at %s", first.Document.Location())
	}
	f.WantClean()
}

// If a namespace has the same name as a table, neither location may lie within the other.
func TestNamespaceCalledLikeATable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("a")
	inner := moorage.Namespace{"ns", "a"}
	if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, inner, nil); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []bool{false, true} {
		request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: stage}
		table, err := f.CreateTable(f.Ctx, moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: inner, Name: "t"}, request)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(table.Document.Location(), "file:///wh/ns/a/") {
			t.Errorf("%s lies within the table ns.a", table.Document.Location())
		}
		if !stage {
			f.WantClean()
			if err := f.DropTable(f.Ctx, table.Identifier, catalog.DropOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestExplicitLocationPassesFromDroppedTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: "file:///wh/x/t/"}
	for range 3 {
		table, err := f.CreateTable(f.Ctx, ident("t"), request)
		if err != nil {
			t.Fatal(err)
		}
		if want := "file:///wh/x/t"; table.Document.Location() != want {
			t.Errorf("location %s, want %s", table.Document.Location(), want)
		}
		f.WantClean()
		if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.WantClean()
}

func TestStagedCreate(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	staged, err := f.CreateTable(f.Ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
	if err != nil {
		t.Fatal(err)
	}
	if staged.MetadataLocation != "" {
		t.Errorf("a staged table has the metadata location %s", staged.MetadataLocation)
	}
	catalogkit.WantKind(t, f.TableExists(f.Ctx, ident("t")), moorage.KindNoSuchTable)
	create := catalogkit.CommitRequest(t, `[{"type":"assert-create"}]`, `[
		{"action":"assign-uuid","uuid":"`+staged.Document.UUID()+`"},
		{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":`+catalogkit.Schema+`},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":"`+staged.Document.Location()+`"}]`)
	table, err := f.Commit(f.Ctx, ident("t"), create)
	if err != nil {
		t.Fatal(err)
	}
	if table.Document.UUID() != staged.Document.UUID() || table.Document.Location() != staged.Document.Location() {
		t.Errorf("made %s at %s, want %s at %s", table.Document.UUID(), table.Document.Location(), staged.Document.UUID(), staged.Document.Location())
	}
	_, err = f.Commit(f.Ctx, ident("t"), create)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if want := "Requirement failed: table already exists"; moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	f.WantClean()
}

func TestRegister(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	request := catalog.RegisterRequest{MetadataLocation: table.MetadataLocation}
	_, err := f.RegisterTable(f.Ctx, ident("t"), request)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	_, err = f.RegisterTable(f.Ctx, ident("u"), request)
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists) // the table-uuid is live under another name
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	back, err := f.RegisterTable(f.Ctx, ident("u"), request)
	if err != nil {
		t.Fatal(err)
	}
	if back.MetadataLocation != table.MetadataLocation {
		t.Errorf("registered %s, want %s", back.MetadataLocation, table.MetadataLocation)
	}
	f.WantClean() // no task is left, because the purge was cancelled
	if err := f.PurgeAll(f.Ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.LoadTable(f.Ctx, ident("u")); err != nil {
		t.Fatal(err)
	}
	_, err = f.RegisterTable(f.Ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: "file:///wh/no.metadata.json"})
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	_, err = f.RegisterTable(f.Ctx, ident("v"), catalog.RegisterRequest{MetadataLocation: "file:///etc/passwd"})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
}

func TestRegisterOverwrite(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	created := f.Create("t")
	changed, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	back, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: created.MetadataLocation, Overwrite: true})
	if err != nil || back.MetadataLocation != created.MetadataLocation {
		t.Fatalf("overwrite with an older version: %v, %v", back, err)
	}
	f.WantClean()
	other := f.Create("other")
	if _, err := f.UnregisterTable(f.Ctx, ident("other")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: other.MetadataLocation, Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	f.WantClean()
	// The replaced table was dropped, not lost. Its file must be old enough, because a fresh file
	// may be refused.
	f.Clock.Advance(3 * time.Minute)
	if _, err := f.RegisterTable(f.Ctx, ident("back"), catalog.RegisterRequest{MetadataLocation: changed.MetadataLocation}); err != nil {
		t.Fatal(err)
	}
	f.WantClean()
}

func TestUnregister(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	last, err := f.UnregisterTable(f.Ctx, ident("t"))
	if err != nil || last.MetadataLocation != table.MetadataLocation {
		t.Fatalf("unregister: %v, %v", last, err)
	}
	_, err = f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	if _, err := f.Files.Stat(f.Ctx, table.MetadataLocation); err != nil {
		t.Errorf("the metadata file is gone: %v", err)
	}
	if again := f.Create("t"); !strings.HasPrefix(again.Document.Location(), table.Document.Location()+"-") {
		t.Errorf("location %s, want %s with a suffix: files are left there", again.Document.Location(), table.Document.Location())
	}
	f.WantClean()
}

func TestPurge(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	next, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.PurgeAll(f.Ctx); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{table.MetadataLocation, next.MetadataLocation} {
		if _, err := f.Files.Stat(f.Ctx, location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s is still there (%v)", location, err)
		}
	}
	report, err := f.Check(f.Ctx)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %v", report, err)
	}
	if again := f.Create("t"); again.Document.Location() != table.Document.Location() {
		t.Errorf("location %s, want the free %s", again.Document.Location(), table.Document.Location())
	}
}

// The existence of the file is checked even while its document is in the cache.
func TestMissingMetadataFile(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	if err := f.Files.Delete(f.Ctx, table.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	_, err := f.LoadTable(f.Ctx, ident("t"))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	want := "Failed to open input stream for file: " + table.MetadataLocation
	if moorage.MessageOf(err) != want {
		t.Errorf("message %q, want %q", moorage.MessageOf(err), want)
	}
	f.Create("u")
	err = f.Transact(catalogkit.On("u", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("t", catalogkit.SetProperty(t, "n", "1")))
	catalogkit.WantKind(t, err, moorage.KindNotFound)
	if want += " (table " + ident("t").String() + ")"; moorage.MessageOf(err) != want {
		t.Errorf("a transaction has the message %q, want %q", moorage.MessageOf(err), want)
	}
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Errorf("drop without the file: %v", err)
	}
}

// unreachableFiles is a storage that fails all checks for existence.
type unreachableFiles struct{ storage.Store }

func (unreachableFiles) MayBeGone(string) bool { return true }

func (unreachableFiles) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{}, errors.New("input/output error")
}

func (unreachableFiles) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return nil, storage.Info{}, errors.New("input/output error")
}

// A cached document is served unless its file is known to be missing.
func TestUnreachableMetadataFile(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(c *catalog.Config) {
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return unreachableFiles{inner} })
	})
	f.Create("t")
	if _, err := f.LoadTable(f.Ctx, ident("t")); err != nil {
		t.Errorf("load of a document that is kept: %v", err)
	}
	_, err := f.Other(f.Store).LoadTable(f.Ctx, ident("t"))
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
}
