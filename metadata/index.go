package metadata

import (
	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// Members of a document that the catalog reads or writes. It keeps all other members unchanged.
const (
	keyFormatVersion      = "format-version"
	keyUUID               = "table-uuid"
	keyViewUUID           = "view-uuid" // of a view
	keyLocation           = "location"
	keyLastSequenceNumber = "last-sequence-number"
	keyLastUpdatedMS      = "last-updated-ms"
	keyLastColumnID       = "last-column-id"
	keySchema             = "schema" // v1 only
	keyCurrentSchemaID    = "current-schema-id"
	keyPartitionSpec      = "partition-spec" // v1 only
	keyDefaultSpecID      = "default-spec-id"
	keyLastPartitionID    = "last-partition-id"
	keyDefaultOrderID     = "default-sort-order-id"
	keyProperties         = "properties"
	keyCurrentSnapshotID  = "current-snapshot-id"
	keyRefs               = "refs"
	keyNextRowID          = "next-row-id" // from v3
)

const (
	schemas arrayName = iota
	partitionSpecs
	sortOrders
	snapshots
	statistics
	partitionStatistics
	snapshotLog
	metadataLog
	encryptionKeys
	arrayCount
)

var arrayKeys = [arrayCount]string{
	schemas: "schemas", partitionSpecs: "partition-specs", sortOrders: "sort-orders",
	snapshots: "snapshots", statistics: "statistics", partitionStatistics: "partition-statistics",
	snapshotLog: "snapshot-log", metadataLog: "metadata-log", encryptionKeys: "encryption-keys",
}

func (a arrayName) key() string { return arrayKeys[a] }

// noSnapshot is the current snapshot id of a table without a current snapshot.
const noSnapshot = -1

// index holds the values in a document that commits need, and the positions of everything else. So
// a commit does not need to parse the document again. Versions of a document share the unchanged
// parts of the index.
type index struct {
	body
	arrays [arrayCount]list
	refs   []ref
	props  map[string]string // read-only

	formatVersion      int
	uuid               string // empty in a v1 table without one
	location           string // without trailing slash
	lastSequenceNumber int64
	lastUpdatedMS      int64
	lastColumnID       int
	currentSchemaID    int
	columns            int // top-level columns of the current schema
	defaultSpecID      int
	lastPartitionID    int
	defaultOrderID     int
	currentSnapshotID  int64 // noSnapshot without a current snapshot
	nextRowID          int64
	metadataLoggedMS   int64 // time of the last entry of the metadata log, if there is one

	snapshotAt positions
}

// reader builds the index of a document in one pass over its bytes.
type reader struct {
	cursor
	*index
	schemas map[int]*schema.Schema
	specs   map[int]*schema.Spec
	orders  map[int]*schema.SortOrder
	// snapshotSequenceMax is the highest sequence number of a snapshot.
	snapshotSequenceMax int64
	snapshotLogTimes    []int64
	metadataLogTimes    []int64
}

// read indexes the reader's document.
func (r *reader) read() error { return r.body.read(&r.cursor, r.member) }

func (r *reader) member(key string) (err error) {
	for a, name := range arrayKeys {
		if key == name {
			return r.elements(arrayName(a))
		}
	}
	switch key {
	case keyFormatVersion:
		r.formatVersion, err = r.int(key)
	case keyUUID:
		if !r.Null() {
			r.uuid, err = r.string(key)
		}
	case keyLocation:
		if r.location, err = r.string(key); err == nil {
			r.location = stripTrailingSlash(r.location)
		}
	case keyLastSequenceNumber:
		r.lastSequenceNumber, err = r.long(key)
	case keyLastUpdatedMS:
		r.lastUpdatedMS, err = r.long(key)
	case keyLastColumnID:
		r.lastColumnID, err = r.int(key)
	case keyCurrentSchemaID:
		r.currentSchemaID, err = r.int(key)
	case keyDefaultSpecID:
		r.defaultSpecID, err = r.int(key)
	case keyLastPartitionID:
		r.lastPartitionID, err = r.int(key)
	case keyDefaultOrderID:
		r.defaultOrderID, err = r.int(key)
	case keyCurrentSnapshotID:
		if !r.Null() {
			r.currentSnapshotID, err = r.long(key)
		}
	case keyNextRowID:
		r.nextRowID, err = r.long(key)
	case keyProperties:
		r.props, err = r.stringMap(key)
	case keyRefs:
		r.refs, err = r.readRefs()
	default:
		err = r.Skip()
	}
	return err
}

// elements indexes an array. A log may be null, because the Java reference accepts that.
func (r *reader) elements(a arrayName) error {
	if (a == snapshotLog || a == metadataLog) && r.Null() {
		return nil
	}
	if r.Space() != '[' {
		literal, err := r.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindIllegalArgument,
				"Cannot parse %s from non-array: %s", a.key(), jsontext.Clip(string(literal)))
		}
		return err
	}
	var err error
	r.arrays[a], err = r.list(func() (int64, error) { return r.element(a) })
	return err
}

// list consumes an array. For each element it calls read, which consumes the element and returns
// its id.
func (c *cursor) list(read func() (int64, error)) (list, error) {
	c.Space()
	origin := c.Pos()
	var elements []element
	err := c.Array(func() error {
		c.Space()
		start := c.Pos()
		id, err := read()
		elements = append(elements, element{id, uint32(start - origin), uint32(c.Pos() - origin)})
		return err
	})
	return list{}.append(elements...), err
}

// element consumes one element of an array, checks its form and returns its id.
func (r *reader) element(a arrayName) (int64, error) {
	switch a {
	case schemas:
		return readPart(r, r.schemas, schema.Parse, func(s *schema.Schema) int { return s.ID })
	case partitionSpecs:
		return readPart(r, r.specs, schema.ParseSpec, func(s *schema.Spec) int { return s.ID })
	case sortOrders:
		return readPart(r, r.orders, schema.ParseSortOrder, func(o *schema.SortOrder) int { return o.ID })
	case snapshots:
		s, err := readSnapshot(&r.cursor)
		r.snapshotSequenceMax = max(r.snapshotSequenceMax, s.sequenceNumber)
		return s.id, err
	case statistics:
		return readStatistics(&r.cursor)
	case partitionStatistics:
		return readPartitionStatistics(&r.cursor)
	case snapshotLog:
		entry, err := readSnapshotLogEntry(&r.cursor)
		r.snapshotLogTimes = append(r.snapshotLogTimes, entry.timestampMS)
		return entry.snapshotID, err
	case metadataLog:
		entry, err := readMetadataLogEntry(&r.cursor)
		r.metadataLogTimes = append(r.metadataLogTimes, entry.TimestampMS)
		r.metadataLoggedMS = entry.TimestampMS
		return 0, err
	case encryptionKeys:
		_, err := readEncryptionKey(&r.cursor)
		return 0, err
	}
	return 0, r.Skip()
}

// readPart consumes a schema, spec or sort order, and stores it under its id, which must be new.
func readPart[T any](r *reader, byID map[int]T, parse func([]byte) (T, error), id func(T) int) (int64, error) {
	raw, err := r.Value()
	if err != nil {
		return 0, err
	}
	part, err := parse(raw)
	if err != nil {
		return 0, err
	}
	if _, twice := byID[id(part)]; twice {
		return 0, moorage.Errorf(moorage.KindIllegalArgument, "Multiple entries with same key: %d", id(part))
	}
	byID[id(part)] = part
	return int64(id(part)), nil
}

// bytes returns the approximate memory of the index.
func (x *index) bytes() int64 {
	const memberBytes, refBytes, entryBytes = 48, 64, 64 // approximate memory of a member, a ref and a log entry
	properties, _ := x.find(keyProperties)               // its texts, as JSON
	n := int64(len(x.names))*memberBytes + x.snapshotAt.bytes() + int64(len(x.props))*entryBytes +
		int64(properties.End-properties.Start)
	for _, l := range x.arrays {
		n += l.bytes()
	}
	for _, r := range x.refs {
		n += refBytes + int64(len(r.name))
	}
	return n
}
