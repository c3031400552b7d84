package metadata

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Members of a view document that a table document does not have.
const (
	keyViewUUID         = "view-uuid"
	keyCurrentVersionID = "current-version-id"
	keyVersions         = "versions"
	keyVersionLog       = "version-log"
)

// viewFormatVersion is the one version of the view format.
const viewFormatVersion = 1

// ViewDocument is an immutable view metadata document: its JSON as it was sent, with what commits
// ask of it. It is safe for concurrent use.
type ViewDocument struct {
	raw     []byte
	members jsonObject

	uuid             string
	location         string // without trailing slash
	currentVersionID int
	properties       map[string]string // never written to
	schemas          []*schema
	versions         []*viewVersion
	log              []viewLogEntry
}

// viewLogEntry is an element of version-log.
type viewLogEntry struct {
	versionID int
	raw       []byte
}

// ParseView reads a view metadata document of format version 1. It accepts what the Java reference
// loads, except what Parse refuses too: a key twice in an object, a lone surrogate, JSON nested
// more than 500 deep, an unknown type. raw must not be modified afterwards.
//
// Errors are KindBadRequest for text that is not JSON or lacks a member, KindIllegalArgument and
// KindValidation for a document that contradicts itself, KindTooLarge beyond 2 GiB. Source: Java
// ViewMetadataParser.
func ParseView(raw []byte) (*ViewDocument, error) {
	if len(raw) > documentBytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge,
			"Cannot read metadata of more than %d bytes", documentBytesMax)
	}
	members, err := parseObject(raw, "view metadata")
	if err != nil {
		return nil, err
	}
	d := &ViewDocument{raw: raw, members: members}
	if err := d.parseScalars(); err != nil {
		return nil, err
	}
	if err := d.parseArrays(); err != nil {
		return nil, err
	}
	return d, d.check()
}

func (d *ViewDocument) parseScalars() error {
	var err error
	if d.uuid, _, err = d.members.str(keyViewUUID); err != nil {
		_, isView := d.members.find(keyViewUUID)
		if _, isTable := d.members.find(keyUUID); isTable && !isView {
			err = moorage.Errorf(moorage.KindBadRequest, "Cannot read the metadata of a table as that of a view")
		}
		return err
	}
	version, _, err := d.members.integer(keyFormatVersion)
	if err != nil {
		return err
	}
	if version != viewFormatVersion {
		return illegal("Unsupported format version: %d", version)
	}
	if d.location, _, err = d.members.str(keyLocation); err != nil {
		return err
	}
	d.location = stripTrailingSlash(d.location)
	if d.currentVersionID, _, err = d.members.integer(keyCurrentVersionID); err != nil {
		return err
	}
	if v, ok := d.members.find(keyProperties); ok {
		d.properties, err = reread(d.members.bytes(v)).stringMap(keyProperties)
	}
	return err
}

func (d *ViewDocument) parseArrays() error {
	err := d.eachElement(schemas.key(), func(raw []byte) error {
		s, err := parseSchema(raw)
		d.schemas = append(d.schemas, s)
		return err
	})
	if err != nil {
		return err
	}
	err = d.eachElement(keyVersions, func(raw []byte) error {
		v, err := parseViewVersion(raw)
		d.versions = append(d.versions, v)
		return err
	})
	if err != nil {
		return err
	}
	return d.eachElement(keyVersionLog, func(raw []byte) error {
		o, err := parseObject(raw, "view history entry")
		if err != nil {
			return err
		}
		id, _, err := o.integer("version-id")
		if err != nil {
			return err
		}
		d.log = append(d.log, viewLogEntry{id, raw})
		_, err = o.long("timestamp-ms")
		return err
	})
}

func (d *ViewDocument) eachElement(key string, f func(raw []byte) error) error {
	v, err := d.members.required(key)
	if err != nil {
		return err
	}
	isArray, err := d.members.each(v, func(c *cursor) error {
		raw, err := c.Value()
		if err != nil {
			return err
		}
		return f(raw)
	})
	if err == nil && !isArray {
		err = moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse %s from non-array: %s", key, jsontext.Clip(d.members.text(v)))
	}
	return err
}

// check checks what the parts of the document say of one another.
func (d *ViewDocument) check() error {
	ids := make(map[int]bool)
	for _, s := range d.schemas {
		if ids[s.id] {
			return illegal("Multiple entries with same key: %d", s.id)
		}
		ids[s.id] = true
	}
	versionIDs := make(map[int]bool)
	for _, v := range d.versions {
		if versionIDs[v.id] {
			return illegal("Multiple entries with same key: %d", v.id)
		}
		versionIDs[v.id] = true
	}
	current := d.version(d.currentVersionID)
	if current == nil {
		return illegal("Cannot find current version %d in view versions: %s",
			d.currentVersionID, sortedIDs(versionIDs))
	}
	if !ids[current.schemaID] {
		return illegal("Cannot find current schema with id %d in schemas: %s", current.schemaID, sortedIDs(ids))
	}
	return nil
}

// sortedIDs lists ids as the Java reference prints a set.
func sortedIDs(ids map[int]bool) string {
	texts := make([]string, 0, len(ids))
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		texts = append(texts, strconv.Itoa(id))
	}
	return jsontext.Clip("[" + strings.Join(texts, ", ") + "]")
}

// version returns the version with an id, nil if there is none.
func (d *ViewDocument) version(id int) *viewVersion {
	for _, v := range d.versions {
		if v.id == id {
			return v
		}
	}
	return nil
}

// Raw returns the whole document, exactly the bytes that ParseView got or that Apply made. The
// caller must not modify them.
func (d *ViewDocument) Raw() []byte { return d.raw }

// CostBytes returns the memory that the document holds, for caches: roughly, and never changing.
func (d *ViewDocument) CostBytes() int64 {
	const fixed, perByte, perField = 1024, 2, 512
	cost := fixed + perByte*int64(len(d.raw))
	for _, s := range d.schemas {
		cost += perField * int64(len(s.byID))
	}
	return cost
}

// UUID returns the view-uuid as it was assigned.
func (d *ViewDocument) UUID() string { return d.uuid }

// Location returns the view's location as it was sent, without trailing slashes.
func (d *ViewDocument) Location() string { return d.location }

// CurrentVersionID returns the id of the version that readers of the view get.
func (d *ViewDocument) CurrentVersionID() int { return d.currentVersionID }

// Property returns a view property; false if it is not set.
func (d *ViewDocument) Property(name string) (string, bool) {
	value, ok := d.properties[name]
	return value, ok
}
