package catalog_test

import (
	"strings"
	"testing"

	"moorage/catalog/documents"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// A folder for metadata files is refused before anything is written if its path is too long for any
// storage. This also holds for a transaction, whose record would contain that path.
func TestMetadataPathTooLong(t *testing.T) {
	t.Parallel()
	store := new(appliesStore)
	f := catalogkit.New(t, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	f.Create("a")
	f.Create("b")
	before := store.applies.Load()
	long := catalogkit.SetProperty(t, documents.PropMetadataPath, "file:///wh/"+strings.Repeat("x", 4096))
	_, err := f.Commit(f.Ctx, ident("a"), long)
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	catalogkit.WantKind(t, f.Transact(catalogkit.On("a", long), catalogkit.On("b", catalogkit.SetProperty(t, "n", "1"))), moorage.KindBadRequest)
	if wrote := store.applies.Load() - before; wrote != 0 {
		t.Errorf("wrote to the store %d times", wrote)
	}
	f.WantClean()
}
