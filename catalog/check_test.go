package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// tampering changes the records of a store behind the catalog's back.
type tampering struct{ *fixture }

// record returns the only record of table whose ID ends in suffix and whose state is one of states.
func (f tampering) record(table registry.Table, suffix string, states ...registry.State) registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
	if err != nil {
		f.t.Fatal(err)
	}
	records = slices.DeleteFunc(records, func(r registry.Record) bool {
		return !strings.HasSuffix(r.Key.ID, suffix) || !slices.Contains(states, r.State)
	})
	if len(records) != 1 {
		f.t.Fatalf("%d records of %v end in %q, want 1", len(records), table, suffix)
	}
	return records[0]
}

func (f tampering) write(writes ...registry.Write) {
	f.t.Helper()
	if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes}); err != nil {
		f.t.Fatal(err)
	}
}

// put writes a value under a key.
func (f tampering) put(key registry.Key, state registry.State, value registry.Value) {
	f.t.Helper()
	encoded, err := registry.Encode(value)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(registry.Put(key, state, encoded))
}

func (f tampering) remove(record registry.Record) {
	f.t.Helper()
	f.write(registry.Delete(record.Key))
}

func (f tampering) entry() registry.Record {
	return f.record(registry.TableEntry, "/t", registry.StateTable)
}

// pointer returns the record and the value of the table "t".
func (f tampering) pointer() (registry.Record, registry.Pointer) {
	f.t.Helper()
	found, err := f.directory.Find(f.ctx, aTable.Kind, ident("t"))
	if err != nil {
		f.t.Fatal(err)
	}
	return found.Record, found.Pointer
}

// change writes the pointer of "t" again, as change leaves it.
func (f tampering) change(change func(*registry.Pointer)) {
	f.t.Helper()
	record, pointer := f.pointer()
	change(&pointer)
	f.put(record.Key, record.State, pointer)
}

// damages are what Check looks for; each leaves a store that it must not call well.
var damages = []struct {
	name   string
	damage func(f tampering)
	want   string // part of a problem
}{
	{"metadata file gone", func(f tampering) {
		_, pointer := f.pointer()
		if err := f.files.Delete(f.ctx, pointer.MetadataLocation); err != nil {
			f.t.Fatal(err)
		}
	}, ".metadata.json is missing"},
	{"metadata file of another table", func(f tampering) {
		f.change(func(p *registry.Pointer) { p.MetadataLocation = f.create("u").MetadataLocation })
	}, "the metadata file has the table-uuid"},
	{"metadata file that is none", func(f tampering) {
		const location = "file:///wh/ns/t/metadata/00009-x.metadata.json"
		if err := f.files.Create(f.ctx, location, []byte("{")); err != nil {
			f.t.Fatal(err)
		}
		f.change(func(p *registry.Pointer) { p.MetadataLocation = location })
	}, "Cannot parse"},
	{"metadata file of a view gone", func(f tampering) {
		if err := f.files.Delete(f.ctx, f.createView("v").MetadataLocation); err != nil {
			f.t.Fatal(err)
		}
	}, "view ns.v ("},
	{"table called a view", func(f tampering) {
		entry := f.entry()
		f.write(registry.Put(entry.Key, registry.StateView, entry.Value))
	}, "of a view, names what is none"},
	{"no name", func(f tampering) { f.remove(f.entry()) }, "has 0 names"},
	{"two names", func(f tampering) {
		entry := f.entry()
		f.write(registry.Put(registry.Key{Table: registry.TableEntry, ID: entry.Key.ID + "2"}, entry.State, entry.Value))
	}, "names a table that is called"},
	{"name in the wrong shard", func(f tampering) {
		_, pointer := f.pointer()
		f.put(f.entry().Key, registry.StateTable, registry.Entry{Pointer: pointer.ID, Shard: registry.Shard("t") ^ 1})
	}, "is in the wrong shard"},
	{"name of nothing", func(f tampering) { record, _ := f.pointer(); f.remove(record) }, "names a table that does not exist"},
	{"name of a dropped table", func(f tampering) {
		record, pointer := f.pointer()
		f.put(record.Key, registry.StateDropped, pointer)
	}, "names a table that is dropped"},
	{"namespace gone", func(f tampering) {
		f.remove(f.record(registry.TableNamespace, "/ns", registry.StateLive))
	}, `is in namespace ""`},
	{"parent gone", func(f tampering) {
		if _, err := f.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns", "inner"}, nil); err != nil {
			f.t.Fatal(err)
		}
		f.remove(f.record(registry.TableNamespace, "/ns", registry.StateLive))
	}, "namespace inner"},
	{"table-uuid of another table", func(f tampering) {
		f.change(func(p *registry.Pointer) { p.TableUUID = "00000000-0000-4000-8000-000000000000" })
	}, "is claimed by a table that does not have it"},
	{"table-uuid that is free", func(f tampering) {
		f.remove(f.record(registry.TableUUID, "", registry.StateNone))
	}, "does not hold its table-uuid"},
	{"claim that the table does not know", func(f tampering) {
		f.change(func(p *registry.Pointer) { p.Claims = nil })
	}, "is claimed by a table that does not know of it"},
	{"claim gone", func(f tampering) {
		f.remove(f.record(registry.TableLocation, "/t", registry.StateOwner))
	}, "does not hold its claim"},
	{"tables within each other", func(f tampering) {
		outer := f.record(registry.TableLocation, "/ns", registry.StateBelow)
		f.create("u")
		found, err := f.directory.Find(f.ctx, aTable.Kind, ident("u"))
		if err != nil {
			f.t.Fatal(err)
		}
		found.Pointer.Claims = append(found.Pointer.Claims, outer.Key.ID)
		f.put(found.Record.Key, registry.StateLive, found.Pointer)
		f.put(outer.Key, registry.StateOwner, registry.LocationClaim{Pointer: found.Pointer.ID})
	}, "lies within that of another table"},
	{"task of nothing", func(f tampering) {
		f.put(registry.TaskKey(registry.ID{1}), registry.StateNone, registry.Task{ID: registry.ID{1}, Kind: registry.TaskPurge})
	}, "belongs to no dropped table"},
	{"task of a dropped table gone", func(f tampering) {
		task, _ := f.dropPurged("t", registry.StateDropped)
		f.remove(task)
	}, "is dropped and awaits task/"},
	{"task that cannot be read", func(f tampering) {
		f.write(registry.Put(registry.TaskKey(registry.ID{1}), registry.StateNone, []byte("{")))
	}, "task/01000000000000000000000000000000 cannot be read"},
	{"blocked task", func(f tampering) {
		f.put(registry.TaskKey(registry.ID{1}), registry.StateBlocked, registry.Task{ID: registry.ID{1}, Kind: registry.TaskPurge, LastError: "no disk"})
	}, "no disk"},
	{"transaction that nobody ends", func(f tampering) {
		f.abandon("t")
		f.clock.Advance(recoveryGrace)
	}, "is pending, and its deadline was 2026-11-01T11:59:00Z"},
	{"transaction that nobody cleans up after", func(f tampering) {
		f.abandonCommitted("t")
		f.clock.Advance(recoveryGrace)
	}, "is committed, and its deadline was"},
	{"transaction that was given up", func(f tampering) {
		entry := f.abandon("t")
		f.put(registry.TaskKey(entry.ID), registry.StateBlocked, registry.Task{ID: entry.ID, Kind: registry.TaskRecovery, Attempts: 50, LastError: "no disk"})
	}, "is blocked after 50 attempts: no disk"},
}

// A transaction that has time, or that the workers may still be ending, is no problem; nor is one in a store that nobody had open.
func TestCheckLeavesTransactionsTime(t *testing.T) {
	t.Parallel()
	for name, abortPending := range map[string]bool{"shared store": false, "store of one process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *Config) { c.AbortPending = abortPending })
			f.create("t")
			entry := f.abandon("t")
			f.clock.Advance(recoveryGrace - time.Minute)
			f.wantClean()
			f.clock.Advance(48 * time.Hour)
			report, err := f.Check(f.ctx)
			if err != nil || len(report.Problems) != 1 {
				t.Errorf("problems after two days: %q (%v), want one", report.Problems, err)
			}
			report, err = f.other(f.store).Check(f.ctx)
			if found := len(report.Problems) > 0; err != nil || found == abortPending {
				t.Errorf("problems that a new process finds: %q (%v)", report.Problems, err)
			}
			if err := f.resolveTransaction(f.ctx, entry); err != nil {
				t.Fatal(err)
			}
			f.wantClean()
		})
	}
}

// Check finds each damage that it is there to find.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			f.wantClean()
			tt.damage(tampering{f})
			report, err := f.Check(f.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Problems, func(problem string) bool { return strings.Contains(problem, tt.want) }) {
				t.Errorf("found %q, want one with %q", report.Problems, tt.want)
			}
		})
	}
}
