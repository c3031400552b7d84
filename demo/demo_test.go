package demo_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/demo"
	"moorage/ledger"
	"moorage/locks"
	registry "moorage/registry/memory"
	"moorage/storage"
	files "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

var errKilled = errors.New("killed")

// world is a catalog in memory, whose storage can be made to fail.
type world struct {
	storage.Store
	catalog *catalog.Catalog
	left    int // number of files that can still be created; negative: any number
	created int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	lake := files.New()
	w := &world{left: -1}
	open := func(place storage.Place) (storage.Store, error) { return lake.Within(place.Roots) }
	c, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: registry.New(rand.Reader)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: open,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.catalog = c.As(moorage.System("demo"))
	if _, err := w.catalog.Warehouses().Create(t.Context(), warehouses.Spec{Name: "default", Location: "file:///lake"}); err != nil {
		t.Fatal(err)
	}
	if w.Store, err = open(storage.Place{Roots: []string{"file:///lake"}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) Create(ctx context.Context, location string, body []byte) error {
	if w.left == 0 {
		return errKilled
	}
	w.left--
	w.created++
	return w.Store.Create(ctx, location, body)
}

func (w *world) fill(t *testing.T) error {
	t.Helper()
	return demo.Fill(t.Context(), demo.Config{Catalog: w.catalog, Warehouse: "default", Storage: w, Now: time.Now})
}

// content returns the numbers of rows and files of each sample table.
func (w *world) content(t *testing.T) string {
	t.Helper()
	var text string
	for _, name := range []string{"ships", "voyages", "ports"} {
		loaded, err := w.catalog.LoadTable(t.Context(), moorage.Identifier{
			Warehouse: "default", Namespace: moorage.Namespace{demo.Namespace}, Name: name,
		})
		if err != nil {
			t.Fatal(err)
		}
		var parts struct {
			Snapshots []struct {
				Summary map[string]string `json:"summary"`
			} `json:"snapshots"`
			Refs    map[string]any    `json:"refs"`
			Schemas []json.RawMessage `json:"schemas"`
		}
		if err := json.Unmarshal(loaded.Document.Raw(), &parts); err != nil {
			t.Fatal(err)
		}
		head := parts.Snapshots[len(parts.Snapshots)-1].Summary
		text += fmt.Sprintf("%s: %d snapshots, %d refs, %d schemas, %s rows in %s files, %s deleted\n", name, len(parts.Snapshots),
			len(parts.Refs), len(parts.Schemas), head["total-records"], head["total-data-files"], head["total-position-deletes"])
	}
	for _, name := range []string{"arrivals", "busiest"} {
		if err := w.catalog.ViewExists(t.Context(), moorage.Identifier{
			Warehouse: "default", Namespace: moorage.Namespace{demo.Namespace}, Name: name,
		}); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

const complete = `ships: 3 snapshots, 2 refs, 2 schemas, 12 rows in 3 files, 0 deleted
voyages: 4 snapshots, 2 refs, 1 schemas, 50000 rows in 12 files, 0 deleted
ports: 2 snapshots, 1 refs, 1 schemas, 16 rows in 1 files, 3 deleted
`

// TestFill checks that one call of Fill makes everything, and that a second call changes nothing,
// even if a table was dropped in between.
func TestFill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.fill(t); err != nil {
		t.Fatal(err)
	}
	if got := w.content(t); got != complete {
		t.Errorf("got\n%swant\n%s", got, complete)
	}
	ports := moorage.Identifier{Warehouse: "default", Namespace: moorage.Namespace{demo.Namespace}, Name: "ports"}
	if err := w.catalog.DropTable(t.Context(), ports, catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.created
	if err := w.fill(t); err != nil || w.created != before {
		t.Errorf("a second start wrote %d files: %v", w.created-before, err)
	}
	if err := w.catalog.TableExists(t.Context(), ports); moorage.KindOf(err) != moorage.KindNoSuchTable {
		t.Errorf("the dropped table: %v", err)
	}
}

// TestFillGoesOn checks that, if a start was killed at any write, the next start continues it.
func TestFillGoesOn(t *testing.T) {
	t.Parallel()
	for killed := 0; ; killed++ {
		w := newWorld(t)
		w.left = killed
		err := w.fill(t)
		if err == nil {
			if killed < 30 {
				t.Errorf("only %d files are written", killed)
			}
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		w.left = -1
		if err := w.fill(t); err != nil {
			t.Fatalf("after a kill at file %d: %v", killed, err)
		}
		if got := w.content(t); got != complete {
			t.Fatalf("after a kill at file %d got\n%s", killed, got)
		}
	}
}
