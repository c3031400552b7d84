package metadata

import (
	"fmt"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

const (
	formatVersionMax     = 3
	formatVersionDefault = 2
	// clockSkewMaxMS is how far a time in a table's logs may be before the previous one, because
	// the clocks of committing machines differ. Source: Java TableMetadata.
	clockSkewMaxMS = 60_000
)

// Parse reads a table metadata document of format version 1 to 3. It accepts every document that
// the Java reference loads, unless other readers cannot load it. For example, it refuses a
// duplicate key in an object, a lone surrogate, JSON nested more than 500 levels deep, a missing
// default spec or sort order, and an unknown type. raw must not be modified afterwards.
//
// Errors are KindBadRequest for text that is not JSON or lacks a member, KindIllegalArgument and
// KindValidation for a document that contradicts itself, KindTooLarge beyond 2 GiB.
func Parse(raw []byte) (*Document, error) {
	if len(raw) > documentBytesMax {
		return nil, moorage.Errorf(moorage.KindTooLarge,
			"Cannot read metadata of more than %d bytes", documentBytesMax)
	}
	d := &Document{index: index{body: body{raw: raw}, currentSnapshotID: noSnapshot}}
	r := reader{
		cursor: *strict(raw), index: &d.index,
		schemas: make(map[int]*schema.Schema), specs: make(map[int]*schema.Spec),
		orders: make(map[int]*schema.SortOrder),
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	if err := r.checkHeader(); err != nil {
		return nil, err
	}
	missing, err := r.resolve()
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		if d.canonical, err = d.spelledOut(missing); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// spelledOut returns d with the missing members, which older writers omit, written into its text.
// The index of d already has their values.
func (d *Document) spelledOut(missing []memberEdit) (*Document, error) {
	next := &Document{index: d.index}
	var err error
	if next.body, err = d.splice(missing, next.arrays[:]); err != nil {
		return nil, err
	}
	return next, checkJSON(next.raw) // in the array schemas, a v1 document's schema is nested deeper
}

// checkHeader checks the required members.
func (r *reader) checkHeader() error {
	version := r.formatVersion
	if r.has(keyFormatVersion) && (version < 1 || version > formatVersionMax) {
		return illegal("Cannot read unsupported version %d", version)
	}
	for _, required := range []struct {
		key  string
		from int // format version
	}{
		{keyFormatVersion, 0}, {keyLocation, 0}, {keyLastSequenceNumber, 2}, {keyLastColumnID, 0},
		{keyLastUpdatedMS, 0}, {keyNextRowID, 3},
	} {
		if version >= required.from && !r.has(required.key) {
			if r.has(keyViewUUID) && !r.has(keyUUID) {
				return moorage.Errorf(moorage.KindBadRequest, "Cannot read the metadata of a view as that of a table")
			}
			return moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", required.key)
		}
	}
	switch {
	case version > 1 && r.uuid == "":
		return illegal("UUID is required in format v%d", version)
	case r.location == "":
		return illegal("Table location is required in format v%d", version)
	}
	if version == 1 {
		r.lastSequenceNumber = 0
	}
	if version < 3 {
		r.nextRowID = 0
	}
	if r.currentSnapshotID < 0 {
		r.currentSnapshotID = noSnapshot
	}
	return nil
}

// resolve fills in members that older writers omit. It returns the changes that write these members
// into the document. Source: Java TableMetadataParser.
func (r *reader) resolve() ([]memberEdit, error) {
	var missing []memberEdit
	for _, step := range []func() ([]memberEdit, error){
		r.resolveSchemas, r.resolveSpecs, r.resolveLastPartitionID, r.resolveOrders, r.resolveRefs,
	} {
		changes, err := step()
		if err != nil {
			return nil, err
		}
		missing = append(missing, changes...)
	}
	return missing, nil
}

// onlyV1 refuses a document of version 2 or later that lacks the member key.
func (r *reader) onlyV1(key string) error {
	if r.formatVersion == 1 {
		return nil
	}
	return illegal("%s must exist in format v%d", key, r.formatVersion)
}

func (r *reader) resolveSchemas() ([]memberEdit, error) {
	if r.has(schemas.key()) {
		if !r.has(keyCurrentSchemaID) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing int: %s", keyCurrentSchemaID)
		}
		if r.schemas[r.currentSchemaID] == nil {
			return nil, illegal("Cannot find schema with %s=%d from %s",
				keyCurrentSchemaID, r.currentSchemaID, schemas.key())
		}
		r.columns = r.schemas[r.currentSchemaID].Width()
		return nil, nil
	}
	if err := r.onlyV1(schemas.key()); err != nil {
		return nil, err
	}
	if !r.has(keySchema) {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", keySchema)
	}
	s, err := schema.Parse(r.value(keySchema))
	if err != nil {
		return nil, err
	}
	r.schemas[s.ID] = s
	r.currentSchemaID, r.columns = s.ID, s.Width()
	return []memberEdit{
		{key: schemas.key(), list: &listEdit{base: &list{}, added: []newElement{{int64(s.ID), s.WithID(s.ID)}}}},
		intChange(keyCurrentSchemaID, int64(s.ID)),
	}, nil
}

func (r *reader) resolveSpecs() ([]memberEdit, error) {
	if r.has(partitionSpecs.key()) {
		if !r.has(keyDefaultSpecID) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing int: %s", keyDefaultSpecID)
		}
		return nil, nil
	}
	if err := r.onlyV1(partitionSpecs.key()); err != nil {
		return nil, err
	}
	if !r.has(keyPartitionSpec) {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", keyPartitionSpec)
	}
	p, err := schema.ParseSpec(fmt.Appendf(nil, `{"spec-id":0,"fields":%s}`, r.value(keyPartitionSpec)))
	if err != nil {
		return nil, err
	}
	p.AssignFieldIDs(0)
	r.specs[p.ID] = p
	r.defaultSpecID = p.ID
	return []memberEdit{
		{key: partitionSpecs.key(), list: &listEdit{base: &list{}, added: []newElement{{0, p.WithID(0)}}},
			array: partitionSpecs},
		intChange(keyDefaultSpecID, 0),
	}, nil
}

func (r *reader) resolveLastPartitionID() ([]memberEdit, error) {
	if value := r.value(keyLastPartitionID); len(value) > 0 && value[0] != 'n' {
		return nil, nil
	}
	if err := r.onlyV1(keyLastPartitionID); err != nil {
		return nil, err
	}
	r.lastPartitionID = schema.FirstPartitionFieldID - 1
	for _, p := range r.specs {
		r.lastPartitionID = max(r.lastPartitionID, p.LastFieldID)
	}
	return []memberEdit{intChange(keyLastPartitionID, int64(r.lastPartitionID))}, nil
}

func (r *reader) resolveOrders() ([]memberEdit, error) {
	if r.has(sortOrders.key()) {
		if !r.has(keyDefaultOrderID) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing int: %s", keyDefaultOrderID)
		}
		return nil, nil
	}
	if err := r.onlyV1(sortOrders.key()); err != nil {
		return nil, err
	}
	raw := []byte(unsortedJSON)
	o, err := schema.ParseSortOrder(raw)
	if err != nil {
		return nil, err
	}
	r.orders[o.ID] = o
	r.defaultOrderID = o.ID
	return []memberEdit{
		{key: sortOrders.key(), list: &listEdit{base: &list{}, added: []newElement{{0, raw}}}, array: sortOrders},
		intChange(keyDefaultOrderID, 0),
	}, nil
}

// unsortedJSON is the unsorted sort order.
const unsortedJSON = `{"order-id":0,"fields":[]}`

func (r *reader) resolveRefs() ([]memberEdit, error) {
	if r.has(keyRefs) || r.currentSnapshotID == noSnapshot {
		return nil, nil
	}
	const before = `{"main":`
	main := ref{name: mainBranch, snapshotID: r.currentSnapshotID, keyStart: len("{")}
	value := main.appendJSON([]byte(before))
	main.at = jsontext.Span{Start: len(before), End: len(value)}
	r.refs = []ref{main}
	return []memberEdit{{key: keyRefs, value: append(value, '}')}}, nil
}

// check checks the consistency of the parts of the document. Source: the constructor of Java
// TableMetadata.
func (r *reader) check() error {
	for _, s := range r.schemas {
		if err := s.CheckLoad(); err != nil {
			return err
		}
	}
	if err := r.checkDefaults(); err != nil {
		return err
	}
	if r.snapshotSequenceMax > r.lastSequenceNumber {
		return moorage.Errorf(moorage.KindValidation,
			"Invalid snapshot with sequence number %d greater than last sequence number %d",
			r.snapshotSequenceMax, r.lastSequenceNumber)
	}
	if err := r.checkSnapshots(); err != nil {
		return err
	}
	if err := checkLogTimes(r.snapshotLogTimes, r.lastUpdatedMS, snapshotLog); err != nil {
		return err
	}
	return checkLogTimes(r.metadataLogTimes, r.lastUpdatedMS, metadataLog)
}

func (r *reader) checkDefaults() error {
	s := r.schemas[r.currentSchemaID]
	if len(r.specs) == 0 {
		return illegal("Partition specs cannot be null or empty")
	}
	if len(r.orders) == 0 {
		return illegal("Sort orders cannot be null or empty")
	}
	columns := s.ColumnNames()
	for id, p := range r.specs {
		if id != r.defaultSpecID {
			if err := p.CheckNames(s, columns); err != nil {
				return err
			}
		}
	}
	return checkDefaults(s, r.specs[r.defaultSpecID], r.defaultSpecID, r.orders[r.defaultOrderID], r.defaultOrderID)
}

// checkDefaults refuses a default spec or sort order that is missing (nil) or does not fit the
// current schema.
func checkDefaults(s *schema.Schema, p *schema.Spec, specID int, o *schema.SortOrder, orderID int) error {
	if p == nil {
		return illegal("Cannot find partition spec with %s=%d from %s", keyDefaultSpecID, specID, partitionSpecs.key())
	}
	if o == nil {
		return illegal("Cannot find sort order with %s=%d from %s", keyDefaultOrderID, orderID, sortOrders.key())
	}
	if err := p.CheckBound(s); err != nil {
		return err
	}
	return o.CheckBound(s)
}

// checkSnapshots refuses snapshots with the same id, and refs to missing snapshots.
func (r *reader) checkSnapshots() error {
	all := r.arrays[snapshots]
	r.snapshotAt = positionsOf(all)
	for i, e := range all.all(0) {
		if at, _ := r.snapshotAt.find(all, e.id); at != i {
			return illegal("Multiple entries with same key: %d", e.id)
		}
	}
	for i := range r.refs {
		ref := &r.refs[i]
		if _, ok := r.snapshotAt.find(all, ref.snapshotID); !ok {
			return illegal("Snapshot for reference %s does not exist in the existing snapshots list: %d",
				jsontext.Clip(ref.name), ref.snapshotID)
		}
		switch {
		case ref.name != mainBranch || ref.snapshotID == r.currentSnapshotID:
		case r.currentSnapshotID == noSnapshot:
			return illegal("Current snapshot is not set, but main branch exists: %d", ref.snapshotID)
		default:
			return illegal("Current snapshot ID does not match main branch (%d != %d)",
				r.currentSnapshotID, ref.snapshotID)
		}
	}
	if r.currentSnapshotID != noSnapshot {
		if _, ok := r.snapshotAt.find(all, r.currentSnapshotID); !ok {
			return illegal("Invalid table metadata: Cannot find current version")
		}
	}
	return nil
}

// checkLogTimes refuses a log whose times run backwards by more than clockSkewMaxMS. It also
// refuses a log whose last time is after the document's last-updated-ms.
func checkLogTimes(times []int64, lastUpdatedMS int64, log arrayName) error {
	for i := 1; i < len(times); i++ {
		if isEarlier(times[i], times[i-1]) {
			return illegal("Expected sorted %s entries", log.key())
		}
	}
	if n := len(times); n > 0 && isEarlier(lastUpdatedMS, times[n-1]) {
		return illegal("Invalid update timestamp %d: before last %s entry at %d",
			lastUpdatedMS, log.key(), times[n-1])
	}
	return nil
}

// isEarlier reports whether time a is before time b by more than clockSkewMaxMS.
func isEarlier(a, b int64) bool { return a < b && uint64(b)-uint64(a) > clockSkewMaxMS }
