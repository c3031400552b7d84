package metadata_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moorage/metadata"
)

// TestDiff: each kind of update shows up as its own change, and as nothing else.
func TestDiff(t *testing.T) {
	t.Parallel()
	base := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1)+
		`,{"action":"set-properties","updates":{"a":"1","b":"2"}},
		{"action":"set-snapshot-ref","ref-name":"eod","type":"tag","snapshot-id":101}`)
	for _, c := range []struct{ name, updates, want string }{
		{"nothing", `[]`, `{}`},
		{"properties", `{"action":"set-properties","updates":{"a":"3","c":"4"}},{"action":"remove-properties","removals":["b"]}`,
			`{"properties":{"set":{"a":["1","3"],"c":[null,"4"]},"removed":{"b":"2"}}}`},
		{"an append", `{"action":"add-snapshot","snapshot":{"snapshot-id":102,"parent-snapshot-id":101,"sequence-number":2,
			"timestamp-ms":1700000000000,"manifest-list":"file:///tmp/t/metadata/snap-102.avro","schema-id":0,
			"summary":{"operation":"append","total-records":"7","total-data-files":"2","total-files-size":"90"}}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":102}`,
			`{"refs":{"moved":[{"name":"main","was":101,"is":102,"ahead":1}]},` +
				`"snapshots":{"added":[{"id":102,"parent":101,"timestamp-ms":1700000000000,"operation":"append",` +
				`"summary":{"total-data-files":"2","total-files-size":"90","total-records":"7"}}],"more":0},` +
				`"totals":{"rows":[-1,7],"files":[-1,2],"bytes":[-1,90]}}`},
		{"refs", `{"action":"remove-snapshot-ref","ref-name":"eod"},
			{"action":"set-snapshot-ref","ref-name":"audit","type":"branch","snapshot-id":101},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":101,"min-snapshots-to-keep":3}`,
			`{"refs":{"added":[{"name":"audit","type":"branch","snapshot-id":101}],` +
				`"removed":[{"name":"eod","type":"tag","snapshot-id":101}],` +
				`"changed":[{"name":"main","was":{"type":"branch"},"is":{"type":"branch","min-snapshots-to-keep":3}}]}}`},
		{"location", `{"action":"set-location","location":"file:///tmp/u"}`, `{"location":["file:///tmp/t","file:///tmp/u"]}`},
		{"format", `{"action":"upgrade-format-version","format-version":3}`, `{"format-version":[2,3]}`},
		{"schema", `{"action":"add-schema","schema":{"type":"struct","fields":[
			{"id":1,"name":"key","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},
			{"id":3,"name":"note","required":false,"type":"string"},{"id":4,"name":"price","required":false,"type":"double"}]}},
			{"action":"set-current-schema","schema-id":-1}`,
			`{"schema":{"added":[{"id":4,"path":"price","type":"double","required":false}],` +
				`"changed":[{"id":1,"path":"key","was":{"path":"id"},"is":{"path":"key"}}]}}`},
		{"spec and order", `{"action":"add-spec","spec":{"fields":[{"source-id":1,"transform":"bucket[4]","name":"b"}]}},
			{"action":"set-default-spec","spec-id":-1},
			{"action":"add-sort-order","sort-order":{"fields":[{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}},
			{"action":"set-default-sort-order","sort-order-id":-1}`,
			`{"partition-spec":[[{"field-id":1000,"name":"at_day","source-id":2,"transform":"day"}],` +
				`[{"field-id":1001,"name":"b","source-id":1,"transform":"bucket[4]"}]],` +
				`"sort-order":[[],[{"direction":"asc","null-order":"nulls-first","source-id":1,"transform":"identity"}]]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := jsonOf(t, diffTest(t, base, applyTest(t, base, c.updates))); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestDiffAfterRollback: after a rollback, Ahead is nil for main, and the totals are the ones of
// the new head.
func TestDiffAfterRollback(t *testing.T) {
	t.Parallel()
	first := applyTest(t, createTest(t, 2), snapshotUpdates(101, 0, 1))
	second := applyTest(t, applyTest(t, first, snapshotUpdates(102, 101, 2)), snapshotUpdates(103, 102, 3))
	back := applyTest(t, second, `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":101}`)
	if got := *diffTest(t, first, second).Refs.Moved[0].Ahead; got != 2 {
		t.Errorf("main is %d ahead, want 2", got)
	}
	if got := diffTest(t, second, back).Refs.Moved[0]; got.Ahead != nil || got.Is != 101 {
		t.Errorf("after the rollback: %+v", got)
	}
}

// TestDiffIsComplete: applying the differences to the first version gives the second version. The
// test uses random histories, in both directions.
func TestDiffIsComplete(t *testing.T) {
	t.Parallel()
	const seed = 11
	g := &generator{rand: rand.New(rand.NewPCG(seed, seed)), t: t, d: createTest(t, 2)}
	versions := []*metadata.Document{g.d}
	for len(versions) < 200 {
		updates, err := checked(metadata.DecodeUpdates, g.request())
		if err != nil {
			continue
		}
		if next, err := g.d.Apply(updates, testEnv(1)); err == nil && next != g.d {
			g.d = next
			versions = append(versions, next)
		}
	}
	for range 500 {
		from, to := versions[g.rand.IntN(len(versions))], versions[g.rand.IntN(len(versions))]
		d := diffTest(t, from, to)
		if (jsonOf(t, d) == "{}") != (jsonOf(t, diffTest(t, to, from)) == "{}") {
			t.Fatalf("only one direction differs: %s", jsonOf(t, d))
		}
		properties := from.Properties()
		if d.Properties != nil {
			for name, pair := range d.Properties.Set {
				if was, had := properties[name]; had != (pair[0] != nil) || had && was != *pair[0] {
					t.Fatalf("%s was %q, not as in the difference", name, was)
				}
				properties[name] = *pair[1]
			}
			maps.DeleteFunc(properties, func(name, value string) bool { return d.Properties.Removed[name] == value && !has(to, name) })
		}
		if !maps.Equal(properties, to.Properties()) {
			t.Fatalf("properties are %v, want %v", properties, to.Properties())
		}
		ids := snapshotIDs(from)
		if d.Snapshots != nil {
			ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(d.Snapshots.Removed, id) })
			for _, added := range d.Snapshots.Added {
				ids = append(ids, added.ID)
			}
		}
		want := snapshotIDs(to)
		slices.Sort(ids)
		slices.Sort(want)
		if !slices.Equal(ids, want) {
			t.Fatalf("snapshots are %v, want %v", ids, want)
		}
		refs := tableOf(t, from).Refs
		if d.Refs != nil {
			for _, r := range d.Refs.Removed {
				delete(refs, r.Name)
			}
			for _, r := range d.Refs.Added {
				refs[r.Name] = tableOf(t, to).Refs[r.Name]
			}
			for _, r := range d.Refs.Moved {
				refs[r.Name] = tableOf(t, to).Refs[r.Name]
			}
			for _, r := range d.Refs.Changed {
				refs[r.Name] = tableOf(t, to).Refs[r.Name]
			}
		}
		if got, want := jsonOf(t, refs), jsonOf(t, tableOf(t, to).Refs); got != want && !(got == "null" && want == "{}") {
			t.Fatalf("refs are %s, want %s", got, want)
		}
	}
}

// TestDiffOfManyRefs: the refs of a difference share one limit of steps.
func TestDiffOfManyRefs(t *testing.T) {
	t.Parallel()
	const snapshots, tags = 500, 300
	refs := func(to int) string {
		var updates []string
		for i := range tags {
			updates = append(updates, fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"t%03d","type":"tag","snapshot-id":%d}`, i, to))
		}
		return strings.Join(updates, ",")
	}
	from := applyTest(t, createTest(t, 2), snapshotUpdates(1, 0, 1)+","+refs(1))
	var added []string
	for id := 2; id <= snapshots; id++ {
		added = append(added, snapshotUpdates(int64(id), int64(id-1), id))
	}
	moved := diffTest(t, from, applyTest(t, from, strings.Join(added, ",")+","+refs(snapshots))).Refs.Moved
	known := 0
	for _, move := range moved {
		if move.Ahead != nil {
			known++
		}
	}
	if len(moved) != tags+1 || known != 100_000/snapshots {
		t.Errorf("%d of %d refs have a distance", known, len(moved))
	}
}

func diffTest(t *testing.T, from, to *metadata.Document) metadata.Difference {
	t.Helper()
	d, err := metadata.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func has(d *metadata.Document, name string) bool {
	_, ok := d.Property(name)
	return ok
}

func snapshotIDs(d *metadata.Document) (ids []int64) {
	for s := range d.Snapshots() {
		ids = append(ids, s.ID)
	}
	return ids
}
