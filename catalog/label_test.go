package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
)

// labelsOf returns the verbs on labels of a catalog, with its key.
func labelsOf(c catalog.Verbs) catalog.Labels {
	return c.(interface{ Labels() catalog.Labels }).Labels()
}

func teamLabels(team string) registry.Labels {
	return registry.Labels{Object: map[string]string{"team": team}}
}

func fieldLabels(field int) registry.Labels {
	return registry.Labels{Fields: []registry.FieldLabels{{Field: field, Labels: map[string]string{"classification": "pii"}}}}
}

// label sets the labels of a table or view.
func label(f *catalogkit.Fixture, kind access.Kind, name string, labels registry.Labels) registry.ID {
	f.T.Helper()
	version, err := f.Labels().Put(f.Ctx, kind, ident(name), labels, nil)
	testkit.Must(f.T, err)
	return version
}

// labelRecords returns the number of label records.
func labelRecords(f *catalogkit.Fixture) int {
	f.T.Helper()
	records, err := f.Store.ListKeys(f.Ctx, registry.TableLabel, "", "", 100)
	testkit.Must(f.T, err)
	return len(records)
}

// Loads of a table return its labels, with the version that belongs to the text. Labels survive
// commits, renames, and a drop followed by an undrop, and end with the table. They are not in the
// metadata.
func TestLabelsOfATable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	before := f.Create("t")
	if table := f.Load("t"); !table.Labels.Version.IsZero() || table.Labels.Text != nil {
		t.Fatalf("a table without labels has %+v", table.Labels)
	}
	labels := fieldLabels(2)
	labels.Object = map[string]string{"team": "billing", "<a>": "\x00"}
	version := label(f, access.Table, "t", labels)
	const text = `{"object-labels":{"\u003ca\u003e":"\u0000","team":"billing"},"fields":[{"field-id":2,"labels":{"classification":"pii"}}]}`
	want := func(name string) {
		t.Helper()
		table := f.Load(name)
		if string(table.Labels.Text) != text || table.Labels.Version != version {
			t.Errorf("%s has the labels %s in version %s", name, table.Labels.Text, table.Labels.Version)
		}
		if strings.Contains(string(table.Document.Raw()), "billing") {
			t.Errorf("the metadata of %s has labels", name)
		}
		found, at, err := f.Labels().Load(f.Ctx, access.Table, ident(name))
		if err != nil || at != version || found.Object["team"] != "billing" || len(found.Fields) != 1 {
			t.Errorf("%s has the labels %+v in version %s (%v)", name, found, at, err)
		}
	}
	want("t")
	if after := f.Load("t"); after.MetadataLocation != before.MetadataLocation {
		t.Error("labels made a version of the table")
	}
	committed, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	testkit.Must(t, err)
	if committed.Labels.Version != version || committed.Labels.Text != nil {
		t.Errorf("a commit answers the labels %+v", committed.Labels)
	}
	want("t")
	testkit.Must(t, f.RenameTable(f.Ctx, ident("t"), ident("u")))
	want("u")
	testkit.Must(t, f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{}))
	if n := labelRecords(f); n != 1 {
		t.Errorf("%d label records after the drop", n)
	}
	f.WantClean()
	back, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: committed.MetadataLocation})
	testkit.Must(t, err)
	if string(back.Labels.Text) != text || back.Labels.Version != version {
		t.Errorf("taken back with the labels %s", back.Labels.Text)
	}
	want("t")
	f.Create("other")
	testkit.Must(t, f.DropTable(f.Ctx, ident("other"), catalog.DropOptions{}))
	label(f, access.Table, "t", registry.Labels{Object: map[string]string{}})
	if table := f.Load("t"); table.Labels.Text != nil || !table.Labels.Version.IsZero() || labelRecords(f) != 0 {
		t.Errorf("labels that were removed are %+v, with %d records", table.Labels, labelRecords(f))
	}
	f.WantClean()
}

// However a table or view ends, its labels end with it.
func TestLabelsEndWithTheirObject(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *catalogkit.Fixture) error{
		"unregister": func(f *catalogkit.Fixture) error {
			_, err := f.UnregisterTable(f.Ctx, ident("t"))
			return err
		},
		"purge": func(f *catalogkit.Fixture) error {
			testkit.Must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
			return f.PurgeAll(f.Ctx)
		},
		"end of the window": func(f *catalogkit.Fixture) error {
			testkit.Must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
			f.Clock.Advance(catalogkit.UndropWindow + time.Hour)
			return f.EndWindows(f.Ctx)
		},
		"end of the window of a view": func(f *catalogkit.Fixture) error {
			f.MakeView("v")
			label(f, access.View, "v", teamLabels("x"))
			view, err := f.LoadView(f.Ctx, ident("v"))
			testkit.Must(f.T, err)
			if string(view.Labels.Text) != `{"object-labels":{"team":"x"}}` {
				f.T.Errorf("the view has the labels %s", view.Labels.Text)
			}
			label(f, access.Table, "t", registry.Labels{})
			testkit.Must(f.T, f.DropView(f.Ctx, ident("v")))
			f.Clock.Advance(catalogkit.UndropWindow + time.Hour)
			return f.EndWindows(f.Ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("t")
			label(f, access.Table, "t", teamLabels("billing"))
			testkit.Must(t, end(f))
			if n := labelRecords(f); n != 0 {
				t.Errorf("%d label records are left", n)
			}
			f.WantClean()
		})
	}
}

// Labels beyond the bounds, and labels of missing fields, are refused and change nothing.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	many := func(n int, value string) map[string]string {
		labels := make(map[string]string, n)
		for i := range n {
			labels[fmt.Sprint("label", i)] = value
		}
		return labels
	}
	fields := func(n int) (labels registry.Labels) {
		for i := range n {
			labels.Fields = append(labels.Fields, registry.FieldLabels{Field: i, Labels: many(1, "x")})
		}
		return labels
	}
	for name, tt := range map[string]struct {
		labels registry.Labels
		want   moorage.Kind
	}{
		"too many":           {registry.Labels{Object: many(257, "x")}, moorage.KindTooLarge},
		"too many of one":    {registry.Labels{Fields: []registry.FieldLabels{{Field: 1, Labels: many(257, "x")}}}, moorage.KindTooLarge},
		"too many fields":    {fields(1001), moorage.KindTooLarge},
		"too long":           {registry.Labels{Object: many(64, strings.Repeat("x", 1024))}, moorage.KindTooLarge},
		"a long value":       {teamLabels(strings.Repeat("x", 1025)), moorage.KindBadRequest},
		"a long name":        {registry.Labels{Object: map[string]string{strings.Repeat("x", 129): ""}}, moorage.KindBadRequest},
		"no name":            {registry.Labels{Object: map[string]string{"": "x"}}, moorage.KindBadRequest},
		"an unknown field":   {fieldLabels(3), moorage.KindBadRequest},
		"a field that twice": {registry.Labels{Fields: append(fieldLabels(1).Fields, fieldLabels(1).Fields...)}, moorage.KindBadRequest},
	} {
		_, err := f.Labels().Put(f.Ctx, access.Table, ident("t"), tt.labels, nil)
		if moorage.KindOf(err) != tt.want || err == nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if n := labelRecords(f); n != 0 {
		t.Errorf("%d label records", n)
	}
	label(f, access.Table, "t", registry.Labels{Object: many(56, strings.Repeat("x", 1024))})
	f.WantClean()
}

// If a field is removed from the schema, it keeps its labels, but it cannot get its first labels
// any more.
func TestLabelsOfAFieldThatIsGone(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	label(f, access.Table, "t", fieldLabels(2))
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[`+
		`{"id":1,"name":"id","required":false,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`))
	testkit.Must(t, err)
	kept := fieldLabels(2)
	kept.Object = map[string]string{"team": "x"}
	label(f, access.Table, "t", kept)
	label(f, access.Table, "t", registry.Labels{})
	_, err = f.Labels().Put(f.Ctx, access.Table, ident("t"), fieldLabels(2), nil)
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	f.WantClean()
}

// A change of labels that requires one version is refused at another. If it is repeated with its
// key, every node returns the same answer, although the version has changed.
func TestLabelsForAVersion(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	is := func(version registry.ID) func(registry.ID) bool {
		return func(present registry.ID) bool { return present == version }
	}
	put := func(n *catalogkit.Instance, team string, version registry.ID) error {
		key := catalogkit.KeyOf(team)
		key.ID = "01926f3a-7b1c-7def-8123-45678900000" + team
		_, err := n.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			_, err := labelsOf(c).Put(ctx, access.Table, ident("t"), teamLabels(team), is(version))
			return catalogkit.Reply{}, err
		})
		return err
	}
	testkit.Must(t, put(f.Instance, "a", registry.ID{}))
	testkit.Must(t, put(f.Other(f.Store), "a", registry.ID{}))
	catalogkit.WantKind(t, put(f.Instance, "b", registry.ID{}), moorage.KindPreconditionFailed)
	catalogkit.WantKind(t, put(f.Other(f.Store), "b", registry.ID{}), moorage.KindPreconditionFailed)
	first := f.Load("t").Labels.Version
	testkit.Must(t, put(f.Instance, "c", first))
	if text := string(f.Load("t").Labels.Text); text != `{"object-labels":{"team":"c"}}` {
		t.Errorf("the labels are %s", text)
	}
	if n := count(f, gate.PutLabels); n != 2 {
		t.Errorf("labels were put %d times", n)
	}
}

// Concurrent commits and changes of labels on two nodes all succeed, and nothing is lost.
func TestLabelsAndCommitsRace(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	nodes := []*catalogkit.Instance{f.Instance, f.Other(f.Store)}
	var group sync.WaitGroup
	const each = 10
	for i := range 4 {
		node := nodes[i%2]
		group.Go(func() {
			for n := range each {
				var err error
				if i < 2 {
					_, err = node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, fmt.Sprint("p", i, "-", n), "x"))
				} else {
					_, err = node.Labels().Put(f.Ctx, access.Table, ident("t"), teamLabels(fmt.Sprint(i, "-", n)), nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	table := f.Load("t")
	if n := len(table.Document.Properties()); n < 2*each {
		t.Errorf("%d properties, want %d at least", n, 2*each)
	}
	if text := string(table.Labels.Text); !slices.Contains([]string{`{"object-labels":{"team":"2-9"}}`, `{"object-labels":{"team":"3-9"}}`}, text) {
		t.Errorf("the labels are %s", text)
	}
	f.WantClean()
}

// Loading a table without labels reads nothing extra. With labels, they are read once.
func TestLabelsCostLoadsLittle(t *testing.T) {
	t.Parallel()
	var store *countingStore
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	f.Create("t")
	f.Load("t")
	want := func(calls int64) {
		t.Helper()
		store.calls.Store(0)
		f.Load("t")
		if got := store.calls.Load(); got != calls {
			t.Errorf("a load makes %d calls, want %d", got, calls)
		}
	}
	want(1)
	label(f, access.Table, "t", teamLabels("billing"))
	want(2)
	want(1)
}

// Unreadable labels do not hide their table: loads leave them out, and they can be replaced.
func TestLabelsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	label(f, access.Table, "t", teamLabels("billing"))
	_, err := f.LoadTable(f.Ctx, ident("t"))
	testkit.Must(t, err)
	pointer := f.PointerOf("t")
	catalogkit.Tamper(f).Write(registry.Put(registry.LabelKey(pointer.ID), registry.StateNone, []byte("{")))
	node := f.Other(f.Store) // with an empty cache
	if table, err := node.LoadTable(f.Ctx, ident("t")); err != nil || table.Labels.Text != nil || !table.Labels.Version.IsZero() {
		t.Errorf("loaded with the labels %+v (%v)", table, err)
	}
	_, _, err = node.Labels().Load(f.Ctx, access.Table, ident("t"))
	catalogkit.WantKind(t, err, moorage.KindInternal)
	shown, err := node.Browse().Object(f.Ctx, catalogkit.Warehouse, []string{"ns", "t"})
	if err != nil || len(shown.Labels.Object) > 0 {
		t.Errorf("shown with the labels %+v (%v)", shown.Labels, err)
	}
	label(f, access.Table, "t", teamLabels("billing")) // the same labels; this repairs the record
	f.WantClean()
	again, version, err := node.Labels().Load(f.Ctx, access.Table, ident("t"))
	if err != nil || again.Object["team"] != "billing" || version.IsZero() {
		t.Errorf("repaired: %+v (%v)", again, err)
	}
}
