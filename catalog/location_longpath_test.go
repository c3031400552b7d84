package catalog_test

import (
	"strings"
	"testing"

	"moorage/catalog/documents"

	"moorage"
	"moorage/catalog"
)

// A folder for metadata files that no storage can have is refused before anything is written. That
// holds for a transaction too, because its record would be as long.
func TestMetadataPathTooLong(t *testing.T) {
	t.Parallel()
	store := new(appliesStore)
	f := newFixture(t, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	f.create("a")
	f.create("b")
	before := store.applies.Load()
	long := setProperty(t, documents.PropMetadataPath, "file:///wh/"+strings.Repeat("x", 4096))
	_, err := f.Commit(f.ctx, ident("a"), long)
	wantKind(t, err, moorage.KindBadRequest)
	wantKind(t, f.transact(on("a", long), on("b", setProperty(t, "n", "1"))), moorage.KindBadRequest)
	if wrote := store.applies.Load() - before; wrote != 0 {
		t.Errorf("wrote to the store %d times", wrote)
	}
	f.wantClean()
}
