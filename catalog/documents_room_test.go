package catalog_test

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
)

// stallingFiles are files that send what they have up to a place, and then nothing until their
// context ends.
type stallingFiles struct {
	storage.Store
	content []byte
	claims  int64 // how long they are said to be
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

// Reads of long files from a storage that stalls keep no other warehouse from reading. They give
// their room back after some seconds.
func TestRoomBesideAStorageThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		table := f.create("t")
		const file = "file:///wh/elsewhere/metadata/v1.metadata.json"
		must(t, f.files.Create(f.ctx, file, packed(t, paddedFile(table, "a", 20<<20))))
		began := time.Now()
		var reads sync.WaitGroup
		for _, files := range []stallingFiles{
			{content: make([]byte, documents.RoomFreeBytes+1), claims: documents.BytesMax},
			{content: packed(t, make([]byte, 64<<20))[:40<<10], claims: 30 << 20}, // some 40 MiB are unpacked before it stalls
		} {
			for range 20 {
				reads.Go(func() {
					_, err := f.Documents().Read(f.ctx, directory.Table(), "stuck", files, "s3://stuck/file")
					if kind := moorage.KindOf(err); kind != moorage.KindUnavailable && kind != moorage.KindTooManyRequests {
						t.Errorf("answered %v of kind %s", err, kind)
					}
				})
			}
		}
		synctest.Wait() // they hold what they get
		if _, err := f.Documents().Read(f.ctx, directory.Table(), "w", f.files, file); err != nil || time.Since(began) > 0 {
			t.Errorf("another warehouse: %v, after %s", err, time.Since(began))
		}
		reads.Wait()
		if took := time.Since(began); took > documents.RoomWait+documents.ReadStallMax {
			t.Errorf("the last of them was answered after %s", took)
		}
		f.wantNoRoomHeld()
	})
}

// Commits and transactions to long documents take room. They are refused, with nothing changed,
// where there is no room for a while.
func TestCommitsTakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		long := setProperty(t, "padding", strings.Repeat("x", documents.RoomFreeBytes))
		for _, name := range []string{"long", "long2", "short", "short2"} {
			f.create(name)
		}
		for _, name := range []string{"long", "long2"} {
			must(t, commitTable(ident(name), long)(f.ctx, f.instance))
		}
		set := func(value string) catalog.CommitRequest { return setProperty(t, "a", value) }
		for name, tt := range map[string]struct {
			commit func(value string) error
			long   bool
			table  string
		}{
			"commit":            {func(value string) error { return commitTable(ident("long"), set(value))(f.ctx, f.instance) }, true, "long"},
			"short commit":      {func(value string) error { return commitTable(ident("short"), set(value))(f.ctx, f.instance) }, false, "short"},
			"transaction":       {func(value string) error { return f.transact(on("short", set(value)), on("long2", set(value))) }, true, "long2"},
			"short transaction": {func(value string) error { return f.transact(on("short", set(value)), on("short2", set(value))) }, false, "short2"},
		} {
			empty := f.fillRoom()
			began := time.Now()
			err := tt.commit(name)
			if tt.long {
				wantKind(t, err, moorage.KindTooManyRequests)
			}
			if want := map[bool]time.Duration{true: documents.RoomWait}[tt.long]; (err == nil) == tt.long || time.Since(began) != want {
				t.Errorf("%s: %v after %s, want %s", name, err, time.Since(began), want)
			}
			empty()
			must(t, tt.commit(name+" again"))
			f.wantProperty(tt.table, "a", name+" again")
			f.wantNoRoomHeld()
		}
		f.wantNoTransactions()
		f.wantClean()
	})
}
