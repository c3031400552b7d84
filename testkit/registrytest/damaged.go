package registrytest

import (
	"bytes"
	"testing"

	"moorage/registry"
)

// ReadsBehindDamage compares a store with the contract of Changes for unreadable records. damage
// must replace the content of the record at key with value, without the store's knowledge. The
// store need not notice the damage before its next Apply.
func ReadsBehindDamage(t *testing.T, store registry.Store, damage func(key registry.Key, value []byte)) {
	h := newHarness(t, store)
	other, err := change(1).Encode()
	if err != nil {
		t.Fatal(err)
	}
	damages := [][]byte{[]byte("{"), []byte("{}"), {}, other}
	for n := range damages {
		h.applyChange(2 * n)
		h.applyChange(2*n + 1)
	}
	for n, value := range damages {
		damage(registry.ChangeKey(id(2*n)), value)
	}
	h.applyChange(2 * len(damages))

	all := h.changes(0) // a few at a time, so that pages begin after damaged records
	var numbers []int
	for n := range 2*len(damages) + 1 {
		numbers = append(numbers, n)
	}
	h.wantChanges(all, numbers...)
	for n, c := range all {
		damaged := n%2 == 0 && n < 2*len(damages)
		if damaged != (c.Unreadable != nil) {
			t.Errorf("change %d: unreadable is %v", n, c.Unreadable)
		}
		if damaged && (c.Change.Operation != "" || !c.Change.Time.IsZero() || c.Change.Versions != nil) {
			t.Errorf("change %d, which is damaged, is said to be %+v", n, c.Change)
		}
	}
	for n, value := range damages {
		key := registry.ChangeKey(id(2 * n))
		if record := h.get(key); !bytes.Equal(record.Value, value) {
			t.Fatalf("the record of change %d holds %q: it was not damaged", 2*n, record.Value)
		}
		h.remove(key)
	}
	h.wantChanges(h.changes(0), 1, 3, 5, 7, 8)
}
