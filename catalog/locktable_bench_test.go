package catalog_test

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry/postgres"
	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/catalogkit"
	"moorage/testkit/pgserver"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// BenchmarkCreateWithLocks creates tables in one namespace, over a durable database. It measures
// three variants: without locks, with the usual locks of creates, which are local to the process,
// and with the same locks shared by all nodes. The variants take turns, so that other load on the
// machine affects all of them. It reports the median time of a create for each.
func BenchmarkCreateWithLocks(b *testing.B) {
	server, err := pgserver.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	})
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			kinds := []struct {
				name    string
				catalog *catalogkit.Instance
				took    []float64 // milliseconds for each create, one element per round
			}{
				{name: "none", catalog: newLockedCatalog(b, server, func(string) locks.Manager { return locks.GrantAll{} })},
				{name: "process", catalog: newLockedCatalog(b, server, func(dsn string) locks.Manager { return openCoalesced(b, dsn) })},
				{name: "nodes", catalog: newLockedCatalog(b, server, func(dsn string) locks.Manager { return sharedLocks{openCoalesced(b, dsn)} })},
			}
			creates := max(32, 2*clients)
			for round := 0; b.Loop(); round++ {
				for i := range kinds {
					began := time.Now()
					var group errgroup.Group
					group.SetLimit(clients)
					for n := range creates {
						group.Go(func() error {
							_, err := kinds[i].catalog.CreateTable(b.Context(), ident(fmt.Sprintf("t%d_%d", round, n)), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
							return err
						})
					}
					if err := group.Wait(); err != nil {
						b.Fatal(err)
					}
					kinds[i].took = append(kinds[i].took, time.Since(began).Seconds()*1000/float64(creates))
				}
			}
			for _, kind := range kinds {
				slices.Sort(kind.took)
				b.ReportMetric(kind.took[len(kind.took)/2], kind.name+"-ms/create")
			}
		})
	}
}

// newLockedCatalog returns a catalog over a new schema of server, with the locks that open returns.
func newLockedCatalog(b *testing.B, server *pgserver.Server, open func(dsn string) locks.Manager) *catalogkit.Instance {
	b.Helper()
	dsn, err := server.NewSchema(b.Context(), "create_"+strings.ToLower(cryptorand.Text()))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := postgres.Migrate(b.Context(), dsn); err != nil {
		b.Fatal(err)
	}
	random := newLockedRandom(1)
	return newCatalogOnDisk(b, catalog.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: storetest.OpenNode(b, dsn, random), Random: random}), Locks: open(dsn)})
}

// sharedLocks takes process-local locks as shared ones.
type sharedLocks struct{ locks.Manager }

// Acquire implements locks.Manager.
func (m sharedLocks) Acquire(ctx context.Context, request locks.Request, options locks.Options) (locks.Hold, error) {
	options.InProcess = false
	return m.Manager.Acquire(ctx, request, options)
}

// openCoalesced returns the locks of a server over a database.
func openCoalesced(b *testing.B, dsn string) locks.Manager {
	b.Helper()
	leases, err := postgres.OpenLeases(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	manager := locks.NewCoalesced(locks.NewDistributed(locks.DistributedConfig{Leases: leases, Jitter: rand.New(rand.NewPCG(1, 1))}))
	b.Cleanup(func() {
		manager.Close()
		if err := leases.Close(); err != nil {
			b.Error(err)
		}
	})
	return manager
}

// newCatalogOnDisk returns a catalog whose files are on a real disk. It has the warehouse "w" and
// the namespace "ns".
func newCatalogOnDisk(b *testing.B, config catalog.Config) *catalogkit.Instance {
	b.Helper()
	folder := filepath.Join(b.TempDir(), "warehouse")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	config.OpenStorage = func(place storage.Place) (storage.Store, error) { return file.New(place.Roots) }
	c, err := catalogkit.NewInstance(config)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Warehouses().Create(b.Context(), warehouses.Spec{Name: catalogkit.Warehouse, Location: "file://" + folder}); err != nil {
		b.Fatal(err)
	}
	if _, err := c.CreateNamespace(b.Context(), catalogkit.Warehouse, []string{"ns"}, nil); err != nil {
		b.Fatal(err)
	}
	return c
}
