package catalog_test

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// unreadable is a store whose next Get fails once it is armed.
type unreadable struct {
	registry.Store
	armed bool
}

func (s *unreadable) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if s.armed {
		s.armed = false
		return nil, registry.ErrUnavailable
	}
	return s.Store.Get(ctx, keys...)
}

// For k = 0, 1, 2 …: before a request's k-th call of the store, another table gets the name in the
// request, or one read fails. The request sets a path property to a place in a table of the
// namespace "other". The table u does not get it, because the caller has no locate there.
func TestForeignPathsOfTheTableThatChanges(t *testing.T) {
	t.Parallel()
	const privileges = access.Alter | access.Locate
	forms := map[string]func(ctx context.Context, bob *catalog.Catalog, name string, change catalog.CommitRequest) error{
		"commit": func(ctx context.Context, bob *catalog.Catalog, name string, change catalog.CommitRequest) error {
			_, err := bob.Commit(ctx, ident(name), change)
			return err
		},
		"transaction": func(ctx context.Context, bob *catalog.Catalog, name string, change catalog.CommitRequest) error {
			return bob.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
				{Ident: ident("beside"), CommitRequest: catalogkit.SetProperty(t, "k", "v")},
				{Ident: ident(name), CommitRequest: change},
			})
		},
	}
	away := inOther()
	rename := func(ctx context.Context, t *testing.T, node *catalogkit.Secured, from, to moorage.Identifier) {
		must(t, node.Named(catalogkit.AnnName).RenameTable(ctx, from, to))
	}
	meanwhile := map[string]struct {
		name string // the name in the request
		do   func(ctx context.Context, t *testing.T, node *catalogkit.Secured, store *unreadable)
		kind moorage.Kind // of the request if it is not forbidden
	}{
		"the name is given": {"z", func(ctx context.Context, t *testing.T, node *catalogkit.Secured, _ *unreadable) {
			rename(ctx, t, node, ident("u"), ident("z"))
		}, moorage.KindNoSuchTable},
		"the name changes hands": {"t", func(ctx context.Context, t *testing.T, node *catalogkit.Secured, _ *unreadable) {
			rename(ctx, t, node, ident("t"), away)
			rename(ctx, t, node, ident("u"), ident("t"))
		}, moorage.KindNoSuchTable},
		"a read fails": {"u", func(_ context.Context, _ *testing.T, _ *catalogkit.Secured, store *unreadable) {
			store.armed = true
		}, moorage.KindUnavailable},
	}
	for form, send := range forms {
		for event, row := range meanwhile {
			t.Run(form+"/"+event, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				for k := 0; ; k++ {
					raw := memoryregistry.New(cryptorand.Reader)
					failing := &unreadable{Store: raw}
					store := &interrupted{Store: failing}
					node, other := catalogkit.NewSecured(t, store, false), catalogkit.Secure(t, raw, false)
					node.Populate()
					ann := node.Named(catalogkit.AnnName)
					_, err := ann.CreateTable(ctx, ident("beside"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
					must(t, err)
					node.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, privileges)
					named := ident("t")
					if row.name != "t" {
						rename(ctx, t, node, named, away)
						named = away
					}
					theirs, err := ann.LoadTable(ctx, named)
					must(t, err)
					changed, err := ann.LoadTable(ctx, ident("u"))
					must(t, err)
					place := catalogkit.SetProperty(t, "write.data.path", theirs.Document.Location()+"/data")

					store.k, store.calls = k, 0
					store.happen = func() { row.do(ctx, t, other, failing) }
					err = send(ctx, node.Named(catalogkit.BobName).Catalog, row.name, place)
					survived := store.happen != nil
					store.happen, failing.armed = nil, false

					at := fmt.Sprintf("before call %d: %v", k, err)
					found, findErr := node.Directory.FindPointer(ctx, changed.PointerID())
					must(t, findErr)
					if found.Pointer.MetadataLocation != changed.MetadataLocation {
						t.Errorf("%s, and the table u was changed", at)
					}
					if kind := moorage.KindOf(err); kind != row.kind && kind != moorage.KindForbidden && (err != nil || row.name != "t") {
						t.Errorf("%s, want kind %s or forbidden", at, row.kind)
					}
					if survived {
						if k < 2 {
							t.Errorf("the request called the store %d times", k)
						}
						return
					}
				}
			})
		}
	}
}
