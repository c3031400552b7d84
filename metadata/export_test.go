package metadata

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"moorage/internal/jsontext"
)

// The tests are in a different package. This file exports internals that only they need.

// Limits and texts that the tests use.
const (
	AdditionsMax      = additionsMax
	ViewUpdatesMax    = viewUpdatesMax
	FormatVersionMax  = formatVersionMax
	ViewSkeleton      = viewSkeleton
	DocumentsBytesMax = documentBytesMax
)

// CheckIndex returns an error unless d has the index that Parse would give it.
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

// describe returns an index as text. The text does not show how a list is divided into chunks, or
// which elements the hash tables cover.
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

// CheckViewIndex returns an error unless d has the values that ParseView would find in it.
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

// IndexBytes returns the memory that the index of d holds.
func IndexBytes(d *Document) int64 { return d.index.bytes() }

// ViewProperties returns the parsed properties of d.
func ViewProperties(d *ViewDocument) map[string]string { return d.properties }

// Empty reports whether the update would do nothing at all.
func (u Update) Empty() bool { return u.op == nil }

// Parts returns the decoded parts of a requirement.
func (r ViewRequirement) Parts() (kind, uuid string) { return r.kind, r.uuid }

// StrictUpdates is DecodeUpdates for unchecked text. The functions below do the same for the other
// lists.
func StrictUpdates(raw []byte) ([]Update, error) {
	return decodeEach(jsontext.NewReader(raw), "metadata update", decodeUpdate)
}

// StrictRequirements is DecodeRequirements for unchecked text.
func StrictRequirements(raw []byte) ([]Requirement, error) {
	return decodeEach(jsontext.NewReader(raw), "requirement", decodeRequirement)
}

// StrictViewUpdates is DecodeViewUpdates for unchecked text.
func StrictViewUpdates(raw []byte) ([]ViewUpdate, error) {
	return decodeViewUpdates(jsontext.NewReader(raw))
}

// StrictViewRequirements is DecodeViewRequirements for unchecked text.
func StrictViewRequirements(raw []byte) ([]ViewRequirement, error) {
	return decodeEach(jsontext.NewReader(raw), "requirement", decodeViewRequirement)
}
