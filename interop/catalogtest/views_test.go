package catalogtest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	icebergrest "github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
	"github.com/google/uuid"
)

// views is the fixture for tests of views: a client, the schema of all views, and a namespace for
// them.
type views struct {
	*icebergrest.Catalog
	schema    *iceberg.Schema
	namespace table.Identifier
}

// newViews starts a server over a catalog that has one namespace.
func newViews(t *testing.T, warehouse string) views {
	t.Helper()
	client, ok := newClient(t, warehouse).(*icebergrest.Catalog)
	if !ok {
		t.Fatal("the client is another one")
	}
	v := views{client, iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}), table.Identifier{"ns"}}
	if err := v.CreateNamespace(t.Context(), v.namespace, nil); err != nil {
		t.Fatal(err)
	}
	return v
}

// ident returns the identifier of a view in the namespace.
func (v views) ident(name string) table.Identifier { return append(slices.Clone(v.namespace), name) }

// version returns a view version with the query in each of the dialects.
func (v views) version(t *testing.T, query string, dialects ...string) *view.Version {
	t.Helper()
	var representations []view.Representation
	for _, dialect := range dialects {
		representations = append(representations, view.NewRepresentation(query, dialect))
	}
	made, err := view.NewVersion(1, 0, representations, v.namespace)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// create creates a view with one query.
func (v views) create(t *testing.T, name, query string, opts ...icebergcatalog.CreateViewOpt) *view.View {
	t.Helper()
	made, err := v.CreateView(t.Context(), v.ident(name), v.version(t, query, "spark"), v.schema, opts...)
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return made
}

// load loads a view.
func (v views) load(t *testing.T, ident table.Identifier) *view.View {
	t.Helper()
	loaded, err := v.LoadView(t.Context(), ident)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// update sends the changes that a builder made to a view. It fails the test unless the response is
// the document that the builder produced.
func (v views) update(t *testing.T, of *view.View, change func(*view.MetadataBuilder) *view.MetadataBuilder) *view.View {
	t.Helper()
	builder, err := view.MetadataBuilderFromBase(of.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	built, err := change(builder).Build()
	if err != nil {
		t.Fatal(err)
	}
	updated, err := v.UpdateView(t.Context(), of.Identifier(), view.Requirements{view.AssertViewUUID(of.Metadata().ViewUUID())}, built.Changes)
	if err != nil {
		t.Fatal(err)
	}
	if !alike(built, updated.Metadata()) {
		t.Errorf("the view is\n%+v, want\n%+v", updated.Metadata(), built.Metadata)
	}
	return updated
}

// alike reports whether two documents are equal. It ignores the times in their logs, because each
// side uses its own clock.
func alike(a, b view.Metadata) bool {
	sameID := func(a, b view.VersionLogEntry) bool { return a.VersionID == b.VersionID }
	return a.ViewUUID() == b.ViewUUID() && a.FormatVersion() == b.FormatVersion() && a.Location() == b.Location() &&
		a.CurrentVersionID() == b.CurrentVersionID() && maps.Equal(a.Properties(), b.Properties()) &&
		slices.EqualFunc(a.Versions(), b.Versions(), (*view.Version).Equals) &&
		slices.EqualFunc(a.Schemas(), b.Schemas(), (*iceberg.Schema).Equals) &&
		slices.EqualFunc(a.VersionLog(), b.VersionLog(), sameID)
}

// wantNames fails the test unless exactly these views are listed, and no table.
func (v views) wantNames(t *testing.T, want ...string) {
	t.Helper()
	for size := 1; size <= len(want)+1; size++ {
		names := []string{}
		for ident, err := range v.ListViews(v.SetPageSize(t.Context(), size), v.namespace) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.Join(ident, "."))
		}
		if !slices.Equal(names, want) {
			t.Errorf("pages of %d: %v, want %v", size, names, want)
		}
	}
	for ident, err := range v.ListTables(t.Context(), v.namespace) {
		t.Errorf("listed as a table: %v, %v", ident, err)
	}
}

// A view goes through every operation that the client supports.
func TestViews(t *testing.T) {
	t.Parallel()
	for _, row := range warehousePaths {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := newViews(t, row.warehouse)
			v.wantNames(t)
			made := v.create(t, "seen", "SELECT 1", icebergcatalog.WithViewProperties(iceberg.Properties{"team": "a"}))
			if got := made.CurrentVersion(); got.VersionID != 1 || got.SchemaID != 0 || got.DefaultCatalog != "moorage" || !slices.Equal(got.DefaultNamespace, v.namespace) ||
				got.Representations[0] != view.NewRepresentation("SELECT 1", "spark") || got.Summary["engine-name"] == "" {
				t.Errorf("the version is %+v", got)
			}
			if made.Properties()["team"] != "a" || !made.CurrentSchema().Equals(v.schema) {
				t.Errorf("the properties are %v, the schema %s", made.Properties(), made.CurrentSchema())
			}
			if loaded := v.load(t, v.ident("seen")); !loaded.Metadata().Equals(made.Metadata()) || loaded.MetadataLocation() != made.MetadataLocation() {
				t.Errorf("loaded %+v, want %+v", loaded, made)
			}
			v.create(t, "other", "SELECT 2")
			v.wantNames(t, "ns.other", "ns.seen")
			wide := iceberg.NewSchema(1, append(v.schema.Fields(), iceberg.NestedField{ID: 2, Name: "place", Type: iceberg.PrimitiveTypes.String})...)
			updated := v.update(t, made, func(b *view.MetadataBuilder) *view.MetadataBuilder {
				return b.SetCurrentVersion(v.version(t, "SELECT 3", "spark", "trino"), wide).
					SetProperties(iceberg.Properties{"team": "b", "of": "us", "replace.drop-dialect.allowed": "true"})
			})
			updated = v.update(t, updated, func(b *view.MetadataBuilder) *view.MetadataBuilder {
				return b.SetCurrentVersionID(1).RemoveProperties([]string{"of"}).SetLoc(made.Location() + "_moved")
			})
			if log := updated.Metadata().VersionLog(); len(updated.Versions()) != 2 || len(log) != 3 || updated.MetadataLocation() == made.MetadataLocation() {
				t.Errorf("there are the versions %v, the log %v and the file %s", updated.Versions(), log, updated.MetadataLocation())
			}
			v.moveAround(t, updated)
		})
	}
}

// moveAround renames, drops and re-registers a view.
func (v views) moveAround(t *testing.T, known *view.View) {
	t.Helper()
	if err := v.CreateNamespace(t.Context(), table.Identifier{"ns", "inner"}, nil); err != nil {
		t.Fatal(err)
	}
	renamed, err := v.RenameView(t.Context(), known.Identifier(), table.Identifier{"ns", "inner", "renamed"})
	if err != nil {
		t.Fatal(err)
	}
	v.wantNames(t, "ns.other")
	if err := v.DropView(t.Context(), renamed.Identifier()); err != nil {
		t.Fatal(err)
	}
	if there, err := v.CheckViewExists(t.Context(), renamed.Identifier()); there || err != nil {
		t.Errorf("dropped, and there: %t, %v", there, err)
	}
	registered, err := v.RegisterView(t.Context(), v.ident("again"), renamed.MetadataLocation())
	if err != nil {
		t.Fatal(err)
	}
	if there, err := v.CheckViewExists(t.Context(), registered.Identifier()); !there || err != nil {
		t.Errorf("registered, and there: %t, %v", there, err)
	}
	for _, other := range []*view.View{renamed, registered, v.load(t, v.ident("again"))} {
		if other.MetadataLocation() != known.MetadataLocation() || !other.Metadata().Equals(known.Metadata()) {
			t.Errorf("%v is %+v, want %+v", other.Identifier(), other.Metadata(), known.Metadata())
		}
	}
}

// The client maps each refusal to its own error.
func TestViewsRefused(t *testing.T) {
	t.Parallel()
	v := newViews(t, "wh")
	seen := v.create(t, "seen", "SELECT 1")
	if _, err := v.CreateTable(t.Context(), v.ident("events"), v.schema); err != nil {
		t.Fatal(err)
	}
	create := func(ident table.Identifier) error {
		_, err := v.CreateView(t.Context(), ident, v.version(t, "SELECT 2", "spark"), v.schema)
		return err
	}
	rename := func(from, to string) error {
		_, err := v.RenameView(t.Context(), v.ident(from), v.ident(to))
		return err
	}
	update := func(name string, id uuid.UUID) error {
		_, err := v.UpdateView(t.Context(), v.ident(name), view.Requirements{view.AssertViewUUID(id)},
			view.Updates{view.NewSetPropertiesUpdate(iceberg.Properties{"lost": "yes"})})
		return err
	}
	_, loaded := v.LoadView(t.Context(), v.ident("events"))
	_, loadedAsTable := v.LoadTable(t.Context(), v.ident("seen"))
	_, createdTable := v.CreateTable(t.Context(), v.ident("seen"), v.schema)
	_, registered := v.RegisterView(t.Context(), v.ident("events"), seen.MetadataLocation())
	for _, row := range []struct {
		name      string
		got, want error
	}{
		{"create beside a view", create(v.ident("seen")), icebergcatalog.ErrViewAlreadyExists},
		{"create beside a table", create(v.ident("events")), icebergcatalog.ErrViewAlreadyExists},
		{"create nowhere", create(table.Identifier{"absent", "seen"}), icebergcatalog.ErrNoSuchNamespace},
		{"load a table", loaded, icebergcatalog.ErrNoSuchView},
		{"load as a table", loadedAsTable, icebergcatalog.ErrNoSuchTable},
		{"create a table beside it", createdTable, icebergcatalog.ErrTableAlreadyExists},
		{"register beside a table", registered, icebergcatalog.ErrViewAlreadyExists},
		{"rename to a table", rename("seen", "events"), icebergcatalog.ErrViewAlreadyExists},
		{"rename a table", rename("events", "free"), icebergcatalog.ErrNoSuchView},
		{"rename nothing", rename("absent", "free"), icebergcatalog.ErrNoSuchView},
		{"update another", update("seen", uuid.New()), icebergrest.ErrCommitFailed},
		{"update nothing", update("absent", seen.Metadata().ViewUUID()), icebergcatalog.ErrNoSuchView},
		{"update a table", update("events", seen.Metadata().ViewUUID()), icebergcatalog.ErrNoSuchView},
		{"drop a table", v.DropView(t.Context(), v.ident("events")), icebergcatalog.ErrNoSuchView},
		{"drop nothing", v.DropView(t.Context(), v.ident("absent")), icebergcatalog.ErrNoSuchView},
	} {
		if !errors.Is(row.got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, row.got, row.want)
		}
	}
	if now := v.load(t, v.ident("seen")); now.MetadataLocation() != seen.MetadataLocation() {
		t.Errorf("the view has the file %s, want %s", now.MetadataLocation(), seen.MetadataLocation())
	}
}
