// Package manytables fills a store with many tables, for tests of lists, searches and memory.
package manytables

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/testkit"
)

const (
	// RowsOfEach is how many rows the record of each table names.
	RowsOfEach = 50_000_000
	// namespacesMax bounds the namespaces, and tablesEach is how many tables one has at least.
	namespacesMax, tablesEach = 1000, 10
	// One change has a table in loggedEach, and a namespace has a dropped table for droppedEach.
	// This keeps the number of calls of Apply small.
	loggedEach, droppedEach = 50, 100
	// batchWrites is how many records one Apply writes.
	batchWrites = 4000
)

// Filled is what Fill wrote: namespaces with the same number of tables each.
type Filled struct{ Namespaces, TablesEach int }

// Namespace returns the name of the namespace i.
func Namespace(i int) string { return fmt.Sprintf("ns%d", i) }

// Table returns the name of the table j in the namespace i.
func Table(i, j int) string { return fmt.Sprintf("orders_daily_%d_%d", j, i) }

// Fill writes tables into a warehouse as records, without files. There are 1,000 namespaces at
// most. Each record is as large as after a commit of Spark. Each namespace, some of the tables and
// some dropped tables have a change in the log.
func Fill(tb testing.TB, store registry.Store, warehouse string, tables int) Filled {
	tb.Helper()
	records, err := store.Get(tb.Context(), registry.WarehouseKey(warehouse))
	testkit.Must(tb, err)
	found, err := registry.Decode[registry.Warehouse](records[0])
	testkit.Must(tb, err)
	now, err := store.Time(tb.Context())
	testkit.Must(tb, err)
	f := &filling{tb: tb, store: store, name: warehouse, id: found.ID, now: now}
	made := Filled{Namespaces: max(1, min(namespacesMax, tables/tablesEach))}
	made.TablesEach = tables / made.Namespaces
	for i := range made.Namespaces {
		in := f.namespace(i)
		for j := range made.TablesEach {
			f.table(in, Table(i, j), j%loggedEach == 0)
		}
		for j := range (made.TablesEach + droppedEach - 1) / droppedEach {
			f.dropped(in, fmt.Sprintf("gone_daily_%d_%d", j, i))
		}
	}
	f.flush()
	return made
}

// filling is what a Fill writes.
type filling struct {
	tb     testing.TB
	store  registry.Store
	name   string // of the warehouse
	id     registry.ID
	now    time.Time
	writes []registry.Write
}

// namespaceAt is a namespace that was written.
type namespaceAt struct {
	name string
	id   registry.ID
}

func (f *filling) namespace(i int) namespaceAt {
	in := namespaceAt{Namespace(i), f.draw()}
	ident := moorage.Identifier{Warehouse: f.name, Namespace: moorage.Namespace{in.name}}
	change := f.change("create-namespace", registry.ContainerItem(ident, in.id))
	value := registry.Namespace{ID: in.id, Since: f.now}
	value.Last = value.Written(registry.StateLive, *change)
	f.apply(change, f.put(registry.NamespaceKey(f.id, f.id, in.name), registry.StateLive, value))
	return in
}

func (f *filling) table(in namespaceAt, name string, isLogged bool) {
	pointer := f.pointer(in, name)
	change := f.change("create-table", registry.PointerItem(registry.Pointer{}, pointer))
	pointer.Last = pointer.Written(registry.StateLive, *change, summary())
	writes := []registry.Write{
		f.put(registry.EntryKey(in.id, name), registry.StateTable,
			registry.Entry{Pointer: pointer.ID, Shard: registry.Shard(name)}),
		f.put(registry.PointerKey(pointer.ID), registry.StateLive, pointer),
	}
	if isLogged {
		f.apply(change, writes...)
		return
	}
	if f.writes = append(f.writes, writes...); len(f.writes) >= batchWrites {
		f.flush()
	}
}

func (f *filling) dropped(in namespaceAt, name string) {
	pointer := f.pointer(in, name)
	change := f.change("drop-table", registry.PointerItem(pointer, registry.Pointer{}))
	pointer.Since, pointer.Dropped, pointer.WarehouseID = f.now, f.now, f.id
	pointer.Last = pointer.Written(registry.StateDropped, *change, summary())
	f.apply(change,
		f.put(registry.PointerKey(pointer.ID), registry.StateDropped, pointer),
		f.put(pointer.EndKey(), registry.StateNone, registry.Due{}),
		f.put(pointer.DroppedKey(registry.StateDropped), registry.StateDropped,
			pointer.AsDropped(registry.StateDropped, *change)))
}

// pointer returns the pointer of a table, without its Last.
func (f *filling) pointer(in namespaceAt, name string) registry.Pointer {
	id := f.draw()
	return registry.Pointer{
		ID: id, Warehouse: f.name, Namespace: moorage.Namespace{in.name}, Name: name, NamespaceID: in.id,
		TableUUID: id.String(), MetadataLocation: "s3://lake/warehouse/" + in.name + "/" + name +
			"/metadata/00001-0190f3a0-1234-7abc-8def-0123456789ab.metadata.json",
	}
}

func summary() *registry.Summary {
	return &registry.Summary{
		Format: 2, Snapshots: 120, Refs: 1, Columns: 40, At: 1_790_000_000_000, FirstMS: 1_780_000_000_000, Seq: 120,
		Rows: RowsOfEach, Files: 812, Deletes: 3, Bytes: 81 << 30, Snapshot: 7_841_234_567_890_123_456,
		Operation: "append", Engine: "spark 3.5.6",
	}
}

// change returns a change of one object.
func (f *filling) change(operation string, item registry.Item) *registry.Change {
	return &registry.Change{
		ID: f.draw(), Operation: operation, Ident: item.Ident, Principal: "key:etl", Time: f.now,
		Items: []registry.Item{item},
	}
}

func (f *filling) draw() registry.ID {
	id, err := registry.NewID(rand.Reader)
	testkit.Must(f.tb, err)
	return id
}

func (f *filling) put(key registry.Key, state registry.State, value registry.Value) registry.Write {
	encoded, err := registry.Encode(value)
	testkit.Must(f.tb, err)
	return registry.Put(key, state, encoded)
}

// flush applies the writes that wait.
func (f *filling) flush() {
	waiting := f.writes
	f.writes = nil
	f.apply(nil, waiting...)
}

func (f *filling) apply(change *registry.Change, writes ...registry.Write) {
	batch := registry.Batch{Writes: writes, Change: change}
	if change != nil { // it must name what it replaces
		for _, write := range writes {
			batch.Conditions = append(batch.Conditions, registry.Absent(write.Key))
		}
	}
	_, err := f.store.Apply(f.tb.Context(), batch)
	testkit.Must(f.tb, err)
}
