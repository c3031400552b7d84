package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"

	"moorage"
	"moorage/catalog"
	"moorage/testkit/catalogkit"
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

// FuzzRegister registers an arbitrary file. The file is refused with KindBadRequest, or it becomes
// a table that can be loaded, changed and dropped. A compressed file gives the same document.
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
		fix := catalogkit.New(t)
		register := func(name string, content []byte) (*catalog.Table, error) {
			location := "file:///wh/" + name + "/metadata/00000.metadata.json"
			if err := fix.Files.Create(fix.Ctx, location, content); err != nil {
				t.Fatal(err)
			}
			return fix.RegisterTable(fix.Ctx, ident(name), catalog.RegisterRequest{MetadataLocation: location})
		}
		table, err := register("plain", content)
		if err != nil {
			refused := []moorage.Kind{moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation}
			if !slices.Contains(refused, moorage.KindOf(err)) {
				t.Fatalf("refused as %s: %v", moorage.KindOf(err), err)
			}
			fix.WantClean()
			return
		}
		raw := bytes.Clone(table.Document.Raw())
		if loaded, err := fix.LoadTable(fix.Ctx, ident("plain")); err != nil || !bytes.Equal(loaded.Document.Raw(), raw) {
			t.Fatalf("registered %q, loaded %v, %v", raw, loaded, err)
		}
		if _, err := fix.Commit(fix.Ctx, ident("plain"), catalogkit.SetProperty(t, "k", "v")); err != nil && !isRefusal(err) {
			t.Fatalf("commit: %v", err)
		}
		fix.WantClean()
		if _, err := fix.UnregisterTable(fix.Ctx, ident("plain")); err != nil {
			t.Fatal(err)
		}
		again, err := register("zipped", zipped(t, raw))
		if err != nil || !bytes.Equal(again.Document.Raw(), raw) {
			t.Fatalf("%q can be registered, but not compressed: %v", raw, err)
		}
		if err := fix.DropTable(fix.Ctx, ident("zipped"), catalog.DropOptions{Purge: true}); err != nil {
			t.Fatal(err)
		}
		fix.WantClean()
	})
}

// isRefusal reports whether err blames the request rather than the server.
func isRefusal(err error) bool {
	switch moorage.KindOf(err) {
	case moorage.KindInternal, moorage.KindUnavailable, moorage.KindCommitUnknown:
		return false
	}
	return true
}
