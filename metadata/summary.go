package metadata

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// checkSummaryKeys refuses a summary that says what the catalog itself says there of a snapshot.
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

// rebasedKey is what the summary of a snapshot says that was put on top of another one than it was
// sent for: sentAs of what its client sent.
const rebasedKey = ownPrefix + "rebased"

// sentAs returns the parent and the manifest list of a snapshot as its client sent them: the
// parent's id, or "none", a space, and 16 hexadecimal digits of the SHA-256 of the list's location.
func sentAs(parent optional, list string) string {
	seen := "none"
	if parent.given {
		seen = strconv.FormatInt(parent.value, 10)
	}
	const hashBytes = 8
	hash := sha256.Sum256([]byte(list))
	return fmt.Sprintf("%s %x", seen, hash[:hashBytes])
}

// summaryValue returns what the summary says under key; empty if it does not say it.
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

// totals are the members of a summary that count a whole table, each with those that say what one
// snapshot adds to it and removes from it. Source: Java SnapshotProducer.summary.
var totals = [...]struct{ total, added, removed string }{
	{"total-records", "added-records", "deleted-records"},
	{"total-files-size", "added-files-size", "removed-files-size"},
	{"total-data-files", "added-data-files", "deleted-data-files"},
	{"total-delete-files", "added-delete-files", "removed-delete-files"},
	{"total-position-deletes", "added-position-deletes", "removed-position-deletes"},
	{"total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"},
}

// totalPatches are the patches that give a summary the totals on top of head. A total that cannot
// be computed is removed. None is added to a summary that has neither the total nor what changes
// it: its client does not count, and the total would be as if nothing had been added.
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

// count is what a summary says of a change; zero if it does not say it.
type count struct {
	text  string
	given bool
}

func countOf(summary jsontext.Fields, key string) count {
	_, given := summary.Find(key)
	text, _, _ := summary.Str(key) // all values of a summary are strings
	return count{text, given}
}

// newTotal returns the total after the one before, an empty text if that is not known, and after
// what a snapshot adds and removes. It returns false if the total cannot be computed: a text that
// it takes is no number, or the total would be negative. Beyond 64 bits numbers wrap around, as
// they do in Java. Source: Java SnapshotProducer.updateTotal.
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
