package metadata

import (
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// mainBranch is the branch whose head is the table's current snapshot.
const mainBranch = "main"

// ref is a branch or tag of a document.
type ref struct {
	name       string
	snapshotID int64
	tag        bool
	minToKeep  optional // min-snapshots-to-keep
	maxAgeMS   optional // max-snapshot-age-ms
	maxRefAge  optional // max-ref-age-ms, milliseconds
	// at is the position of the ref's JSON, and keyStart the position of its name. Both are
	// relative to the opening brace of refs, and zero for a new ref.
	at       jsontext.Span
	keyStart int
}

func (r *ref) kind() string {
	if r.tag {
		return "tag"
	}
	return "branch"
}

// sameAs reports whether r and o have the same name, head, kind and retention.
func (r *ref) sameAs(o *ref) bool {
	return r.name == o.name && r.snapshotID == o.snapshotID && r.tag == o.tag &&
		r.minToKeep == o.minToKeep && r.maxAgeMS == o.maxAgeMS && r.maxRefAge == o.maxRefAge
}

// check refuses retention settings that do not apply to the kind of the ref, or that are not above
// zero. Source: Java SnapshotRef.Builder.
func (r *ref) check() error {
	refuse := func(text string) error { return moorage.Errorf(moorage.KindIllegalArgument, "%s", text) }
	switch {
	case r.tag && r.minToKeep.given:
		return refuse("Tags do not support setting minSnapshotsToKeep")
	case r.minToKeep.given && r.minToKeep.value <= 0:
		return refuse("Min snapshots to keep must be greater than 0")
	case r.tag && r.maxAgeMS.given:
		return refuse("Tags do not support setting maxSnapshotAgeMs")
	case r.maxAgeMS.given && r.maxAgeMS.value <= 0:
		return refuse("Max snapshot age must be greater than 0 ms")
	case r.maxRefAge.given && r.maxRefAge.value <= 0:
		return refuse("Max reference age must be greater than 0")
	}
	return nil
}

// appendJSON appends the value of the ref in refs.
func (r *ref) appendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"snapshot-id":`...), r.snapshotID, 10)
	dst = append(append(append(dst, `,"type":"`...), r.kind()...), '"')
	for _, o := range []struct {
		key string
		optional
	}{
		{`,"min-snapshots-to-keep":`, r.minToKeep},
		{`,"max-snapshot-age-ms":`, r.maxAgeMS},
		{`,"max-ref-age-ms":`, r.maxRefAge},
	} {
		if o.given {
			dst = strconv.AppendInt(append(dst, o.key...), o.value, 10)
		}
	}
	return append(dst, '}')
}

// member reads a member that both a ref in a document and the update set-snapshot-ref can have. It
// returns false if key is not such a member.
func (r *ref) member(c *cursor, key []byte) (known bool, err error) {
	switch string(key) {
	case "snapshot-id":
		r.snapshotID, err = c.long("snapshot-id")
	case "type":
		var kind string
		if kind, err = c.string("type"); err == nil {
			r.tag, err = parseRefType(kind)
		}
	case "min-snapshots-to-keep":
		r.minToKeep, err = c.intOrNull("min-snapshots-to-keep")
	case "max-snapshot-age-ms":
		r.maxAgeMS, err = c.longOrNull("max-snapshot-age-ms")
	case "max-ref-age-ms":
		r.maxRefAge, err = c.longOrNull("max-ref-age-ms")
	default:
		return false, nil
	}
	return true, err
}

// parseRefType reports whether the kind of a ref is tag, in any letter case.
func parseRefType(kind string) (tag bool, err error) {
	switch strings.ToLower(kind) {
	case "branch":
		return false, nil
	case "tag":
		return true, nil
	}
	return false, moorage.Errorf(moorage.KindIllegalArgument,
		"Invalid snapshot ref type: %s", jsontext.Clip(kind))
}

// readRefs consumes the refs of a document.
func (c *cursor) readRefs() ([]ref, error) {
	if c.Space() != '{' {
		literal, err := c.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindIllegalArgument,
				"Cannot parse refs from non-object: %s", jsontext.Clip(string(literal)))
		}
		return nil, err
	}
	origin := c.Pos()
	var refs []ref
	err := c.Object(func(key []byte) error {
		entry := ref{name: string(key), keyStart: c.KeyPos() - origin}
		c.Space()
		entry.at.Start = c.Pos() - origin
		err := c.record(func(key []byte) error {
			known, err := entry.member(c, key)
			if err == nil && !known {
				err = c.Skip()
			}
			return err
		}, "snapshot-id", "type")
		if err == nil {
			err = entry.check()
		}
		entry.at.End = c.Pos() - origin
		refs = append(refs, entry)
		return err
	})
	return refs, err
}
