package rest

import (
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
)

// A transaction with far too many changes is refused without making anything of each: they are three bytes each on the wire.
// Not parallel: it counts allocations.
func TestTooManyChangesAreNotRead(t *testing.T) {
	const changes = 100_000
	f, err := parseFields([]byte(`{"table-changes":[`+strings.Repeat(`{},`, changes-1)+`{}]}`), "transaction request")
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(1, func() {
		_, err := decodeChanges(f, "w")
		if moorage.KindOf(err) != moorage.KindBadRequest || !strings.Contains(moorage.MessageOf(err), "100000 table changes") {
			t.Errorf("refused with %v", err)
		}
	})
	if most := 20.0 * catalog.TransactionChangesMax; allocs > most {
		t.Errorf("%.0f allocations for %d changes, want %.0f at most", allocs, changes, most)
	}
}
