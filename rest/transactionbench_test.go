package rest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkTransaction is a commit of one table beside a transaction of ten, as a client waits for them: from the request's
// bytes on a connection to the answer's. Each sets a property of each table.
func BenchmarkTransaction(b *testing.B) {
	worlds := []struct {
		name string
		open func(b *testing.B) *world
	}{
		{"memory", func(b *testing.B) *world { return newMemoryWorld(b) }},
		{"file", newDiskWorld},
	}
	for _, store := range worlds {
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(fmt.Sprintf("store=%s/%s/commit", store.name, encoding), func(b *testing.B) {
				benchmarkPosts(b, store.open(b), encoding, 1, pathTables+"/t0", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"$n"}}]}`)
			})
		}
		for _, tables := range []int{2, 10} {
			b.Run(fmt.Sprintf("store=%s/tables=%d", store.name, tables), func(b *testing.B) {
				var changes []string
				for table := range tables {
					changes = append(changes, fmt.Sprintf(`{"identifier":{"namespace":["ns"],"name":"t%d"},"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"$n"}}]}`, table))
				}
				benchmarkPosts(b, store.open(b), "gzip", tables, pathTransact, `{"table-changes":[`+strings.Join(changes, ",")+`]}`)
			})
		}
	}
}

// benchmarkPosts makes tables and sends one request after the other over one connection, with its number in the place of $n.
func benchmarkPosts(b *testing.B, w *world, encoding string, tables int, path, body string) {
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	for table := range tables {
		w.must("POST", pathTables, fmt.Sprintf(`{"name":"t%d","schema":%s,"properties":{"write.metadata.previous-versions-max":"10"}}`, table, schemaJSON))
	}
	client := newRawClient(b, w)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		client.post(path, encoding, strings.ReplaceAll(body, "$n", strconv.Itoa(n)))
	}
}
