package metadata

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// Members that only a view document has.
const (
	keyCurrentVersionID = "current-version-id"
)

// viewFormatVersion is the only version of the view format.
const viewFormatVersion = 1

// ViewDocument is an immutable view metadata document: its JSON, unchanged, with the values that
// commits need. It is safe for concurrent use.
type ViewDocument struct {
	body
	arrays           [viewArrayCount]list
	uuid             string
	location         string // without trailing slash
	currentVersionID int
	properties       map[string]string // never written to
}

// The arrays of a view document, and their keys. The id of an element of the log is the id of its
// version.
const (
	viewSchemas arrayName = iota
	viewVersions
	viewLog
	viewArrayCount
)

var viewArrayKeys = [viewArrayCount]string{
	viewSchemas: "schemas", viewVersions: "versions", viewLog: "version-log",
}

// ParseView reads a view metadata document of format version 1. It accepts every document that the
// Java reference loads, unless other readers cannot load it. Like Parse, it refuses a duplicate key
// in an object, a lone surrogate, JSON nested more than 500 levels deep, and an unknown type. raw
// must not be modified afterwards.
//
// Errors are KindBadRequest for text that is not JSON or lacks a member, KindIllegalArgument and
// KindValidation for a document that contradicts itself, KindTooLarge beyond 2 GiB. Source: Java
// ViewMetadataParser.
func ParseView(raw []byte) (*ViewDocument, error) {
	if len(raw) > documentBytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge,
			"Cannot read metadata of more than %d bytes", documentBytesMax)
	}
	members, err := jsontext.ParseFields(raw, "view metadata")
	if err != nil {
		return nil, err
	}
	d := &ViewDocument{body: bodyOf(raw)}
	if err := d.parseScalars(members); err != nil {
		return nil, err
	}
	if err := d.parseArrays(members); err != nil {
		return nil, err
	}
	return d, d.check()
}

func (d *ViewDocument) parseScalars(members jsontext.Fields) error {
	var err error
	if d.uuid, _, err = members.Str(keyViewUUID); err != nil {
		_, isView := members.Find(keyViewUUID)
		if _, isTable := members.Find(keyUUID); isTable && !isView {
			err = moorage.Errorf(moorage.KindBadRequest, "Cannot read the metadata of a table as that of a view")
		}
		return err
	}
	version, _, err := members.Int(keyFormatVersion)
	if err != nil {
		return err
	}
	if version != viewFormatVersion {
		return illegal("Unsupported format version: %d", version)
	}
	if d.location, _, err = members.Str(keyLocation); err != nil {
		return err
	}
	d.location = stripTrailingSlash(d.location)
	if d.currentVersionID, _, err = members.Int(keyCurrentVersionID); err != nil {
		return err
	}
	if d.has(keyProperties) {
		d.properties, err = reread(d.value(keyProperties)).stringMap(keyProperties)
	}
	return err
}

// parseArrays indexes the arrays, and checks the form of their elements.
func (d *ViewDocument) parseArrays(members jsontext.Fields) error {
	for a, parse := range [viewArrayCount]func(raw []byte) (id int, err error){
		viewSchemas: func(raw []byte) (int, error) {
			s, err := schema.Parse(raw)
			if err != nil {
				return 0, err
			}
			return s.ID, nil
		},
		viewVersions: func(raw []byte) (int, error) {
			v, err := parseViewVersion(raw)
			if err != nil {
				return 0, err
			}
			return v.id, nil
		},
		viewLog: parseViewLogEntry,
	} {
		v, err := members.Required(viewArrayKeys[a])
		if err != nil {
			return err
		}
		c := reread(members.Bytes(v))
		if c.Space() != '[' {
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse %s from non-array: %s", viewArrayKeys[a], jsontext.Clip(members.Text(v)))
		}
		d.arrays[a], err = c.list(func() (int64, error) {
			raw, err := c.Value()
			if err != nil {
				return 0, err
			}
			id, err := parse(raw)
			return int64(id), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func parseViewLogEntry(raw []byte) (versionID int, err error) {
	o, err := jsontext.ParseFields(raw, "view history entry")
	if err != nil {
		return 0, err
	}
	if versionID, _, err = o.Int("version-id"); err != nil {
		return 0, err
	}
	_, err = o.Long("timestamp-ms")
	return versionID, err
}

// check checks the consistency of the parts of the document.
func (d *ViewDocument) check() error {
	var ids [viewArrayCount]map[int64]bool
	for _, a := range []arrayName{viewSchemas, viewVersions} {
		ids[a] = make(map[int64]bool)
		for _, e := range d.arrays[a].all(0) {
			if ids[a][e.id] {
				return illegal("Multiple entries with same key: %d", e.id)
			}
			ids[a][e.id] = true
		}
	}
	current, err := d.version(d.currentVersionID)
	if err != nil {
		return err
	}
	if current == nil {
		return illegal("Cannot find current version %d in view versions: %s",
			d.currentVersionID, sortedIDs(ids[viewVersions]))
	}
	if !ids[viewSchemas][int64(current.schemaID)] {
		return illegal("Cannot find current schema with id %d in schemas: %s",
			current.schemaID, sortedIDs(ids[viewSchemas]))
	}
	return nil
}

// sortedIDs formats ids as the Java reference prints a set.
func sortedIDs(ids map[int64]bool) string {
	texts := make([]string, 0, len(ids))
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	return jsontext.Clip("[" + strings.Join(texts, ", ") + "]")
}

// version returns the version with an id, or nil if there is no such version.
func (d *ViewDocument) version(id int) (*viewVersion, error) {
	for _, e := range d.arrays[viewVersions].all(0) {
		if e.id == int64(id) {
			return parseViewVersion(d.value(viewArrayKeys[viewVersions])[e.start:e.end])
		}
	}
	return nil, nil
}

// Raw returns the whole document: exactly the bytes that were passed to ParseView or made by Apply.
// The caller must not modify them.
func (d *ViewDocument) Raw() []byte { return d.raw }

// CostBytes returns the approximate memory use of the document, for caches. The value never
// changes.
func (d *ViewDocument) CostBytes() int64 {
	const fixed, perByte, perMember = 1024, 2, 48
	return fixed + perByte*int64(len(d.raw)) + perMember*int64(len(d.names))
}

// UUID returns the view-uuid as it was assigned.
func (d *ViewDocument) UUID() string { return d.uuid }

// Location returns the view's location as it was sent, without trailing slashes.
func (d *ViewDocument) Location() string { return d.location }

// CurrentVersionID returns the id of the version that readers of the view use.
func (d *ViewDocument) CurrentVersionID() int { return d.currentVersionID }

// LastUpdatedMS returns when the current version of the view was made, in milliseconds since 1970.
func (d *ViewDocument) LastUpdatedMS() int64 {
	current, err := d.version(d.currentVersionID)
	if err != nil || current == nil { // not reached: ParseView checks it
		return 0
	}
	return current.timestampMS
}

// HasVersion reports whether the document has the version with an id.
func (d *ViewDocument) HasVersion(id int) bool {
	for _, e := range d.arrays[viewVersions].all(0) {
		if e.id == int64(id) {
			return true
		}
	}
	return false
}

// Properties returns all view properties. The caller may change the map.
func (d *ViewDocument) Properties() map[string]string {
	if d.properties == nil {
		return map[string]string{}
	}
	return maps.Clone(d.properties)
}

// Property returns a view property. It returns false if the property is not set.
func (d *ViewDocument) Property(name string) (string, bool) {
	value, ok := d.properties[name]
	return value, ok
}
