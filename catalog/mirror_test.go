package catalog_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

const oldCatalog = "https://old.example.com"

// unregistered makes a table of two versions, unregisters it, and returns its metadata files, the
// first version first.
func unregistered(f *catalogkit.Fixture, name string) []string {
	f.T.Helper()
	files := []string{f.Create(name).MetadataLocation}
	table, err := f.Commit(f.Ctx, ident(name), catalogkit.SetProperty(f.T, "p", "q"))
	must(f.T, err)
	must(f.T, unregisterTable(ident(name))(f.Ctx, f.Instance))
	return append(files, table.MetadataLocation)
}

// putMirror is a client that makes or moves the mirror called name.
func putMirror(name, location string) catalogkit.RaceClient {
	return putMirrorOf(oldCatalog, name, &location)
}

// putMirrorOf is putMirror for a source. It reads what location points to when it is called.
func putMirrorOf(source, name string, location *string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return mirrorsOf(c).Put(ctx, access.Table, ident(name), source, *location)
	}
}

// endMirror is a client that ends the mirror called name at what location points to.
func endMirror(name string, location *string) catalogkit.RaceClient {
	return func(ctx context.Context, c catalog.Verbs) error {
		return mirrorsOf(c).End(ctx, access.Table, ident(name), *location)
	}
}

func mirrorsOf(c catalog.Verbs) catalog.Mirrors {
	return c.(interface{ Mirrors() catalog.Mirrors }).Mirrors()
}

// TestMirrorRefuses: nothing but Put changes a mirror. When it has ended it is an ordinary table.
func TestMirrorRefuses(t *testing.T) {
	t.Parallel()
	commitTo := func(ctx context.Context, c catalog.Verbs) error {
		_, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
		return err
	}
	for name, do := range map[string]catalogkit.RaceClient{
		"commit": commitTo,
		"transaction": func(ctx context.Context, c catalog.Verbs) error {
			return c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
				{Ident: ident("u"), CommitRequest: catalogkit.SetProperty(t, "a", "b")},
				{Ident: ident("t"), CommitRequest: catalogkit.SetProperty(t, "a", "b")},
			})
		},
		"drop":             dropTable(ident("t"), catalog.DropOptions{}),
		"purge":            dropTable(ident("t"), catalog.DropOptions{Purge: true}),
		"unregister":       unregisterTable(ident("t")),
		"rename":           renameTable(ident("t"), ident("renamed")),
		"register over it": registerOver(ident("t")),
		"undrop over it": func(ctx context.Context, c catalog.Verbs) error {
			asked, as := called("gone"), ident("t")
			asked.As, asked.Replace = &as, true
			return undropTable(asked)(ctx, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			files := unregistered(f, "t")
			f.Create("u")
			f.Create("gone")
			dropOf(f, "gone")
			must(t, putMirror("t", files[1])(f.Ctx, f.Instance))
			before := recordsOf(f)
			err := do(f.Ctx, f.Instance)
			catalogkit.WantKind(t, err, moorage.KindForbidden)
			if said := moorage.MessageOf(err); !strings.Contains(said, "ns.t is a mirror of "+oldCatalog) {
				t.Errorf("the refusal is %s", said)
			}
			for key, etag := range recordsOf(f) {
				if before[key] != etag {
					t.Errorf("a refusal changed %s", key)
				}
			}
			must(t, f.Mirrors().End(f.Ctx, access.Table, ident("t"), files[1]))
			must(t, do(f.Ctx, f.Instance))
			f.WantClean()
		})
	}
}

// TestMirrorMoves: a mirror moves to each file of its uuid and keeps its pointer. It ends only at
// the file that the caller has compared.
func TestMirrorMoves(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	files := unregistered(f, "t")
	must(t, putMirror("t", files[1])(f.Ctx, f.Instance))
	first := f.PointerOf("t")
	must(t, protectTable("t")(f.Ctx, f.Instance)) // does not refuse a move
	must(t, putMirror("t", files[0])(f.Ctx, f.Instance))
	if now := f.PointerOf("t"); now.ID != first.ID || now.MetadataLocation != files[0] || now.Frozen != oldCatalog {
		t.Errorf("the mirror is %+v", now)
	}
	source, err := f.Mirrors().Load(f.Ctx, access.Table, ident("t"))
	must(t, err)
	if source != oldCatalog {
		t.Errorf("it is a mirror of %q", source)
	}
	for _, file := range files { // another catalog does not take it over, not even at the same file
		err := putMirrorOf("https://other.example.com", "t", &file)(f.Ctx, f.Instance)
		catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
		if want := "ns.t is a mirror of " + oldCatalog; !strings.Contains(moorage.MessageOf(err), want) {
			t.Errorf("the refusal is %s, want %s", moorage.MessageOf(err), want)
		}
	}
	if now := f.PointerOf("t"); now.MetadataLocation != files[0] || now.Frozen != oldCatalog {
		t.Errorf("after a refusal the mirror is %+v", now)
	}
	catalogkit.WantKind(t, f.Mirrors().End(f.Ctx, access.Table, ident("t"), files[1]), moorage.KindCommitFailed)
	for range 2 { // the second one finds nothing to do
		must(t, f.Mirrors().End(f.Ctx, access.Table, ident("t"), files[0]))
	}
	catalogkit.WantKind(t, putMirror("t", files[0])(f.Ctx, f.Instance), moorage.KindAlreadyExists)
	f.Create("u")
	catalogkit.WantKind(t, putMirror("u", files[0])(f.Ctx, f.Instance), moorage.KindAlreadyExists)
	f.WantClean()
}

// TestMirrorRaisesFormat: the first mirror in a store raises the version that the store needs, also
// after a protection, and older nodes are awaited once each time.
func TestMirrorRaisesFormat(t *testing.T) {
	t.Parallel()
	awaited := 0
	f := catalogkit.New(t, func(c *catalog.Config) {
		c.AwaitOldNodes = func(context.Context) error {
			awaited++
			return nil
		}
	})
	files := unregistered(f, "t")
	must(t, protect("ns")(f.Ctx, f.Instance))
	for range 2 {
		must(t, putMirror("t", files[1])(f.Ctx, f.Instance))
	}
	records, err := f.Ledger.Get(f.Ctx, registry.FormatKey())
	must(t, err)
	format, err := registry.Decode[registry.Format](records[0])
	must(t, err)
	if format.Version != registry.FormatMirror || awaited != 2 {
		t.Errorf("the store has format %d, and old nodes were awaited %d times", format.Version, awaited)
	}
}

// TestCheckRegister: a check finds what a register would meet, and changes nothing.
func TestCheckRegister(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	files := unregistered(f, "t")
	former := f.Create("live").MetadataLocation
	live := f.MetadataFiles("live", 1)[0]
	mirrored := unregistered(f, "mirror")
	must(t, putMirror("mirror", mirrored[0])(f.Ctx, f.Instance))
	renamed := f.Create("was").MetadataLocation
	must(t, f.RenameTable(f.Ctx, ident("was"), ident("is")))
	must(t, createTableAt(ident("around"), "file:///wh/ns/t/below")(f.Ctx, f.Instance))
	deep := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"x", "y"}, Name: "z"}
	before := recordsOf(f)
	for name, row := range map[string]struct {
		ident    moorage.Identifier
		location string
		want     catalog.Fitness
	}{
		"nested":            {ident("t"), files[1], catalog.IsNested},
		"same":              {ident("live"), live, catalog.FitsSame},
		"changed":           {ident("live"), former, catalog.FitsChanged},
		"moved":             {ident("mirror"), mirrored[1], catalog.FitsMoved},
		"name taken":        {ident("live"), files[0], catalog.NameTaken},
		"uuid taken":        {ident("new"), renamed, catalog.UUIDTaken},
		"uuid taken, deep":  {deep, live, catalog.UUIDTaken},
		"no file":           {ident("new"), "file:///wh/ns/t/metadata/none.metadata.json", catalog.Unreadable},
		"no location":       {ident("new"), "::", catalog.Unreadable},
		"outside, unopened": {ident("new"), "file:///elsewhere/t/metadata/v1.metadata.json", catalog.IsOutside},
	} {
		checked, err := f.Mirrors().Check(f.Ctx, access.Table, row.ident, catalog.CheckRequest{
			MetadataLocation: row.location, NewNamespace: len(row.ident.Namespace) > 1,
		})
		must(t, err)
		said := slices.Contains([]catalog.Fitness{catalog.FitsNew, catalog.FitsSame, catalog.FitsMoved}, checked.Fitness)
		if checked.Fitness != row.want || said != (checked.Why == "") {
			t.Errorf("%s: %s %q, want %s", name, checked.Fitness, checked.Why, row.want)
		}
	}
	_, err := f.Mirrors().Check(f.Ctx, access.Table, deep, catalog.CheckRequest{MetadataLocation: live})
	catalogkit.WantKind(t, err, moorage.KindNoSuchNamespace)
	for key, etag := range recordsOf(f) {
		if before[key] != etag {
			t.Errorf("a check changed %s", key)
		}
	}
}

// TestCheckRegisterShowsNoOther: a caller that may register a file of a table elsewhere does not
// learn what the file contains.
func TestCheckRegisterShowsNoOther(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	location := f.Create("hidden").MetadataLocation
	f.Create("taken")
	for name, want := range map[string]catalog.Fitness{"free": catalog.UUIDTaken, "taken": catalog.NameTaken, "hidden": catalog.FitsSame} {
		checked, err := f.Mirrors().Check(f.Ctx, access.Table, ident(name), catalog.CheckRequest{MetadataLocation: location})
		must(t, err)
		if isOwn := name == "hidden"; checked.Fitness != want || (checked.Document != nil) != isOwn {
			t.Errorf("%s: %+v, want %s", name, checked, want)
		}
	}
}

// TestRegisterRequires: a register of an ordinary table happens only if its requirement holds when
// its Apply happens. Each attempt asks for the requirement.
func TestRegisterRequires(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	files := unregistered(f, "t")
	register := func(requires catalog.Requires) error {
		return f.Mirrors().Register(f.Ctx, access.Table, ident("t"), files[1], requires)
	}
	refusal := moorage.Errorf(moorage.KindAlreadyExists, "not now")
	before := recordsOf(f)
	err := register(func(context.Context, registry.ID) ([]registry.Condition, error) { return nil, refusal })
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	for key, etag := range recordsOf(f) {
		if before[key] != etag {
			t.Errorf("a refusal changed %s", key)
		}
	}
	attempts := 0
	err = register(func(context.Context, registry.ID) ([]registry.Condition, error) {
		if attempts++; attempts == 3 {
			return nil, refusal
		}
		return []registry.Condition{registry.ETagIs(registry.WarehouseKey(catalogkit.Warehouse), registry.ETag{1})}, nil
	})
	catalogkit.WantKind(t, err, moorage.KindAlreadyExists)
	_, err = f.LoadTable(f.Ctx, ident("t"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	var id registry.ID
	must(t, register(func(_ context.Context, pointer registry.ID) ([]registry.Condition, error) {
		id = pointer
		return nil, nil
	}))
	if now := f.PointerOf("t"); now.ID != id || now.Frozen != "" || now.MetadataLocation != files[1] {
		t.Errorf("the table is %+v; its requirement was asked for %s", now, id)
	}
	f.WantClean()
}

// mirrorRaces are the races about a mirror. An import moves it to the other file of its source: the
// earlier one, because a register refuses an unnamed file that a server drew a moment ago.
func mirrorRaces(t testing.TB) []race {
	// Each race has files of its own.
	about := func(name string, a, b func(now, other *string) catalogkit.RaceClient, ends ...string) race {
		now, other := new(string), new(string)
		return race{
			name: name, a: a(now, other), b: b(now, other), ends: ends,
			leaves: true, // a mirror has the files of its source
			prepare: func(f *catalogkit.Fixture) {
				files := unregistered(f, "t")
				*now, *other = files[1], files[0]
				must(f.T, putMirrorOf(oldCatalog, "t", now)(f.Ctx, f.Instance))
			},
		}
	}
	moves := func(_, other *string) catalogkit.RaceClient { return putMirrorOf(oldCatalog, "t", other) }
	cutOver := func(now, _ *string) catalogkit.RaceClient { return endMirror("t", now) }
	anyFile := func(client catalogkit.RaceClient) func(_, _ *string) catalogkit.RaceClient {
		return func(_, _ *string) catalogkit.RaceClient { return client }
	}
	commits := anyFile(catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "a", "b")))
	drops := anyFile(dropTable(ident("t"), catalog.DropOptions{}))
	renames := anyFile(renameTable(ident("t"), ident("u")))
	return []race{
		about("move a mirror, commit to it", moves, commits, "done, forbidden: ns ns:t"),
		about("move a mirror, drop it", moves, drops, "done, forbidden: ns ns:t"),
		about("move a mirror, rename it", moves, renames, "done, forbidden: ns ns:t"),
		about("move a mirror, end it", moves, cutOver, "done, commit failed: ns ns:t", "already exists, done: ns ns:t"),
		about("move a mirror twice", moves, moves, "done, done: ns ns:t"),
		about("end a mirror, commit to it", cutOver, commits, "done, done: ns ns:t", "done, forbidden: ns ns:t"),
		about("end a mirror, drop it", cutOver, drops, "done, done: ns", "done, forbidden: ns ns:t"),
		about("end a mirror, rename it", cutOver, renames, "done, done: ns ns:u", "done, forbidden: ns ns:t"),
	}
}
