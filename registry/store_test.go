package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"moorage/registry"
)

func TestConditionMet(t *testing.T) {
	t.Parallel()
	key := registry.LocationKey("a")
	there := registry.Record{Key: key, ETag: someETag, State: registry.StateOwner}
	missing := registry.Record{}
	tests := []struct {
		condition      registry.Condition
		there, missing bool
		text           string
	}{
		{registry.Absent(key), false, true, "absent(location/a)"},
		{registry.ETagIs(key, someETag), true, false, "etag(location/a) = " + someETag.String()},
		{registry.ETagIs(key, otherETag), false, false, "etag(location/a) = " + otherETag.String()},
		{registry.ETagIs(key, registry.ETag{}), false, false, "etag(location/a) = 00000000000000000000000000000000"},
		{registry.StateIs(key, registry.StateOwner), true, false, "state(location/a) = owner"},
		{registry.StateIs(key, registry.StateNone), false, false, "state(location/a) = none"},
		{registry.Condition{Key: key}, false, false, "condition 0 on location/a"},
	}
	for _, tt := range tests {
		if tt.condition.Met(there) != tt.there || tt.condition.Met(missing) != tt.missing {
			t.Errorf("%s: met by the record: %t, by none: %t", tt.condition, tt.condition.Met(there), tt.condition.Met(missing))
		}
		if tt.condition.String() != tt.text {
			t.Errorf("shown as %s, want %s", tt.condition, tt.text)
		}
	}
}

func TestFailedCondition(t *testing.T) {
	t.Parallel()
	want := registry.Absent(registry.LocationKey("a"))
	err := fmt.Errorf("apply: %w", &registry.FailedError{Index: 3, Condition: want})
	if got, refused := registry.FailedCondition(err); !refused || got != want {
		t.Errorf("got %s, %t", got, refused)
	}
	if err.Error() != "apply: registry: condition failed: absent(location/a)" {
		t.Errorf("shown as %v", err)
	}
	if _, refused := registry.FailedCondition(registry.ErrUnknown); refused {
		t.Error("an unknown outcome was taken for a refusal")
	}
}

// TestBatchCheckAccepts checks batches that are close to a rule but do not break it. registrytest
// has the batches that every store refuses.
func TestBatchCheckAccepts(t *testing.T) {
	t.Parallel()
	key := registry.LocationKey("a")
	tests := map[string]registry.Batch{
		"empty":                 {},
		"conditions only":       {Conditions: []registry.Condition{registry.StateIs(key, registry.StateOwner), registry.ETagIs(key, registry.ETag{})}},
		"one key, two tables":   {Writes: []registry.Write{registry.Put(key, 0, nil), registry.Put(registry.UUIDKey("a"), 0, nil)}},
		"two conditions, a key": {Conditions: []registry.Condition{registry.Absent(key), registry.StateIs(key, 1)}, Writes: []registry.Write{registry.Put(key, 0, nil)}},
		"another change":        {Writes: []registry.Write{registry.Delete(registry.ChangeKey(otherID))}, Change: &registry.Change{ID: someID}},
		"condition on format":   {Conditions: []registry.Condition{registry.ETagIs(registry.FormatKey(), registry.FormatRecord().ETag)}},
		"any bytes":             {Writes: []registry.Write{registry.Put(registry.LocationKey("\x00\xff"), 255, []byte{0})}},
		"any UTF-8":             {Writes: []registry.Write{registry.Put(registry.EntryKey(someID, "\x01ä\u2028"), registry.StateTable, nil)}},
	}
	for name, batch := range tests {
		if err := batch.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewETags(t *testing.T) {
	t.Parallel()
	key := registry.LocationKey("a")
	batch := registry.Batch{Writes: []registry.Write{registry.Put(key, 0, nil), registry.Delete(registry.LocationKey("b"))}}
	random := func(etags int) io.Reader {
		return io.MultiReader(bytes.NewReader(bytes.Repeat([]byte{1}, 16)), bytes.NewReader(bytes.Repeat([]byte{2}, 16*(etags-1))))
	}
	first, second := registry.ETag(bytes.Repeat([]byte{1}, 16)), registry.ETag(bytes.Repeat([]byte{2}, 16))
	got, err := batch.NewETags(random(1))
	if want := []registry.ETag{first, {}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("drew %v, %v; want %v", got, err, want)
	}
	batch.Change = &registry.Change{ID: someID}
	got, err = batch.NewETags(random(2))
	if want := []registry.ETag{first, {}, second}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("drew %v, %v; want %v", got, err, want)
	}
	if _, err := batch.NewETags(random(1)); err == nil {
		t.Error("drew two etags from the bytes of one")
	}
}

func TestSealWithoutChange(t *testing.T) {
	t.Parallel()
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.StateIs(registry.LocationKey("a"), 1)},
		Writes:     []registry.Write{registry.Put(registry.LocationKey("b"), 1, nil)},
	}
	sealed, err := batch.Seal([]registry.ETag{someETag})
	if err != nil || !reflect.DeepEqual(sealed, batch) {
		t.Errorf("sealed as %+v, %v; want %+v", sealed, err, batch)
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	pointer, entry, location := registry.PointerKey(someID), registry.EntryKey(otherID, "t"), registry.LocationKey("l")
	// Spare capacity in the slices shows whether Seal writes there.
	conditions := append(make([]registry.Condition, 0, 8), registry.Absent(location), registry.ETagIs(pointer, someETag), registry.ETagIs(entry, someETag))
	wasPointer := registry.Record{Key: pointer, ETag: someETag, State: registry.StateLive, Value: []byte(`{"metadata-location":"m1","name":"t"}`)}
	wasEntry := registry.Record{Key: entry, ETag: someETag, State: registry.StateTable, Value: []byte(`{"shard":1}`)}
	writes := append(make([]registry.Write, 0, 8), registry.Put(location, registry.StateOwner, nil),
		registry.Put(pointer, registry.StateLive, []byte(`{"name":"t","metadata-location":"m2","view":true}`)).Over(wasPointer), registry.Delete(entry).Over(wasEntry))
	items := []registry.Item{{Kind: registry.ItemTable, ID: someID, MetadataLocation: "m2", PreviousMetadataLocation: "m1"}}
	change := registry.Change{ID: otherID, Operation: "rename", Principal: "ann", Time: someTime, Items: items}
	batch := registry.Batch{Conditions: conditions, Writes: writes, Change: &change}
	sealed, err := batch.Seal([]registry.ETag{{1}, otherETag, {}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	want := change
	want.Versions = []registry.Version{
		{Key: pointer, Old: someETag, New: otherETag, Before: &registry.Before{State: registry.StateLive, Set: []byte(`{"metadata-location":"m1"}`), Gone: []string{"view"}}},
		{Key: entry, Old: someETag, Before: &registry.Before{State: registry.StateTable, Set: []byte(`{"shard":1}`)}},
	}
	want.Items = []registry.Item{{Kind: registry.ItemTable, ID: someID, MetadataLocation: "m2"}} // Before has the previous location
	if !reflect.DeepEqual(*sealed.Change, want) {
		t.Errorf("change is %+v, want %+v", *sealed.Change, want)
	}
	value, err := registry.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	key := registry.ChangeKey(otherID)
	if wanted := append(conditions[:3:3], registry.Absent(key)); !reflect.DeepEqual(sealed.Conditions, wanted) {
		t.Errorf("conditions are %v, want %v", sealed.Conditions, wanted)
	}
	if wanted := append(writes[:3:3], registry.Put(key, registry.StateNone, value)); !reflect.DeepEqual(sealed.Writes, wanted) {
		t.Errorf("writes are %v, want %v", sealed.Writes, wanted)
	}
	read, err := registry.DecodeChange(registry.Record{Key: key, ETag: someETag, Value: value})
	if err != nil || !reflect.DeepEqual(read.Items, items) {
		t.Errorf("the items are read as %+v, %v; want %+v", read.Items, err, items)
	}
	if change.Versions != nil || items[0].PreviousMetadataLocation == "" || conditions[:4][3] != (registry.Condition{}) || !reflect.DeepEqual(writes[:4][3], registry.Write{}) {
		t.Error("Seal wrote to the batch of its caller")
	}
	if err := sealed.Check(); !errors.Is(err, registry.ErrBadBatch) {
		t.Errorf("a sealed batch can be sealed again: %v", err)
	}
}

// TestSealOfDeletedPointer: the item of a pointer that a change deletes is stored with the
// pointer's last location. A node of version 0.1.0 reads it there, and not in Before.
func TestSealOfDeletedPointer(t *testing.T) {
	t.Parallel()
	key := registry.PointerKey(someID)
	was := registry.Record{Key: key, ETag: someETag, State: registry.StateLive, Value: []byte(`{"metadata-location":"m1"}`)}
	items := []registry.Item{{Kind: registry.ItemTable, ID: someID, PreviousMetadataLocation: "m1"}}
	sealed, err := registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(key, someETag)},
		Writes:     []registry.Write{registry.Delete(key).Over(was)},
		Change:     &registry.Change{ID: otherID, Operation: "unregister", Time: someTime, Items: items},
	}.Seal([]registry.ETag{{}, otherETag})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := registry.Decode[registry.Change](registry.Record{Key: key, ETag: someETag, Value: sealed.Writes[1].Value})
	if err != nil || !reflect.DeepEqual(stored.Items, items) {
		t.Errorf("the items are stored as %+v, %v; want %+v", stored.Items, err, items)
	}
}

// A record that contains another change, or whose key is not an ID, is not trusted.
func TestPlacedChange(t *testing.T) {
	t.Parallel()
	mine, err := registry.Change{ID: someID, Operation: "commit"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name       string
		key        registry.Key
		value      string
		id         registry.ID
		unreadable string
	}{
		{"whole", registry.ChangeKey(someID), string(mine), someID, ""},
		{"another's", registry.ChangeKey(otherID), string(mine), otherID, "holds the change " + someID.String()},
		{"no id in the value", registry.ChangeKey(someID), "{}", someID, "holds the change"},
		{"no id in the key", registry.Key{Table: registry.TableChange, ID: "a1"}, string(mine), registry.ID{}, "holds no id"},
		{"not JSON", registry.ChangeKey(someID), "{", someID, "decode"},
	}
	for _, tt := range tests {
		placed := registry.PlacedChange(7, registry.Record{Key: tt.key, ETag: someETag, Value: []byte(tt.value)})
		if placed.Position != 7 || placed.Change.ID != tt.id {
			t.Errorf("%s: got %s at %d, want %s", tt.name, placed.Change.ID, placed.Position, tt.id)
		}
		switch err := placed.Unreadable; {
		case tt.unreadable == "":
			if err != nil || placed.Change.Operation != "commit" {
				t.Errorf("%s: got %+v", tt.name, placed)
			}
		case err == nil || !strings.Contains(err.Error(), tt.unreadable) || placed.Change.Operation != "":
			t.Errorf("%s: got %+v, want an error with %q", tt.name, placed, tt.unreadable)
		}
	}
}
