package metadata

import (
	"moorage"
	"moorage/internal/jsontext"
)

// Snapshot holds the parts of a snapshot that the catalog needs.
type Snapshot struct {
	ID             int64
	ParentID       int64 // valid if HasParent
	HasParent      bool
	SequenceNumber int64
	TimestampMS    int64
	ManifestList   string   // empty for a v1 snapshot with Manifests
	Manifests      []string // v1 only
	Encrypted      bool     // its manifest list is encrypted
}

// optional is the value of a member that may be absent.
type optional struct {
	value int64
	given bool
}

// snapshot is a snapshot in a document or a request.
type snapshot struct {
	id             int64
	parent         optional
	sequenceNumber int64
	timestampMS    int64
	manifestList   []byte // JSON; nil if the snapshot has none
	manifests      []byte // JSON; nil if the snapshot has none
	summary        []byte // JSON; nil if the snapshot has none
	schemaID       optional
	firstRowID     optional
	addedRows      optional
	encrypted      bool // has a key-id
}

// readSnapshot consumes a snapshot and checks its form. Source: Java SnapshotParser, BaseSnapshot.
func readSnapshot(c *cursor) (snapshot, error) {
	var s snapshot
	err := c.record(func(key []byte) error { return s.member(c, key) }, "snapshot-id", "timestamp-ms")
	switch {
	case err != nil:
		return s, err
	case s.manifestList == nil && s.manifests == nil:
		return s, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing list: manifests")
	case s.manifestList == nil:
		return s, nil // the Java reference ignores row ids of a snapshot without a manifest list
	}
	return s, s.checkRows()
}

func (s *snapshot) member(c *cursor, key []byte) (err error) {
	switch string(key) {
	case "snapshot-id":
		s.id, err = c.long("snapshot-id")
	case "parent-snapshot-id":
		s.parent.given = true
		s.parent.value, err = c.long("parent-snapshot-id")
	case "sequence-number":
		s.sequenceNumber, err = c.long("sequence-number")
	case "timestamp-ms":
		s.timestampMS, err = c.long("timestamp-ms")
	case "summary":
		c.Space()
		start := c.Pos()
		err = c.summary()
		s.summary = c.From(start)
	case "manifest-list":
		s.manifestList, err = c.quoted("manifest-list")
	case "manifests":
		s.manifests, err = c.quotedList("manifests")
	case "schema-id":
		s.schemaID, err = c.intOrNull("schema-id")
	case "first-row-id":
		s.firstRowID, err = c.longOrNull("first-row-id")
	case "added-rows":
		s.addedRows, err = c.longOrNull("added-rows")
	case "key-id":
		if !c.Null() {
			s.encrypted = true
			_, err = c.quoted("key-id")
		}
	default:
		err = c.Skip()
	}
	return err
}

func (s *snapshot) checkRows() error {
	switch {
	case s.firstRowID.given && s.firstRowID.value < 0:
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Invalid first-row-id (cannot be negative): %d", s.firstRowID.value)
	case s.addedRows.given && s.addedRows.value < 0:
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Invalid added-rows (cannot be negative): %d", s.addedRows.value)
	case s.firstRowID.given && !s.addedRows.given:
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Invalid added-rows (required when first-row-id is set): null")
	}
	return nil
}

// summary consumes the summary of a snapshot: an object of strings.
func (c *cursor) summary() error {
	if c.Space() != '{' {
		literal, err := c.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse summary from non-object value: %s", jsontext.Clip(string(literal)))
		}
		return err
	}
	return c.Object(func(key []byte) error {
		if c.Space() == '"' {
			_, err := c.Literal()
			return err
		}
		_, err := c.quoted(string(key))
		return err
	})
}

// export returns the parts that the catalog needs.
func (s *snapshot) export() Snapshot {
	out := Snapshot{
		ID: s.id, ParentID: s.parent.value, HasParent: s.parent.given,
		SequenceNumber: s.sequenceNumber, TimestampMS: s.timestampMS, Encrypted: s.encrypted,
	}
	if s.manifestList != nil {
		out.ManifestList = jsontext.Unquote(s.manifestList)
	} else {
		out.Manifests, _ = reread(s.manifests).stringList("manifests") // readSnapshot has verified that it is a list
	}
	return out
}

// snapshotLogEntry is an element of snapshot-log.
type snapshotLogEntry struct{ timestampMS, snapshotID int64 }

func readSnapshotLogEntry(c *cursor) (snapshotLogEntry, error) {
	var e snapshotLogEntry
	err := c.record(func(key []byte) (err error) {
		switch string(key) {
		case "timestamp-ms":
			e.timestampMS, err = c.long("timestamp-ms")
		case "snapshot-id":
			e.snapshotID, err = c.long("snapshot-id")
		default:
			err = c.Skip()
		}
		return err
	}, "timestamp-ms", "snapshot-id")
	return e, err
}

// MetadataLogEntry is an element of metadata-log.
type MetadataLogEntry struct {
	TimestampMS      int64
	MetadataLocation string
}

func readMetadataLogEntry(c *cursor) (MetadataLogEntry, error) {
	var e MetadataLogEntry
	err := c.record(func(key []byte) (err error) {
		switch string(key) {
		case "timestamp-ms":
			e.TimestampMS, err = c.long("timestamp-ms")
		case "metadata-file":
			e.MetadataLocation, err = c.string("metadata-file")
		default:
			err = c.Skip()
		}
		return err
	}, "timestamp-ms", "metadata-file")
	return e, err
}
