package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/catalog/claims"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// pair is a write to a table whose orphans wait for their deletion, with the expected results.
// docs/design/pairs.md has the same rows.
type pair struct {
	write string
	do    func(w *world, last *catalog.Table) error
	gone  bool   // the orphans are deleted
	left  string // how the table ended, as recorded in the tombstone; empty if there is none
}

func pairs() []pair {
	drop := func(w *world) error { return w.ann().DropTable(w.ctx, ident(), catalog.DropOptions{}) }
	return []pair{
		{"drop", func(w *world, _ *catalog.Table) error { return drop(w) }, false, ""},
		{"unregister", func(w *world, _ *catalog.Table) error {
			_, err := w.ann().UnregisterTable(w.ctx, ident())
			return err
		}, false, registry.EndedUnregister},
		{"rename", func(w *world, _ *catalog.Table) error {
			return w.ann().RenameTable(w.ctx, ident(), identOf("renamed"))
		}, true, ""},
		{"register over, another uuid", func(w *world, last *catalog.Table) error {
			body := strings.Replace(string(last.Document.Raw()), last.Document.UUID(), "9c12d441-03fe-4693-9a96-a0705ddf69c2", 1)
			const file = tableAt + "/metadata/copy.metadata.json"
			if err := w.files.Create(w.ctx, file, []byte(body)); err != nil {
				return err
			}
			_, err := w.ann().RegisterTable(w.ctx, ident(), catalog.RegisterRequest{MetadataLocation: file, Overwrite: true})
			return err
		}, false, registry.EndedTakeover},
		{"register over, the same uuid", func(w *world, last *catalog.Table) error {
			_, err := w.ann().RegisterTable(w.ctx, ident(), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation, Overwrite: true})
			return err
		}, true, ""},
		{"undrop", func(w *world, last *catalog.Table) error {
			must(w.t, drop(w))
			_, err := w.ann().RegisterTable(w.ctx, ident(), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			return err
		}, true, ""},
		{"end of window", func(w *world, _ *catalog.Table) error {
			must(w.t, drop(w))
			return claims.New(registrytest.Ledger(w.store)).End(w.ctx, "end", w.table, claims.Ending{How: registry.EndedWindow, Lasting: true},
				func(registry.State, registry.Pointer) bool { return true })
		}, false, registry.EndedWindow},
		{"staged create at its location", func(w *world, _ *catalog.Table) error {
			_, err := w.ann().CreateTable(w.ctx, identOf("staged"), catalog.CreateTableRequest{
				Schema: []byte(intSchema), Location: tableAt, Stage: true,
			})
			if err == nil {
				return fmt.Errorf("it was staged")
			}
			return nil
		}, true, ""},
		{"set-location", func(w *world, _ *catalog.Table) error {
			w.commit(`{"action":"set-location","location":"file:///wh/ns/moved"}`)
			return nil
		}, true, ""},
	}
}

// TestPairsOfOrphans makes each write to a table while its orphans wait for their deletion.
func TestPairsOfOrphans(t *testing.T) {
	t.Parallel()
	for _, p := range pairs() {
		t.Run(p.write, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			w.strays()
			_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
			must(t, err)
			must(t, w.jobs.RunOnce(w.ctx))
			last, err := w.ann().LoadTable(w.ctx, ident())
			must(t, err)
			must(t, p.do(w, last))
			w.clock.Advance(10 * 24 * time.Hour)
			for range 3 {
				must(t, w.jobs.RunOnce(w.ctx))
			}
			w.judgeStrays(p.gone, p.write)
			for _, file := range w.history.Files {
				if !w.exists(file) {
					t.Errorf("%s is gone", file)
				}
			}
			records, err := w.store.Get(w.ctx, registry.TombstoneKey(tableAt))
			must(t, err)
			left := registry.Tombstone{}
			if records[0].Exists() {
				left, err = registry.Decode[registry.Tombstone](records[0])
				must(t, err)
			}
			if left.How != p.left {
				t.Errorf("the tombstone says %q, want %q", left.How, p.left)
			}
		})
	}
}
