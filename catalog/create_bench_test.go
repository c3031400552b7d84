package catalog_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// BenchmarkCreate makes tables in one namespace, over the embedded store and local files. Compare
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

// BenchmarkCreateSyncs does, with plain system calls, what every create needs. It makes a folder
// for the table and one for its metadata, and syncs a file, the three folders that have something
// new, and a line of a log. Each client has a namespace and a log of its own.
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
