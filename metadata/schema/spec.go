package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/internal/jsontext"
)

// FirstPartitionFieldID is the id of the first partition field of a table.
const FirstPartitionFieldID = 1000

// Spec is a parsed partition spec, with its bytes from the request. It is safe for concurrent use,
// except during AssignFieldIDs.
type Spec struct {
	ID          int    // spec-id; 0 if absent
	Raw         []byte // as sent
	LastFieldID int    // the highest partition field id; 999 if there are no fields
	fields      []specField

	members  jsontext.Fields
	fieldIDs fieldIDs
	patches  []jsontext.Patch
}

// fieldIDs is the origin of the ids of a spec's fields.
type fieldIDs uint8

const (
	idsSent     fieldIDs = iota
	idsMissing           // they were not sent
	idsAssigned          // they were not sent, and AssignFieldIDs has assigned them
)

// specField is a field of a partition spec.
type specField struct {
	id        int
	name      string
	transform columnTransform
	members   jsontext.Fields
}

// columnTransform is the transform of a partition or sort field, with its source columns.
type columnTransform struct {
	iceberg.Transform
	sources []int         // source-id, or source-ids if there are several arguments
	asField jsontext.Span // the position of the transform's name
}

// ParseSpec reads a partition spec. Malformed JSON and missing members are KindBadRequest.
//
// Fields without field-id get ids from 1000 on, as in the documents of the first Iceberg releases.
// AssignFieldIDs replaces these ids with ids after the table's last-partition-id.
func ParseSpec(raw []byte) (*Spec, error) {
	members, err := jsontext.ParseFields(raw, "spec")
	if err != nil {
		return nil, err
	}
	p := &Spec{Raw: raw, members: members}
	if _, ok := members.Present("spec-id"); ok {
		if p.ID, _, err = members.Int("spec-id"); err != nil {
			return nil, err
		}
	}
	fields, err := members.Required("fields")
	if err != nil {
		return nil, err
	}
	if err := p.parseFields(fields); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Spec) parseFields(v jsontext.Span) error {
	identified := 0
	isArray, err := p.members.EachObject(v, "partition field", func(members jsontext.Fields) error {
		f := specField{members: members, id: FirstPartitionFieldID + len(p.fields)}
		var err error
		if f.name, _, err = members.Str("name"); err != nil {
			return err
		}
		if f.transform, err = parseColumnTransform(members); err != nil {
			return err
		}
		p.patches = append(p.patches, f.transform.spelling()...)
		if _, ok := members.Find("field-id"); ok {
			if f.id, _, err = members.Int("field-id"); err != nil {
				return err
			}
			identified++
		}
		p.fields = append(p.fields, f)
		return nil
	})
	switch {
	case err != nil:
		return err
	case !isArray:
		return moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse partition spec fields, not an array: %s", jsontext.Clip(p.members.Text(v)))
	case identified != 0 && identified != len(p.fields):
		return moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse spec with missing field IDs: %d missing of %d fields.",
			len(p.fields)-identified, len(p.fields))
	}
	if identified == 0 {
		p.fieldIDs = idsMissing
	}
	p.LastFieldID = FirstPartitionFieldID - 1
	for _, f := range p.fields {
		p.LastFieldID = max(p.LastFieldID, f.id)
	}
	return nil
}

// parseColumnTransform reads transform and source-id or source-ids of a partition or sort field. It
// accepts unknown transforms, so that tables that use them stay readable.
func parseColumnTransform(members jsontext.Fields) (columnTransform, error) {
	var t columnTransform
	name, at, err := members.Str("transform")
	if err != nil {
		return t, err
	}
	t.asField = at
	if t.Transform, err = parseTransform(name); err != nil {
		return t, err
	}
	if list, ok := members.Present("source-ids"); ok {
		if t.sources, err = parseSourceIDs(members, list); err != nil {
			return t, err
		}
		if _, ok := members.Find("source-id"); !ok && len(t.sources) > 1 {
			return t, nil
		}
	}
	if _, ok := members.Find("source-id"); !ok && t.isVoid() {
		t.sources = []int{0} // iceberg-go writes this if the column has been removed
		return t, nil
	}
	id, _, err := members.Int("source-id")
	if err != nil {
		return t, err
	}
	if len(t.sources) == 0 {
		t.sources = []int{id}
	} else if t.sources[0] != id {
		return t, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse source-id %d together with source-ids that begin with %d", id, t.sources[0])
	}
	return t, nil
}

func parseSourceIDs(members jsontext.Fields, v jsontext.Span) ([]int, error) {
	const key = "source-ids"
	ids, err := members.Ints(key, v)
	if err == nil && len(ids) == 0 {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot parse empty list: %s", key)
	}
	return ids, err
}

// parseTransform reads the name of a transform in any letter case, as the Java reference does.
func parseTransform(name string) (iceberg.Transform, error) {
	t, err := iceberg.ParseTransform(name)
	if err != nil {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid transform: %s", jsontext.Clip(name))
	}
	return t, nil
}

// checkMembers refuses members that some readers cannot load: source-id together with source-ids,
// and sources that cannot be field ids, which begin at 1. In errors, what describes the field.
func (t columnTransform) checkMembers(members jsontext.Fields, what string) error {
	_, one := members.Find("source-id")
	_, several := members.Find("source-ids")
	if one && several {
		return moorage.Errorf(moorage.KindValidation, "Invalid source-id together with source-ids: %s", what)
	}
	for _, id := range t.sources {
		if id < 1 {
			return moorage.Errorf(moorage.KindValidation, "Invalid source id: %s", what)
		}
	}
	return nil
}

// spelling returns the patch that gives a known transform a spelling that every reader knows.
func (t columnTransform) spelling() []jsontext.Patch {
	if _, unknown := t.Transform.(iceberg.UnknownTransform); unknown {
		return nil
	}
	return []jsontext.Patch{{At: t.asField, With: jsontext.Quote(t.Transform.String())}}
}

func (t columnTransform) sameAs(o columnTransform) bool {
	return t.Transform.String() == o.Transform.String() && slices.Equal(t.sources, o.sources)
}

func (t columnTransform) isVoid() bool {
	_, void := t.Transform.(iceberg.VoidTransform)
	return void
}

// checkSources refuses source columns that are not in s or that the transform does not accept. The
// texts in use and what describe the field in errors: "partition by", "partition field: …".
func (t columnTransform) checkSources(s *Schema, use, what string) error {
	if _, unknown := t.Transform.(iceberg.UnknownTransform); !unknown && len(t.sources) != 1 {
		return moorage.Errorf(moorage.KindValidation,
			"Invalid number of source columns for transform %s: %d", t.Transform, len(t.sources))
	}
	for _, id := range t.sources {
		source := s.field(id)
		if source == nil {
			return moorage.Errorf(moorage.KindValidation, "Cannot find source column for %s", what)
		}
		if !source.typ.isPrimitive() {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot %s non-primitive source field: %s", use, source.typ.String())
		}
		if !t.CanTransform(source.typ.primitive) {
			return moorage.Errorf(moorage.KindValidation,
				"Invalid source type %s for transform: %s", source.typ.String(), t.Transform)
		}
	}
	return nil
}

// String returns the transform and its source columns, as the Java reference prints them.
func (t columnTransform) String() string {
	ids := make([]string, len(t.sources))
	for i, id := range t.sources {
		ids[i] = strconv.Itoa(id)
	}
	return t.Transform.String() + "(" + strings.Join(ids, ", ") + ")"
}

// String returns the field as the Java reference prints it, truncated if it is long.
func (f specField) String() string {
	return jsontext.Clip(strconv.Itoa(f.id) + ": " + jsontext.Clip(f.name) + ": " + f.transform.String())
}

// Check refuses a spec that must not be added to a table of formatVersion with the current schema
// s. It refuses every spec that CheckBound refuses. In format version 1, it refuses field ids that
// are not consecutive from 1000 on. It returns KindValidation for specs that the Java reference
// would write but some other reader could not load.
func (p *Spec) Check(s *Schema, formatVersion int) error {
	if err := p.CheckBound(s); err != nil {
		return err
	}
	ids := make(map[int]bool, len(p.fields))
	for i, f := range p.fields {
		if formatVersion == 1 && f.id != FirstPartitionFieldID+i {
			return moorage.Errorf(moorage.KindValidation,
				"Spec does not use sequential IDs that are required in v1: %s", f)
		}
		if ids[f.id] || f.id > fieldIDMax {
			return moorage.Errorf(moorage.KindValidation, "Invalid partition field id: %s", f)
		}
		ids[f.id] = true
		if err := f.transform.checkMembers(f.members, f.String()); err != nil {
			return err
		}
	}
	return p.checkRedundant()
}

// checkRedundant refuses two fields with equal sources and transforms, because iceberg-go cannot
// load a table with them.
func (p *Spec) checkRedundant() error {
	seen := make(map[string]specField, len(p.fields))
	for _, f := range p.fields {
		if f.transform.isVoid() {
			continue
		}
		key := f.transform.String()
		if other, twice := seen[key]; twice {
			return moorage.Errorf(moorage.KindValidation,
				"Cannot add redundant partition: %s conflicts with %s", other, f)
		}
		seen[key] = f
	}
	return nil
}

// CheckBound refuses a spec that does not fit the schema s. Names must not be empty, used twice or
// the name of another column (KindIllegalArgument). Source columns must exist, be primitive, not be
// inside a list or map, and have a type that the transform accepts (KindValidation). A void
// transform may have any source, because it represents a dropped field. Source: Java
// PartitionSpec.checkCompatibility, PartitionSpec.Builder.add.
func (p *Spec) CheckBound(s *Schema) error {
	if err := p.CheckNames(s, s.ColumnNames()); err != nil {
		return err
	}
	for _, f := range p.fields {
		if err := f.checkSource(s); err != nil {
			return err
		}
	}
	return nil
}

// CheckNames refuses names of partition fields that a reader could not bind to s. columns must be
// the names of s. CheckNames is the part of CheckBound that also applies to specs other than the
// table's default spec.
func (p *Spec) CheckNames(s *Schema, columns ColumnNames) error {
	names := make(map[string]bool, len(p.fields))
	for _, f := range p.fields {
		if err := f.checkName(s, columns, names); err != nil {
			return err
		}
	}
	return nil
}

func (f specField) checkName(s *Schema, columns ColumnNames, names map[string]bool) error {
	if f.name == "" {
		return moorage.Errorf(moorage.KindIllegalArgument, "Cannot use empty partition name: ")
	}
	if names[f.name] {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot use partition name more than once: %s", jsontext.Clip(f.name))
	}
	names[f.name] = true
	column := columns.find(f.name)
	if column == nil || column.id == f.transform.sources[0] || s.field(f.transform.sources[0]) == nil {
		return nil
	}
	return moorage.Errorf(moorage.KindIllegalArgument,
		"Cannot create identity partition sourced from different field in schema: %s", jsontext.Clip(f.name))
}

func (f specField) checkSource(s *Schema) error {
	if f.transform.isVoid() {
		return nil
	}
	if err := f.transform.checkSources(s, "partition by", "partition field: "+f.String()); err != nil {
		return err
	}
	for _, id := range f.transform.sources {
		for parent := s.field(id).parent; parent != nil; parent = parent.parent {
			if parent.typ.kind != kindStruct {
				return moorage.Errorf(moorage.KindValidation,
					"Invalid partition field parent: %s", parent.typ.String())
			}
		}
	}
	return nil
}

// CheckJoins returns KindValidation if a field id has different sources or transforms in p and in
// o, another spec of the same table. In that case, the Java reference cannot join the partition
// types of all specs, as every metadata table requires. A void transform represents a dropped
// field, so it may differ. In format version 1 the ids begin at 1000 in every spec, and Java
// expects that. Source: Java Partitioning.buildPartitionProjectionType.
func (p *Spec) CheckJoins(o *Spec) error {
	for _, f := range p.fields {
		for _, g := range o.fields {
			if f.id != g.id || slices.Equal(f.transform.sources, g.transform.sources) &&
				(f.transform.sameAs(g.transform) || f.transform.isVoid() || g.transform.isVoid()) {
				continue
			}
			return moorage.Errorf(moorage.KindValidation,
				"Conflicting partition fields: %s has the id of %s in spec %d. Give the field another id, or none",
				f, g, o.ID)
		}
	}
	return nil
}

// SameAs reports whether two specs partition in the same way: they have fields with equal sources,
// transforms and names, in the same order. Ids do not matter. Source: Java
// PartitionSpec.compatibleWith.
func (p *Spec) SameAs(o *Spec) bool {
	return slices.EqualFunc(p.fields, o.fields, func(f, g specField) bool {
		return f.name == g.name && f.transform.sameAs(g.transform)
	})
}

// WithID returns the spec as it was sent, with its spec-id replaced or added, and the field ids
// that AssignFieldIDs has assigned. Known transforms get their lower-case spelling.
func (p *Spec) WithID(id int) []byte {
	patches := append(slices.Clone(p.patches), p.members.Set("spec-id", strconv.Itoa(id)))
	if p.fieldIDs == idsAssigned {
		for _, f := range p.fields {
			patches = append(patches, f.members.Set("field-id", strconv.Itoa(f.id)))
		}
	}
	return jsontext.ApplyPatches(p.Raw, patches)
}

// AssignFieldIDs assigns ids to fields that were sent without field-id. The new ids follow last,
// the table's last-partition-id, and are at least 1000. For a v1 table, last must be 0, because the
// ids of every v1 spec begin at 1000. AssignFieldIDs does nothing if the fields were sent with ids.
//
// The Java reference would begin at 1000 for every such spec. With two such specs, two fields share
// an id, and readers that join the partition types of all specs refuse the table.
func (p *Spec) AssignFieldIDs(last int) {
	if p.fieldIDs != idsMissing {
		return
	}
	p.fieldIDs = idsAssigned
	next := max(last+1, FirstPartitionFieldID)
	for i := range p.fields {
		p.fields[i].id = next + i
	}
	if len(p.fields) > 0 {
		p.LastFieldID = next + len(p.fields) - 1
	}
}
