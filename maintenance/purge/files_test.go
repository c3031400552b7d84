package purge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/maintenance/purge"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/storagetest"
)

const (
	purgedTable    = "file:///w/t"
	purgedMetadata = purgedTable + "/metadata/00003.metadata.json"
)

// rank orders files by reference: a file is listed only in files of a higher rank.
func rank(file string) int {
	name := strings.TrimPrefix(file, purgedTable+"/metadata/")
	switch {
	case name == file:
		return 0
	case strings.HasPrefix(name, "m-"):
		return 1
	case strings.HasPrefix(name, "snap-"):
		return 2
	case file != purgedMetadata:
		return 3
	}
	return 4
}

func TestPurgeFiles(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			t.Parallel()
			p := newPurged(t, version).full()
			document := p.document()
			var log bytes.Buffer
			var batches [][]string
			err := p.purge(p.store, document, &log, func(batch []string) error {
				batches = append(batches, batch)
				return p.delete(batch)
			})
			if err != nil {
				t.Fatal(err)
			}
			if left := p.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if yielded := slices.Concat(batches...); len(yielded) != len(p.files) || !slices.IsSortedFunc(yielded, byRank) {
				t.Errorf("yielded in this order: %q", yielded)
			}
			for _, batch := range batches {
				if rank(batch[0]) != rank(batch[len(batch)-1]) {
					t.Errorf("one batch has files and those that name them: %q", batch)
				}
			}
			if last := batches[len(batches)-1]; !slices.Equal(last, []string{purgedMetadata}) {
				t.Errorf("the last batch is %q", last)
			}
			if log.Len() > 0 {
				t.Errorf("logged: %s", &log)
			}
		})
	}
}

func byRank(a, b string) int { return rank(a) - rank(b) }

func TestPurgeFilesKeepsData(t *testing.T) {
	t.Parallel()
	for value, keeps := range map[string]bool{"false": true, "FALSE": true, "no": true, "": true, "true": false, "True": false} {
		p := newPurged(t, 2).full()
		p.properties["gc.enabled"] = value
		if err := p.purge(p.store, p.document(), io.Discard, p.delete); err != nil {
			t.Fatal(err)
		}
		var want []string
		if keeps {
			want = []string{"data/a.parquet", "data/b.parquet", "data/c.parquet", "data/d.parquet", "data/x-deletes.parquet", "data/y-deletes.parquet"}
		}
		if left := p.left(); !slices.Equal(left, want) {
			t.Errorf("gc.enabled=%q leaves %q, want %q", value, left, want)
		}
	}
}

// TestPurgeFilesAgain interrupts a purge after each deleted file, and purges again.
func TestPurgeFilesAgain(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for k := 0; ; k++ {
		p := newPurged(t, 2).full()
		document := p.document()
		deleted := 0
		err := p.purge(p.store, document, io.Discard, func(batch []string) error {
			for _, file := range batch {
				if deleted == k {
					return cut
				}
				deleted++
				if err := p.delete([]string{file}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, cut) {
			t.Fatal(err)
		}
		if err == nil {
			if k != len(p.files) {
				t.Errorf("%d files were deleted, want %d", k, len(p.files))
			}
			return
		}
		if _, err := p.store.Stat(t.Context(), purgedMetadata); err != nil {
			t.Fatalf("cut after %d files, the metadata file is gone: %v", k, err)
		}
		if err := p.purge(p.store, document, io.Discard, p.delete); err != nil {
			t.Fatalf("cut after %d files: %v", k, err)
		}
		if left := p.left(); len(left) > 0 {
			t.Errorf("cut after %d files, and purged again, this is left: %q", k, left)
		}
	}
}

func TestPurgeFilesStaysInClaims(t *testing.T) {
	t.Parallel()
	p := newPurged(t, 2)
	inside := p.manifest("m-inside.avro", p.data("a.parquet", "file:///w/t2/b.parquet", "file:/w/t/data/c.parquet", "file:///w/other/d.parquet", "s3://w/t/e.parquet",
		"file:///w/set/f.parquet")...)
	outside := p.manifest("file:///w/other/m-outside.avro", p.data("g.parquet")...)
	broken := p.manifest("m-broken.avro", p.entry(iceberg.EntryStatusADDED, iceberg.EntryContentData, purgedTable+"/../other/d.parquet"),
		p.entry(iceberg.EntryStatusADDED, iceberg.EntryContentData, "relative.parquet"))
	p.snapshot("snap-1.avro", inside, outside, broken)
	p.log = append(p.log, p.file("file:///w/other/00000.metadata.json", nil), purgedMetadata)
	p.statistics = append(p.statistics, p.file("file:///w/1.stats", nil))
	document := p.document()
	var log bytes.Buffer
	var yielded []string
	logger := slog.New(slog.NewTextHandler(&log, nil))
	claims := []string{purgedTable, "file:///w/set"}
	err := eachBatch(t.Context(), logger, p.store, document, purgedMetadata, claims, func(batch []string) error {
		yielded = append(yielded, batch...)
		return p.delete(batch)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"file:///w/1.stats", "file:///w/other/00000.metadata.json", "file:///w/other/d.parquet", "file:///w/other/m-outside.avro", "file:///w/t2/b.parquet", "s3://w/t/e.parquet"}
	if left := p.left(); !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if slices.Index(yielded, purgedMetadata) != len(yielded)-1 {
		t.Errorf("the metadata file is not there once, and last: %q", yielded)
	}
	if !strings.Contains(log.String(), "files=8") {
		t.Errorf("the log does not tell that 8 files were left: %s", &log)
	}
}

func TestPurgeFilesOfForeignMetadata(t *testing.T) {
	t.Parallel()
	p := newPurged(t, 2)
	document := p.document()
	err := eachBatch(t.Context(), slog.New(slog.DiscardHandler), p.store, document, purgedMetadata, []string{"file:///elsewhere"}, func(batch []string) error {
		t.Errorf("yielded %q", batch)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPurgeFilesPassesOver purges tables with a manifest or a list that cannot be read.
func TestPurgeFilesPassesOver(t *testing.T) {
	t.Parallel()
	lost := purgedTable + "/metadata/lost.avro"
	good := func(p *purged) {
		p.snapshot("snap-good.avro", p.manifest("m-good.avro", p.data("good.parquet")...))
	}
	for name, damage := range map[string]func(p *purged){
		"missing list":     func(p *purged) { p.listed(lost) },
		"empty list":       func(p *purged) { p.listed(p.file(lost, nil)) },
		"damaged list":     func(p *purged) { p.listed(p.file(lost, []byte("Obj\x01 and then nothing"))) },
		"malformed list":   func(p *purged) { p.listed("lost.avro") },
		"missing manifest": func(p *purged) { p.snapshot("snap-1.avro", iceberg.NewManifestFile(2, lost, 4, 0, 1).Build()) },
		"damaged manifest": func(p *purged) {
			p.file(lost, []byte("Obj\x01 and then nothing"))
			p.snapshot("snap-1.avro", iceberg.NewManifestFile(2, lost, 4, 0, 1).Build())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurged(t, 2)
			good(p)
			damage(p)
			p.data("named-by-nobody.parquet")
			var log bytes.Buffer
			if err := p.purge(p.store, p.document(), &log, p.delete); err != nil {
				t.Fatal(err)
			}
			if left := p.left(); !slices.Equal(left, []string{"data/named-by-nobody.parquet"}) {
				t.Errorf("left: %q", left)
			}
			if strings.Count(log.String(), "purge: an unreadable manifest or list is skipped") != 1 || !strings.Contains(log.String(), "lost.avro") {
				t.Errorf("the log does not name the file once: %s", &log)
			}
		})
	}
}

// TestPurgeFilesSurvivesDamage damages bytes all over a manifest and a list, one at a time.
func TestPurgeFilesSurvivesDamage(t *testing.T) {
	t.Parallel()
	const step = 29 // a prime, so that each field of a record is damaged sometimes
	whole := newPurged(t, 2)
	whole.snapshot("snap-1.avro", whole.manifest("m-1.avro", whole.data("a.parquet", "b.parquet")...))
	document := whole.document()
	for _, name := range []string{"m-1.avro", "snap-1.avro"} {
		original, err := storage.ReadAll(t.Context(), whole.store, purgedTable+"/metadata/"+name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(original); i += step {
			damaged := slices.Clone(original)
			damaged[i] ^= 0xff
			store := replaced{whole.store, purgedTable + "/metadata/" + name, damaged}
			var last []string
			err := whole.purge(store, document, io.Discard, func(batch []string) error {
				last = batch
				return nil
			})
			if err != nil || !slices.Equal(last, []string{purgedMetadata}) {
				t.Fatalf("%s with byte %d damaged: %v; the last batch is %q", name, i, err, last)
			}
		}
	}
}

// replaced is a store in which one file has different contents.
type replaced struct {
	storage.Store
	location string
	body     []byte
}

func (r replaced) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if location == r.location {
		return io.NopCloser(bytes.NewReader(r.body)), storage.Info{Bytes: int64(len(r.body))}, nil
	}
	return r.Store.Open(ctx, location)
}

// TestPurgeFilesStopsWhenStorageFails makes each Open and each read fail in turn. A file must then
// stay if it refers to a file that was not read.
func TestPurgeFilesStopsWhenStorageFails(t *testing.T) {
	t.Parallel()
	whole := newPurged(t, 2).full()
	document := whole.document()
	for k := 0; ; k++ {
		faulty := storagetest.Faulty(whole.store, storagetest.Nth(k, storagetest.Fail))
		opens := purgeOf(t, whole, document, faulty)
		reads := purgeOf(t, whole, document, &brokenReads{Store: whole.store, at: k})
		if opens == nil && reads == nil {
			if k == 0 {
				t.Error("nothing is read")
			}
			return
		}
		if !errors.Is(opens, storagetest.ErrInjected) || !errors.Is(reads, storagetest.ErrInjected) {
			t.Fatalf("file %d: %v when it cannot be opened, %v when it cannot be read", k, opens, reads)
		}
	}
}

func purgeOf(t *testing.T, p *purged, document *metadata.Document, store storage.Store) error {
	return p.purge(store, document, io.Discard, func(batch []string) error {
		if faulty, ok := store.(*brokenReads); ok && faulty.opened > faulty.at {
			t.Errorf("deletes %q after a read failed", batch)
		}
		return nil
	})
}

// brokenReads is a store in which one file cannot be read to its end.
type brokenReads struct {
	storage.Store
	at, opened int
}

func (b *brokenReads) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	body, info, err := b.Store.Open(ctx, location)
	b.opened++
	if err == nil && b.opened-1 == b.at {
		body = io.NopCloser(io.MultiReader(io.LimitReader(body, info.Bytes/2), failing{}))
	}
	return body, info, err
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, storagetest.ErrInjected }

func TestPurgeFilesInBatches(t *testing.T) {
	t.Parallel()
	p := newPurged(t, 2)
	var manifests []iceberg.ManifestFile
	for i := range 5 {
		var names []string
		for j := range 700 {
			names = append(names, fmt.Sprintf("%d-%d.parquet", i, j))
		}
		manifests = append(manifests, p.manifest(fmt.Sprintf("m-%d.avro", i), p.data(names...)...))
	}
	p.snapshot("snap-1.avro", manifests...)
	var sizes []int
	err := p.purge(p.store, p.document(), io.Discard, func(batch []string) error {
		sizes = append(sizes, len(batch))
		return p.delete(batch)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1000, 1000, 1000, 500, 5, 1, 1}; !slices.Equal(sizes, want) {
		t.Errorf("batches of %d, want %d", sizes, want)
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestPurgeFilesEnds(t *testing.T) {
	t.Parallel()
	p := newPurged(t, 2).full()
	document := p.document()
	stop := errors.New("stop")
	if err := p.purge(p.store, document, io.Discard, func([]string) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("purge = %v, want the error of yield", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := eachBatch(ctx, slog.New(slog.DiscardHandler), p.store, document, purgedMetadata, []string{purgedTable}, func([]string) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("purge that is cancelled = %v", err)
	}
	for _, bad := range []struct{ location, claim string }{{"relative", purgedTable}, {purgedMetadata, "relative"}} {
		err := eachBatch(t.Context(), slog.New(slog.DiscardHandler), p.store, document, bad.location, []string{bad.claim}, p.delete)
		if !errors.Is(err, storage.ErrLocation) {
			t.Errorf("purge of %q with the claim %q = %v, want ErrLocation", bad.location, bad.claim, err)
		}
	}
	if left := p.left(); len(left) != len(p.files) {
		t.Errorf("left: %q", left)
	}
}

// eachBatch walks over the files of a table with this metadata file and these claims.
func eachBatch(ctx context.Context, log *slog.Logger, store storage.Store, document *metadata.Document,
	metadataLocation string, claims []string, yield func(batch []string) error) error {
	gone := func(_ context.Context, location string) (*metadata.Document, error) {
		return nil, moorage.Errorf(moorage.KindNotFound, "%s", location)
	}
	return purge.EachBatch(ctx, log, store, document, registry.Pointer{MetadataLocation: metadataLocation, Claims: claims}, nil, gone, yield)
}
