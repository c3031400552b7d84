package catalog

// These tests are in the package because plan functions are not exported. They check plans without
// a store. The effects of a verb on a store are tested from outside.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// planned is a plan as text: its conditions, its writes, and its other effects.
type planned struct {
	conditions []string
	writes     []string
	rest       string
	refusal    moorage.Kind // the expected refusal instead of a plan; KindInternal if none
	again      bool         // expect ledger.ErrRetry instead of a plan
}

func textOf(plan *commit.Plan, err error) planned {
	switch {
	case errors.Is(err, ledger.ErrRetry):
		return planned{again: true}
	case err != nil:
		return planned{refusal: moorage.KindOf(err)}
	}
	var p planned
	for _, c := range plan.Conditions {
		p.conditions = append(p.conditions, fmt.Sprintf("%s is %v", c.Key, c.ETag))
	}
	for _, w := range plan.Writes {
		p.writes = append(p.writes, put(w.Key, w.State))
		if w.Delete {
			p.writes[len(p.writes)-1] = remove(w.Key)
		}
	}
	slices.Sort(p.conditions)
	slices.Sort(p.writes)
	var rest []string
	if plan.Empty {
		rest = append(rest, "empty")
	}
	if plan.Folder != "" {
		rest = append(rest, "folder "+plan.Folder)
	}
	for _, item := range plan.Items {
		if item.MetadataLocation != "" {
			rest = append(rest, "names "+item.MetadataLocation)
		}
	}
	if plan.Purges {
		rest = append(rest, "purges")
	}
	p.rest = strings.Join(rest, ", ")
	return p
}

func put(key registry.Key, state registry.State) string { return fmt.Sprintf("%s %s", key, state) }

func remove(key registry.Key) string { return fmt.Sprintf("%s removed", key) }

// The input of plan functions in these tests. Only the last byte of each ID is set.
var (
	planTime = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	planNS   = moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}
	planT    = moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	planU    = moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "u"}
)

// tag returns the ETag of a record after its nth write. It is zero for a missing record.
func tag(n byte) registry.ETag { return registry.ETag{15: n} }

func id(n byte) registry.ID { return registry.ID{15: n} }

func recordOf(key registry.Key, state registry.State, etag registry.ETag, value registry.Value) registry.Record {
	writes, err := ledger.Encode(ledger.Put(key, state, value))
	if err != nil {
		panic(err) // the values in these tests can be encoded
	}
	return registry.Record{Key: key, State: state, ETag: etag, Value: writes[0].Value}
}

func planParent() parent {
	key := registry.NamespaceKey(id(1), id(1), "ns")
	return parent{
		record: recordOf(key, registry.StateLive, tag(7), registry.Namespace{ID: id(2)}), id: id(2),
		warehouse: registry.Warehouse{ID: id(1), Location: "file:///w"},
	}
}

// planNamed is the live table t.
func planNamed() named {
	pointer := registry.Pointer{
		ID: id(3), Warehouse: "w", Namespace: planNS.Namespace, Name: "t", NamespaceID: id(2),
		ReplayableUntil: planTime.Add(time.Hour),
	}
	entry := registry.Entry{Pointer: id(3)}
	return named{
		ident:   planT,
		entry:   directory.Entry{Record: recordOf(registry.EntryKey(id(2), "t"), registry.StateTable, tag(8), entry), Value: entry},
		pointer: &directory.Found{Record: recordOf(registry.PointerKey(id(3)), registry.StateLive, tag(9), pointer), Pointer: pointer},
	}
}

func planDocument(t *testing.T) *metadata.Document {
	t.Helper()
	document, err := metadata.Create(metadata.CreateTable{
		Location: "file:///w/ns/t", Schema: []byte(`{"type":"struct","schema-id":0,"fields":[]}`),
	}, metadata.Env{Now: planTime, NewUUID: func() string { return "0198f3a1-0000-7000-8000-000000000001" }})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestPlanners(t *testing.T) {
	t.Parallel()
	document := planDocument(t)
	attempt := &commit.Attempt{Now: planTime, Change: registry.Change{ID: id(99)}}
	born := newborn{
		kind: tableKind, ident: planT, id: id(3), parent: planParent(), document: document,
		claim: claims.Claim{Normalised: "file:///w/ns/t"}, file: documents.File{Location: "m1"},
	}
	occupied := directory.Entry{Record: recordOf(registry.EntryKey(id(2), "u"), registry.StateView, tag(4), registry.Entry{})}
	gone := planNamed()
	gone.ident = planU
	drained := &commit.Attempt{Container: &commit.Container{Ident: planNS, Record: planParent().record, Empty: true}}
	full := &commit.Attempt{Container: &commit.Container{Ident: planNS, Record: planParent().record}}
	entryT, entryU, pointer := registry.EntryKey(id(2), "t"), registry.EntryKey(id(2), "u"), registry.PointerKey(id(3))
	uuid, parentKey := registry.UUIDKey(document.UUID()), planParent().record.Key
	task, window := registry.TaskKey(id(5)), registry.WindowKey(id(3), planTime)
	dropped := registry.DroppedKey(registry.ID{}, planNS.Namespace, "t", planTime, id(3))
	goneNamespace := registry.DroppedKey(id(1), nil, "ns", time.Time{}, registry.ID{})
	left := planNamed().pointer.Pointer
	left.Dropped = planTime
	properties := recordOf(parentKey, registry.StateLive, tag(7), registry.Namespace{ID: id(2), Properties: map[string]string{"a": "1"}})
	is := func(key registry.Key, etag registry.ETag) string { return fmt.Sprintf("%s is %v", key, etag) }
	for _, tt := range []struct {
		name string
		plan func() (*commit.Plan, error)
		want planned
	}{
		{"create a table", func() (*commit.Plan, error) { return planCreation(attempt, born) }, planned{
			conditions: []string{is(parentKey, tag(7)), is(entryT, tag(0)), is(pointer, tag(0)), is(uuid, tag(0))},
			writes: []string{
				put(entryT, registry.StateTable), put(pointer, registry.StateLive), put(uuid, registry.StateNone),
			},
			rest: "names m1",
		}},
		{"stage a table", func() (*commit.Plan, error) { return planStaged(attempt, born) },
			planned{rest: "empty, folder file:///w/ns/t/metadata"}},
		{"drop a table", func() (*commit.Plan, error) { return planDrop(attempt, dropping{named: planNamed(), now: planTime}) }, planned{
			conditions: []string{is(entryT, tag(8)), is(pointer, tag(9))},
			writes:     []string{remove(entryT), put(pointer, registry.StateDropped), put(window, registry.StateNone), put(dropped, registry.StateDropped)},
		}},
		{"drop and purge a table", func() (*commit.Plan, error) {
			return planDrop(attempt, dropping{named: planNamed(), now: planTime, task: id(5)})
		}, planned{
			conditions: []string{is(entryT, tag(8)), is(pointer, tag(9))},
			writes: []string{
				remove(entryT), put(pointer, registry.StateDropped), put(task, registry.StateNone), put(dropped, registry.StateDropped),
			},
			rest: "purges",
		}},
		{"unregister a table", func() (*commit.Plan, error) {
			return planUnregister(attempt, leaving{
				named: planNamed(), document: document, gone: left,
				released: []registry.Condition{registry.ETagIs(uuid, tag(6))}, deletes: []registry.Write{registry.Delete(uuid)},
			})
		}, planned{
			conditions: []string{is(entryT, tag(8)), is(pointer, tag(9)), is(uuid, tag(6))},
			writes:     []string{remove(entryT), remove(registry.LeaseKey(id(3))), remove(pointer), remove(uuid), put(dropped, registry.StateEnded)},
		}},
		{"rename a table", func() (*commit.Plan, error) {
			return planRename(attempt, renaming{kind: tableKind, from: planT, to: planU, source: planNamed(), target: planParent()})
		}, planned{
			conditions: []string{is(entryT, tag(8)), is(pointer, tag(9)), is(parentKey, tag(7)), is(entryU, tag(0))},
			writes:     []string{remove(entryT), put(entryU, registry.StateTable), put(pointer, registry.StateLive)},
		}},
		{"rename to a name in use", func() (*commit.Plan, error) {
			return planRename(attempt, renaming{kind: tableKind, from: planT, to: planU, source: planNamed(), target: planParent(), occupant: occupied})
		}, planned{refusal: moorage.KindAlreadyExists}},
		{"rename to itself what was dropped meanwhile", func() (*commit.Plan, error) {
			return planRename(attempt, renaming{kind: tableKind, from: planU, to: planU, source: gone, target: planParent()})
		}, planned{again: true}},
		{"create a namespace and its parent", func() (*commit.Plan, error) {
			return planNamespace(attempt, newNamespace{
				ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns", "a", "b"}}, parent: planParent(),
				missing: []string{"a", "b"}, ids: []registry.ID{id(11), id(12)},
			})
		}, planned{
			conditions: []string{
				is(parentKey, tag(7)), is(registry.NamespaceKey(id(1), id(2), "a"), tag(0)), is(registry.NamespaceKey(id(1), id(11), "b"), tag(0)),
			},
			writes: []string{
				put(registry.NamespaceKey(id(1), id(2), "a"), registry.StateLive),
				put(registry.NamespaceKey(id(1), id(11), "b"), registry.StateLive),
			},
		}},
		{"set a property", func() (*commit.Plan, error) {
			return PropertiesChange{Updates: map[string]string{"b": "2"}}.plan(attempt, properties)
		}, planned{conditions: []string{is(parentKey, tag(7))}, writes: []string{put(parentKey, registry.StateLive)}}},
		{"remove a property that is not there", func() (*commit.Plan, error) {
			return PropertiesChange{Removals: []string{"b"}}.plan(attempt, properties)
		}, planned{rest: "empty"}},
		{"set a property that is too long", func() (*commit.Plan, error) {
			return PropertiesChange{Updates: map[string]string{"b": strings.Repeat("x", registry.PropertiesBytesMax)}}.plan(attempt, properties)
		}, planned{refusal: moorage.KindTooLarge}},
		{"drop an empty namespace", func() (*commit.Plan, error) { return drained.Container.PlanDrop(drained, ledger.Policy{}) },
			planned{conditions: []string{is(parentKey, tag(7))}, writes: []string{remove(parentKey), remove(registry.MaintenancePolicyKey(registry.NamespaceScope(registry.ID{}))), put(goneNamespace, registry.StateEnded)}}},
		{"drop a namespace with a table", func() (*commit.Plan, error) { return full.Container.PlanDrop(full, ledger.Policy{}) },
			planned{refusal: moorage.KindNamespaceNotEmpty}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slices.Sort(tt.want.conditions)
			slices.Sort(tt.want.writes)
			if got := textOf(tt.plan()); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got\n%v\nwant\n%v", got, tt.want)
			}
		})
	}
}

// A register uses the pointer with the table-uuid, or creates one. It drops the object that had the
// name.
func TestPlanRegistration(t *testing.T) {
	t.Parallel()
	document := planDocument(t)
	uuid := registry.UUIDKey(document.UUID())
	old := planNamed()
	fresh := func() *registration {
		return &registration{
			kind: tableKind, ident: planT, location: "m7", document: document, parent: planParent(),
			pointer: registry.Pointer{ID: id(4)}, unchanged: registry.Absent(registry.PointerKey(id(4))),
			claimed: claims.Claim{Normalised: "file:///w/ns/t"}, who: claims.Claimant{Pointer: id(4)},
		}
	}
	for _, tt := range []struct {
		name   string
		change func(r *registration)
		writes []string
	}{
		{"a new table", func(*registration) {}, []string{"entry table", "pointer live", "uuid none"}},
		{"over another table", func(r *registration) {
			r.entry, r.occupant, r.who.Replaces = old.entry, old.pointer.Record, id(3)
		}, []string{"due none", "entry table", "index dropped", "pointer dropped", "pointer live", "uuid none"}},
		{"one that was dropped", func(r *registration) {
			r.pointer, r.holder.State = registry.Pointer{ID: id(3)}, registry.StateDropped
			r.unchanged = ledger.Unchanged(old.pointer.Record)
		}, []string{"due removed", "entry table", "index removed", "pointer live", "uuid none"}},
		{"one that awaits its purge", func(r *registration) {
			r.pointer, r.holder.State = registry.Pointer{ID: id(3), Task: id(5)}, registry.StateDropped
			r.unchanged = ledger.Unchanged(old.pointer.Record)
		}, []string{"entry table", "index removed", "pointer live", "task removed", "uuid none"}},
	} {
		r := fresh()
		tt.change(r)
		plan, err := planRegistration(&commit.Attempt{Now: planTime, Change: registry.Change{ID: id(99)}}, r)
		if err != nil {
			t.Fatal(err)
		}
		var writes []string
		for _, w := range plan.Writes {
			state := w.State.String()
			if w.Delete {
				state = "removed"
			}
			writes = append(writes, map[registry.Table]string{
				registry.TableEntry: "entry", registry.TablePointer: "pointer", registry.TableUUID: "uuid", registry.TableTask: "task",
				registry.TableDue: "due", registry.TableDropped: "index",
			}[w.Key.Table]+" "+state)
		}
		slices.Sort(writes)
		if !slices.Equal(writes, tt.writes) {
			t.Errorf("%s: writes %q, want %q", tt.name, writes, tt.writes)
		}
		version := plan.Answer.Version
		if version.Location != "m7" || version.Registration != id(99) || plan.Items[len(plan.Items)-1].MetadataLocation != "m7" {
			t.Errorf("%s: answers %+v, names %+v", tt.name, version, plan.Items)
		}
		if !slices.ContainsFunc(plan.Conditions, func(c registry.Condition) bool { return c.Key == uuid }) ||
			!slices.Contains(plan.Conditions, r.unchanged) {
			t.Errorf("%s: requires %v", tt.name, plan.Conditions)
		}
	}
}
