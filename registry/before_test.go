package registry_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"moorage"
	"moorage/registry"
)

// versionOf returns the version made by a write that replaces the value was with is. gone is true
// for a deletion.
func versionOf(t testing.TB, was, is string, gone bool) registry.Version {
	t.Helper()
	key := registry.PointerKey(someID)
	write := registry.Put(key, registry.StateLive, []byte(is))
	if gone {
		write = registry.Delete(key)
	}
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(key, someETag)}, Change: &registry.Change{ID: otherID},
		Writes: []registry.Write{write.Over(registry.Record{Key: key, ETag: someETag, State: registry.StateDropped, Value: []byte(was)})},
	}
	if err := batch.Check(); err != nil {
		t.Fatal(err)
	}
	etags := []registry.ETag{otherETag, {9}}
	if gone {
		etags[0] = registry.ETag{}
	}
	sealed, err := batch.Seal(etags)
	if err != nil {
		t.Fatal(err)
	}
	return sealed.Change.Versions[0]
}

func TestBefore(t *testing.T) {
	t.Parallel()
	long := `{"a":"` + strings.Repeat("x", 64<<10) + `"}`
	for _, tt := range []struct {
		name, was, is string
		gone          bool
		set           string
		goneNames     []string
		cut           bool
	}{
		{name: "nothing changed", was: `{"a":1}`, is: `{"a":1}`},
		{name: "order changed", was: `{"a":1,"b":2}`, is: `{"b":2,"a":1}`},
		{name: "a member changed", was: `{"a":1,"b":{"c":[1,2]}}`, is: `{"a":1,"b":{"c":[1]}}`, set: `{"b":{"c":[1,2]}}`},
		{name: "a member was added", was: `{}`, is: `{"a":1}`, goneNames: []string{"a"}},
		{name: "a member was removed", was: `{"a":null}`, is: `{}`, set: `{"a":null}`},
		{name: "a name that is escaped", was: `{"\u0061\"":1}`, is: `{"a\"":2,"\"":3}`, set: `{"\u0061\"":1}`, goneNames: []string{`"`}},
		{name: "deleted", was: `{"a":1,"b":2}`, gone: true, set: `{"a":1,"b":2}`},
		{name: "deleted and empty", was: `{}`, gone: true},
		{name: "too long", was: long, is: `{}`, cut: true},
		{name: "long and the same", was: long, is: long},
		{name: "too long and deleted", was: long, gone: true, cut: true},
		{name: "was no object", was: `[1]`, is: `{}`, cut: true},
		{name: "was not JSON", was: `{"a":`, is: `{}`, cut: true},
		{name: "had a name twice", was: `{"a":1,"a":2}`, is: `{}`, cut: true},
		{name: "is no object", was: `{}`, is: `1`, cut: true},
	} {
		version := versionOf(t, tt.was, tt.is, tt.gone)
		want := &registry.Before{State: registry.StateDropped, Gone: tt.goneNames, Cut: tt.cut}
		if tt.set != "" {
			want.Set = json.RawMessage(tt.set)
		}
		if version.Old != someETag || !reflect.DeepEqual(version.Before, want) {
			t.Errorf("%s: got %s %+v, want %+v", tt.name, version.Before.Set, version.Before, want)
		}
		was, ok, err := version.Earlier([]byte(tt.is))
		if err != nil || ok == tt.cut || ok && !sameJSON(t, string(was), tt.was) {
			t.Errorf("%s: gives back %s, %t, %v; want %s", tt.name, was, ok, err, tt.was)
		}
	}
	if _, ok, err := (registry.Version{}).Earlier([]byte(`{}`)); ok || err != nil {
		t.Errorf("a record that is new has an earlier value: %t, %v", ok, err)
	}
	if _, _, err := versionOf(t, `{"a":1}`, `{}`, false).Earlier([]byte(`[]`)); err == nil {
		t.Error("a value that is no object has an earlier one")
	}
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// TestBeforeOfRandomValues: the earlier value can be restored, whatever the two values are.
func TestBeforeOfRandomValues(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 0))
	value := func() string {
		var members []string
		for _, name := range random.Perm(6)[:random.IntN(7)] {
			text := []string{"1", `"x"`, "null", `{"y":[{}]}`, fmt.Sprint(random.IntN(3))}[random.IntN(5)]
			members = append(members, fmt.Sprintf("%q:%s", string(rune('a'+name)), text))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for range 2000 {
		was, is := value(), value()
		for _, gone := range []bool{false, true} {
			back, ok, err := versionOf(t, was, is, gone).Earlier([]byte(is))
			if err != nil || !ok || !sameJSON(t, string(back), was) {
				t.Fatalf("%s became %s (deleted: %t), and comes back as %s, %t, %v", was, is, gone, back, ok, err)
			}
		}
	}
}

// sampleSummary returns the summary of a version of a typical table in S3.
func sampleSummary(n int64) *registry.Summary {
	return &registry.Summary{
		Format: 2, Snapshots: 99 + n, Refs: 1, Columns: 24, Versions: -1, At: 1_795_730_112_345 + n, FirstMS: 1_795_000_000_000, Seq: 8_100 + n,
		Rows: 50_100_000 + n, Files: 812 + n, Bytes: 81_234_567_890 + n, Snapshot: 7_841_234_567_890_123_456 + n, Operation: "append", Engine: "spark 3.5.1",
	}
}

// samplePointer returns the pointer to version n of that table.
func samplePointer(n int64) registry.Pointer {
	pointer := registry.Pointer{
		ID: someID, Warehouse: "lake", Namespace: moorage.Namespace{"sales"}, Name: "orders", NamespaceID: otherID,
		TableUUID:        "0190f3a0-1234-7abc-8def-0123456789ab",
		MetadataLocation: fmt.Sprintf("s3://acme-lake/warehouse/sales/orders/metadata/%05d-9b29880e-5a1c-4d6f-9f3e-0c8e7d6b5a4%d.metadata.json", 8100+n, n),
		Claims:           []string{"s3://acme-lake/warehouse/sales/orders"}, Since: someTime, Creator: "key:etl",
	}
	change := registry.Change{ID: registry.ID{0: 0xc0, 15: byte(n)}, Principal: "key:etl"}
	pointer.Last = pointer.Written(registry.StateLive, change, sampleSummary(n))
	return pointer
}

// sampleChange returns the change of the commit that makes version n of that table, in the form
// that the catalog writes.
func sampleChange(n int64) registry.Change {
	pointer := samplePointer(n)
	item := registry.PointerItem(samplePointer(n-1), pointer)
	item.Actions = []string{"add-snapshot", "set-snapshot-ref main"}
	return registry.Change{
		ID: pointer.Last.Change, Operation: "commit", Ident: pointer.Identifier(), Principal: pointer.Last.By,
		RequestID: "U34MA46H7O-5", Client: "Apache Iceberg 1.12.0", Time: someTime, Items: []registry.Item{item},
	}
}

// TestLastOfAnOlderNode: a node that does not know Last keeps it when it changes the record. Then
// Last must not be taken for the change that wrote the record.
func TestLastOfAnOlderNode(t *testing.T) {
	t.Parallel()
	pointer := samplePointer(1)
	if last := pointer.LastIn(registry.StateLive); last.IsZero() || !reflect.DeepEqual(last, pointer.Last) {
		t.Errorf("the last change is %+v, want %+v", last, pointer.Last)
	}
	for name, change := range map[string]func(p *registry.Pointer) registry.State{
		"commit": func(p *registry.Pointer) registry.State { p.MetadataLocation += "x"; return registry.StateLive },
		"drop":   func(*registry.Pointer) registry.State { return registry.StateDropped },
		"rename": func(p *registry.Pointer) registry.State { p.Name = "other"; return registry.StateLive },
		"move": func(p *registry.Pointer) registry.State {
			p.Namespace = moorage.Namespace{"other"}
			return registry.StateLive
		},
	} {
		after := pointer
		if state := change(&after); !after.LastIn(state).IsZero() {
			t.Errorf("after the %s of an older node, the last change is %+v", name, after.LastIn(state))
		}
	}
	after := pointer
	after.Trims = []registry.Trim{{ID: otherID}}
	if after.LastIn(registry.StateLive).IsZero() {
		t.Error("an announcement of files hides the last change")
	}
	namespace := registry.Namespace{ID: someID, Properties: map[string]string{"a": "1", "b": "2"}, Since: someTime}
	namespace.Last = namespace.Written(registry.StateLive, registry.Change{ID: otherID})
	warehouse := registry.Warehouse{ID: someID, Location: "file:///w", Since: someTime}
	warehouse.Last = warehouse.Written(registry.StateLive, registry.Change{ID: otherID})
	if namespace.LastIn(registry.StateLive).IsZero() || warehouse.LastIn(registry.StateLive).IsZero() {
		t.Error("the last change of a namespace or warehouse is not known")
	}
	namespace.Properties = map[string]string{"a": "2", "b": "1"}
	warehouse.AllowedLocations = []string{"file:///x"}
	if !namespace.LastIn(registry.StateLive).IsZero() || !warehouse.LastIn(registry.StateLive).IsZero() {
		t.Error("an older node changed a namespace and a warehouse, and the last change is that before")
	}
}

// TestSizeOfCommit: PostgreSQL compresses or moves a row of more than 2,032 bytes, which makes a
// commit slower. The row of a change has about 200 bytes in addition to the value.
func TestSizeOfCommit(t *testing.T) {
	t.Parallel()
	was, err := registry.Encode(samplePointer(1))
	if err != nil {
		t.Fatal(err)
	}
	is, err := registry.Encode(samplePointer(2))
	if err != nil {
		t.Fatal(err)
	}
	key, change := registry.PointerKey(someID), sampleChange(2)
	sealed, err := registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(key, someETag)}, Change: &change,
		Writes: []registry.Write{registry.Put(key, registry.StateLive, is).Over(
			registry.Record{Key: key, ETag: someETag, State: registry.StateLive, Value: was})},
	}.Seal([]registry.ETag{otherETag, {9}})
	if err != nil {
		t.Fatal(err)
	}
	value := sealed.Writes[1].Value
	t.Logf("the pointer has %d bytes, the change %d", len(is), len(value))
	if len(is) > 870 || len(value) > 1700 {
		t.Errorf("the pointer has %d bytes, the change %d:\n%s\n%s", len(is), len(value), is, value)
	}
}

// BenchmarkSealMove measures Seal for a commit's batch, and for a write without a Before. The
// difference should be a few microseconds.
func BenchmarkSealMove(b *testing.B) {
	key := registry.PointerKey(someID)
	pointer := func(n int64) []byte {
		value, err := registry.Encode(samplePointer(n))
		if err != nil {
			b.Fatal(err)
		}
		return value
	}
	was, is := pointer(1), pointer(2)
	change := sampleChange(2)
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(key, someETag)}, Change: &change,
		Writes: []registry.Write{registry.Put(key, registry.StateLive, is).Over(
			registry.Record{Key: key, ETag: someETag, State: registry.StateLive, Value: was})},
	}
	blind := batch
	blind.Writes = []registry.Write{registry.Put(registry.LocationKey("l"), registry.StateOwner, is)}
	for name, batch := range map[string]registry.Batch{"pointer": batch, "location": blind} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := batch.Seal([]registry.ETag{otherETag, {9}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
