package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"moorage"

	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/catalogkit"
	"moorage/testkit/pgserver"
	"moorage/testkit/registrytest"
)

// benchDatabase is a database server that syncs its commits, as in production.
type benchDatabase struct {
	*pgserver.Server
	warehouse string // the folder of the warehouse, shared by all catalogs
}

func newBenchDatabase(b *testing.B) benchDatabase {
	b.Helper()
	server, err := pgserver.Start()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	})
	if _, err := postgres.Migrate(b.Context(), server.DSN()); err != nil {
		b.Fatal(err)
	}
	return benchDatabase{server, b.TempDir()}
}

// newCatalog returns a catalog over the database and files on a real disk, with the warehouse "w"
// and the namespace "ns".
func (d benchDatabase) newCatalog(b *testing.B, manager locks.Manager) *catalogkit.Fixture {
	b.Helper()
	random := newLockedRandom(uint64(time.Now().UnixNano()))
	store, err := postgres.Open(b.Context(), d.DSN()+"&pool_max_conns=64", postgres.Options{Random: random})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	c, err := catalogkit.NewInstance(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Random: random}), Locks: manager,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return file.New(place.Roots) },
	})
	if err != nil {
		b.Fatal(err)
	}
	f := &catalogkit.Fixture{Instance: c, T: b, Ctx: b.Context(), Store: store}
	if _, err := c.LoadWarehouse(f.Ctx, catalogkit.Warehouse); err == nil {
		return f
	}
	if _, err := c.Warehouses().Create(f.Ctx, warehouses.Spec{Name: catalogkit.Warehouse, Location: "file://" + d.warehouse}); err != nil {
		b.Fatal(err)
	}
	if _, err := c.CreateNamespace(f.Ctx, catalogkit.Warehouse, []string{"ns"}, nil); err != nil {
		b.Fatal(err)
	}
	return f
}

// statements runs pgbench with a script for a while and reports the time of one transaction as
// ns/op.
func (d benchDatabase) statements(b *testing.B, clients int, script string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "script.sql")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		b.Fatal(err)
	}
	output, err := exec.CommandContext(b.Context(), filepath.Join(d.Programs(), "pgbench"), "-n", "-M", "prepared", "-T", "3",
		"-c", strconv.Itoa(clients), "-j", "2", "-f", path, d.DSN()).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v: %s", err, output)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(output)
	if found == nil {
		b.Fatalf("pgbench printed %s", output)
	}
	perSecond, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // the measurement of pgbench is reported instead
	}
	b.ReportMetric(1e9/perSecond, "ns/op")
}

// commitScript is the minimal work of a commit to one table, with values of the same size. It
// replaces the pointer on condition of its version, and writes the change. The pointers' keys have
// 4 bytes. IDs are drawn once, in sub-selects, because otherwise no index could be used. %d is the
// number of tables minus one.
const commitScript = `\set id random(0, %d)
\startpipeline
UPDATE moorage_pointer SET etag = gen_random_uuid(), state = 1, value = decode(repeat('42', 400), 'hex') WHERE key = int4send(:id) AND etag <> '00000000-0000-0000-0000-000000000000';
INSERT INTO moorage_change (key, etag, state, value, wrote, awaits, reads, at) VALUES (uuid_send(gen_random_uuid()), gen_random_uuid(), 0, decode(repeat('42', 500), 'hex'), ARRAY[gen_random_uuid()], true, ARRAY[gen_random_uuid()], clock_timestamp());
\endpipeline
`

// BenchmarkPostgres compares catalogs over PostgreSQL and files with the bare statements. pgbench
// executes the statements on the same server. The rows "file" measure writing and syncing a file of
// the size of a small metadata file.
func BenchmarkPostgres(b *testing.B) {
	d := newBenchDatabase(b)
	b.Run("commit", func(b *testing.B) { d.benchmarkCommit(b) })
	b.Run("load", func(b *testing.B) { d.benchmarkLoad(b) })
	b.Run("create", func(b *testing.B) { d.benchmarkCreate(b) })
	b.Run("list", func(b *testing.B) { d.benchmarkList(b) })
}

func (d benchDatabase) benchmarkCommit(b *testing.B) {
	f := d.newCatalog(b, locks.NewLocal(locks.LocalConfig{}))
	const many = 1000
	createTables(f, many)
	d.execute(b, `INSERT INTO moorage_pointer SELECT int4send(i), gen_random_uuid(), 1, decode(repeat('42', 400), 'hex') FROM generate_series(0, 999) AS i`)
	requests := make([]catalog.CommitRequest, 1024)
	for i := range requests {
		requests[i] = catalogkit.SetProperty(b, "a", fmt.Sprint(i))
	}
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("file/clients=%d", clients), func(b *testing.B) {
			folder := "file://" + b.TempDir()
			files, err := file.New([]string{folder})
			if err != nil {
				b.Fatal(err)
			}
			defer files.Close()
			body := bytes.Repeat([]byte("m"), 1500)
			inParallel(b, clients, func(n int64) error {
				return files.Create(b.Context(), fmt.Sprintf("%s/t%d/metadata/%d", folder, n%many, n), body)
			})
		})
		for _, tables := range []int{1, many} {
			b.Run(fmt.Sprintf("statements/tables=%d/clients=%d", tables, clients), func(b *testing.B) {
				d.statements(b, clients, fmt.Sprintf(commitScript, tables-1))
			})
			b.Run(fmt.Sprintf("moorage/tables=%d/clients=%d", tables, clients), func(b *testing.B) {
				inParallel(b, clients, func(n int64) error {
					_, err := f.Commit(f.Ctx, ident(fmt.Sprintf("t%d", n%int64(tables))), requests[n/int64(tables)%int64(len(requests))])
					return err
				})
			})
		}
	}
}

func (d benchDatabase) benchmarkLoad(b *testing.B) {
	f := d.newCatalog(b, locks.GrantAll{})
	for _, clients := range clientCounts {
		b.Run(fmt.Sprintf("statements/clients=%d", clients), func(b *testing.B) {
			d.statements(b, clients, "\\set id random(0, 999)\nSELECT 4::smallint, key, etag, state, value FROM moorage_pointer WHERE key = ANY(ARRAY[int4send(:id)]);\n")
		})
		b.Run(fmt.Sprintf("moorage/clients=%d", clients), func(b *testing.B) {
			inParallel(b, clients, func(n int64) error {
				_, err := f.LoadTable(f.Ctx, ident(fmt.Sprintf("t%d", n%1000)))
				return err
			})
		})
	}
}

func (d benchDatabase) benchmarkCreate(b *testing.B) {
	for _, clients := range clientCounts {
		for _, row := range []struct {
			name    string
			manager locks.Manager
		}{{"local", locks.NewLocal(locks.LocalConfig{})}, {"granted", locks.GrantAll{}}} {
			b.Run(fmt.Sprintf("%s/clients=%d", row.name, clients), func(b *testing.B) {
				f := d.newCatalog(b, row.manager)
				inParallel(b, clients, func(n int64) error {
					_, err := f.CreateTable(f.Ctx, ident(fmt.Sprintf("%s-%d-%d-%d", row.name, clients, b.N, n)), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
					return err
				})
			})
		}
	}
}

func (d benchDatabase) benchmarkList(b *testing.B) {
	f := d.newCatalog(b, locks.GrantAll{})
	for _, tables := range []int{100, 100_000} {
		ns := []string{fmt.Sprint("list", tables)}
		if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, ns, nil); err != nil {
			b.Fatal(err)
		}
		ch, err := f.Directory.Path(f.Ctx, catalogkit.Warehouse, ns)
		if err != nil {
			b.Fatal(err)
		}
		putEntries(f, b, ch.ID(), tables)
		for _, clients := range clientCounts {
			b.Run(fmt.Sprintf("tables=%d/clients=%d", tables, clients), func(b *testing.B) {
				inParallel(b, clients, func(n int64) error {
					after := ""
					if tables > 100 {
						after = fmt.Sprintf("t%06d", n*7919%int64(tables-100))
					}
					names, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, ns, moorage.Page{After: after, Limit: 100})
					if err == nil && len(names) != 100 {
						err = fmt.Errorf("%d names", len(names))
					}
					return err
				})
			})
		}
	}
}

// putEntries writes only entries, because a list reads nothing else.
func putEntries(f *catalogkit.Fixture, b *testing.B, namespace registry.ID, count int) {
	b.Helper()
	var writes []registry.Write
	for i := range count {
		name := fmt.Sprintf("t%06d", i)
		id, err := f.Ledger.NewID()
		if err != nil {
			b.Fatal(err)
		}
		puts, err := ledger.Encode(ledger.Put(registry.EntryKey(namespace, name), registry.StateTable, registry.Entry{Pointer: id, Shard: registry.Shard(name)}))
		if err != nil {
			b.Fatal(err)
		}
		if writes = append(writes, puts...); len(writes) == 1000 || i == count-1 {
			if _, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: writes}); err != nil {
				b.Fatal(err)
			}
			writes = nil
		}
	}
}

// execute runs one statement with psql.
func (d benchDatabase) execute(b *testing.B, statement string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	if output, err := exec.CommandContext(ctx, filepath.Join(d.Programs(), "psql"), "-q", "-c", statement, d.DSN()).CombinedOutput(); err != nil {
		b.Fatalf("psql: %v: %s", err, output)
	}
}
