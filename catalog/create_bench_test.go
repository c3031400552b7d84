package catalog_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// BenchmarkCreate creates tables in one namespace, over the embedded store and local files. Compare
// it with BenchmarkCreateSyncs.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, _ := newDiskCatalog(b)
			inParallel(b, clients, func(n int64) error {
				request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
				_, err := f.CreateTable(f.Ctx, ident(fmt.Sprintf("t%d", n)), request)
				return err
			})
		})
	}
}

// BenchmarkCreateSyncs measures the minimal work of a create, done with plain system calls. It
// makes a folder for the table and one for its metadata. It syncs a file, the three folders with
// new entries, and a line of a log. Each client has a namespace and a log of its own.
func BenchmarkCreateSyncs(b *testing.B) {
	body := make([]byte, 1500)
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			namespaces := make(chan *syncFolder, clients)
			for i := range clients {
				namespaces <- newSyncFolder(b, filepath.Join(b.TempDir(), fmt.Sprint(i)))
			}
			inParallel(b, clients, func(n int64) error {
				namespace := <-namespaces
				defer func() { namespaces <- namespace }()
				return namespace.createTable(fmt.Sprint(n), body)
			})
		})
	}
}
