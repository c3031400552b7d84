package metadata

import "moorage/metadata/schema"

// Scan holds the metadata that a reader of a snapshot's rows needs.
type Scan struct {
	// Snapshot is the snapshot that is read. It is nil if the table has no rows.
	Snapshot *Snapshot
	// Schema is the schema in which the rows are read.
	Schema *schema.Schema
	// SchemaID is the id of Schema.
	SchemaID int
	// Identity lists, for each partition spec, the ids of the columns that it partitions by value.
	// Data files can lack these columns.
	Identity map[int][]int
}

// Scan returns the Scan for a branch or tag. An empty name means the branch main. A branch is read
// in the current schema, and a tag in the schema of its snapshot. found is false if there is no
// branch or tag of that name, or if its schema was removed.
//
// Source: Java SnapshotUtil.schemaFor.
func (d *Document) Scan(ref string) (scan Scan, found bool) {
	if d.canonical != nil { // an old document may have its schema elsewhere
		return d.canonical.Scan(ref)
	}
	switch named := d.ref(ref); {
	case named != nil:
		return d.scan(named.snapshotID, !named.tag)
	case ref == "" || ref == mainBranch:
		id, hasSnapshot := d.CurrentSnapshotID()
		if !hasSnapshot {
			id = noSnapshot
		}
		return d.scan(id, true)
	}
	return scan, false
}

// ScanSnapshot returns the Scan for the snapshot with this id, even if a branch or tag has that
// name. The snapshot is read in its own schema. found is false if there is no such snapshot, or if
// its schema was removed.
//
// Source: Java SnapshotUtil.schemaFor.
func (d *Document) ScanSnapshot(id int64) (scan Scan, found bool) {
	if d.canonical != nil {
		return d.canonical.ScanSnapshot(id)
	}
	if !d.HasSnapshot(id) {
		return scan, false
	}
	return d.scan(id, false)
}

// scan returns the Scan for a snapshot, in the table's current schema or in the snapshot's own. The
// id noSnapshot stands for a table without rows.
func (d *Document) scan(id int64, isCurrentSchema bool) (scan Scan, found bool) {
	scan.SchemaID = d.currentSchemaID
	if i, ok := d.snapshotAt.find(d.arrays[snapshots], id); ok {
		read := d.snapshot(d.arrays[snapshots].at(i))
		exported := read.export()
		scan.Snapshot = &exported
		if !isCurrentSchema && read.schemaID.given {
			scan.SchemaID = int(read.schemaID.value)
		}
	} else if id != noSnapshot {
		return scan, false
	}
	scan.Identity = make(map[int][]int)
	for _, e := range d.arrays[partitionSpecs].all(0) {
		spec, err := schema.ParseSpec(d.elementRaw(partitionSpecs, e))
		if err != nil {
			return scan, false
		}
		scan.Identity[spec.ID] = spec.IdentitySources()
	}
	scan.Schema = schemaIn(d.arrays[schemas], d.value(schemas.key()), scan.SchemaID)
	return scan, scan.Schema != nil
}
