package registrytest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"moorage/registry"
)

func getOrder(h *harness) {
	a, b := h.put(key("a"), registry.StateOwner, "1"), h.put(key("b"), registry.StateBelow, "2")
	records, err := h.store.Get(h.ctx, key("b"), key("a"), key("b"))
	if err != nil || len(records) != 3 {
		h.Fatalf("get: %d records, %v; want 3", len(records), err)
	}
	h.wantRecord(records[0], key("b"), b, registry.StateBelow, "2")
	h.wantRecord(records[1], key("a"), a, registry.StateOwner, "1")
	h.wantRecord(records[2], key("b"), b, registry.StateBelow, "2")
}

func getMissing(h *harness) {
	h.wantMissing(key("a"))
	etag := h.put(key("b"), registry.StateOwner, "")
	records, err := h.store.Get(h.ctx, key("a"), key("b"), key("c"))
	if err != nil || len(records) != 3 {
		h.Fatalf("get: %d records, %v; want 3", len(records), err)
	}
	if records[0].Exists() || records[2].Exists() {
		h.Errorf("missing keys were answered by %s and %s", describe(records[0]), describe(records[2]))
	}
	h.wantRecord(records[1], key("b"), etag, registry.StateOwner, "")
	if records, err := h.store.Get(h.ctx); err != nil || len(records) != 0 {
		h.Errorf("get of no keys: %d records, %v", len(records), err)
	}
}

// momentRounds is the number of writes in a test that checks that a read shows a single moment.
const momentRounds = 200

// whileWriting repeatedly writes a new value, the same one, to all keys. Meanwhile, it calls read
// in several goroutines.
func (h *harness) whileWriting(keys []registry.Key, read func() error) {
	var done atomic.Bool
	h.together(4, func(i int) error {
		if i > 0 {
			for !done.Load() {
				if err := read(); err != nil {
					return err
				}
			}
			return nil
		}
		defer done.Store(true)
		for round := range momentRounds {
			var batch registry.Batch
			for _, k := range keys {
				batch.Writes = append(batch.Writes, registry.Put(k, registry.StateOwner, fmt.Append(nil, round)))
			}
			if _, err := h.store.Apply(h.ctx, batch); err != nil {
				return fmt.Errorf("apply: %w", err)
			}
		}
		return nil
	})
}

// oneValue returns an error unless all n records exist and have the same value.
func oneValue(records []registry.Record, n int) error {
	if len(records) != 0 && len(records) != n {
		return fmt.Errorf("%d records of %d were seen", len(records), n)
	}
	for _, r := range records {
		if r.Exists() != records[0].Exists() || string(r.Value) != string(records[0].Value) {
			return fmt.Errorf("%s and %s were seen at one moment", describe(records[0]), describe(r))
		}
	}
	return nil
}

func getOneMoment(h *harness) {
	keys := []registry.Key{key("a"), registry.PointerKey(id(1)), key("z")}
	h.whileWriting(keys, func() error {
		records, err := h.store.Get(h.ctx, keys...)
		if err != nil {
			return err
		}
		return oneValue(records, len(keys))
	})
}

func getValuesNeverChange(h *harness) {
	h.put(key("a"), registry.StateOwner, "before")
	got, listed := h.get(key("a")), h.list(registry.TableLocation, "", "", 1)[0]
	h.put(key("a"), registry.StateBelow, "after!")
	h.remove(key("a"))
	for n := range 100 {
		h.put(key("b"), registry.StateOwner, fmt.Sprintf("%06d", n))
	}
	if string(got.Value) != "before" || string(listed.Value) != "before" {
		h.Errorf("values read earlier became %q and %q", got.Value, listed.Value)
	}
}

// badKeys returns keys that every call must refuse.
func badKeys() map[string]registry.Key {
	return map[string]registry.Key{
		"zero":          {},
		"unknown table": {Table: 200, ID: "a"},
		"empty id":      {Table: registry.TableEntry},
		"long id":       {Table: registry.TableEntry, ID: strings.Repeat("x", registry.KeyBytesMax+1)},
	}
}

func getBadKeys(h *harness) {
	for name, bad := range badKeys() {
		if _, err := h.store.Get(h.ctx, key("a"), bad); !errors.Is(err, registry.ErrBadBatch) {
			h.Errorf("%s: get answered %v, want ErrBadBatch", name, err)
		}
	}
}

func getTablesApart(h *harness) {
	etags := make(map[registry.Key]registry.ETag)
	for _, table := range registry.Tables() {
		if table == registry.TableFormat {
			continue
		}
		k := registry.Key{Table: table, ID: "same"}
		etags[k] = h.put(k, registry.StateNone, table.String())
	}
	for k, etag := range etags {
		h.wantRecord(h.get(k), k, etag, registry.StateNone, k.Table.String())
		h.wantIDs(h.list(k.Table, "", "", 10), "same")
	}
}

func getFormat(h *harness) {
	format, err := registry.Decode[registry.Format](h.get(registry.FormatKey()))
	if err != nil || format.Version != registry.FormatFirst {
		h.Errorf("format record: %+v, %v; want version %d", format, err, registry.FormatFirst)
	}
}
