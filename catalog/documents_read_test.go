package catalog_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/storage"
)

// paddedFile returns the metadata of a table that certainly is not there, with a property of so
// many bytes.
func paddedFile(table *catalog.Table, uuid string, padding int) []byte {
	raw := strings.Replace(string(table.Document.Raw()), table.Document.UUID(), uuid, 1)
	raw = strings.Replace(raw, `"properties":{`, `"properties":{"padding":"`+strings.Repeat("x", padding)+`",`, 1)
	return []byte(strings.Replace(raw, table.Document.Location(), table.Document.Location()+"-"+uuid, 1))
}

func packed(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fillRoom takes all the room for metadata, in the name of other warehouses, until empty is called.
func (f *fixture) fillRoom() (empty func()) {
	f.t.Helper()
	var shares []*documents.Share
	for _, warehouse := range []string{"one", "another"} {
		s := f.Documents().Room().Enter(warehouse)
		must(f.t, s.Take(f.ctx, documents.RoomFreeBytes+documents.RoomBytes/2))
		shares = append(shares, s)
	}
	return func() {
		for _, s := range shares {
			s.GiveBack()
		}
	}
}

// wantNoRoomHeld fails the test if some of the room for metadata was not given back.
func (f *fixture) wantNoRoomHeld() {
	f.t.Helper()
	if !f.Documents().Room().IsIdle() {
		f.t.Error("some of the room for metadata was not given back")
	}
}

// TestReadRoom takes all the room for long metadata files. A call that reads another long file
// waits, and is refused after a while. Short files need no room. When there is room again nothing
// of it is missing.
func TestReadRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		table := f.create("t")
		const file = "file:///wh/elsewhere/metadata/v1.metadata.json"
		for name, tt := range map[string]struct {
			content []byte
			long    bool
		}{
			"short":         {paddedFile(table, "a", 1<<10), false},
			"short, packed": {packed(t, paddedFile(table, "b", 200<<10)), false},
			"long":          {paddedFile(table, "c", 5<<20), true},
			"long, packed":  {packed(t, paddedFile(table, "d", 5<<20)), true},
		} {
			if err := errors.Join(f.files.Delete(f.ctx, file), f.files.Create(f.ctx, file, tt.content)); err != nil {
				t.Fatal(err)
			}
			f.wantNoRoomHeld()
			empty := f.fillRoom()
			began := time.Now()
			_, err := f.Documents().Read(f.ctx, directory.Table(), "w", f.files, file)
			if tt.long {
				wantKind(t, err, moorage.KindTooManyRequests)
			}
			if want := map[bool]time.Duration{true: documents.RoomWait}[tt.long]; time.Since(began) != want || (err == nil) == tt.long {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), want)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := f.Documents().Read(f.ctx, directory.Table(), "w", f.files, file)
				ended <- err
			}()
			synctest.Wait()
			empty()
			if err := <-ended; err != nil {
				t.Errorf("%s, when there is room again: %v", name, err)
			}
		}
	})
}

// endless is a file that has no end.
type endless struct{ storage.Store }

func (endless) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(zeros{}), storage.Info{Bytes: documents.RoomFreeBytes + 10}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// huge says that it is longer than what is read.
type huge struct{ storage.Store }

func (huge) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(zeros{}), storage.Info{Bytes: documents.BytesMax + 1}, nil
}

// cutFile ends with an error.
type cutFile struct {
	storage.Store
	content []byte
}

func (c cutFile) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(c.content), brokenReader{})), storage.Info{Bytes: 1 << 20}, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A fault of the file and a fault of reading it have different answers. Neither keeps any room.
func TestUnreadableMetadataFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	whole := packed(t, f.create("t").Document.Raw())
	for name, tt := range map[string]struct {
		store storage.Store
		kind  moorage.Kind
	}{
		"longer than it says":  {endless{}, moorage.KindValidation},
		"longer than is read":  {huge{}, moorage.KindValidation},
		"cut":                  {cutFile{content: []byte(`{"format-version":`)}, moorage.KindUnavailable},
		"cut, before anything": {cutFile{}, moorage.KindUnavailable},
		"cut, packed":          {cutFile{content: whole[:len(whole)/2]}, moorage.KindUnavailable},
		"damaged, packed":      {reading(append(bytes.Clone(whole[:len(whole)-8]), "damaged!"...)), moorage.KindValidation},
		"torn, packed":         {reading(whole[:len(whole)/2]), moorage.KindValidation},
		"not packed at all":    {reading([]byte{0x1f, 0x8b, 'n', 'o'}), moorage.KindValidation},
	} {
		if _, err := f.Documents().Read(f.ctx, directory.Table(), "w", tt.store, "file:///wh/x"); moorage.KindOf(err) != tt.kind {
			t.Errorf("%s: %v of kind %s, want %s", name, err, moorage.KindOf(err), tt.kind)
		}
	}
	f.wantNoRoomHeld()
}

// reading is a file with that content.
type reading []byte

func (r reading) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(bytes.NewReader(r)), storage.Info{Bytes: int64(len(r))}, nil
}
func (reading) Create(context.Context, string, []byte) error { return fmt.Errorf("read-only") }
func (reading) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{}, fmt.Errorf("not asked")
}
func (reading) Delete(context.Context, ...string) error { return fmt.Errorf("read-only") }

// Metadata files are compressed if the property says gzip, in any letter case.
func TestCompressionCodec(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	for codec, compress := range map[string]bool{"gzip": true, "none": false, "GZIP": true, "None": false} {
		if err := f.transact(on("t", setProperty(t, documents.PropMetadataCodec, codec))); err != nil {
			t.Fatalf("%q: %v", codec, err)
		}
		f.wantCodec("t", codec, compress)
	}
}

// wantCodec fails the test unless a table's codec is as given, and its metadata file is compressed
// or not as given.
func (f *fixture) wantCodec(name, codec string, compressed bool) {
	f.t.Helper()
	table, err := f.LoadTable(f.ctx, ident(name))
	if err != nil {
		f.t.Fatal(err)
	}
	content, err := storage.ReadAll(f.ctx, f.files, table.MetadataLocation, 1<<20)
	if err != nil {
		f.t.Fatal(err)
	}
	named := strings.HasSuffix(table.MetadataLocation, ".gz.metadata.json")
	if is := bytes.HasPrefix(content, []byte("\x1f\x8b")); is != compressed || named != compressed {
		f.t.Errorf("%q: compressed %t, in %s", codec, is, table.MetadataLocation)
	}
	if kept, _ := table.Document.Property(documents.PropMetadataCodec); kept != codec {
		f.t.Errorf("codec %q, want %q", kept, codec)
	}
}

// A codec that is not known is refused where it is set, whatever sets it, and leaves nothing
// behind.
func TestUnknownCodecIsRefused(t *testing.T) {
	t.Parallel()
	files := &fileCount{there: map[string]bool{}}
	f := newFixture(t, countFiles(files))
	f.create("t")
	f.createView("v")
	for _, codec := range []string{"zstd", "", " gzip", "gzip2", strings.Repeat("z", 10_000)} {
		told := "Invalid codec name: " + codec[:min(len(codec), documents.CodecQuoteMax)]
		unknown := map[string]string{documents.PropMetadataCodec: codec}
		set := setProperty(t, documents.PropMetadataCodec, codec)
		create := commitCreateRequest(t, "file:///wh/ns/new")
		create.Updates = append(create.Updates, set.Updates...)
		for name, do := range map[string]func() error{
			"create": func() error {
				_, err := f.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema), Properties: unknown})
				return err
			},
			"commit":                   func() error { return commitTable(ident("t"), set)(f.ctx, f.instance) },
			"commit that creates":      func() error { return commitTable(ident("new"), create)(f.ctx, f.instance) },
			"transaction":              func() error { return f.transact(on("t", set), on("new", create)) },
			"transaction that creates": func() error { return f.transact(on("t", setProperty(t, "a", "b")), on("new", create)) },
			"view": func() error {
				return replaceView(ident("v"), setViewProperty(t, documents.PropMetadataCodec, codec))(f.ctx, f.instance)
			},
		} {
			err := do()
			if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.HasPrefix(moorage.MessageOf(err), told) || len(moorage.MessageOf(err)) > 2*documents.CodecQuoteMax {
				t.Errorf("%q, %s: %v", codec, name, err)
			}
		}
	}
	f.wantOnlyNamedFiles(files)
	f.wantNoTransactions()
	f.wantClean()
	both := setProperty(t, documents.PropMetadataCodec, "zstd")
	both.Updates = append(both.Updates, setProperty(t, documents.PropMetadataCodec, "gzip").Updates...)
	must(t, commitTable(ident("t"), both)(f.ctx, f.instance))
	f.wantCodec("t", "gzip", true)
}

// A table may have an unknown codec because its file was registered. It can be loaded and changed,
// and its codec can be set to a known one.
func TestUnknownCodecIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const location = "file:///wh/ns/t/metadata/00007-other.metadata.json"
	raw := bytes.Replace(f.create("t").Document.Raw(), []byte(`"properties":{`), []byte(`"properties":{"`+documents.PropMetadataCodec+`":"zstd",`), 1)
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
	must(t, f.files.Create(f.ctx, location, raw))
	if _, err := f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: location}); err != nil {
		t.Fatal(err)
	}
	f.create("u")
	must(t, commitTable(ident("t"), setProperty(t, "a", "1"))(f.ctx, f.instance))
	f.wantCodec("t", "zstd", false)
	must(t, f.transact(on("t", setProperty(t, documents.PropMetadataCodec, "zstd")), on("t", setProperty(t, "a", "2")), on("u", setProperty(t, "a", "2"))))
	f.wantCodec("t", "zstd", false)
	f.wantProperty("t", "a", "2")
	wantKind(t, commitTable(ident("t"), setProperty(t, documents.PropMetadataCodec, "lz4"))(f.ctx, f.instance), moorage.KindIllegalArgument)
	must(t, commitTable(ident("t"), setProperty(t, documents.PropMetadataCodec, "gzip"))(f.ctx, f.instance))
	f.wantCodec("t", "gzip", true)
	f.wantClean()
}

// The failure of a file names the location once, whether or not the storage's own error names it.
func TestFailuresNameTheLocationOnce(t *testing.T) {
	t.Parallel()
	const location = "file:///lake/shop/orders/metadata/00001-a.metadata.json"
	for _, row := range []struct {
		err  error
		kind moorage.Kind
		want string
	}{
		{fmt.Errorf("create %s: no space left on device", location), moorage.KindUnavailable, "documents.FileError: create " + location + ": no space left on device"},
		{errors.New("input/output error"), moorage.KindUnavailable, "documents.FileError: " + location + ": input/output error"},
		{fmt.Errorf("%w: %s", storage.ErrNotFound, location), moorage.KindNotFound, "documents.FileError: Failed to open input stream for file: " + location},
		{storage.ErrLocation, moorage.KindBadRequest, "documents.FileError: Malformed location: " + location},
	} {
		if got := documents.FileError(location, row.err); got.Error() != row.want || moorage.KindOf(got) != row.kind || !errors.Is(got, row.err) {
			t.Errorf("%v: got %v, %s; want %s, %s", row.err, got, moorage.KindOf(got), row.want, row.kind)
		}
	}
}
