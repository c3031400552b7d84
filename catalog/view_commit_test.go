package catalog_test

import (
	"fmt"
	"maps"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// A replace that requires the view-uuid follows a renamed view. Without that requirement, it
// changes the view that has the name now. Neither finds a dropped view.
func TestReplaceFollows(t *testing.T) {
	t.Parallel()
	for _, pinned := range []bool{true, false} {
		t.Run(fmt.Sprintf("pinned %t", pinned), func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			requirements := `[]`
			if view := f.MakeView("v"); pinned {
				requirements = fmt.Sprintf(`[{"type":"assert-view-uuid","uuid":%q}]`, view.Document.UUID())
			}
			replaceDuring := func(sql string, meanwhile func() error) error {
				store := &betweenStore{Store: f.Store, between: func() { must(t, meanwhile()) }}
				_, err := f.Other(store).ReplaceView(f.Ctx, ident("v"), catalogkit.NewQuery(t, requirements, sql))
				if store.between != nil {
					t.Error("nothing happened meanwhile")
				}
				return err
			}
			err := replaceDuring("select 2", func() error { return f.RenameView(f.Ctx, ident("v"), ident("w")) })
			if pinned {
				must(t, err)
			} else if catalogkit.WantKind(t, err, moorage.KindNoSuchView); moorage.MessageOf(err) != "View does not exist: ns.v" {
				t.Error(err)
			}
			view, err := f.LoadView(f.Ctx, ident("w"))
			must(t, err)
			if got, want := view.Document.CurrentVersionID(), map[bool]int{true: 2, false: 1}[pinned]; got != want {
				t.Errorf("the current version is %d, want %d", got, want)
			}
			changes, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
			must(t, err)
			if last := changes[len(changes)-1].Change; pinned && (last.Operation != string(gate.Replace) || !last.Ident.Equal(ident("w"))) {
				t.Errorf("the change is %s of %s", last.Operation, last.Ident)
			}
			must(t, f.RenameView(f.Ctx, ident("w"), ident("v")))
			err = replaceDuring("select 3", func() error { return f.DropView(f.Ctx, ident("v")) })
			catalogkit.WantKind(t, err, moorage.KindNoSuchView)
			f.WantClean()
		})
	}
}

// Every answer about a view has the configuration for access to its files.
func TestClientConfigOfViews(t *testing.T) {
	t.Parallel()
	f, _ := catalogkit.NewRemoteFixture(t)
	var location string
	for _, step := range []struct {
		name string
		make func() (*catalog.View, error)
	}{
		{"create", func() (*catalog.View, error) {
			return f.CreateView(f.Ctx, catalogkit.LakeIdent(), catalogkit.ViewRequest(""))
		}},
		{"load", func() (*catalog.View, error) { return f.LoadView(f.Ctx, catalogkit.LakeIdent()) }},
		{"replace", func() (*catalog.View, error) {
			return f.ReplaceView(f.Ctx, catalogkit.LakeIdent(), catalogkit.NewQuery(t, `[]`, "select 2"))
		}},
		{"replace that changes nothing", func() (*catalog.View, error) {
			return f.ReplaceView(f.Ctx, catalogkit.LakeIdent(), catalogkit.ReplaceRequest(t, `[]`, `[]`))
		}},
		{"register", func() (*catalog.View, error) {
			must(t, f.DropView(f.Ctx, catalogkit.LakeIdent()))
			return f.RegisterView(f.Ctx, catalogkit.LakeIdent(), location)
		}},
	} {
		view, err := step.make()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if !maps.Equal(view.Config, map[string]string{"endpoint": "one"}) {
			t.Errorf("%s: config %v", step.name, view.Config)
		}
		location = view.MetadataLocation
	}
}
