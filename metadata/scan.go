package metadata

import "moorage/metadata/schema"

// Scan is what a reader of the rows of a snapshot needs.
type Scan struct {
	// Snapshot is the snapshot that is read. It is nil if the table has no rows.
	Snapshot *Snapshot
	// Schema is the schema in which the rows are read.
	Schema *schema.Schema
	// SchemaID is the id of Schema.
	SchemaID int
	// Identity has for each partition spec the ids of the columns that it partitions by their
	// values. Data files can lack these columns.
	Identity map[int][]int
}

// Scan returns what a reader of a branch, a tag or a snapshot needs. An empty name is the branch
// main. A branch is read in the current schema, a tag and a snapshot in the schema of the snapshot.
// found is false if there is no branch, tag or snapshot of that name, or if its schema was removed.
//
// Source: Java SnapshotUtil.schemaFor.
func (d *Document) Scan(name string) (scan Scan, found bool) {
	if d.canonical != nil { // an old document may have its schema elsewhere
		return d.canonical.Scan(name)
	}
	id, isBranch := int64(0), true
	switch named := d.ref(name); {
	case named != nil:
		id, isBranch = named.snapshotID, !named.tag
	case name == "" || name == mainBranch:
		if id, found = d.CurrentSnapshotID(); !found {
			id = noSnapshot
		}
	default:
		if id, found = d.SnapshotCalled(name); !found {
			return scan, false
		}
		isBranch = false
	}
	scan.SchemaID = d.currentSchemaID
	if i, ok := d.snapshotAt.find(d.arrays[snapshots], id); ok {
		read := d.snapshot(d.arrays[snapshots].at(i))
		exported := read.export()
		scan.Snapshot = &exported
		if !isBranch && read.schemaID.given {
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
