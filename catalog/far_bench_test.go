package catalog_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/fakecloud"
)

const (
	// farDelay is the added latency of each request to a storage in the benchmarks.
	farDelay = 20 * time.Millisecond
	// farTables is large enough that no two clients of a benchmark use the same table.
	farTables = 128
)

// farBench is a catalog with its records on the local disk and its files on a distant S3 server.
type farBench struct {
	*catalogkit.Fixture
	far    *fakecloud.Far
	way    fakecloud.Way // the delays of requests while the benchmark's timer runs
	store  storage.Store
	root   string
	tables []*catalog.Table
}

// newFarBench returns a catalog with farTables tables.
func newFarBench(b *testing.B, way fakecloud.Way, changes ...func(*catalog.Config)) *farBench {
	b.Helper()
	far, change, root := farStorage(b, fakecloud.Way{})
	var store storage.Store
	opened := func(config *catalog.Config) {
		var err error
		store, err = config.OpenStorage(storage.Place{Roots: []string{root}})
		must(b, err)
	}
	f, _ := newDiskCatalog(b, append([]func(*catalog.Config){change, opened}, changes...)...)
	makeFar(f, root)
	bench := &farBench{Fixture: f, far: far, way: way, store: store, root: root, tables: make([]*catalog.Table, farTables)}
	var group errgroup.Group
	group.SetLimit(16)
	for n := range bench.tables {
		group.Go(func() (err error) {
			bench.tables[n], err = f.CreateTable(f.Ctx, bench.table(int64(n)), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return err
		})
	}
	must(b, group.Wait())
	return bench
}

func (f *farBench) table(n int64) moorage.Identifier {
	return farIdent(fmt.Sprintf("t%d", n%farTables))
}

// farOperation is an operation to measure.
type farOperation struct {
	name string
	cold bool // without a cache of documents
	do   func(f *farBench, n int64) error
}

// farOperations are the operations of the benchmarks.
var farOperations = []farOperation{
	{"put", false, func(f *farBench, n int64) error {
		return f.store.Create(f.Ctx, fmt.Sprintf("%s/put/%d", f.root, n), f.tables[0].Document.Raw())
	}},
	{"commit", false, func(f *farBench, n int64) error {
		_, err := f.Commit(f.Ctx, f.table(n), catalogkit.SetProperty(f.T, "a", fmt.Sprint(n)))
		return err
	}},
	{"create", false, func(f *farBench, n int64) error {
		_, err := f.CreateTable(f.Ctx, farIdent(fmt.Sprintf("c%d", n)), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		return err
	}},
	{"get", false, func(f *farBench, n int64) error {
		body, _, err := f.store.Open(f.Ctx, f.tables[n%farTables].MetadataLocation)
		if err != nil {
			return err
		}
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
		return err
	}},
	{"load", false, (*farBench).load},
	{"cold", true, (*farBench).load},
}

func (f *farBench) load(n int64) error {
	_, err := f.LoadTable(f.Ctx, f.table(n))
	return err
}

// configure changes a catalog for the operation.
func (o farOperation) configure(config *catalog.Config) {
	if o.cold {
		config.CacheBytes = 1
	}
}

// BenchmarkFar measures operations on an S3 server with farDelay added to each request. Compare
// commit and create with put, a bare write of a metadata file. Compare load and cold with get, a
// bare read of a metadata file. requests/op is the number of requests to the server.
func BenchmarkFar(b *testing.B) {
	for _, operation := range farOperations {
		for _, clients := range clientCounts {
			b.Run(fmt.Sprintf("%s/clients=%d", operation.name, clients), func(b *testing.B) {
				f := newFarBench(b, fakecloud.Way{Delay: farDelay}, operation.configure)
				f.run(b, clients, operation.do)
			})
		}
	}
}

// BenchmarkFarSlow measures operations of 8 clients on such a server when one in 100 requests takes
// a second. hedged writes a metadata file a second time if the first write takes too long. p99-ms
// and p999-ms are percentiles of an operation's duration.
func BenchmarkFarSlow(b *testing.B) {
	const clients = 8
	for _, operation := range farOperations {
		if operation.name == "put" || operation.name == "get" || operation.name == "load" {
			continue // they write no metadata file, or send no request
		}
		for _, hedged := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/hedged=%t", operation.name, hedged), func(b *testing.B) {
				way := fakecloud.Way{Delay: farDelay, SlowEvery: 100, SlowDelay: time.Second}
				hedge := func(config *catalog.Config) { config.HedgeWrites = hedged }
				f := newFarBench(b, way, hedge, operation.configure)
				f.run(b, clients, operation.do)
			})
		}
	}
}

// run measures an operation.
func (f *farBench) run(b *testing.B, clients int, do func(f *farBench, n int64) error) {
	b.Helper()
	took := make([]time.Duration, b.N)
	f.far.SetWay(f.way)
	f.far.TakeSeen()
	inParallel(b, clients, func(n int64) error {
		began := time.Now()
		err := do(f, n)
		took[n-1] = time.Since(began)
		return err
	})
	b.StopTimer()
	f.far.SetWay(fakecloud.Way{})
	requests := 0
	for _, count := range f.far.TakeSeen() {
		requests += count
	}
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
	b.ReportMetric(took[b.N*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(took[b.N*999/1000].Seconds()*1000, "p999-ms")
}
