package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// newDiskCatalog returns a catalog over the embedded store and files, and the folder of both, on a
// real disk. The catalog has the warehouse "w" and the namespace "ns".
func newDiskCatalog(b testing.TB, change ...func(*catalog.Config)) (*catalogkit.Fixture, string) {
	b.Helper()
	folder := b.TempDir()
	random := newLockedRandom(1)
	store, err := pebble.Open(filepath.Join(folder, "registry"), pebble.Options{Random: random})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	warehouse := filepath.Join(folder, "warehouse")
	if err := os.Mkdir(warehouse, 0o755); err != nil {
		b.Fatal(err)
	}
	config := catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: store, Random: random}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return file.New(place.Roots) },
	}
	for _, f := range change {
		f(&config)
	}
	c, err := catalogkit.NewInstance(config)
	if err != nil {
		b.Fatal(err)
	}
	f := &catalogkit.Fixture{Instance: c, T: b, Ctx: b.Context(), Store: store}
	if _, err := c.Warehouses().Create(f.Ctx, warehouses.Spec{Name: catalogkit.Warehouse, Location: "file://" + warehouse}); err != nil {
		b.Fatal(err)
	}
	if _, err := c.CreateNamespace(f.Ctx, catalogkit.Warehouse, []string{"ns"}, nil); err != nil {
		b.Fatal(err)
	}
	return f, folder
}

// clientCounts are the numbers of concurrent clients in benchmarks.
var clientCounts = [...]int{1, 8, 64}

// inParallel calls do b.N times from concurrent goroutines; clients is their number. n counts the
// calls.
func inParallel(b *testing.B, clients int, do func(n int64) error) {
	b.Helper()
	var n atomic.Int64
	done := make(chan error, clients)
	b.ReportAllocs()
	b.ResetTimer()
	for range clients {
		go func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					done <- nil
					return
				}
				if err := do(i); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit measures a whole commit that sets one property. Compare it with BenchmarkSyncs,
// which does only the work that makes a commit durable, and with BenchmarkApply.
func BenchmarkCommit(b *testing.B) {
	for _, tables := range []int{1, 1000} {
		for _, clients := range clientCounts {
			b.Run(fmt.Sprintf("tables=%d/clients=%d", tables, clients), func(b *testing.B) {
				f, _ := newDiskCatalog(b)
				createTables(f, tables)
				requests := make([]catalog.CommitRequest, 1024)
				for i := range requests {
					requests[i] = catalogkit.SetProperty(b, "a", fmt.Sprint(i))
				}
				inParallel(b, clients, func(n int64) error {
					_, err := f.Commit(f.Ctx, ident(fmt.Sprintf("t%d", n%int64(tables))), requests[n/int64(tables)%int64(len(requests))])
					return err
				})
			})
		}
	}
}

// createTables makes tables t0, t1, …, whose documents keep their size because their metadata
// logs are at their bound.
func createTables(f *catalogkit.Fixture, tables int) {
	f.T.Helper()
	trimmed := catalogkit.SetProperty(f.T, "write.metadata.previous-versions-max", "1")
	var group errgroup.Group
	group.SetLimit(32)
	for i := range tables {
		group.Go(func() error {
			name := ident(fmt.Sprintf("t%d", i))
			if _, err := f.CreateTable(f.Ctx, name, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}); err != nil {
				return err
			}
			for range 2 {
				if _, err := f.Commit(f.Ctx, name, trimmed); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		f.T.Fatal(err)
	}
}

// BenchmarkApply measures the store's share of a commit: a conditional write of the pointer, and a
// change record.
func BenchmarkApply(b *testing.B) {
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, _ := newDiskCatalog(b)
			value := make([]byte, 400)
			inParallel(b, clients, func(int64) error {
				id, err := f.Ledger.NewID()
				if err != nil {
					return err
				}
				change, err := f.Ledger.NewChange(f.Ctx, moorage.Anonymous(), "bench", ident("t"))
				if err != nil {
					return err
				}
				_, err = f.Store.Apply(f.Ctx, registry.Batch{
					Writes: []registry.Write{registry.Put(registry.PointerKey(id), registry.StateLive, value)},
					Change: &change,
				})
				return err
			})
		})
	}
}

// BenchmarkSyncs measures the minimal work of a commit, done with plain system calls. It syncs a
// new file of the size of a small metadata file, the file's folder, and a line of a log file. Each
// client has a folder and a log of its own.
func BenchmarkSyncs(b *testing.B) {
	body := make([]byte, 1500)
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			folders := make(chan *syncFolder, clients)
			for i := range clients {
				folders <- newSyncFolder(b, filepath.Join(b.TempDir(), fmt.Sprint(i)))
			}
			inParallel(b, clients, func(n int64) error {
				folder := <-folders
				defer func() { folders <- folder }()
				return folder.commit(fmt.Sprint(n), body)
			})
		})
	}
}

// syncFolder is one client's folder and log.
type syncFolder struct {
	path        string
	folder, log *os.File
}

func newSyncFolder(b *testing.B, path string) *syncFolder {
	b.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		b.Fatal(err)
	}
	folder, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(path, "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		folder.Close()
		log.Close()
	})
	return &syncFolder{path, folder, log}
}

func (s *syncFolder) commit(name string, body []byte) error {
	if err := s.create(name, body); err != nil {
		return err
	}
	return s.note(body[:600])
}

// create writes a file, and syncs both the file and the folder.
func (s *syncFolder) create(name string, body []byte) error {
	created, err := os.OpenFile(filepath.Join(s.path, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer created.Close()
	if _, err := created.Write(body); err != nil {
		return err
	}
	if err := created.Sync(); err != nil {
		return err
	}
	return s.folder.Sync()
}

// createTable creates the folder of a table, and in it a folder with a metadata file. It writes a
// line of the log.
func (s *syncFolder) createTable(name string, body []byte) error {
	table := filepath.Join(s.path, name)
	metadata := syncFolder{path: filepath.Join(table, "metadata")}
	if err := os.MkdirAll(metadata.path, 0o755); err != nil {
		return err
	}
	opened, err := os.Open(metadata.path)
	if err != nil {
		return err
	}
	defer opened.Close()
	metadata.folder = opened
	if err := metadata.create("0", body); err != nil {
		return err
	}
	above, err := os.Open(table)
	if err != nil {
		return err
	}
	defer above.Close()
	if err := errors.Join(above.Sync(), s.folder.Sync()); err != nil {
		return err
	}
	return s.note(body[:600])
}

// note writes a line of the log and syncs it.
func (s *syncFolder) note(line []byte) error {
	if _, err := s.log.Write(line); err != nil {
		return err
	}
	return s.log.Sync()
}

// BenchmarkCommitSnapshots measures a whole commit, over stores in memory. The commit adds a
// snapshot to a table with a given number of snapshots.
func BenchmarkCommitSnapshots(b *testing.B) {
	for _, snapshots := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("snapshots=%d", snapshots), func(b *testing.B) {
			f := catalogkit.New(b)
			table := f.Create("t")
			if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(b, "write.metadata.previous-versions-max", "10")); err != nil {
				b.Fatal(err)
			}
			for i := range snapshots {
				if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(b, table, int64(i+1), int64(i), int64(i+1))); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				id := int64(1<<40 + i) // greater than all permanent IDs
				b.StopTimer()
				request := branchAndForget(b, table, id)
				b.StartTimer()
				if _, err := f.Commit(f.Ctx, ident("t"), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// branchAndForget returns a commit that adds the snapshot id on a branch of its own. It removes the
// snapshot and branch of the previous commit, so that the size of the table stays the same.
func branchAndForget(b *testing.B, table *catalog.Table, id int64) catalog.CommitRequest {
	b.Helper()
	return catalogkit.CommitRequest(b, `[]`, fmt.Sprintf(`[
		{"action":"remove-snapshot-ref","ref-name":"b%d"},{"action":"remove-snapshots","snapshot-ids":[%d]},
		{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"%s/metadata/snap-%d.avro","summary":{"operation":"append","added-records":"100000","total-records":"100000000"},"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"b%d","type":"branch","snapshot-id":%d}]`,
		id-1, id-1, id, id, newClock().Now().UnixMilli(), table.Document.Location(), id, id, id))
}

// BenchmarkCommitGroup measures commits by clients that each set their own property on one table.
// Waiting commits share a version. With group=1, each commit has its own version, for comparison.
func BenchmarkCommitGroup(b *testing.B) {
	for _, clients := range []int{1, 8, 32, 64} {
		for _, group := range []int{64, 1} {
			b.Run(fmt.Sprintf("clients=%d/group=%d", clients, group), func(b *testing.B) {
				f, _ := newDiskCatalog(b, func(config *catalog.Config) { config.CommitGroup = group })
				createTables(f, 1)
				requests := make([]catalog.CommitRequest, 1024)
				for i := range requests {
					requests[i] = catalogkit.SetProperty(b, fmt.Sprintf("p%d", i%128), fmt.Sprint(i))
				}
				inParallel(b, clients, func(n int64) error {
					_, err := f.Commit(f.Ctx, ident("t0"), requests[n%int64(len(requests))])
					return err
				})
			})
		}
	}
}
