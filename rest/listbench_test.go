package rest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

var million = flag.Bool("million", false, "also list in a namespace of a million tables, which takes a minute to make")

// A page of 1,000 names takes about the same time however many tables there are: at most 1.5 times
// as long as with 1,000 tables. The test lists both alternately, so that other work on the machine
// affects both. It measures times, so it is not parallel.
func TestListPageIsFlat(t *testing.T) {
	tables := 50_000
	if *million {
		tables = 1_000_000
	}
	few, many := crowdedWorld(t, 1000), crowdedWorld(t, tables)
	const rounds, attempts = 25, 4
	ratio := 0.0
	for range attempts {
		var took [2][]time.Duration
		for range rounds {
			for i, w := range []*world{few, many} {
				began := time.Now()
				listPage(t, w)
				took[i] = append(took[i], time.Since(began))
			}
		}
		slices.Sort(took[0])
		slices.Sort(took[1])
		ratio = float64(took[1][rounds/2]) / float64(took[0][rounds/2])
		t.Logf("1,000 tables %s, %d tables %s: %.2f", took[0][rounds/2], tables, took[1][rounds/2], ratio)
		if ratio <= 1.5 {
			return
		}
	}
	t.Errorf("a page of %d tables takes %.2f times that of 1,000, want 1.5 at most", tables, ratio)
}

// listPage lists the first 1,000 tables.
func listPage(t testing.TB, w *world) {
	t.Helper()
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest("GET", pathTables+"?pageToken=&pageSize=1000", nil))
	if answer.Code != http.StatusOK || strings.Count(answer.Body.String(), `"name"`) != 1000 {
		t.Fatalf("answered %d with %d names: %.300s", answer.Code, strings.Count(answer.Body.String(), `"name"`), answer.Body)
	}
}

// BenchmarkListPage lists the first 1,000 tables of a namespace in an embedded store. The time does
// not depend on the number of tables.
func BenchmarkListPage(b *testing.B) {
	rows := []struct {
		name   string
		tables int
	}{{"1k", 1000}, {"100k", 100_000}}
	if *million {
		rows = append(rows, rows[0])
		rows[2].name, rows[2].tables = "1M", 1_000_000
	}
	for _, row := range rows {
		b.Run("tables="+row.name, func(b *testing.B) {
			w := crowdedWorld(b, row.tables)
			request := httptest.NewRequest("GET", pathTables+"?pageToken=&pageSize=1000", nil)
			b.ReportAllocs()
			var answer *httptest.ResponseRecorder
			for b.Loop() {
				answer = httptest.NewRecorder()
				w.ServeHTTP(answer, request)
			}
			var page struct{ Identifiers []any }
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != http.StatusOK ||
				len(page.Identifiers) != 1000 {
				b.Fatalf("answered %d with %d names, %v", answer.Code, len(page.Identifiers), err)
			}
		})
	}
}

// crowdedWorld returns a world with an embedded store, and the given number of names in the
// namespace ns. All names refer to one table. The store has been closed and opened again, so that
// all of it is in files.
func crowdedWorld(b testing.TB, names int) *world {
	b.Helper()
	folder, files := b.TempDir(), memorystorage.New()
	open := func() *pebble.Store {
		store, err := pebble.Open(folder, pebble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return store
	}
	w := &world{t: b, warehouse: "/warehouse", store: open()}
	w.start(func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) }, nil)
	w.must("POST", pathNamespaces, `{"namespace":["ns"]}`)
	w.must("POST", pathTables, `{"name":"t","schema":`+schemaJSON+`}`)
	entries, err := w.store.List(b.Context(), registry.TableEntry, "", "", 1)
	if err != nil || len(entries) != 1 {
		b.Fatalf("%d entries, %v", len(entries), err)
	}
	prefix := strings.TrimSuffix(entries[0].Key.ID, "t")
	var batch registry.Batch
	for n := 1; n < names; n++ {
		key := registry.Key{Table: registry.TableEntry, ID: fmt.Sprintf("%stable_%07d", prefix, n)}
		batch.Writes = append(batch.Writes, registry.Put(key, registry.StateTable, entries[0].Value))
		if len(batch.Writes) == registry.BatchItemsMax || n == names-1 {
			if _, err := w.store.Apply(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch.Writes = nil
		}
	}
	if err := w.store.Close(); err != nil {
		b.Fatal(err)
	}
	w.store = open()
	b.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			b.Error(err)
		}
	})
	w.config.Deps = registrytest.LedgerDeps(ledger.Config{Store: w.store})
	w.Handler = rest.NewServer(rest.TestConfig{Catalog: w.restarted()})
	return w
}
