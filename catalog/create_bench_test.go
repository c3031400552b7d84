package catalog_test

import (
	"fmt"
	"testing"

	"moorage/catalog"
)

// BenchmarkCreate makes tables in one namespace, over the embedded store and local files.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, _ := newDiskCatalog(b)
			inParallel(b, clients, func(n int64) error {
				request := catalog.CreateTableRequest{Schema: []byte(testSchema)}
				_, err := f.CreateTable(f.ctx, ident(fmt.Sprintf("t%d", n)), request)
				return err
			})
		})
	}
}
