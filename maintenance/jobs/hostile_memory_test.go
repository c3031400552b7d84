//go:build !race

package jobs_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/manifests"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/scale"
	"moorage/testkit/tablefiles"
)

var longFlag = flag.Bool("long", false, "what clients store is as large as in the attack")

// name returns the name of a file in the table.
func name(folder, ending string) func(int) string {
	return func(i int) string { return fmt.Sprintf("%s/%s/%09d%s", tableAt, folder, i, ending) }
}

// hostile commits a snapshot whose manifest list has the contents list.
func (w *world) hostile(list []byte, files map[string][]byte) {
	w.t.Helper()
	at := tableAt + "/metadata/hostile.avro"
	must(w.t, w.files.Create(w.ctx, at, list))
	for path, body := range files {
		must(w.t, w.files.Create(w.ctx, path, body))
	}
	w.commit(fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":%d,
		"manifest-list":%q,"summary":{"operation":"append"},"schema-id":0}}`, w.clock.Now().UnixMilli(), at),
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}`,
		fmt.Sprintf(`{"action":"set-statistics","snapshot-id":1,"statistics":{"snapshot-id":1,"statistics-path":%q,
			"file-size-in-bytes":1073741900,"file-footer-size-in-bytes":1073741824,"blob-metadata":[]}}`, statsAt))
	w.clock.Advance(4 * 24 * time.Hour)
}

const statsAt = tableAt + "/metadata/1.stats"

// endsBlocked fails the test unless the orphan job becomes blocked for the reason. The job must
// stay blocked on nodes that start later.
func (w *world) endsBlocked(reason string) {
	w.t.Helper()
	_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
	must(w.t, err)
	for range 20 {
		must(w.t, w.newNode(w.store, w.files).jobs.RunOnce(w.ctx))
		w.clock.Advance(24 * time.Hour)
	}
	job := w.job()
	if job == nil || job.State != registry.StateBlocked || !strings.Contains(job.LastError, reason) || job.Begun != 0 {
		w.t.Errorf("the job is %+v, want blocked for %q", job, reason)
	}
}

func wantLittle(t *testing.T, what string, peak int64) {
	t.Helper()
	t.Logf("%s: %d MB above idle", what, peak>>20)
	if peak > scale.AboveIdleMax {
		t.Errorf("%s: %d bytes above idle, want at most %d", what, peak, scale.AboveIdleMax)
	}
}

// This test and those after it are not parallel, because they measure the process.
func TestAListOfMillionsOfManifestsBlocksItsJob(t *testing.T) {
	manifests := manifests.ListedMax + 1
	if *longFlag {
		manifests = 4_000_000
	}
	wantLittle(t, fmt.Sprint(manifests, " manifests"), scale.Peak(t, func(t *testing.T) func() {
		w := newWorld(t, inMemory, 1, 0)
		w.hostile(tablefiles.HostileList(t, manifests, name("metadata", "-m0.avro")), nil)
		return func() { w.endsBlocked("over 262144 manifests") }
	}))
}

// A manifest with too many files blocks its job. A manifest with a million files is read in parts.
// A statistics file that claims a footer of a gigabyte is not even opened, nor is a data file.
func TestAManifestOfAMillionFilesIsReadInLittleMemory(t *testing.T) {
	files := 300_000
	if *longFlag {
		files = 1_000_000
	}
	wantLittle(t, fmt.Sprint(files, " files"), scale.Peak(t, func(t *testing.T) func() {
		w := newWorld(t, inMemory, 1, 0)
		w.hostile(tablefiles.HostileList(t, 1, name("metadata", "-m0.avro")), map[string][]byte{
			name("metadata", "-m0.avro")(0): tablefiles.HostileManifest(t, files, 0, name("data", ".parquet")),
			name("data", ".parquet")(0):     []byte("live"),
			tableAt + "/data/stray":         []byte("stray"),
			statsAt:                         []byte("PFA1"),
		})
		read := &noted{Store: w.files}
		return func() {
			w.node = w.newNode(w.store, read)
			_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
			must(t, err)
			must(t, w.jobs.RunOnce(w.ctx))
			w.clock.Advance(11 * 24 * time.Hour)
			must(t, w.jobs.RunOnce(w.ctx))
			if w.job() != nil || w.exists(tableAt+"/data/stray") || !w.exists(name("data", ".parquet")(0)) {
				t.Errorf("the job is %+v; the stray is there: %v", w.job(), w.exists(tableAt+"/data/stray"))
			}
			for _, path := range read.opened {
				if path == statsAt || strings.HasSuffix(path, ".parquet") {
					t.Errorf("%s was opened", path)
				}
			}
		}
	}))
}

// noted is a storage that records which files were opened.
type noted struct {
	storage.Store
	mu     sync.Mutex // guards opened
	opened []string
}

// Open implements storage.Store.
func (n *noted) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened = append(n.opened, location)
	return n.Store.Open(ctx, location)
}

// List implements storage.Lister.
func (n *noted) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	return n.Store.(storage.Lister).List(ctx, folder, after, limit)
}

// However many files a folder has, they are checked one page at a time.
func TestAFolderOfAMillionFilesIsLookedAtInLittleMemory(t *testing.T) {
	files := 300_000
	if *longFlag {
		files = 4_000_000
	}
	wantLittle(t, fmt.Sprint(files, " files"), scale.Peak(t, func(t *testing.T) func() {
		w := newWorld(t, inMemory, 1, 1)
		w.clock.Advance(4 * 24 * time.Hour)
		return func() {
			w.node = w.newNode(w.store, &crowded{Store: w.files, files: files, now: w.clock.Now()})
			s := orphanSettings()
			s.Confirmed = true
			_, err := w.jobs.FindOrphans(w.ctx, w.table, s, nil)
			must(t, err)
			must(t, w.jobs.RunOnce(w.ctx))
			found := int64(0)
			for _, list := range w.job().Lists {
				found += list.Count
			}
			if job := w.job(); job.State != registry.StateWaiting || found != int64(files) {
				t.Errorf("%d files were found, and the job is %s: %s", found, job.State, job.LastError)
			}
		}
	}))
}

// crowded is a storage that adds many generated files to the table's folder. It does not store a
// job's lists.
type crowded struct {
	storage.Store
	files int
	now   time.Time
}

// Create implements storage.Store.
func (c *crowded) Create(ctx context.Context, location string, body []byte) error {
	if strings.Contains(location, "/list-") {
		return nil
	}
	return c.Store.Create(ctx, location, body)
}

// List implements storage.Lister.
func (c *crowded) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	if folder != tableAt {
		return c.Store.(storage.Lister).List(ctx, folder, after, limit)
	}
	page := storage.Page{Now: c.now}
	first := 0
	if after != "" {
		if _, err := fmt.Sscan(after, &first); err != nil {
			return page, err
		}
	}
	for i := first; i < min(first+limit, c.files); i++ {
		page.Files = append(page.Files, storage.Listed{
			Location: name("data", ".parquet")(i), Info: storage.Info{Bytes: 4, Modified: c.now.Add(-4 * 24 * time.Hour)},
		})
	}
	if first += limit; first < c.files {
		page.Next = fmt.Sprint(first)
	}
	return page, nil
}
