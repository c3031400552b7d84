package catalog

import (
	"time"

	"moorage/registry"
	"moorage/txlog"
)

// abandon leaves a transaction over a table that its coordinator, long gone, did not end, and one of its two files.
func (f *fixture) abandon(name string) txlog.Entry {
	f.t.Helper()
	found, err := f.resolveTable(f.ctx, ident(name))
	if err != nil {
		f.t.Fatal(err)
	}
	id, err := f.newID()
	if err != nil {
		f.t.Fatal(err)
	}
	folder := "file:///wh/ns/" + name + "/metadata/" + id.String()
	written, unwritten := folder+"-1.metadata.json", folder+"-2.metadata.json"
	entry, err := f.transactions.Begin(f.ctx, txlog.Transaction{
		ID: id, Warehouse: testWarehouse, Place: txlog.Place{Roots: []string{"file:///wh"}},
		Participants: []txlog.Participant{{Ident: ident(name), Pointer: found.pointer.ID, ETag: registry.ETag{1}, Writes: true}},
		Files:        []string{written, unwritten}, Began: f.clock.Now().Add(-2 * time.Minute), Deadline: f.clock.Now().Add(-time.Minute),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.files.Create(f.ctx, written, []byte("{}")); err != nil {
		f.t.Fatal(err)
	}
	return entry
}
