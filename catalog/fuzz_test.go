package catalog

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/klauspost/compress/gzip"

	"moorage"
	"moorage/storage"
)

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzRegister registers a file that any client may have written. It is refused for what it is, or it is a table that
// can be loaded, changed and dropped; compressed it says the same.
func FuzzRegister(f *testing.F) {
	files, err := filepath.Glob("../testdata/metadata/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
		f.Add(zipped(f, content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		fix := newFixture(t)
		register := func(name string, content []byte) (*Table, error) {
			location := "file:///wh/" + name + "/metadata/00000.metadata.json"
			if err := fix.files.Create(fix.ctx, location, content); err != nil {
				t.Fatal(err)
			}
			return fix.RegisterTable(fix.ctx, ident(name), RegisterRequest{MetadataLocation: location})
		}
		table, err := register("plain", content)
		if err != nil {
			refused := []moorage.Kind{moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation}
			if !slices.Contains(refused, moorage.KindOf(err)) {
				t.Fatalf("refused as %s: %v", moorage.KindOf(err), err)
			}
			fix.wantClean()
			return
		}
		raw := bytes.Clone(table.Document.Raw())
		if loaded, err := fix.LoadTable(fix.ctx, ident("plain")); err != nil || !bytes.Equal(loaded.Document.Raw(), raw) {
			t.Fatalf("registered %q, loaded %v, %v", raw, loaded, err)
		}
		if _, err := fix.Commit(fix.ctx, ident("plain"), setProperty(t, "k", "v")); err != nil && !isRefusal(err) {
			t.Fatalf("commit: %v", err)
		}
		fix.wantClean()
		if _, err := fix.UnregisterTable(fix.ctx, ident("plain")); err != nil {
			t.Fatal(err)
		}
		again, err := register("zipped", zipped(t, raw))
		if err != nil || !bytes.Equal(again.Document.Raw(), raw) {
			t.Fatalf("%q can be registered, but not compressed: %v", raw, err)
		}
		if err := fix.DropTable(fix.ctx, ident("zipped"), DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
		fix.wantClean()
	})
}

// isRefusal tells whether err blames the request and not the server.
func isRefusal(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindInternal, moorage.KindUnavailable, moorage.KindCommitUnknown:
		return false
	}
	return true
}

// FuzzPurgeManifestList reads what a client wrote for a manifest list, FuzzPurgeManifest what it wrote for a manifest. Whatever
// it is, the purge goes on to its end and touches nothing outside of the claims.
func FuzzPurgeManifestList(f *testing.F) { fuzzPurge(f, "snap-1.avro") }

// FuzzPurgeManifest: see FuzzPurgeManifestList.
func FuzzPurgeManifest(f *testing.F) { fuzzPurge(f, "m-1.avro") }

// fuzzPurge purges a table of which the file called name is replaced. Its seeds are the file as writers of each format version write
// it, and damaged. The seeds are made anew by each run; the corpus in testdata stays.
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
		err := purgeFiles(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil)), store, document, purgedMetadata, []string{purgedTable}, func(batch []string) error {
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
