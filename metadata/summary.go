package metadata

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// checkSummaryKeys refuses a client's summary that contains keys of this catalog.
func (s *snapshot) checkSummaryKeys() error {
	if s.summary == nil {
		return nil
	}
	c := reread(s.summary)
	return c.Object(func(key []byte) error {
		if strings.HasPrefix(string(key), ownPrefix) {
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot add a snapshot with %s in its summary: keys that begin with %s are the catalog's own",
				jsontext.Clip(string(key)), ownPrefix)
		}
		return c.Skip()
	})
}

// rebasedKey is the summary key that marks a rebased snapshot. Its value is the result of sentAs
// for the snapshot that the client sent.
const rebasedKey = ownPrefix + "rebased"

// sentAs returns a text for the parent and the manifest list of a snapshot as its client sent them.
// It is the parent's id, or "none", then a space, and 16 hexadecimal digits of the SHA-256 of the
// list's location.
func sentAs(parent optional, list string) string {
	seen := "none"
	if parent.given {
		seen = strconv.FormatInt(parent.value, 10)
	}
	const hashBytes = 8
	hash := sha256.Sum256([]byte(list))
	return fmt.Sprintf("%s %x", seen, hash[:hashBytes])
}

// summaryValue returns the summary's value for key. It is empty if there is no such key.
func (s *snapshot) summaryValue(key string) string {
	value := ""
	if s.summary == nil {
		return value
	}
	c := reread(s.summary)
	c.Object(func(name []byte) (err error) { //nolint:errcheck // it was read before
		if string(name) != key {
			return c.Skip()
		}
		value, err = c.string(key)
		return err
	})
	return value
}

// totals lists the summary keys for totals of the whole table, with the keys for one snapshot's
// additions and removals. Source: Java SnapshotProducer.summary.
var totals = [...]struct{ total, added, removed string }{
	{"total-records", "added-records", "deleted-records"},
	{"total-files-size", "added-files-size", "removed-files-size"},
	{"total-data-files", "added-data-files", "deleted-data-files"},
	{"total-delete-files", "added-delete-files", "removed-delete-files"},
	{"total-position-deletes", "added-position-deletes", "removed-position-deletes"},
	{"total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"},
}

// totalPatches returns the patches that set the totals in a summary to the totals of head plus the
// summary's own changes. A total that cannot be computed is removed. If a summary has neither a
// total nor its additions or removals, that total is not added. In that case, the client does not
// count, and the total would be unchanged.
func totalPatches(summary jsontext.Fields, head *snapshot) []jsontext.Patch {
	var patches []jsontext.Patch
	gone := make(map[string]bool)
	for _, t := range totals {
		_, says := summary.Find(t.total)
		added, removed := countOf(summary, t.added), countOf(summary, t.removed)
		total, ok := newTotal(head.summaryValue(t.total), added, removed)
		switch {
		case ok && (says || added.given || removed.given):
			patches = append(patches, summary.Set(t.total, jsontext.Quote(strconv.FormatInt(total, 10))))
		case says:
			gone[t.total] = true
		}
	}
	return append(patches, summary.Drop(func(key string, _ jsontext.Span) bool { return gone[key] })...)
}

// count is a number of additions or removals in a summary, or zero if the key is absent.
type count struct {
	text  string
	given bool
}

func countOf(summary jsontext.Fields, key string) count {
	_, given := summary.Find(key)
	text, _, _ := summary.Str(key) // all values of a summary are strings
	return count{text, given}
}

// newTotal returns the total after a snapshot's additions and removals. before is the previous
// total, empty if unknown. It returns false if the total cannot be computed: a text is not a
// number, or the total would be negative. Beyond 64 bits, numbers wrap around, as in Java. Source:
// Java SnapshotProducer.updateTotal.
func newTotal(before string, added, removed count) (total int64, ok bool) {
	total, err := strconv.ParseInt(before, 10, 64)
	var n int64
	if err == nil && total >= 0 && added.given {
		n, err = strconv.ParseInt(added.text, 10, 64)
		total += n
	}
	if err == nil && total >= 0 && removed.given {
		n, err = strconv.ParseInt(removed.text, 10, 64)
		total -= n
	}
	return total, err == nil && total >= 0
}
