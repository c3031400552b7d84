package metadata

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"moorage/internal/jsontext"
)

// The tests are outside of the package. This file is inside: it shows them what no caller needs.

// Bounds and texts that the tests go by.
const (
	AdditionsMax      = additionsMax
	ViewUpdatesMax    = viewUpdatesMax
	FormatVersionMax  = formatVersionMax
	ViewSkeleton      = viewSkeleton
	DocumentsBytesMax = documentBytesMax
)

// CheckIndex fails unless d has the index that Parse would give it.
func CheckIndex(d *Document) error {
	parsed, err := Parse(d.raw)
	if err != nil {
		return fmt.Errorf("cannot read back %s: %w", d.raw, err)
	}
	if got, want := describe(d), describe(parsed); got != want {
		return fmt.Errorf("index of %s:\ngot  %s\nwant %s", d.raw, got, want)
	}
	if d.canonical != nil {
		return CheckIndex(d.canonical)
	}
	return nil
}

// describe spells out an index. How a list is cut into chunks and what is found by a map are not
// part of it.
func describe(d *Document) string {
	x := d.index
	x.snapshotAt, x.raw = positions{}, nil
	var b bytes.Buffer
	for a, l := range x.arrays {
		fmt.Fprintf(&b, "%s:", arrayName(a).key())
		for _, e := range l.all(0) {
			fmt.Fprintf(&b, " %d=%d-%d", e.id, e.start, e.end)
		}
		b.WriteByte('\n')
	}
	x.arrays = [arrayCount]list{}
	if len(x.refs) == 0 {
		x.refs = nil
	}
	fmt.Fprintf(&b, "%+v", x)
	return b.String()
}

// CheckViewIndex fails unless d knows of itself what ParseView finds in it.
func CheckViewIndex(d *ViewDocument) error {
	parsed, err := ParseView(d.raw)
	if err != nil {
		return fmt.Errorf("cannot read back %s: %w", d.raw, err)
	}
	if !reflect.DeepEqual(parsed.arrays, d.arrays) || !slices.Equal(parsed.names, d.names) ||
		!slices.Equal(parsed.spans, d.spans) || !maps.Equal(parsed.properties, d.properties) ||
		parsed.uuid != d.uuid || parsed.location != d.location || parsed.currentVersionID != d.currentVersionID {
		return fmt.Errorf("%s is known as %+v, read as %+v", d.raw, d, parsed)
	}
	return nil
}

// SpelledOut returns the JSON that commits to d are based on.
func SpelledOut(d *Document) []byte {
	if d.canonical != nil {
		return d.canonical.raw
	}
	return d.raw
}

// IndexBytes is the memory that the index of d holds.
func IndexBytes(d *Document) int64 { return d.index.bytes() }

// ViewProperties returns the properties that d knows of itself.
func ViewProperties(d *ViewDocument) map[string]string { return d.properties }

// Empty reports whether the update would do nothing at all.
func (u Update) Empty() bool { return u.op == nil }

// Parts returns what a requirement was decoded to.
func (r ViewRequirement) Parts() (kind, uuid string) { return r.kind, r.uuid }

// StrictUpdates is DecodeUpdates of text that nobody has checked. The functions below do the same
// for the other lists.
func StrictUpdates(raw []byte) ([]Update, error) {
	return decodeEach(jsontext.NewReader(raw), "metadata update", decodeUpdate)
}

// StrictRequirements is DecodeRequirements likewise.
func StrictRequirements(raw []byte) ([]Requirement, error) {
	return decodeEach(jsontext.NewReader(raw), "requirement", decodeRequirement)
}

// StrictViewUpdates is DecodeViewUpdates likewise.
func StrictViewUpdates(raw []byte) ([]ViewUpdate, error) {
	return decodeViewUpdates(jsontext.NewReader(raw))
}

// StrictViewRequirements is DecodeViewRequirements likewise.
func StrictViewRequirements(raw []byte) ([]ViewRequirement, error) {
	return decodeEach(jsontext.NewReader(raw), "requirement", decodeViewRequirement)
}
