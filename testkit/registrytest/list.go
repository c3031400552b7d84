package registrytest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moorage/registry"
)

// oddIDs returns IDs that break a store if it treats bytes as text, terminates or escapes them, or
// does not compare them byte by byte.
func oddIDs() []string {
	return []string{
		"\x00", "\x00\x00", "\x00\xff", "\x01", " ", "%", "%00", "/", "A", "Z", "a", "a\x00", "a\x00\x00", "a\x00\x01",
		"a\x00b",
		"a\x01", "a ", "a/", "a/b", "aa", "a\xff", "a\xff\x00", "a\xff\xff", "ab", "a\u0308", "b", "z", "\u00e4",
		"\u00e9", "\U0001f600",
		"\x7f", "\x80", "\xc3", "\xfe", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff", "\\", "\\000", "_", "a_", "a%",
		strings.Repeat("k", registry.KeyBytesMax), strings.Repeat("\xff", registry.KeyBytesMax),
		denseID(registry.KeyBytesMax),
	}
}

// denseID returns an incompressible ID of the given number of bytes.
func denseID(bytes int) string {
	var dense []byte
	for sum := sha256.Sum256(nil); len(dense) < bytes; sum = sha256.Sum256(sum[:]) {
		dense = append(dense, sum[:]...)
	}
	return string(dense[:bytes])
}

// putOddIDs writes a record for each odd ID, in two neighbouring tables, and returns the IDs in
// byte order.
func (h *harness) putOddIDs() []string {
	h.Helper()
	var batch registry.Batch
	for _, id := range oddIDs() {
		batch.Writes = append(batch.Writes,
			registry.Put(registry.Key{Table: registry.TableLocation, ID: id}, registry.StateOwner, []byte(id)),
			registry.Put(registry.Key{Table: registry.TableUUID, ID: id}, registry.StateNone, nil))
	}
	random := h.random()
	random.Shuffle(len(batch.Writes), func(i, j int) {
		batch.Writes[i], batch.Writes[j] = batch.Writes[j],
			batch.Writes[i]
	})
	h.apply(batch)
	return slices.Sorted(slices.Values(oddIDs()))
}

func listByteOrder(h *harness) {
	h.wantIDs(h.list(registry.TableLocation, "", "", registry.ListLimitMax))
	ids := h.putOddIDs()
	h.wantIDs(h.list(registry.TableLocation, "", "", registry.ListLimitMax), ids...)
	h.remove(key("a"))
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "a" })
	h.wantIDs(h.list(registry.TableLocation, "", "", registry.ListLimitMax), ids...)
}

func listPrefixAfterLimit(h *harness) {
	ids := h.putOddIDs()
	bounds := append([]string{"", "nothing", "a\x00\x00\x00", "\xfe\xff"}, ids...)
	for _, prefix := range bounds {
		for _, after := range bounds {
			for _, limit := range []int{1, 3, registry.ListLimitMax} {
				var want []string
				for _, id := range ids {
					if strings.HasPrefix(id, prefix) && id > after && len(want) < limit {
						want = append(want, id)
					}
				}
				h.wantIDs(h.list(registry.TableLocation, prefix, after, limit), want...)
				h.wantIDs(h.listKeys(registry.TableLocation, prefix, after, limit), want...)
			}
		}
	}
}

func listPages(h *harness) {
	const count, limit = 25, 10
	var batch registry.Batch
	for n := range count {
		batch.Writes = append(batch.Writes, registry.Put(key(fmt.Sprintf("p%02d", n)), registry.StateOwner, nil))
	}
	batch.Writes = append(batch.Writes, registry.Put(key("q"), registry.StateOwner, nil))
	h.apply(batch)
	var got []registry.Record
	for after := ""; ; {
		page := h.list(registry.TableLocation, "p", after, limit)
		got = append(got, page...)
		if len(page) < limit {
			break
		}
		after = page[len(page)-1].Key.ID
	}
	if len(got) != count {
		h.Errorf("pages hold %d records, want %d", len(got), count)
	}
	h.wantIDs(h.list(registry.TableLocation, "p", "p24", limit))
}

// listLongValues reads values that together exceed a page, and one value that alone exceeds a page.
func listLongValues(h *harness) {
	var want []string
	for n, bytes := range []int{registry.ListBytesMax / 2, registry.ListBytesMax / 2, 1, registry.ListBytesMax - 1,
		2 * registry.ListBytesMax, registry.ListBytesMax} {
		k := key(fmt.Sprintf("long%d", n))
		h.put(k, registry.StateOwner, strings.Repeat("v", bytes))
		want = append(want, k.ID)
	}
	const limit = 100
	var got []string
	var pages []int
	for after := ""; ; {
		page := h.list(registry.TableLocation, "long", after, limit)
		pages = append(pages, len(page))
		for _, record := range page {
			got = append(got, record.Key.ID)
		}
		if registry.IsLastPage(page, limit) {
			break
		}
		after = got[len(got)-1]
	}
	if !slices.Equal(got, want) || !slices.Equal(pages, []int{2, 2, 1, 1, 0}) {
		h.Errorf("pages of %v records hold %q, want %q", pages, got, want)
	}
	h.wantIDs(h.list(registry.TableLocation, "long", "", 1), want[0])
	h.wantIDs(h.listKeys(registry.TableLocation, "long", "", limit), want...)
}

func listKeys(h *harness) {
	owned, below := h.put(key("a"), registry.StateOwner, "value"), h.put(key("b"), registry.StateBelow, "")
	records := h.listKeys(registry.TableLocation, "", "", 2)
	h.wantIDs(records, "a", "b")
	h.wantRecord(records[0], key("a"), owned, registry.StateOwner, "")
	h.wantRecord(records[1], key("b"), below, registry.StateBelow, "")
	if _, err := h.store.ListKeys(h.ctx, registry.TableLocation, "", "", 0); !errors.Is(err, registry.ErrBadBatch) {
		h.Errorf("list of keys with limit 0: %v, want ErrBadBatch", err)
	}
}

func listWholeRecords(h *harness) {
	etag := h.put(key("a"), registry.StateBelow, "value")
	h.wantRecord(h.list(registry.TableLocation, "", "", 1)[0], key("a"), etag, registry.StateBelow, "value")
}

func listOneMoment(h *harness) {
	var keys []registry.Key
	for n := range 20 {
		keys = append(keys, key(fmt.Sprintf("k%02d", n)))
	}
	h.whileWriting(keys, func() error {
		records, err := h.store.List(h.ctx, registry.TableLocation, "k", "", len(keys))
		if err != nil {
			return err
		}
		return oneValue(records, len(keys))
	})
}

func listBadPages(h *harness) {
	for _, limit := range []int{-1, 0, registry.ListLimitMax + 1} {
		if _, err := h.store.List(h.ctx, registry.TableLocation, "", "", limit); !errors.Is(err, registry.ErrBadBatch) {
			h.Errorf("list with limit %d: %v, want ErrBadBatch", limit, err)
		}
	}
	for _, table := range []registry.Table{0, 200} {
		if _, err := h.store.List(h.ctx, table, "", "", 1); !errors.Is(err, registry.ErrBadBatch) {
			h.Errorf("list of table %d: %v, want ErrBadBatch", table, err)
		}
	}
}
