package catalog

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage/internal/pgtest"
	"moorage/locks"
	"moorage/registry/postgres"
	"moorage/storage"
	"moorage/storage/file"
)

// BenchmarkCreateWithLocks creates tables in one namespace of a database that is durable: without locks, with those that creates take, which
// are in the process, and with the same locks taken among all nodes. The last is why creates do not.
func BenchmarkCreateWithLocks(b *testing.B) {
	server, err := pgtest.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	})
	for _, kind := range []struct {
		name string
		open func(b *testing.B, dsn string) locks.Manager
	}{
		{"none", func(*testing.B, string) locks.Manager { return locks.GrantAll{} }},
		{"process", openCoalesced},
		{"all nodes", func(b *testing.B, dsn string) locks.Manager { return sharedLocks{openCoalesced(b, dsn)} }},
	} {
		for _, clients := range clientCounts {
			b.Run(fmt.Sprintf("locks=%s/clients=%d", kind.name, clients), func(b *testing.B) {
				dsn, err := server.NewSchema(b.Context(), "create_"+strings.ToLower(cryptorand.Text()))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := postgres.Migrate(b.Context(), dsn); err != nil {
					b.Fatal(err)
				}
				random := newLockedRandom(1)
				f := newCatalogOnDisk(b, Config{Store: openPostgres(b, dsn, random), Locks: kind.open(b, dsn), Random: random})
				inParallel(b, clients, func(n int64) error {
					_, err := f.CreateTable(b.Context(), ident(fmt.Sprint("t", n)), CreateTableRequest{Schema: []byte(testSchema)})
					return err
				})
			})
		}
	}
}

// sharedLocks takes among all nodes what was to be taken in the process.
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

// newCatalogOnDisk returns a catalog whose files are on a real disk, with the warehouse "w" and the namespace "ns".
func newCatalogOnDisk(b *testing.B, config Config) *Catalog {
	b.Helper()
	folder := filepath.Join(b.TempDir(), "warehouse")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	config.OpenStorage = func(place storage.Place) (storage.Store, error) { return file.New(place.Roots) }
	c, err := New(config)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.CreateWarehouse(b.Context(), WarehouseSpec{Name: testWarehouse, Location: "file://" + folder}); err != nil {
		b.Fatal(err)
	}
	if _, err := c.CreateNamespace(b.Context(), testWarehouse, []string{"ns"}, nil); err != nil {
		b.Fatal(err)
	}
	return c
}
