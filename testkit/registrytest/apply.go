package registrytest

import (
	"bytes"
	"errors"
	"fmt"

	"moorage/registry"
)

func applyPut(h *harness) {
	first := h.put(key("a"), registry.StateOwner, "1")
	h.wantRecord(h.get(key("a")), key("a"), first, registry.StateOwner, "1")
	second := h.put(key("a"), registry.StateBelow, "2")
	h.wantRecord(h.get(key("a")), key("a"), second, registry.StateBelow, "2")
}

func applyDelete(h *harness) {
	h.put(key("a"), registry.StateOwner, "1")
	h.remove(key("a"))
	h.wantMissing(key("a"))
	h.remove(key("a"))
	h.wantMissing(key("a"))
}

func applyETags(h *harness) {
	h.put(key("b"), registry.StateOwner, "1")
	etags := h.apply(registry.Batch{
		Writes: []registry.Write{
			registry.Put(key("c"), registry.StateOwner, nil),
			registry.Delete(key("b")),
			registry.Put(key("a"), registry.StateOwner, nil),
			registry.Delete(key("d")),
		},
		Change: change(1),
	})
	if !etags[1].IsZero() || !etags[3].IsZero() {
		h.Errorf("deletes were answered with etags %s and %s, want zero", etags[1], etags[3])
	}
	h.wantRecord(h.get(key("c")), key("c"), etags[0], registry.StateOwner, "")
	h.wantRecord(h.get(key("a")), key("a"), etags[2], registry.StateOwner, "")
	if etags := h.apply(registry.Batch{}); len(etags) != 0 {
		h.Errorf("an empty batch was answered with %d etags", len(etags))
	}
}

func applyETagsNeverReused(h *harness) {
	seen := make(map[registry.ETag]int)
	for n := range 200 {
		if n%3 == 0 {
			h.remove(key("a"))
		}
		etag := h.put(key("a"), registry.StateOwner, "same")
		if earlier, twice := seen[etag]; twice || etag.IsZero() {
			h.Fatalf("write %d got etag %s, as write %d had", n, etag, earlier)
		}
		seen[etag] = n
	}
}

func applyAnyBytes(h *harness) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	values := [][]byte{nil, {}, {0}, all, bytes.Repeat(all, 8<<10)}
	for i, value := range values {
		for _, id := range []string{string(all), string(all[:200]), fmt.Sprint(i)} {
			etag := h.put(key(id), registry.State(255-i), string(value))
			h.wantRecord(h.get(key(id)), key(id), etag, registry.State(255-i), string(value))
		}
	}
}

func applyBatchNotAliased(h *harness) {
	value := []byte("before")
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.Absent(key("a"))},
		Writes:     []registry.Write{registry.Put(key("a"), registry.StateOwner, value)},
		Change:     change(1),
	}
	want := *batch.Change
	etag := h.apply(batch)[0]
	if batch.Change.Versions != nil || batch.Change.Operation != want.Operation {
		h.Errorf("apply wrote to the caller's change: %+v", batch.Change)
	}
	if string(value) != "before" {
		h.Errorf("apply wrote to the value of a write: %q", value)
	}
	batch.Writes[0] = registry.Put(key("b"), registry.StateBelow, []byte("after!"))
	batch.Conditions[0] = registry.Absent(key("b"))
	batch.Change.Ident.Namespace[0] = "other"
	h.wantRecord(h.get(key("a")), key("a"), etag, registry.StateOwner, "before")
	if got := h.changes(0); got[0].Change.Ident.Namespace[0] != "a" {
		h.Errorf("the change became one in namespace %q", got[0].Change.Ident.Namespace)
	}
}

func applyConditions(h *harness) {
	other := h.put(key("other"), registry.StateBelow, "2")
	there, missing := key("there"), key("missing")
	tests := []struct {
		name      string
		condition func(etag registry.ETag) registry.Condition // etag is the ETag of there
		met       bool
	}{
		{"absent, there", func(registry.ETag) registry.Condition { return registry.Absent(there) }, false},
		{"absent, missing", func(registry.ETag) registry.Condition { return registry.Absent(missing) }, true},
		{"etag is", func(etag registry.ETag) registry.Condition { return registry.ETagIs(there, etag) }, true},
		{"etag of another record", func(registry.ETag) registry.Condition { return registry.ETagIs(there, other) },
			false},
		{"zero etag, there", func(registry.ETag) registry.Condition { return registry.ETagIs(there, registry.ETag{}) },
			false},
		{"etag, missing", func(etag registry.ETag) registry.Condition { return registry.ETagIs(missing, etag) }, false},
		{"zero etag, missing", func(registry.ETag) registry.Condition {
			return registry.ETagIs(missing,
				registry.ETag{})
		}, false},
		{"state is", func(registry.ETag) registry.Condition { return registry.StateIs(there, registry.StateOwner) },
			true},
		{"another state", func(registry.ETag) registry.Condition {
			return registry.StateIs(there,
				registry.StateBelow)
		}, false},
		{"state, missing", func(registry.ETag) registry.Condition {
			return registry.StateIs(missing,
				registry.StateOwner)
		}, false},
		{"zero state, missing", func(registry.ETag) registry.Condition {
			return registry.StateIs(missing,
				registry.StateNone)
		}, false},
	}
	for _, tt := range tests {
		for _, written := range []bool{true, false} {
			condition := tt.condition(h.put(there, registry.StateOwner, "1"))
			h.remove(missing)
			batch := registry.Batch{Conditions: []registry.Condition{condition}}
			if written {
				batch.Writes = []registry.Write{registry.Put(condition.Key, registry.StateOwner, []byte("new"))}
			} else if condition.Kind == registry.CondAbsent {
				continue
			}
			if _, err := h.store.Apply(h.ctx, batch); (err == nil) != tt.met || (err != nil && !isRefused(err)) {
				h.Errorf("%s, key written: %t: %v, want met: %t", tt.name, written, err, tt.met)
			}
		}
	}
}

func applyOldETag(h *harness) {
	old := h.put(key("a"), registry.StateOwner, "same")
	h.remove(key("a"))
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(key("a"), old)},
		Writes:     []registry.Write{registry.Put(key("a"), registry.StateOwner, []byte("stale"))},
	}
	h.refuse(batch, 0)
	again := h.put(key("a"), registry.StateOwner, "same")
	h.refuse(batch, 0)
	h.wantRecord(h.get(key("a")), key("a"), again, registry.StateOwner, "same")
}

func applyFirstFailed(h *harness) {
	etag := h.put(key("a"), registry.StateOwner, "1")
	h.put(key("b"), registry.StateOwner, "1")
	h.apply(registry.Batch{Change: change(1)})
	holds := []registry.Condition{registry.ETagIs(key("a"), etag), registry.StateIs(key("b"), registry.StateOwner)}
	fails := []registry.Condition{registry.Absent(key("a")), registry.StateIs(key("b"), registry.StateBelow),
		registry.ETagIs(key("c"), etag)}
	writes := []registry.Write{registry.Put(key("a"), registry.StateOwner, []byte("2"))}
	for i := range fails {
		conditions := append(append([]registry.Condition{}, holds...), fails[i:]...)
		h.refuse(registry.Batch{Conditions: conditions, Writes: writes}, len(holds))
		h.refuse(registry.Batch{Conditions: conditions, Writes: writes, Change: change(1)}, len(holds))
	}
	// Conditions are checked in the batch's order, and the change's condition last.
	h.refuse(registry.Batch{Conditions: []registry.Condition{fails[2], fails[0], fails[1]}, Writes: writes}, 0)
	h.refuse(registry.Batch{Conditions: holds, Writes: writes, Change: change(1)}, len(holds))
	h.wantRecord(h.get(key("a")), key("a"), etag, registry.StateOwner, "1")
}

func applyAllOrNothing(h *harness) {
	a, b := h.put(key("a"), registry.StateOwner, "1"), h.put(key("b"), registry.StateOwner, "1")
	for failing := range 3 {
		batch := registry.Batch{
			Conditions: []registry.Condition{
				registry.ETagIs(key("a"), a), registry.ETagIs(key("b"), b), registry.Absent(key("c")),
			},
			Writes: []registry.Write{
				registry.Put(key("a"), registry.StateBelow, []byte("2")), registry.Delete(key("b")),
				registry.Put(key("c"), registry.StateOwner, []byte("2")),
				registry.Put(key("d"), registry.StateOwner, []byte("2")),
			},
			Change: change(1),
		}
		broken := []registry.Condition{
			registry.StateIs(key("a"), registry.StateBelow), registry.ETagIs(key("b"), a),
			registry.StateIs(key("c"), registry.StateOwner),
		}
		batch.Conditions[failing] = broken[failing]
		h.refuse(batch, failing)
		h.wantRecord(h.get(key("a")), key("a"), a, registry.StateOwner, "1")
		h.wantRecord(h.get(key("b")), key("b"), b, registry.StateOwner, "1")
		h.wantMissing(key("c"))
		h.wantMissing(key("d"))
		h.wantMissing(registry.ChangeKey(change(1).ID))
		h.wantIDs(h.list(registry.TableLocation, "", "", 10), "a", "b")
		if changes := h.changes(0); len(changes) != 0 {
			h.Fatalf("a refused batch is in Changes: %+v", changes)
		}
	}
}

func applyConditionsOnly(h *harness) {
	etag := h.put(key("a"), registry.StateOwner, "1")
	batch := registry.Batch{Conditions: []registry.Condition{
		registry.StateIs(key("a"), registry.StateOwner), registry.ETagIs(key("a"), etag),
	}}
	h.apply(batch)
	h.put(key("a"), registry.StateOwner, "2")
	h.refuse(batch, 1)
}

func applyLargest(h *harness) {
	var batch registry.Batch
	for n := range registry.BatchItemsMax {
		k := key(fmt.Sprintf("k%05d", n))
		batch.Conditions = append(batch.Conditions, registry.Absent(k))
		batch.Writes = append(batch.Writes, registry.Put(k, registry.StateOwner, fmt.Append(nil, n)))
	}
	batch.Change = change(1)
	etags := h.apply(batch)
	page := h.list(registry.TableLocation, "", "", registry.ListLimitMax)
	if len(page) != registry.BatchItemsMax {
		h.Fatalf("%d records were written, want %d", len(page), registry.BatchItemsMax)
	}
	for n, r := range page {
		h.wantRecord(r, batch.Writes[n].Key, etags[n], registry.StateOwner, fmt.Sprint(n))
	}
}

func applyMalformed(h *harness) {
	h.put(key("there"), registry.StateOwner, "1")
	put := func(id string) registry.Write { return registry.Put(key(id), registry.StateOwner, nil) }
	tests := map[string]registry.Batch{
		"absent on a key that is not written": {Conditions: []registry.Condition{registry.Absent(key("a"))},
			Writes: []registry.Write{put("b")}},
		"absent on a key that is deleted": {Conditions: []registry.Condition{registry.Absent(key("a"))},
			Writes: []registry.Write{registry.Delete(key("a"))}},
		"absent alone":    {Conditions: []registry.Condition{registry.Absent(key("a"))}},
		"put twice":       {Writes: []registry.Write{put("a"), put("a")}},
		"put and deleted": {Writes: []registry.Write{put("a"), registry.Delete(key("a"))}},
		"change written twice": {Writes: []registry.Write{registry.Put(registry.ChangeKey(id(1)),
			registry.StateVoid, nil)}, Change: change(1)},
		"change without an id": {Change: &registry.Change{Operation: "x"}},
		"format written": {Writes: []registry.Write{registry.Put(registry.FormatKey(),
			registry.StateNone, nil)}},
		"entry that is not UTF-8": {Writes: []registry.Write{registry.Put(registry.EntryKey(id(1), "\xff"),
			registry.StateTable, nil)}},
		"format deleted":         {Writes: []registry.Write{registry.Delete(registry.FormatKey())}},
		"no condition kind":      {Conditions: []registry.Condition{{Key: key("there")}}},
		"unknown condition kind": {Conditions: []registry.Condition{{Kind: 99, Key: key("there")}}},
		"too many writes":        {Writes: make([]registry.Write, registry.BatchItemsMax+1)},
		"too many conditions":    {Conditions: make([]registry.Condition, registry.BatchItemsMax+1)},
		"value too long": {Writes: []registry.Write{registry.Put(key("a"), registry.StateNone,
			make([]byte, registry.ValueBytesMax+1))}},
	}
	pointer, other := registry.PointerKey(id(1)), registry.PointerKey(id(2))
	live := registry.Put(pointer, registry.StateLive, nil)
	was := func(key registry.Key) registry.Record { return registry.Record{Key: key, ETag: registry.ETag{1}} }
	exact := []registry.Condition{registry.ETagIs(pointer, registry.ETag{1})}
	for name, batch := range map[string]registry.Batch{
		"nothing required": {Writes: []registry.Write{live}},
		"not read":         {Writes: []registry.Write{live}, Conditions: exact},
		"another version":  {Writes: []registry.Write{live.Over(was(pointer))}, Conditions: stale(pointer)},
		"deleted another version": {
			Writes: []registry.Write{registry.Delete(pointer).Over(was(pointer))}, Conditions: stale(pointer),
		},
		"only a state": {
			Writes:     []registry.Write{live.Over(was(pointer))},
			Conditions: []registry.Condition{registry.StateIs(pointer, registry.StateLive)},
		},
		"another record": {Writes: []registry.Write{live.Over(was(other))}, Conditions: exact},
	} {
		batch.Change = change(1)
		tests["change that replaces a pointer, "+name] = batch
	}
	var large registry.Batch
	for n := range registry.BatchBytesMax/registry.ValueBytesMax + 1 {
		large.Writes = append(large.Writes, registry.Put(key(fmt.Sprint("large", n)), registry.StateOwner, nil))
	}
	value := make([]byte, registry.ValueBytesMax)
	for i := range large.Writes {
		large.Writes[i].Value = value
	}
	tests["values too long together"] = large
	for name, bad := range badKeys() {
		tests["write: "+name] = registry.Batch{Writes: []registry.Write{put("a"),
			registry.Put(bad, registry.StateNone, nil)}}
		tests["delete: "+name] = registry.Batch{Writes: []registry.Write{put("a"), registry.Delete(bad)}}
		tests["condition: "+name] = registry.Batch{Writes: []registry.Write{put("a")},
			Conditions: []registry.Condition{registry.StateIs(bad, registry.StateNone)}}
	}
	for name, batch := range tests {
		if _, err := h.store.Apply(h.ctx, batch); !errors.Is(err, registry.ErrBadBatch) {
			h.Errorf("%s: apply answered %v, want ErrBadBatch", name, err)
		}
	}
	h.wantIDs(h.list(registry.TableLocation, "", "", 10), "there")
}

// stale requires a version that a record never has.
func stale(key registry.Key) []registry.Condition {
	return []registry.Condition{registry.ETagIs(key, registry.ETag{2})}
}

// applyLongestKey uses a key that cannot be compressed.
func applyLongestKey(h *harness) {
	random := h.random()
	id := make([]byte, registry.KeyBytesMax)
	for i := range id {
		id[i] = byte(random.Uint32())
	}
	longest := key(string(id))
	etag := h.put(longest, registry.StateOwner, "1")
	h.wantRecord(h.get(longest), longest, etag, registry.StateOwner, "1")
	h.wantIDs(h.list(registry.TableLocation, string(id[:registry.KeyBytesMax-1]), "", 2), string(id))
}

// applyFormat raises the format to the newest version, and checks that the store has that version.
func applyFormat(h *harness) {
	before := h.get(registry.FormatKey())
	for version, bad := range map[int]bool{
		0: true, registry.FormatVersion + 1: true, registry.FormatVersion: false,
	} {
		value, err := registry.Encode(registry.Format{Version: version})
		if err != nil {
			h.Fatal(err)
		}
		_, err = h.store.Apply(h.ctx, registry.Batch{
			Conditions: []registry.Condition{registry.ETagIs(before.Key, before.ETag)},
			Writes:     []registry.Write{registry.Put(before.Key, registry.StateNone, value)},
		})
		if errors.Is(err, registry.ErrBadBatch) != bad || (err != nil) != bad {
			h.Errorf("format %d: %v, want ErrBadBatch: %t", version, err, bad)
		}
	}
	if err := registry.CheckFormat(h.ctx, h.store); err != nil {
		h.Errorf("the raised format: %v", err)
	}
	format, err := registry.Decode[registry.Format](h.get(before.Key))
	if err != nil || format.Version != registry.FormatVersion {
		h.Errorf("the raised format is %+v, %v", format, err)
	}
}
