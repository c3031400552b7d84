package metadata

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"moorage/metadata/schema"
)

// DiffSnapshotsMax is the maximum number of snapshots that a Difference lists as added, and also as
// removed.
const DiffSnapshotsMax = 1000

// diffStepsMax is the maximum number of snapshots that one Diff visits to find how far refs have
// moved.
const diffStepsMax = 100_000

// Difference holds the differences between two versions of one table. Members that do not differ
// are absent. Parts of the table are compared by their meaning, so the numbers of schemas, specs
// and orders do not matter.
type Difference struct {
	FormatVersion *Pair[int]             `json:"format-version,omitempty"`
	Location      *Pair[string]          `json:"location,omitempty"`
	Schema        *schema.Difference     `json:"schema,omitempty"` // of the current schemas
	PartitionSpec *Pair[json.RawMessage] `json:"partition-spec,omitempty"`
	SortOrder     *Pair[json.RawMessage] `json:"sort-order,omitempty"`
	Properties    *PropertiesDifference  `json:"properties,omitempty"`
	Refs          *RefsDifference        `json:"refs,omitempty"`
	Snapshots     *SnapshotsDifference   `json:"snapshots,omitempty"`
	Totals        *Totals                `json:"totals,omitempty"`
}

// Pair is a value of the first version, and the value of the second version.
type Pair[T any] [2]T

// PropertiesDifference holds the properties that differ.
type PropertiesDifference struct {
	Set     map[string]Pair[*string] `json:"set,omitempty"` // the first value is nil for a new property
	Removed map[string]string        `json:"removed,omitempty"`
}

// RefsDifference holds the branches and tags that differ, by name.
type RefsDifference struct {
	Added   []Ref     `json:"added,omitempty"`
	Removed []Ref     `json:"removed,omitempty"`
	Moved   []RefMove `json:"moved,omitempty"`
	// Changed lists refs whose type or retention differs. They may have moved too.
	Changed []RefChange `json:"changed,omitempty"`
}

// Ref is a branch or a tag.
type Ref struct {
	Name       string `json:"name"`
	Type       string `json:"type"` // "branch" or "tag"
	SnapshotID int64  `json:"snapshot-id"`
}

// RefChange is a ref whose type or retention differs, as JSON without its snapshot id.
type RefChange struct {
	Name string          `json:"name"`
	Was  json.RawMessage `json:"was"`
	Is   json.RawMessage `json:"is"`
}

// RefMove is a ref that points to a different snapshot than before.
type RefMove struct {
	Name string `json:"name"`
	Was  int64  `json:"was"` // snapshot ids
	Is   int64  `json:"is"`
	// Ahead is the number of snapshots from Was to Is. It is nil if Was is not an ancestor of Is,
	// as after a rollback. It is also nil if the second version no longer has the snapshots in
	// between. It is also nil if the earlier refs in the list already took 100,000 steps.
	Ahead *int `json:"ahead"`
}

// SnapshotsDifference holds the snapshots that only one of the versions has.
type SnapshotsDifference struct {
	Added   []AddedSnapshotInfo `json:"added,omitempty"`   // in the order of the document
	Removed []int64             `json:"removed,omitempty"` // ids, in the order of the document
	// More is the number of further snapshots, beyond DiffSnapshotsMax on each side.
	More int `json:"more"`
}

// AddedSnapshotInfo is a snapshot that only the second version has.
type AddedSnapshotInfo struct {
	ID          int64             `json:"id"`
	Parent      *int64            `json:"parent,omitempty"`
	TimestampMS int64             `json:"timestamp-ms"` // since 1970
	Operation   string            `json:"operation,omitempty"`
	Summary     map[string]string `json:"summary,omitempty"` // without the operation
}

// Totals holds the totals that differ between the heads of main. A value is Unsaid if the head does
// not state it.
type Totals struct {
	Rows    *Pair[int64] `json:"rows,omitempty"`
	Files   *Pair[int64] `json:"files,omitempty"`   // data files
	Deletes *Pair[int64] `json:"deletes,omitempty"` // delete files
	Bytes   *Pair[int64] `json:"bytes,omitempty"`
}

// Diff returns the differences between two versions of a table.
func Diff(from, to *Document) (Difference, error) {
	d := Difference{
		FormatVersion: pairOf(from.formatVersion, to.formatVersion),
		Location:      pairOf(from.location, to.location),
		Properties:    diffProperties(from.props, to.props),
		Refs:          diffRefs(from, to),
		Snapshots:     diffSnapshots(from, to),
		Totals:        diffTotals(from, to),
	}
	was, err := from.currentSchema()
	if err != nil {
		return d, err
	}
	is, err := to.currentSchema()
	if err != nil {
		return d, err
	}
	if found := schema.Diff(was, is); !found.IsEmpty() {
		d.Schema = &found
	}
	differs, err := partsThatDiffer(from, to)
	if err != nil {
		return d, err
	}
	if differs.spec {
		d.PartitionSpec = &Pair[json.RawMessage]{
			fieldsOf(from.part(partitionSpecs, from.defaultSpecID)),
			fieldsOf(to.part(partitionSpecs, to.defaultSpecID)),
		}
	}
	if differs.order {
		d.SortOrder = &Pair[json.RawMessage]{
			fieldsOf(from.part(sortOrders, from.defaultOrderID)), fieldsOf(to.part(sortOrders, to.defaultOrderID)),
		}
	}
	return d, nil
}

// pairOf returns both values, or nil if they are equal.
func pairOf[T comparable](was, is T) *Pair[T] {
	if was == is {
		return nil
	}
	return &Pair[T]{was, is}
}

// part returns the JSON of the element of an array with this id, or nil if there is none.
func (d *Document) part(a arrayName, id int) json.RawMessage {
	if d.canonical != nil {
		d = d.canonical
	}
	for _, e := range d.arrays[a].all(0) {
		if e.id == int64(id) {
			return d.elementRaw(a, e)
		}
	}
	return nil
}

func (d *Document) currentSchema() (*schema.Schema, error) {
	return schema.Parse(d.part(schemas, d.currentSchemaID))
}

// fieldsOf returns the fields of a spec or sort order as compact JSON.
func fieldsOf(part json.RawMessage) json.RawMessage {
	var parsed struct {
		Fields []map[string]any `json:"fields"`
	}
	decoder := json.NewDecoder(bytes.NewReader(part))
	decoder.UseNumber()
	if err := decoder.Decode(&parsed); err != nil || len(parsed.Fields) == 0 {
		return json.RawMessage("[]") // the document was checked when it was parsed
	}
	text, err := json.Marshal(parsed.Fields) // with sorted keys
	if err != nil {
		return json.RawMessage("[]")
	}
	return text
}

func diffProperties(was, is map[string]string) *PropertiesDifference {
	d := PropertiesDifference{Set: make(map[string]Pair[*string]), Removed: make(map[string]string)}
	for name, value := range is {
		switch before, had := was[name]; {
		case !had:
			d.Set[name] = Pair[*string]{nil, &value}
		case before != value:
			d.Set[name] = Pair[*string]{&before, &value}
		}
	}
	for name, value := range was {
		if _, has := is[name]; !has {
			d.Removed[name] = value
		}
	}
	if len(d.Set)+len(d.Removed) == 0 {
		return nil
	}
	return &d
}

func diffRefs(from, to *Document) *RefsDifference {
	var d RefsDifference
	steps := diffStepsMax
	byName := func(a, b ref) int { return cmp.Compare(a.name, b.name) }
	for _, is := range slices.SortedFunc(slices.Values(to.refs), byName) {
		was := from.ref(is.name)
		if was == nil {
			d.Added = append(d.Added, Ref{is.name, is.kind(), is.snapshotID})
			continue
		}
		if was.snapshotID != is.snapshotID {
			ahead := to.distance(was.snapshotID, is.snapshotID, &steps)
			d.Moved = append(d.Moved, RefMove{is.name, was.snapshotID, is.snapshotID, ahead})
		}
		if before, now := was.form(), is.form(); !bytes.Equal(before, now) {
			d.Changed = append(d.Changed, RefChange{is.name, before, now})
		}
	}
	for _, was := range slices.SortedFunc(slices.Values(from.refs), byName) {
		if to.ref(was.name) == nil {
			d.Removed = append(d.Removed, Ref{was.name, was.kind(), was.snapshotID})
		}
	}
	if len(d.Added)+len(d.Removed)+len(d.Moved)+len(d.Changed) == 0 {
		return nil
	}
	return &d
}

// form returns the type and retention of r as JSON.
func (r *ref) form() json.RawMessage {
	form := struct {
		Type       string `json:"type"`
		MinToKeep  *int64 `json:"min-snapshots-to-keep,omitempty"`
		MaxAgeMS   *int64 `json:"max-snapshot-age-ms,omitempty"`
		MaxRefAges *int64 `json:"max-ref-age-ms,omitempty"`
	}{r.kind(), r.minToKeep.pointer(), r.maxAgeMS.pointer(), r.maxRefAge.pointer()}
	text, err := json.Marshal(form)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return text
}

func (o optional) pointer() *int64 {
	if !o.given {
		return nil
	}
	return &o.value
}

// distance returns the number of steps from a snapshot back to its ancestor, or nil if d does not
// have all snapshots in between. It subtracts the steps that it takes from left, and returns nil
// once left is used up.
func (d *Document) distance(ancestor, id int64, left *int) *int {
	all := d.arrays[snapshots]
	for steps := range all.len() + 1 { // a cycle of parents ends too
		if *left--; *left < 0 {
			return nil
		}
		if id == ancestor {
			return &steps
		}
		at, ok := d.snapshotAt.find(all, id)
		if !ok {
			return nil
		}
		s := d.snapshot(all.at(at))
		if !s.parent.given {
			return nil
		}
		id = s.parent.value
	}
	return nil
}

func diffSnapshots(from, to *Document) *SnapshotsDifference {
	var d SnapshotsDifference
	for _, e := range to.arrays[snapshots].all(0) {
		switch {
		case from.HasSnapshot(e.id):
		case len(d.Added) == DiffSnapshotsMax:
			d.More++
		default:
			s := to.snapshot(e)
			d.Added = append(d.Added, s.added())
		}
	}
	for _, e := range from.arrays[snapshots].all(0) {
		switch {
		case to.HasSnapshot(e.id):
		case len(d.Removed) == DiffSnapshotsMax:
			d.More++
		default:
			d.Removed = append(d.Removed, e.id)
		}
	}
	if len(d.Added)+len(d.Removed) == 0 {
		return nil
	}
	return &d
}

func (s *snapshot) added() AddedSnapshotInfo {
	info := AddedSnapshotInfo{ID: s.id, TimestampMS: s.timestampMS}
	if s.parent.given {
		info.Parent = &s.parent.value
	}
	if s.summary != nil {
		info.Summary, _ = reread(s.summary).stringMap("summary") // readSnapshot has verified it
		info.Operation = info.Summary["operation"]
		delete(info.Summary, "operation")
	}
	return info
}

func diffTotals(from, to *Document) *Totals {
	was, is := from.headTotals(), to.headTotals()
	if was == is {
		return nil
	}
	return &Totals{
		Rows: pairOf(was.rows, is.rows), Files: pairOf(was.files, is.files),
		Deletes: pairOf(was.deletes, is.deletes), Bytes: pairOf(was.bytes, is.bytes),
	}
}

// headTotals holds totals from the summary of main's head. A total is Unsaid if the head does not
// state it, and zero without a head.
type headTotals struct{ rows, files, deletes, bytes int64 }

func (d *Document) headTotals() headTotals {
	at, ok := d.snapshotAt.find(d.arrays[snapshots], d.currentSnapshotID)
	if !ok {
		return headTotals{}
	}
	totals := headTotals{Unsaid, Unsaid, Unsaid, Unsaid}
	head := d.snapshot(d.arrays[snapshots].at(at))
	if head.summary == nil {
		return totals
	}
	c := reread(head.summary)
	_ = c.Object(func(key []byte) (err error) { // it was already parsed
		switch string(key) {
		case "total-records":
			totals.rows, err = c.numeral()
		case "total-data-files":
			totals.files, err = c.numeral()
		case "total-delete-files":
			totals.deletes, err = c.numeral()
		case "total-files-size":
			totals.bytes, err = c.numeral()
		default:
			err = c.Skip()
		}
		return err
	})
	return totals
}
