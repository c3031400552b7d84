package metadata

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"moorage/internal/jsontext"
	"moorage/metadata/schema"
)

// Env holds the inputs of Create, Build and Apply that this package cannot compute itself.
type Env struct {
	Now          time.Time     // the server's clock, for last-updated-ms
	BaseLocation string        // the metadata location of the base document, for metadata-log; empty on create
	NewUUID      func() string // draws a uuid; called only on create, and nil otherwise
}

// Apply returns the document after updates, in order, or d itself if they change nothing. Bytes
// that the updates do not touch stay as they are. d does not change.
//
// Errors: KindCommitFailed if another commit came first. In that case, a sequence number or row id
// is taken, or the head of a branch is not an ancestor of the new snapshot. A retry after a refresh
// may succeed. KindIllegalArgument and KindValidation if the updates can never be applied to this
// table. KindTooLarge if the document would exceed 2 GiB. Source: REST specification, updateTable;
// Java TableMetadata.Builder.
func (d *Document) Apply(updates []Update, env Env) (*Document, error) {
	base := d
	if d.canonical != nil {
		base = d.canonical
	}
	b := newBuilder(base, env)
	if err := b.applyAll(updates); err != nil {
		return nil, err
	}
	if !b.changed {
		return d, nil
	}
	return b.finish()
}

// builder applies the updates of one request to a document. Its index is the index of next. The
// index holds the values of the new document, except for members and arrays, which finish sets.
type builder struct {
	*index
	base     *Document
	next     *Document // holds the bytes of the base until finish replaces them
	env      Env
	nowMS    int64
	creating bool
	replaces bool // the request removes the branch main, as when it replaces a table
	changed  bool

	ownsRefs  bool // refs is a copy, so it may be changed
	ownsProps bool // props is a copy, so it may be changed

	lastAddedSchema, lastAddedSpec, lastAddedOrder lastAdded

	addedSnapshots   map[int64]*snapshot // nil if there are no added snapshots
	latestSnapshotMS int64               // the latest time of the added snapshots
	settled          map[int64]bool      // added snapshots of earlier requests of a chain; nil if there are none
	removedSnapshots bool                // snapshots were removed
	newMains         []int64             // snapshots of this request that became current, in order
	logged           []snapshotLogEntry  // to be appended to the snapshot log
	removedRefs      map[string]bool     // nil if no ref was removed
	parents          map[int64]optional  // cached parents of snapshots of the base; nil if there are none

	// Parsed elements to which additions were compared.
	parsedSchemas once[*schema.Schema]
	parsedSpecs   once[*schema.Spec]
	parsedOrders  once[*schema.SortOrder]

	edits   [arrayCount]listEdit // the changes of the arrays
	changes []memberEdit
	text    []byte // JSON of changes and of added elements, concatenated
}

// newBuilder returns a builder without changes.
func newBuilder(base *Document, env Env) *builder {
	next := &Document{index: base.index}
	b := &builder{index: &next.index, base: base, next: next, env: env, nowMS: env.Now.UnixMilli()}
	for a := range b.edits {
		b.edits[a].base = &base.arrays[a]
	}
	return b
}

// edit returns the change of an array. Initially, the change is empty.
func (b *builder) edit(a arrayName) *listEdit { return &b.edits[a] }

// set records the new value of a member.
func (b *builder) set(key string, value []byte) {
	b.changes = append(b.changes, memberEdit{key: key, value: value})
}

// keep sets b.text to text, which must be b.text with something appended. It returns the appended
// part.
func (b *builder) keep(text []byte) []byte {
	appended := text[len(b.text):len(text):len(text)]
	b.text = text
	return appended
}

// once caches parsed elements by the address of their bytes. So a request parses each element only
// once, even if several updates need it.
type once[T any] map[*byte]T

func (o *once[T]) parse(raw []byte, parse func([]byte) (T, error)) (T, error) {
	if parsed, ok := (*o)[&raw[0]]; ok {
		return parsed, nil
	}
	parsed, err := parse(raw)
	if err == nil {
		if *o == nil {
			*o = make(once[T])
		}
		(*o)[&raw[0]] = parsed
	}
	return parsed, err
}

func (b *builder) applyAll(updates []Update) error {
	b.replaces = slices.ContainsFunc(updates, func(u Update) bool { return u.op == removeRef{mainBranch} })
	for _, u := range updates {
		if err := u.op.apply(b); err != nil {
			return err
		}
	}
	return nil
}

// elements ranges over the ids and the JSON of an array's present elements.
func (b *builder) elements(a arrayName) iter.Seq2[int64, []byte] {
	return b.edits[a].elements(b.base.value(a.key()))
}

// element returns the JSON of the element with an id.
func (b *builder) element(a arrayName, id int) ([]byte, bool) {
	for other, raw := range b.elements(a) {
		if other == int64(id) {
			return raw, true
		}
	}
	return nil, false
}

func (b *builder) hasSnapshot(id int64) bool {
	if _, added := b.addedSnapshots[id]; added {
		return true
	}
	i, ok := b.base.snapshotAt.find(b.base.arrays[snapshots], id)
	return ok && !b.edits[snapshots].isDropped(i)
}

// editProps returns a modifiable copy of the properties.
func (b *builder) editProps() map[string]string {
	if !b.ownsProps {
		b.ownsProps = true
		if b.props = maps.Clone(b.props); b.props == nil {
			b.props = make(map[string]string)
		}
	}
	return b.props
}

func (b *builder) editRefs() {
	if !b.ownsRefs {
		b.ownsRefs = true
		b.refs = slices.Clone(b.refs)
	}
}

func (b *builder) putRef(r ref) {
	b.editRefs()
	if old := b.ref(r.name); old != nil {
		*old = r
		return
	}
	b.refs = append(b.refs, r)
}

// dropRef removes a branch or tag if it exists. If it removes main, the table has no current
// snapshot. The snapshot log does not change.
func (b *builder) dropRef(name string) {
	if name == mainBranch {
		b.currentSnapshotID = noSnapshot
	}
	if b.ref(name) == nil {
		return
	}
	b.editRefs()
	b.refs = slices.DeleteFunc(b.refs, func(r ref) bool { return r.name == name })
	if b.removedRefs == nil {
		b.removedRefs = make(map[string]bool)
	}
	b.removedRefs[name] = true
	b.changed = true
}

// finish makes the checks that are only possible after all updates, and writes the new document.
// Source: Java TableMetadata.Builder.build.
func (b *builder) finish() (*Document, error) {
	if b.location == "" {
		return nil, illegal("Table location is required in format v%d", b.formatVersion)
	}
	if b.formatVersion > 1 && b.uuid == "" {
		return nil, illegal("UUID is required in format v%d", b.formatVersion)
	}
	if err := b.checkDefaults(); err != nil {
		return nil, err
	}
	// The time of a snapshot may be up to a minute ahead of this clock. The clock may also have
	// been set back since the last version. If the table's time were before the snapshot or the
	// last version, its logs would be out of order.
	b.lastUpdatedMS = max(b.nowMS, b.latestSnapshotMS, b.base.lastUpdatedMS)
	if err := b.finishSnapshotLog(); err != nil {
		return nil, err
	}
	if err := b.finishMetadataLog(); err != nil {
		return nil, err
	}
	b.listChanges()
	d := b.next
	var err error
	if d.body, err = b.base.splice(b.changes, d.arrays[:]); err != nil {
		return nil, err
	}
	if b.edits[snapshots].drops > 0 {
		d.snapshotAt = positionsOf(d.arrays[snapshots])
	} else {
		d.snapshotAt = d.snapshotAt.extend(d.arrays[snapshots])
	}
	return d, nil
}

// checkDefaults checks the current schema, default spec and default sort order if the request
// changed their ids. The parts themselves never change.
func (b *builder) checkDefaults() error {
	old := &b.base.index
	if !b.creating && b.currentSchemaID == old.currentSchemaID &&
		b.defaultSpecID == old.defaultSpecID && b.defaultOrderID == old.defaultOrderID {
		return nil
	}
	raw, ok := b.element(schemas, b.currentSchemaID)
	if !ok {
		return illegal("Cannot find schema with %s=%d from %s", keyCurrentSchemaID, b.currentSchemaID, schemas.key())
	}
	s, err := schema.Parse(raw)
	if err != nil {
		return err
	}
	b.columns = s.Width()
	columns := s.ColumnNames()
	var defaultSpec *schema.Spec
	for id, raw := range b.elements(partitionSpecs) {
		p, err := schema.ParseSpec(raw)
		if err != nil {
			return err
		}
		if id == int64(b.defaultSpecID) {
			defaultSpec = p
		} else if err := p.CheckNames(s, columns); err != nil {
			return err
		}
	}
	var defaultOrder *schema.SortOrder
	if raw, ok := b.element(sortOrders, b.defaultOrderID); ok {
		if defaultOrder, err = schema.ParseSortOrder(raw); err != nil {
			return err
		}
	}
	return checkDefaults(s, defaultSpec, b.defaultSpecID, defaultOrder, b.defaultOrderID)
}

// listChanges records the differences between the new document and the base.
func (b *builder) listChanges() {
	old := &b.base.index
	str := func(key, was, is string) {
		if was != is {
			b.set(key, b.keep(jsontext.AppendQuoted(b.text, is)))
		}
	}
	num := func(key string, was, is int64) {
		if was != is { // unchanged members are already in the base
			b.set(key, b.keep(strconv.AppendInt(b.text, is, 10)))
		}
	}
	num(keyFormatVersion, int64(old.formatVersion), int64(b.formatVersion))
	str(keyUUID, old.uuid, b.uuid)
	str(keyLocation, old.location, b.location)
	if b.formatVersion > 1 {
		was := old.lastSequenceNumber
		if old.formatVersion == 1 {
			was = -1 // v1 has no such member, and ignores a member of that name
		}
		num(keyLastSequenceNumber, was, b.lastSequenceNumber)
	}
	num(keyLastUpdatedMS, old.lastUpdatedMS, b.lastUpdatedMS)
	num(keyLastColumnID, int64(old.lastColumnID), int64(b.lastColumnID))
	num(keyCurrentSchemaID, int64(old.currentSchemaID), int64(b.currentSchemaID))
	num(keyDefaultSpecID, int64(old.defaultSpecID), int64(b.defaultSpecID))
	num(keyLastPartitionID, int64(old.lastPartitionID), int64(b.lastPartitionID))
	num(keyDefaultOrderID, int64(old.defaultOrderID), int64(b.defaultOrderID))
	if b.formatVersion >= 3 {
		was := old.nextRowID
		if old.formatVersion < 3 {
			was = -1
		}
		num(keyNextRowID, was, b.nextRowID)
	}
	b.listV1Changes()
	if b.ownsProps {
		b.set(keyProperties, propertiesJSON(b.base.value(keyProperties), b.props))
	}
	if b.currentSnapshotID != old.currentSnapshotID || b.formatVersion != old.formatVersion {
		b.set(keyCurrentSnapshotID, b.currentSnapshotJSON())
	}
	if b.ownsRefs {
		b.set(keyRefs, b.keep(b.appendRefs(b.text)))
	}
	for a := range b.edits {
		if edit := &b.edits[a]; edit.changes() {
			name := arrayName(a)
			b.changes = append(b.changes, memberEdit{key: name.key(), list: edit, array: name})
		}
	}
}

// listV1Changes updates the members from which the oldest readers take the schema and the spec. An
// upgrade from version 1 removes these members.
func (b *builder) listV1Changes() {
	if b.formatVersion > 1 {
		if b.base.formatVersion == 1 {
			b.changes = append(b.changes,
				memberEdit{key: keySchema, drop: true}, memberEdit{key: keyPartitionSpec, drop: true})
		}
		return
	}
	if b.currentSchemaID != b.base.currentSchemaID || !b.base.has(keySchema) || b.creating {
		raw, _ := b.element(schemas, b.currentSchemaID) // checkDefaults has verified that it exists
		b.set(keySchema, raw)
	}
	if b.defaultSpecID != b.base.defaultSpecID || !b.base.has(keyPartitionSpec) || b.creating {
		raw, _ := b.element(partitionSpecs, b.defaultSpecID) // checkDefaults has verified that it exists
		o, _ := jsontext.ParseFields(raw, "spec")
		fields, _ := o.Find("fields")
		b.set(keyPartitionSpec, o.Bytes(fields))
	}
}

// currentSnapshotJSON returns the id of the current snapshot. Without a current snapshot, it
// returns the value that the format version defines for that.
func (b *builder) currentSnapshotJSON() []byte {
	if b.currentSnapshotID == noSnapshot && b.formatVersion >= 3 {
		return []byte("null")
	}
	return b.keep(strconv.AppendInt(b.text, b.currentSnapshotID, 10))
}

// propertiesJSON returns an object of properties. old is the previous object, or nil. Properties in
// old keep their position, and their bytes if they do not change.
func propertiesJSON(old []byte, properties map[string]string) []byte {
	out := []byte{'{'}
	stay := make(map[string]bool)
	if len(old) > 0 {
		c := reread(old)
		c.Object(func(key []byte) error { //nolint:errcheck // old was read before
			start := c.KeyPos()
			c.Space()
			valueAt := c.Pos()
			err := c.Skip()
			value, stays := properties[string(key)]
			if !stays {
				return err
			}
			stay[string(key)] = true
			if literal := c.From(valueAt); jsontext.Unquote(literal) == value {
				out = append(append(out, c.From(start)...), ',')
			} else {
				out = append(jsontext.AppendQuoted(append(out, old[start:valueAt]...), value), ',')
			}
			return err
		})
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !stay[key] {
			out = append(jsontext.AppendQuoted(append(jsontext.AppendQuoted(out, key), ':'), properties[key]), ',')
		}
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}')
}

// appendRefs appends the refs, and records the new position of each. Unchanged refs are copied byte
// for byte.
func (b *builder) appendRefs(out []byte) []byte {
	old, origin := b.base.value(keyRefs), len(out)
	out = append(out, '{')
	for i := range b.refs {
		if i > 0 {
			out = append(out, ',')
		}
		r := &b.refs[i]
		start := len(out) - origin
		if r.at.End > 0 {
			out = append(out, old[r.keyStart:r.at.End]...)
			shift := start - r.keyStart
			r.at = jsontext.Span{Start: r.at.Start + shift, End: r.at.End + shift}
		} else {
			out = append(jsontext.AppendQuoted(out, r.name), ':')
			r.at.Start = len(out) - origin
			out = r.appendJSON(out)
			r.at.End = len(out) - origin
		}
		r.keyStart = start
	}
	return append(out, '}')
}
