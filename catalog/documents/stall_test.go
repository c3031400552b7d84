package documents_test

import (
	"context"
	"io"
	"strings"
	"sync"
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

// stallingFiles is a storage whose files send their content up to a point, and then nothing until
// the context ends.
type stallingFiles struct {
	storage.Store
	content []byte
	claims  int64 // the declared length of the files
}

func (s stallingFiles) Open(ctx context.Context, _ string) (io.ReadCloser, storage.Info, error) {
	return &stallingBody{ctx: ctx, content: s.content}, storage.Info{Bytes: s.claims}, nil
}

type stallingBody struct {
	ctx     context.Context
	content []byte
}

func (b *stallingBody) Read(p []byte) (int, error) {
	if len(b.content) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	n := copy(p, b.content)
	b.content = b.content[n:]
	return n, nil
}

func (*stallingBody) Close() error { return nil }

// Reads of long files from a stalling storage do not prevent reads in other warehouses. They give
// their room back after some seconds.
func TestRoomBesideAStorageThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		table := f.Create("t")
		const file = "file:///wh/elsewhere/metadata/v1.metadata.json"
		must(t, f.Files.Create(f.Ctx, file, packed(t, paddedFile(table, "a", 20<<20))))
		began := time.Now()
		var reads sync.WaitGroup
		for _, files := range []stallingFiles{
			{content: make([]byte, documents.RoomFreeBytes+1), claims: documents.BytesMax},
			{content: packed(t, make([]byte, 64<<20))[:40<<10], claims: 30 << 20}, // unpacks to some 40 MiB before it stalls
		} {
			for range 20 {
				reads.Go(func() {
					_, err := f.Documents().Read(f.Ctx, directory.Table(), "stuck", files, "s3://stuck/file")
					if kind := moorage.KindOf(err); kind != moorage.KindUnavailable && kind != moorage.KindTooManyRequests {
						t.Errorf("answered %v of kind %s", err, kind)
					}
				})
			}
		}
		synctest.Wait() // now they hold all the room that they get
		if _, err := f.Documents().Read(f.Ctx, directory.Table(), "w", f.Files, file); err != nil || time.Since(began) > 0 {
			t.Errorf("another warehouse: %v, after %s", err, time.Since(began))
		}
		reads.Wait()
		if took := time.Since(began); took > documents.RoomWait+documents.ReadStallMax {
			t.Errorf("the last of them was answered after %s", took)
		}
		wantNoRoomHeld(f)
	})
}

// Commits and transactions on long documents take room. If there is no room for a while, they are
// refused and change nothing.
func TestCommitsTakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		long := catalogkit.SetProperty(t, "padding", strings.Repeat("x", documents.RoomFreeBytes))
		for _, name := range []string{"long", "long2", "short", "short2"} {
			f.Create(name)
		}
		for _, name := range []string{"long", "long2"} {
			must(t, catalogkit.CommitTable(ident(name), long)(f.Ctx, f.Instance))
		}
		set := func(value string) catalog.CommitRequest { return catalogkit.SetProperty(t, "a", value) }
		for name, tt := range map[string]struct {
			commit func(value string) error
			long   bool
			table  string
		}{
			"commit":       {func(value string) error { return catalogkit.CommitTable(ident("long"), set(value))(f.Ctx, f.Instance) }, true, "long"},
			"short commit": {func(value string) error { return catalogkit.CommitTable(ident("short"), set(value))(f.Ctx, f.Instance) }, false, "short"},
			"transaction": {func(value string) error {
				return f.Transact(catalogkit.On("short", set(value)), catalogkit.On("long2", set(value)))
			}, true, "long2"},
			"short transaction": {func(value string) error {
				return f.Transact(catalogkit.On("short", set(value)), catalogkit.On("short2", set(value)))
			}, false, "short2"},
		} {
			empty := fillRoom(f)
			began := time.Now()
			err := tt.commit(name)
			if tt.long {
				catalogkit.WantKind(t, err, moorage.KindTooManyRequests)
			}
			if want := map[bool]time.Duration{true: documents.RoomWait}[tt.long]; (err == nil) == tt.long || time.Since(began) != want {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), want)
			}
			empty()
			must(t, tt.commit(name+" again"))
			f.WantProperty(tt.table, "a", name+" again")
			wantNoRoomHeld(f)
		}
		f.WantNoTransactions()
		f.WantClean()
	})
}
