package metadata

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"moorage/metadata/schema"
)

// Document is an immutable table metadata document: its JSON, unchanged, with an index of its
// members and elements. It is safe for concurrent use.
type Document struct {
	index

	// canonical is the same document with all members that older writers omit. Commits are based on
	// it. It is nil if raw has all these members.
	canonical *Document

	refsOnce sync.Once
	refsRaw  []byte
}

// Raw returns the whole document: exactly the bytes that were passed to Parse or made by Apply. The
// caller must not modify them.
func (d *Document) Raw() []byte { return d.raw }

// RawRefs returns the document without snapshots to which no branch or tag points. Everything else
// is as in Raw, including the logs and statistics. The caller must not modify it. Source: REST
// specification, loadTable, snapshots=refs.
func (d *Document) RawRefs() []byte {
	d.refsOnce.Do(func() {
		edit := listEdit{base: &d.arrays[snapshots]}
		heads := d.heads()
		if edit.drop(func(id int64) bool { return !heads[id] }) == 0 {
			d.refsRaw = d.raw
			return
		}
		arrays := d.arrays
		spliced, err := d.splice([]memberEdit{{key: snapshots.key(), list: &edit, array: snapshots}}, arrays[:])
		if d.refsRaw = spliced.raw; err != nil {
			d.refsRaw = d.raw // not reached: the result is smaller than the input
		}
	})
	return d.refsRaw
}

func (d *Document) heads() map[int64]bool {
	heads := make(map[int64]bool, len(d.refs))
	for i := range d.refs {
		heads[d.refs[i].snapshotID] = true
	}
	return heads
}

// CostBytes returns the approximate memory use of the document, for caches. The value never
// changes, and includes the result of RawRefs.
func (d *Document) CostBytes() int64 {
	const fixed = 1024
	cost := fixed + 2*int64(len(d.raw)) + d.index.bytes()
	if all := d.arrays[snapshots]; all.len() > 0 {
		cost -= int64(all.end()-int(all.at(0).start)) - int64(all.len()-1)
		for id := range d.heads() {
			if i, ok := d.snapshotAt.find(all, id); ok {
				cost += int64(all.at(i).end - all.at(i).start)
			}
		}
	}
	if d.canonical != nil {
		cost += d.canonical.CostBytes()
	}
	return cost
}

// FormatVersion returns the version of the table format, 1 to 3.
func (d *Document) FormatVersion() int { return d.formatVersion }

// CheckSpecs returns KindValidation for a table of format version 2 or later if one partition field
// id has two sources or transforms. Engines can load such a table, but cannot read its metadata
// tables. So the catalog does not register it. A table that is already registered still loads.
func (d *Document) CheckSpecs() error {
	if d.formatVersion < 2 {
		return nil
	}
	var specs []*schema.Spec
	for _, e := range d.arrays[partitionSpecs].all(0) {
		spec, err := schema.ParseSpec(d.elementRaw(partitionSpecs, e))
		if err != nil {
			return err
		}
		for _, earlier := range specs {
			if err := spec.CheckJoins(earlier); err != nil {
				return err
			}
		}
		specs = append(specs, spec)
	}
	return nil
}

// UUID returns the table-uuid as it was assigned. It is empty for a v1 table without a uuid.
func (d *Document) UUID() string { return d.uuid }

// Location returns the table's location as it was sent, without trailing slashes.
func (d *Document) Location() string { return d.location }

// LastUpdatedMS returns the time when the document was made, in milliseconds since 1970.
func (d *Document) LastUpdatedMS() int64 { return d.lastUpdatedMS }

// Property returns a table property. It returns false if the property is not set.
func (d *Document) Property(name string) (string, bool) {
	value, ok := d.props[name]
	return value, ok
}

// Properties returns all table properties. The caller may change the map.
func (d *Document) Properties() map[string]string {
	if d.props == nil {
		return map[string]string{}
	}
	return maps.Clone(d.props)
}

// CurrentSnapshotID returns the id of the head of main. It returns false if there is no head.
func (d *Document) CurrentSnapshotID() (int64, bool) {
	return d.currentSnapshotID, d.currentSnapshotID != noSnapshot
}

// HasSnapshot reports whether the table has a snapshot with that id.
func (d *Document) HasSnapshot(id int64) bool {
	_, ok := d.snapshotAt.find(d.arrays[snapshots], id)
	return ok
}

// elementRaw returns the JSON of an element of an array. The result shares the document's memory.
func (d *Document) elementRaw(a arrayName, e element) []byte {
	return d.value(a.key())[e.start:e.end]
}

// MetadataLog returns the table's earlier metadata files, oldest first.
func (d *Document) MetadataLog() []MetadataLogEntry {
	entries := make([]MetadataLogEntry, 0, d.arrays[metadataLog].len())
	for _, e := range d.arrays[metadataLog].all(0) {
		entry, _ := readMetadataLogEntry(reread(d.elementRaw(metadataLog, e)))
		entries = append(entries, entry)
	}
	return entries
}

// TrimmedSince returns the metadata files that the commit from base to d removed from the log,
// oldest first.
func (d *Document) TrimmedSince(base *Document) []string {
	log, was := d.arrays[metadataLog], base.arrays[metadataLog]
	if log.len() == 0 {
		return nil
	}
	first := d.elementRaw(metadataLog, log.at(0))
	var trimmed []string
	for _, e := range was.all(0) {
		raw := base.elementRaw(metadataLog, e)
		if bytes.Equal(raw, first) {
			break // the rest of the log did not change
		}
		if entry, err := readMetadataLogEntry(reread(raw)); err == nil && !d.logs(entry.MetadataLocation) {
			trimmed = append(trimmed, entry.MetadataLocation)
		}
	}
	return trimmed
}

// logs reports whether the metadata log contains a file.
func (d *Document) logs(file string) bool {
	if log := d.value(metadataLog.key()); bytes.IndexByte(log, '\\') < 0 {
		return bytes.Contains(log, []byte(`"`+file+`"`)) // the log has no escapes, so the search finds every name
	}
	return slices.ContainsFunc(d.MetadataLog(), func(entry MetadataLogEntry) bool {
		return entry.MetadataLocation == file
	})
}

// Snapshots ranges over all snapshots in the order of the document, which is the order in which
// they were added.
func (d *Document) Snapshots() iter.Seq[Snapshot] {
	return func(yield func(Snapshot) bool) {
		for _, e := range d.arrays[snapshots].all(0) {
			s := d.snapshot(e)
			if !yield(s.export()) {
				return
			}
		}
	}
}

// Head returns the current snapshot, which is the head of the branch main. If there is none, has is
// false.
func (d *Document) Head() (head Snapshot, has bool) {
	at, has := d.snapshotAt.find(d.arrays[snapshots], d.currentSnapshotID)
	if !has {
		return head, false
	}
	s := d.snapshot(d.arrays[snapshots].at(at))
	return s.export(), true
}

// HeadTotal returns the number for key, such as total-position-deletes, in the summary of the
// current snapshot. Without such a number, it returns Unsaid.
func (d *Document) HeadTotal(key string) int64 {
	at, has := d.snapshotAt.find(d.arrays[snapshots], d.currentSnapshotID)
	if !has {
		return Unsaid
	}
	head := d.snapshot(d.arrays[snapshots].at(at))
	n, err := strconv.ParseInt(head.summaryValue(key), 10, 64)
	if err != nil || n < 0 {
		return Unsaid
	}
	return n
}

func (d *Document) snapshot(e element) snapshot {
	s, _ := readSnapshot(reread(d.elementRaw(snapshots, e)))
	return s
}

// StatisticsFiles returns the paths of all table and partition statistics files, in the order of
// the document.
func (d *Document) StatisticsFiles() []string {
	var paths []string
	for _, a := range []arrayName{statistics, partitionStatistics} {
		for _, e := range d.arrays[a].all(0) {
			paths = append(paths, statisticsPath(d.elementRaw(a, e)))
		}
	}
	return paths
}

// ref returns the branch or tag with a name, or nil if there is no such ref.
func (x *index) ref(name string) *ref {
	i := slices.IndexFunc(x.refs, func(r ref) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return &x.refs[i]
}
