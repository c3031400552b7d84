package browse_test

import (
	"crypto/rand"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/browse"
	"moorage/registry"
	"moorage/testkit"
)

var (
	tablesFlag = flag.Int("tables", 2000, "how many tables TestBrowseMany lists and searches, in 1,000 namespaces at most")
	boundsFlag = flag.Bool("bounds", false, "whether TestBrowseMany fails beyond the bounds for a million tables")
)

// Pages and searches over many tables take little time, and the index little memory. Make target
// browse-million runs it with a million.
func TestBrowseMany(t *testing.T) {
	stores.Each(t, func(t *testing.T, store registry.Store) {
		if *boundsFlag && fmt.Sprintf("%T", store) == "*memory.Store" {
			return // the bounds are for the other stores
		}
		w := newWorld(t, store)
		w.fill(store, *tablesFlag)
		began := time.Now()
		_, _, err := w.search(browse.Search{Words: "orders", Limit: 50})
		testkit.Must(t, err)
		made, with := time.Since(began), heapNow()
		w.Browse().DropIndex() // the caches of the store stay as they are
		bytes := with - heapNow()
		_, _, err = w.search(browse.Search{Words: "orders", Limit: 50})
		testkit.Must(t, err)
		var pages, searches []time.Duration
		after := ""
		for i := range 200 {
			began := time.Now()
			_, next, err := w.Browse().Objects(w.ctx, browse.Listing{Warehouse: "w", Recursive: true}, moorage.Page{After: after, Limit: 1000})
			pages = append(pages, time.Since(began))
			testkit.Must(t, err)
			after = next
			began = time.Now()
			words := []string{"orders", "daily 77", fmt.Sprint("ns", i, " orders"), "nothing like it"}[i%4]
			_, _, err = w.search(browse.Search{Words: words, Limit: 50})
			searches = append(searches, time.Since(began))
			testkit.Must(t, err)
		}
		page, search := percentile(pages, 99), percentile(searches, 99)
		began = time.Now()
		counted, err := w.Browse().Stats(w.ctx, "w", 0)
		for err == nil && !counted.Complete {
			counted, err = w.Browse().Stats(w.ctx, "w", time.Hour)
		}
		testkit.Must(t, err)
		namespaces := min(1000, *tablesFlag/10)
		if tables := int64(*tablesFlag / namespaces * namespaces); counted.Tables != tables || counted.Namespaces != int64(namespaces) || counted.Rows != tables*rowsOfEach {
			t.Errorf("counted %+v; want %d tables in %d namespaces", counted, tables, namespaces)
		}
		t.Logf("%d tables: index in %s, %d MB; p99 of a page %s, of a search %s, medians %s and %s; counted in %s", *tablesFlag,
			made.Round(time.Millisecond), bytes>>20, page, search, percentile(pages, 50), percentile(searches, 50),
			time.Since(began).Round(time.Millisecond))
		limit := 50 * time.Millisecond
		if fmt.Sprintf("%T", store) == "*postgres.Store" {
			limit *= 2
		}
		if *boundsFlag && (page > limit || search > limit || made > 5*time.Second || bytes > 45<<20) {
			t.Errorf("beyond the bounds: index 5 s and 45 MB, page and search %s", limit)
		}
	})
}

// rowsOfEach is how many rows each table has that fill writes.
const rowsOfEach = 50_000_000

// fill writes tables as records, without files. Each record is as large as after a commit of Spark.
func (w *world) fill(store registry.Store, tables int) {
	w.t.Helper()
	warehouse := registry.ID{}
	records, err := store.Get(w.ctx, registry.WarehouseKey("w"))
	testkit.Must(w.t, err)
	value, err := registry.Decode[registry.Warehouse](records[0])
	testkit.Must(w.t, err)
	warehouse = value.ID
	var writes []registry.Write
	put := func(key registry.Key, state registry.State, value registry.Value) {
		encoded, err := registry.Encode(value)
		testkit.Must(w.t, err)
		if writes = append(writes, registry.Put(key, state, encoded)); len(writes) < 4000 {
			return
		}
		_, err = store.Apply(w.ctx, registry.Batch{Writes: writes})
		testkit.Must(w.t, err)
		writes = nil
	}
	namespaces := min(1000, tables/10)
	for i := range namespaces {
		id, err := registry.NewID(rand.Reader)
		testkit.Must(w.t, err)
		name := fmt.Sprintf("ns%d", i)
		put(registry.NamespaceKey(warehouse, warehouse, name), registry.StateLive, registry.Namespace{ID: id})
		for j := range tables / namespaces {
			pointer, err := registry.NewID(rand.Reader)
			testkit.Must(w.t, err)
			table := fmt.Sprintf("orders_daily_%d_%d", j, i)
			put(registry.EntryKey(id, table), registry.StateTable, registry.Entry{Pointer: pointer, Shard: registry.Shard(table)})
			value := registry.Pointer{
				ID: pointer, Warehouse: "w", Namespace: moorage.Namespace{name}, Name: table, NamespaceID: id, TableUUID: pointer.String(),
				MetadataLocation: "s3://lake/warehouse/" + name + "/" + table + "/metadata/00001-0190f3a0-1234-7abc-8def-0123456789ab.metadata.json",
			}
			value.Last = value.Written(registry.StateLive, registry.Change{ID: pointer, Principal: "key:etl"}, &registry.Summary{
				Format: 2, Snapshots: 120, Refs: 1, Columns: 40, At: 1_790_000_000_000, FirstMS: 1_780_000_000_000, Seq: 120, Rows: rowsOfEach,
				Files: 812, Deletes: 3, Bytes: 81 << 30, Snapshot: 7_841_234_567_890_123_456, Operation: "append", Engine: "spark 3.5.6",
			})
			put(registry.PointerKey(pointer), registry.StateLive, value)
		}
	}
	_, err = store.Apply(w.ctx, registry.Batch{Writes: writes})
	testkit.Must(w.t, err)
}

func heapNow() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// percentile returns the time within which a percentage of times lies. It sorts times.
func percentile(times []time.Duration, percentage int) time.Duration {
	slices.Sort(times)
	return times[len(times)*percentage/100].Round(10 * time.Microsecond)
}
