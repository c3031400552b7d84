package rebase

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/manifests"
)

// TestChoiceIsOnOrOff checks that only "on" and "off" are accepted, and that the error for other
// texts is short.
func TestChoiceIsOnOrOff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Choice{"on": On, "off": Off} {
		if got, err := ParseChoice(Header, text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "ON", "on-all", "true", " on", strings.Repeat("x", 1<<20)} {
		got, err := ParseChoice(Header, text)
		if got != Off || moorage.KindOf(err) != moorage.KindBadRequest || len(moorage.MessageOf(err)) > 200 {
			t.Errorf("%.20q: %d, %.300v", text, got, err)
		}
	}
}

// TestContentsMeet compares the paths of two manifests, in either order. Files of every status
// count: an append must not add a file that is named in another manifest.
func TestContentsMeet(t *testing.T) {
	t.Parallel()
	of := func(status manifests.Status, first, count int) *contents {
		c, e := &contents{}, &manifests.Entry{SnapshotID: ownSnapshot}
		for n := range count {
			c.add(e, manifests.File{Status: status, Path: fmt.Sprintf("s3://b/data/%d.parquet", first+n), Rows: 1})
		}
		slices.Sort(c.paths)
		return c
	}
	statuses := map[string]manifests.Status{"added": manifests.Added, "existing": manifests.Existing, "deleted": manifests.Deleted}
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		many := of(statuses[name], 0, 100)
		for at, want := range map[int]bool{0: true, 57: true, 99: true, 100: false, 1000: false} {
			few := of(manifests.Added, at, 1)
			if few.meets(many) != want || many.meets(few) != want {
				t.Errorf("file %d and 100 %s files: %t, want %t", at, name, few.meets(many), want)
			}
		}
		if none := of(statuses[name], 0, 0); none.meets(many) || many.meets(none) {
			t.Errorf("no file meets %s files", name)
		}
	}
}
