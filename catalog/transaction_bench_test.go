package catalog_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// BenchmarkTransaction measures a transaction of one client that sets one property on each of
// several tables. Compare the times with those for one table, which is a plain commit.
func BenchmarkTransaction(b *testing.B) {
	stores := []struct {
		name string
		open func(b *testing.B) *catalogkit.Fixture
	}{
		{"memory", func(b *testing.B) *catalogkit.Fixture { return catalogkit.New(b) }},
		{"file", func(b *testing.B) *catalogkit.Fixture { f, _ := newDiskCatalog(b); return f }},
	}
	for _, store := range stores {
		for _, tables := range []int{1, 2, 10} {
			b.Run(fmt.Sprintf("store=%s/tables=%d", store.name, tables), func(b *testing.B) {
				f := store.open(b)
				createTables(f, tables)
				requests := alternating(f, 0, tables)
				inParallel(b, 1, func(n int64) error { return f.CommitTransaction(f.Ctx, catalogkit.Warehouse, requests[n%2]) })
			})
		}
	}
}

// alternating returns two transactions on the same tables, beginning with t<first>. Each undoes the
// other.
func alternating(f *catalogkit.Fixture, first, tables int) (requests [2][]catalog.TableChange) {
	f.T.Helper()
	for i := range requests {
		for table := range tables {
			requests[i] = append(requests[i], catalogkit.On(fmt.Sprintf("t%d", first+table), catalogkit.SetProperty(f.T, "a", fmt.Sprint(i))))
		}
	}
	return requests
}

// BenchmarkTransactionsDisjoint measures transactions of two tables each. Each client has tables of
// its own. Compare with BenchmarkCommitsDisjoint.
func BenchmarkTransactionsDisjoint(b *testing.B) { benchmarkDisjoint(b, 2) }

// BenchmarkCommitsDisjoint measures commits of one table. Each client has a table of its own.
func BenchmarkCommitsDisjoint(b *testing.B) { benchmarkDisjoint(b, 1) }

func benchmarkDisjoint(b *testing.B, tables int) {
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f, _ := newDiskCatalog(b)
			createTables(f, clients*tables)
			free := make(chan *disjointClient, clients)
			for i := range clients {
				free <- &disjointClient{requests: alternating(f, i*tables, tables)}
			}
			inParallel(b, clients, func(int64) error {
				client := <-free
				defer func() { free <- client }()
				client.done++
				return f.CommitTransaction(f.Ctx, catalogkit.Warehouse, client.requests[client.done%2])
			})
		})
	}
}

// disjointClient has tables that no other client changes.
type disjointClient struct {
	requests [2][]catalog.TableChange
	done     int
}

// BenchmarkTransactionSyncs measures the minimal work of a transaction over several tables, done
// with plain system calls. It syncs a line of a log, a file of each table and its folder, all
// tables concurrently, and another line of the log.
func BenchmarkTransactionSyncs(b *testing.B) {
	body := make([]byte, 1500)
	for _, tables := range []int{1, 10} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) {
			log := newSyncFolder(b, filepath.Join(b.TempDir(), "log"))
			var folders []*syncFolder
			for range tables {
				folders = append(folders, newSyncFolder(b, filepath.Join(b.TempDir(), "table")))
			}
			inParallel(b, 1, func(n int64) error {
				if tables > 1 {
					if err := log.note(body[:600]); err != nil {
						return err
					}
				}
				var group errgroup.Group
				for _, folder := range folders {
					group.Go(func() error { return folder.create(fmt.Sprint(n), body) })
				}
				if err := group.Wait(); err != nil {
					return err
				}
				return log.note(body[:600])
			})
		})
	}
}
