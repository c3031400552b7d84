package catalog_test

import (
	"context"
	"testing"

	"moorage"
	"moorage/catalog"
)

// A staged create stores no outcome. If its key has an outcome, it is answered by that one: of
// another request, or of a refusal of its own.
func TestStagedCreateOfAnsweredKey(t *testing.T) {
	t.Parallel()
	store := new(blindStore)
	f := newFixture(t, func(c *catalog.Config) { store.Store, c.Store = c.Store, store })
	f.create("t")
	stage := func(key catalog.Key) error {
		outcome, err := f.once(f.ctx, key, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true})
			return reply{Table: table}, err
		})
		if err == nil && (outcome.Table == nil || outcome.Table.MetadataLocation != "") {
			t.Errorf("answered %+v, want a staged table", outcome)
		}
		return err
	}
	wantKind(t, stage(keyOf("a")), moorage.KindAlreadyExists)
	must(t, f.RenameTable(f.ctx, ident("t"), ident("u")))
	wantKind(t, stage(keyOf("a")), moorage.KindAlreadyExists)
	other := keyOf("a")
	other.Path += "/other"
	wantKind(t, stage(other), moorage.KindUnprocessable)
	other.ID += "-other"
	for range 2 {
		must(t, stage(other))
	}
	store.blind.Store(true) // what became of the key cannot be read, but nothing can have
	wantKind(t, stage(other), moorage.KindUnavailable)
	f.wantClean()
}
