package catalog_test

import (
	"context"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// A staged create stores no outcome. If its key already has an outcome, that is the answer. The
// outcome can be that of another request, or an earlier refusal of the same one.
func TestStagedCreateOfAnsweredKey(t *testing.T) {
	t.Parallel()
	store := new(blindStore)
	f := catalogkit.New(t, func(c *catalog.Config) { store.Store, c.Store = c.Store, store })
	f.Create("t")
	stage := func(key catalog.Key) error {
		outcome, err := f.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
			return catalogkit.Reply{Table: table}, err
		})
		if err == nil && (outcome.Table == nil || outcome.Table.MetadataLocation != "") {
			t.Errorf("answered %+v, want a staged table", outcome)
		}
		return err
	}
	catalogkit.WantKind(t, stage(catalogkit.KeyOf("a")), moorage.KindAlreadyExists)
	must(t, f.RenameTable(f.Ctx, ident("t"), ident("u")))
	catalogkit.WantKind(t, stage(catalogkit.KeyOf("a")), moorage.KindAlreadyExists)
	other := catalogkit.KeyOf("a")
	other.Path += "/other"
	catalogkit.WantKind(t, stage(other), moorage.KindUnprocessable)
	other.ID += "-other"
	for range 2 {
		must(t, stage(other))
	}
	store.blind.Store(true) // the outcome cannot be read, but there can be none
	catalogkit.WantKind(t, stage(other), moorage.KindUnavailable)
	f.WantClean()
}
