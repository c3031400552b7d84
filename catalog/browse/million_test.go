package browse_test

import (
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
	"moorage/testkit/manytables"
)

var (
	tablesFlag = flag.Int("tables", 2000, "how many tables TestBrowseMany lists and searches, in 1,000 namespaces at most")
	boundsFlag = flag.Bool("bounds", false, "whether TestBrowseMany fails beyond the bounds for a million tables")
)

// Pages and searches over many tables are fast, and the index takes little memory. The make target
// browse-million runs this test with a million tables.
func TestBrowseMany(t *testing.T) {
	stores.Each(t, func(t *testing.T, store registry.Store) {
		if *boundsFlag && fmt.Sprintf("%T", store) == "*memory.Store" {
			return // the bounds are for the other stores
		}
		w := newWorld(t, store)
		filled := manytables.Fill(t, store, "w", *tablesFlag)
		began := time.Now()
		_, _, err := w.search(browse.Search{Words: "orders", Limit: 50})
		testkit.Must(t, err)
		made, with := time.Since(began), heapNow()
		w.Browse().DropIndex() // the store keeps its caches
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
		namespaces, tables := int64(filled.Namespaces), int64(filled.Namespaces*filled.TablesEach)
		if counted.Tables != tables || counted.Namespaces != namespaces || counted.Rows != tables*manytables.RowsOfEach {
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

func heapNow() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// percentile returns a percentile of times. It sorts times.
func percentile(times []time.Duration, percentage int) time.Duration {
	slices.Sort(times)
	return times[len(times)*percentage/100].Round(10 * time.Microsecond)
}
