package documents_test

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
	"moorage/testkit/catalogkit"
)

// paddedFile returns the metadata of a table that does not exist, with a property of padding bytes.
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

// fillRoom takes all the room for metadata, on behalf of other warehouses, until empty is called.
func fillRoom(f *catalogkit.Fixture) (empty func()) {
	f.T.Helper()
	var shares []*documents.Share
	for _, warehouse := range []string{"one", "another"} {
		s := f.Documents().Room().Enter(warehouse)
		must(f.T, s.Take(f.Ctx, documents.RoomFreeBytes+documents.RoomBytes/2))
		shares = append(shares, s)
	}
	return func() {
		for _, s := range shares {
			s.GiveBack()
		}
	}
}

// wantNoRoomHeld fails the test if some of the room for metadata was not given back.
func wantNoRoomHeld(f *catalogkit.Fixture) {
	f.T.Helper()
	if !f.Documents().Room().IsIdle() {
		f.T.Error("some of the room for metadata was not given back")
	}
}

// TestReadRoom takes all the room for long metadata files. A call that reads another long file
// waits, and is refused after a while. Short files need no room. In the end, all room has been
// given back.
func TestReadRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		table := f.Create("t")
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
			if err := errors.Join(f.Files.Delete(f.Ctx, file), f.Files.Create(f.Ctx, file, tt.content)); err != nil {
				t.Fatal(err)
			}
			wantNoRoomHeld(f)
			empty := fillRoom(f)
			began := time.Now()
			_, err := f.Documents().Read(f.Ctx, directory.Table(), "w", f.Files, file)
			if tt.long {
				catalogkit.WantKind(t, err, moorage.KindTooManyRequests)
			}
			if want := map[bool]time.Duration{true: documents.RoomWait}[tt.long]; time.Since(began) != want || (err == nil) == tt.long {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), want)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := f.Documents().Read(f.Ctx, directory.Table(), "w", f.Files, file)
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

// endless is a storage whose files never end.
type endless struct{ storage.Store }

func (endless) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(zeros{}), storage.Info{Bytes: documents.RoomFreeBytes + 10}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// huge is a storage that declares a length beyond the bound.
type huge struct{ storage.Store }

func (huge) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(zeros{}), storage.Info{Bytes: documents.BytesMax + 1}, nil
}

// cutFile is a file whose read ends with an error.
type cutFile struct {
	storage.Store
	content []byte
}

func (c cutFile) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(c.content), brokenReader{})), storage.Info{Bytes: 1 << 20}, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Faults in a file and failures to read it have different errors. Both give back all room.
func TestUnreadableMetadataFiles(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	whole := packed(t, f.Create("t").Document.Raw())
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
		if _, err := f.Documents().Read(f.Ctx, directory.Table(), "w", tt.store, "file:///wh/x"); moorage.KindOf(err) != tt.kind {
			t.Errorf("%s: %v of kind %s, want %s", name, err, moorage.KindOf(err), tt.kind)
		}
	}
	wantNoRoomHeld(f)
}

// reading is a storage whose files have this content.
type reading []byte

func (r reading) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(bytes.NewReader(r)), storage.Info{Bytes: int64(len(r))}, nil
}

func (r reading) ReadRange(_ context.Context, _ string, offset, length int64) ([]byte, error) {
	return r[offset : offset+length], nil
}
func (reading) Create(context.Context, string, []byte) error { return fmt.Errorf("read-only") }
func (reading) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{}, fmt.Errorf("not asked")
}
func (reading) Delete(context.Context, ...string) error { return fmt.Errorf("read-only") }

// Metadata files are compressed if the property says gzip, in any letter case.
func TestCompressionCodec(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	for codec, compress := range map[string]bool{"gzip": true, "none": false, "GZIP": true, "None": false} {
		if err := f.Transact(catalogkit.On("t", catalogkit.SetProperty(t, documents.PropMetadataCodec, codec))); err != nil {
			t.Fatalf("%q: %v", codec, err)
		}
		wantCodec(f, "t", codec, compress)
	}
}

// wantCodec fails the test unless a table has the given codec. The table's metadata file must be
// compressed if compressed is true, and otherwise not.
func wantCodec(f *catalogkit.Fixture, name, codec string, compressed bool) {
	f.T.Helper()
	table, err := f.LoadTable(f.Ctx, ident(name))
	if err != nil {
		f.T.Fatal(err)
	}
	content, err := storage.ReadAll(f.Ctx, f.Files, table.MetadataLocation, 1<<20)
	if err != nil {
		f.T.Fatal(err)
	}
	named := strings.HasSuffix(table.MetadataLocation, ".gz.metadata.json")
	if is := bytes.HasPrefix(content, []byte("\x1f\x8b")); is != compressed || named != compressed {
		f.T.Errorf("%q: compressed %t, in %s", codec, is, table.MetadataLocation)
	}
	if kept, _ := table.Document.Property(documents.PropMetadataCodec); kept != codec {
		f.T.Errorf("codec %q, want %q", kept, codec)
	}
}

// An unknown codec is refused when it is set, by any kind of request, and nothing is left behind.
func TestUnknownCodecIsRefused(t *testing.T) {
	t.Parallel()
	files := &catalogkit.FileCount{There: map[string]bool{}}
	f := catalogkit.New(t, catalogkit.CountFiles(files))
	f.Create("t")
	f.MakeView("v")
	for _, codec := range []string{"zstd", "", " gzip", "gzip2", strings.Repeat("z", 10_000)} {
		told := "Invalid codec name: " + codec[:min(len(codec), documents.CodecQuoteMax)]
		unknown := map[string]string{documents.PropMetadataCodec: codec}
		set := catalogkit.SetProperty(t, documents.PropMetadataCodec, codec)
		create := catalogkit.CommitCreateRequest(t, "file:///wh/ns/new")
		create.Updates = append(create.Updates, set.Updates...)
		for name, do := range map[string]func() error{
			"create": func() error {
				_, err := f.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: unknown})
				return err
			},
			"commit":              func() error { return catalogkit.CommitTable(ident("t"), set)(f.Ctx, f.Instance) },
			"commit that creates": func() error { return catalogkit.CommitTable(ident("new"), create)(f.Ctx, f.Instance) },
			"transaction":         func() error { return f.Transact(catalogkit.On("t", set), catalogkit.On("new", create)) },
			"transaction that creates": func() error {
				return f.Transact(catalogkit.On("t", catalogkit.SetProperty(t, "a", "b")), catalogkit.On("new", create))
			},
			"view": func() error {
				return catalogkit.ReplaceView(ident("v"), catalogkit.SetViewProperty(t, documents.PropMetadataCodec, codec))(f.Ctx, f.Instance)
			},
		} {
			err := do()
			if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.HasPrefix(moorage.MessageOf(err), told) || len(moorage.MessageOf(err)) > 2*documents.CodecQuoteMax {
				t.Errorf("%q, %s: %v", codec, name, err)
			}
		}
	}
	f.WantOnlyNamedFiles(files)
	f.WantNoTransactions()
	f.WantClean()
	both := catalogkit.SetProperty(t, documents.PropMetadataCodec, "zstd")
	both.Updates = append(both.Updates, catalogkit.SetProperty(t, documents.PropMetadataCodec, "gzip").Updates...)
	must(t, catalogkit.CommitTable(ident("t"), both)(f.Ctx, f.Instance))
	wantCodec(f, "t", "gzip", true)
}

// A table may have an unknown codec because its file was registered. It can be loaded and changed,
// and its codec can be set to a known one.
func TestUnknownCodecIsKept(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	const location = "file:///wh/ns/t/metadata/00007-other.metadata.json"
	raw := bytes.Replace(f.Create("t").Document.Raw(), []byte(`"properties":{`), []byte(`"properties":{"`+documents.PropMetadataCodec+`":"zstd",`), 1)
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
	must(t, f.Files.Create(f.Ctx, location, raw))
	if _, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: location}); err != nil {
		t.Fatal(err)
	}
	f.Create("u")
	must(t, catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, "a", "1"))(f.Ctx, f.Instance))
	wantCodec(f, "t", "zstd", false)
	must(t, f.Transact(catalogkit.On("t", catalogkit.SetProperty(t, documents.PropMetadataCodec, "zstd")), catalogkit.On("t", catalogkit.SetProperty(t, "a", "2")), catalogkit.On("u", catalogkit.SetProperty(t, "a", "2"))))
	wantCodec(f, "t", "zstd", false)
	f.WantProperty("t", "a", "2")
	catalogkit.WantKind(t, catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, documents.PropMetadataCodec, "lz4"))(f.Ctx, f.Instance), moorage.KindIllegalArgument)
	must(t, catalogkit.CommitTable(ident("t"), catalogkit.SetProperty(t, documents.PropMetadataCodec, "gzip"))(f.Ctx, f.Instance))
	wantCodec(f, "t", "gzip", true)
	f.WantClean()
}

// The error about a file names the location once, whether or not the storage's own error names it.
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
