package leases_test

import (
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/maintenance/leases"
	"moorage/metadata"
	"moorage/registry"
)

// TestPairsOfWork: goes through everything that can happen to a table while an outside program
// works on it. The program can end its work as long as the table has its pointer. No work is handed
// out for a table that is not live. No record is left at the end.
func TestPairsOfWork(t *testing.T) {
	t.Parallel()
	at := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t0"}
	const plain = `{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`
	z := at
	z.Name = "z"
	for _, pair := range []struct {
		name  string
		do    func(w *world, c *catalog.Catalog, table *catalog.Table) error
		ends  bool // the work can be ended
		again bool // the table is due again after the work has failed
	}{
		{"rename", func(w *world, c *catalog.Catalog, _ *catalog.Table) error { return c.RenameTable(w.ctx, at, z) }, true, true},
		{"drop", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			return c.DropTable(w.ctx, at, catalog.DropOptions{})
		}, true, false},
		{"drop, undrop", func(w *world, c *catalog.Catalog, table *catalog.Table) error {
			must(w.t, c.DropTable(w.ctx, at, catalog.DropOptions{}))
			_, err := c.RegisterTable(w.ctx, at, catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
			return err
		}, true, true},
		{"purge that waits", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			return c.DropTable(w.ctx, at, catalog.DropOptions{Purge: true})
		}, true, false},
		{"drop, another of the name", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			must(w.t, c.DropTable(w.ctx, at, catalog.DropOptions{}))
			_, err := c.CreateTable(w.ctx, at, catalog.CreateTableRequest{Schema: []byte(plain)})
			return err
		}, true, false},
		{"register over, another uuid", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			made, err := c.CreateTable(w.ctx, z, catalog.CreateTableRequest{Schema: []byte(plain)})
			must(w.t, err)
			_, err = c.UnregisterTable(w.ctx, z)
			must(w.t, err)
			_, err = c.RegisterTable(w.ctx, at, catalog.RegisterRequest{MetadataLocation: made.MetadataLocation, Overwrite: true})
			return err
		}, true, false},
		{"staged create at its location", func(w *world, c *catalog.Catalog, table *catalog.Table) error {
			_, err := c.CreateTable(w.ctx, z, catalog.CreateTableRequest{
				Schema: []byte(plain), Location: table.Document.Location(), Stage: true,
			})
			w.wantKind(err, moorage.KindBadRequest, "a staged create at the location of a table")
			return nil
		}, true, true},
		{"unregister", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			_, err := c.UnregisterTable(w.ctx, at)
			return err
		}, false, false},
		{"unregister, register", func(w *world, c *catalog.Catalog, table *catalog.Table) error {
			_, err := c.UnregisterTable(w.ctx, at)
			must(w.t, err)
			_, err = c.RegisterTable(w.ctx, at, catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
			return err
		}, false, false},
		{"register over, the same uuid", func(w *world, c *catalog.Catalog, table *catalog.Table) error {
			_, err := c.RegisterTable(w.ctx, at, catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
			return err
		}, true, true},
		{"set-location", func(w *world, c *catalog.Catalog, _ *catalog.Table) error {
			checked, err := jsontext.Check([]byte(`[{"action":"set-location","location":"file:///wh/ns/moved"}]`))
			must(w.t, err)
			updates, err := metadata.DecodeUpdates(checked)
			must(w.t, err)
			_, err = c.Commit(w.ctx, at, catalog.CommitRequest{Updates: updates})
			return err
		}, true, true},
	} {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			claimed := w.claim(ann)
			c := w.catalog.As(moorage.Anonymous())
			table, err := c.LoadTable(w.ctx, at)
			must(t, err)
			must(t, pair.do(w, c, table))
			w.wantNothing(bob, "it is in hand, or gone")
			err = w.Finish(w.ctx, ann, claimed.Job, leases.AssignmentResult{Outcome: leases.OutcomeFailed, Error: "x"})
			if pair.ends {
				must(t, err)
			} else {
				w.wantKind(err, moorage.KindNotFound, "the end of work on a table that is gone")
			}
			if job := w.schedule(w.tables[0]).Value.Job(kind); !job.Due.IsZero() != pair.again {
				t.Errorf("due again at %v, want %t", job.Due, pair.again)
			}
			for _, left := range []registry.Table{registry.TableJob, registry.TableDue} {
				records, err := w.store.List(w.ctx, left, "", "", 10)
				must(t, err)
				for _, record := range records {
					if left == registry.TableJob || !pair.again && record.Key.ID[0] != 'w' && record.Key.ID[0] != 'p' {
						t.Errorf("left: %s", record.Key)
					}
				}
			}
		})
	}
}
