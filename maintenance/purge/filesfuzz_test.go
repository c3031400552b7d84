package purge_test

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/storage"
)

// FuzzPurgeManifestList purges a table with an arbitrary manifest list. FuzzPurgeManifest does so
// with an arbitrary manifest. Whatever the contents, the purge completes, and touches nothing
// outside of the claims.
func FuzzPurgeManifestList(f *testing.F) { fuzzPurge(f, "snap-1.avro") }

// FuzzPurgeManifest: see FuzzPurgeManifestList.
func FuzzPurgeManifest(f *testing.F) { fuzzPurge(f, "m-1.avro") }

// fuzzPurge purges a table whose file called name is replaced. The seeds are the file as written in
// each format version, intact and damaged. Each run generates the seeds; the corpus in testdata is
// permanent.
func fuzzPurge(f *testing.F, name string) {
	damage := rand.New(rand.NewPCG(1, 2))
	for version := 1; version <= 3; version++ {
		p := newPurged(f, version)
		manifests := []iceberg.ManifestFile{p.manifest("m-1.avro", p.data("a.parquet", "file:///w/other/b.parquet")...)}
		if version > 1 {
			manifests = append(manifests, p.manifest("m-2.avro", p.deletes("x.parquet")...))
		}
		p.snapshot("snap-1.avro", manifests...)
		seed, err := storage.ReadAll(f.Context(), p.store, purgedTable+"/metadata/"+name, 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
		for range 4 {
			damaged := slices.Clone(seed)
			damaged[damage.IntN(len(damaged))] ^= 1 << damage.IntN(8)
			f.Add(damaged)
		}
	}
	whole := newPurged(f, 2)
	whole.snapshot("snap-1.avro", whole.manifest("m-1.avro", whole.data("a.parquet")...))
	document := whole.document()
	claim, err := storage.Parse(purgedTable)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		store := replaced{whole.store, purgedTable + "/metadata/" + name, content}
		var last []string
		err := eachBatch(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil)), store, document, purgedMetadata, []string{purgedTable}, func(batch []string) error {
			for _, file := range batch {
				if location, err := storage.Parse(file); err != nil || !claim.Contains(location) {
					t.Errorf("%q would be deleted: %v", file, err)
				}
			}
			last = batch
			return nil
		})
		if err != nil || !slices.Equal(last, []string{purgedMetadata}) {
			t.Fatalf("%v; the last batch is %q", err, last)
		}
	})
}
