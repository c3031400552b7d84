package catalog

import (
	"bytes"
	"strings"
	"testing"

	"moorage"
)

// rewrite replaces a file's content, as the owner of a file may do that the server did not write.
func (f *fixture) rewrite(location string, body []byte) {
	f.t.Helper()
	if err := f.files.Delete(f.ctx, location); err != nil {
		f.t.Fatal(err)
	}
	if err := f.files.Create(f.ctx, location, body); err != nil {
		f.t.Fatal(err)
	}
}

// A file that was registered before and written anew since is read again.
func TestRegisterReadsTheFileAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.create("t").Document
	const location, uuid = "file:///wh/v1.metadata.json", "00000000-0000-4000-8000-000000000001"
	if _, err := f.UnregisterTable(f.ctx, ident("t")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{first.UUID(), uuid} {
		f.rewrite(location, bytes.ReplaceAll(first.Raw(), []byte(first.UUID()), []byte(want)))
		if _, err := f.RegisterTable(f.ctx, ident("t"), RegisterRequest{MetadataLocation: location}); err != nil {
			t.Fatal(err)
		}
		loaded, err := f.LoadTable(f.ctx, ident("t"))
		if err != nil || loaded.Document.UUID() != want {
			t.Errorf("loaded %s, %v, want %s", loaded.Document.UUID(), err, want)
		}
		f.wantClean()
		if _, err := f.UnregisterTable(f.ctx, ident("t")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRegisterRefusesOddUUIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	document := f.create("t").Document
	for _, uuid := range []string{"", strings.Repeat("u", 10_000)} {
		f.rewrite("file:///wh/odd.metadata.json", bytes.ReplaceAll(document.Raw(), []byte(document.UUID()), []byte(uuid)))
		_, err := f.RegisterTable(f.ctx, ident("odd"), RegisterRequest{MetadataLocation: "file:///wh/odd.metadata.json"})
		wantKind(t, err, moorage.KindIllegalArgument)
	}
}
