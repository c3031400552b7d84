package manifests_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/manifests"
)

// BenchmarkList measures the cost of a moved append without I/O: reading the list that was sent,
// and writing a new list with the entries of another list and one more. The other list is in
// memory; the case "both" reads it as well. For comparison, iceberg-go reads and writes the same
// number of entries, and the file is copied.
func BenchmarkList(b *testing.B) {
	for _, entries := range []int{10, 100, 1500} {
		var all []row
		for n := range entries {
			all = append(all, ships(n))
		}
		sent := file(b, javaList(), codecs(b)["deflate"], 1000, all...)
		all[0]["manifest_path"] = "s3://b/another"
		other := file(b, javaList(), codecs(b)["deflate"], 1000, all[:entries-1]...)
		head := list(b, other)
		var reader manifests.Reader
		name := func(of string) string { return fmt.Sprintf("entries=%d/%s", entries, of) }
		move := func(head *manifests.List) int {
			l, err := reader.List(sent, head, manifests.FileBytesMax)
			if err != nil {
				b.Fatal(err)
			}
			added := unchanged(l.Entries()[entries-1:])
			added[0].SequenceNumber = number(sequence + 1)
			made, err := manifests.NewList(manifests.Header{FormatVersion: 2}, added, head.Entries(), l, head)
			if err != nil {
				b.Fatal(err)
			}
			out, err := made.Encode()
			if err != nil {
				b.Fatal(err)
			}
			return len(out)
		}
		b.Run(name("head=cached"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.ReportMetric(float64(move(head)), "bytes")
			}
		})
		b.Run(name("head=read"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				move(list(b, other))
			}
		})
		b.Run(name("iceberg-go"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				icebergRead(b, sent)
				files := icebergRead(b, other)
				var out bytes.Buffer
				parent, number := int64(parentID), int64(sequence)
				if err := iceberg.WriteManifestList(2, &out, snapshotID, &parent, &number, 0, files); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name("copy"), func(b *testing.B) {
			for b.Loop() {
				_ = bytes.Clone(other)
			}
		})
	}
}
