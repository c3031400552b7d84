package catalog_test

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/catalogkit"
)

// interrupted is a store that calls happen before the k-th of its calls.
type interrupted struct {
	registry.Store
	k, calls int
	happen   func() // nil until it is armed, and after it was called
}

func (s *interrupted) call() {
	if s.happen == nil {
		return
	}
	if s.calls++; s.calls > s.k {
		happen := s.happen
		s.happen = nil
		happen()
	}
}

func (s *interrupted) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.call()
	return s.Store.Get(ctx, keys...)
}

func (s *interrupted) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.call()
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *interrupted) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.call()
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (s *interrupted) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.call()
	return s.Store.Apply(ctx, batch)
}

// secondActors are changes made by another caller while bob uses the table t. Bob has no privileges
// on anything else. Afterwards, bob must not be able to use the table called t.
var secondActors = map[string]func(ctx context.Context, node *catalogkit.Secured) error{
	"revoke": func(_ context.Context, node *catalogkit.Secured) error {
		node.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, bobsPrivileges)
		return nil
	},
	"disable": func(ctx context.Context, node *catalogkit.Secured) error {
		_, err := node.Admin().PutPrincipal(ctx, catalogkit.BobName, grants.PrincipalSpec{Disabled: true})
		return err
	},
	"rename, and make another": func(ctx context.Context, node *catalogkit.Secured) error {
		if err := node.Named(catalogkit.AnnName).RenameTable(ctx, ident("t"), ident("former")); err != nil {
			return err
		}
		_, err := node.Named(catalogkit.AnnName).CreateTable(ctx, ident("t"), anotherTable)
		return err
	},
	"drop, and make another": func(ctx context.Context, node *catalogkit.Secured) error {
		if err := node.Named(catalogkit.AnnName).DropTable(ctx, ident("t"), catalog.DropOptions{}); err != nil {
			return err
		}
		_, err := node.Named(catalogkit.AnnName).CreateTable(ctx, ident("t"), anotherTable)
		return err
	},
}

// anotherTable is the table that is called t afterwards.
var anotherTable = catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: map[string]string{"secret": "of ann"}}

const bobsPrivileges = access.Read | access.Alter | access.Drop

// firstActors are requests by catalogkit.BobName, each with a function that reports whether a table
// shows its effect.
var firstActors = map[string]struct {
	do       func(t *testing.T, ctx context.Context, bob *catalog.Catalog) error
	happened func(table *catalog.Table, err error) bool
}{
	"load": {
		do: func(t *testing.T, ctx context.Context, bob *catalog.Catalog) error {
			table, err := bob.LoadTable(ctx, ident("t"))
			if err == nil && table.Document.Properties()["secret"] != "" {
				t.Error("he is shown a table that he may not see")
			}
			return err
		},
	},
	"commit": {
		do: func(t *testing.T, ctx context.Context, bob *catalog.Catalog) error {
			table, err := bob.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "by", "bob"))
			if err == nil && table.Document.Properties()["secret"] != "" {
				t.Error("he is shown a table that he may not see")
			}
			return err
		},
		happened: func(table *catalog.Table, err error) bool {
			return err == nil && table.Document.Properties()["by"] == "bob"
		},
	},
	"drop": {
		do: func(_ *testing.T, ctx context.Context, bob *catalog.Catalog) error {
			return bob.DropTable(ctx, ident("t"), catalog.DropOptions{})
		},
		happened: func(_ *catalog.Table, err error) bool { return moorage.KindOf(err) == moorage.KindNoSuchTable },
	},
}

// For k = 0, 1, 2 …: before a request's k-th call of the store, another caller revokes the
// privileges for it, or replaces the table. The request must use the table that its access decision
// was about. The other table is neither shown nor changed, and a refused request has changed
// nothing.
func TestSecondActor(t *testing.T) {
	t.Parallel()
	for firstName, first := range firstActors {
		for secondName, second := range secondActors {
			t.Run(firstName+"/"+secondName, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				for k := 0; ; k++ {
					raw, files := memoryregistry.New(cryptorand.Reader), memorystorage.New()
					share := func(c *catalog.Config) {
						c.OpenStorage = func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) }
					}
					store := &interrupted{Store: raw}
					node, other := catalogkit.NewSecured(t, store, false, share), catalogkit.Secure(t, raw, false, share)
					node.Populate()
					node.Grant(catalogkit.OnTable("t"), catalogkit.BobName, bobsPrivileges)
					bob := node.Named(catalogkit.BobName)
					if _, err := bob.LoadTable(ctx, ident("t")); err != nil { // so it is in memory
						t.Fatal(err)
					}
					before, err := node.Named(catalogkit.AnnName).LoadTable(ctx, ident("t"))
					if err != nil {
						t.Fatal(err)
					}
					var secondErr error
					store.k, store.calls = k, 0
					store.happen = func() { secondErr = second(ctx, other) }
					err = first.do(t, ctx, bob.Catalog)
					survived := store.happen != nil
					store.happen = nil
					if survived {
						if err != nil || k < 1 {
							t.Fatalf("%d calls, and %v without a second actor", k, err)
						}
						return
					}
					at := fmt.Sprintf("before call %d: %v, the second actor %v", k, err, secondErr)
					if k == 0 && (err == nil || secondErr != nil) {
						t.Errorf("%s: what was answered before it began does not count", at)
					}
					checkSecond(t, at, other, before.PointerID(), err, first.happened)
				}
			})
		}
	}
}

// checkSecond checks the state of the table that was called t, after a request that ended with err.
func checkSecond(t *testing.T, at string, node *catalogkit.Secured, pointer registry.ID, err error,
	happened func(*catalog.Table, error) bool) {
	t.Helper()
	ann := node.Named(catalogkit.AnnName)
	for _, name := range []string{"t", "former"} {
		table, loadErr := ann.LoadTable(t.Context(), ident(name))
		if loadErr == nil && table.PointerID() != pointer {
			if table.Document.Properties()["secret"] == "" || table.Document.Properties()["by"] != "" {
				t.Errorf("%s: the other table was changed: %v", at, table.Document.Properties())
			}
			continue
		}
		if happened == nil || loadErr != nil && name != "t" {
			continue
		}
		if did := happened(table, loadErr); did && err != nil {
			t.Errorf("%s, and yet it happened", at)
		}
	}
	if _, err := node.Named(catalogkit.BobName).LoadTable(t.Context(), ident("t")); err == nil {
		t.Errorf("%s: he may still load it", at)
	}
}
