package console

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// document has the members of a table's metadata that pages show.
type document struct {
	Format        int                `json:"format-version"`
	UUID          string             `json:"table-uuid"`
	Location      string             `json:"location"`
	LastUpdatedMS int64              `json:"last-updated-ms"`
	LastColumn    int                `json:"last-column-id"`
	Schemas       []schema           `json:"schemas"`
	CurrentSchema int                `json:"current-schema-id"`
	Specs         []spec             `json:"partition-specs"`
	DefaultSpec   int                `json:"default-spec-id"`
	Orders        []sortOrder        `json:"sort-orders"`
	DefaultOrder  int                `json:"default-sort-order-id"`
	Properties    map[string]string  `json:"properties"`
	Current       *int64             `json:"current-snapshot-id"`
	Snapshots     []snapshot         `json:"snapshots"`
	Refs          map[string]ref     `json:"refs"`
	Log           []metadataFile     `json:"metadata-log"`
	SnapshotLog   []snapshotLogEntry `json:"snapshot-log"`
}

type schema struct {
	ID         int           `json:"schema-id"`
	Fields     []schemaField `json:"fields"`
	Identifier []int         `json:"identifier-field-ids"`
}

type schemaField struct {
	ID       int             `json:"id"`
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Required bool            `json:"required"`
	Doc      string          `json:"doc"`
	Initial  json.RawMessage `json:"initial-default"`
	Write    json.RawMessage `json:"write-default"`
}

type spec struct {
	ID     int         `json:"spec-id"`
	Fields []specField `json:"fields"`
}

type specField struct {
	Name      string `json:"name"`
	Source    int    `json:"source-id"`
	Sources   []int  `json:"source-ids"`
	Transform string `json:"transform"`
}

type sortOrder struct {
	ID     int         `json:"order-id"`
	Fields []sortField `json:"fields"`
}

type sortField struct {
	Source    int    `json:"source-id"`
	Transform string `json:"transform"`
	Direction string `json:"direction"`
	Nulls     string `json:"null-order"`
}

type snapshot struct {
	ID       int64             `json:"snapshot-id"`
	Parent   *int64            `json:"parent-snapshot-id"`
	Sequence int64             `json:"sequence-number"`
	MS       int64             `json:"timestamp-ms"`
	Summary  map[string]string `json:"summary"`
	Manifest string            `json:"manifest-list"`
	Schema   *int              `json:"schema-id"`
}

type ref struct {
	Snapshot     int64  `json:"snapshot-id"`
	Type         string `json:"type"`
	MinSnapshots *int64 `json:"min-snapshots-to-keep"`
	MaxAgeMS     *int64 `json:"max-snapshot-age-ms"`
	MaxRefAgeMS  *int64 `json:"max-ref-age-ms"`
}

type metadataFile struct {
	File string `json:"metadata-file"`
	MS   int64  `json:"timestamp-ms"`
}

type snapshotLogEntry struct {
	Snapshot int64 `json:"snapshot-id"`
	MS       int64 `json:"timestamp-ms"`
}

// schemaNow returns the current schema.
func (d document) schemaNow() schema {
	for _, each := range d.Schemas {
		if each.ID == d.CurrentSchema {
			return each
		}
	}
	return schema{}
}

// snapshot returns the snapshot with an id, or nil if the table has none.
func (d document) snapshot(id int64) *snapshot {
	for i := range d.Snapshots {
		if d.Snapshots[i].ID == id {
			return &d.Snapshots[i]
		}
	}
	return nil
}

// number returns a number of the summary, or nil if the summary lacks it.
func (s *snapshot) number(key string) *int64 {
	if s == nil {
		return nil
	}
	n, err := strconv.ParseInt(s.Summary[key], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// at returns the time of the snapshot.
func (s *snapshot) at() time.Time { return time.UnixMilli(s.MS).UTC() }

// refNames returns the names of refs: main first, then branches, then tags.
func (d document) refNames() []string {
	rank := func(name string) int {
		switch {
		case name == "main":
			return 0
		case d.Refs[name].Type == "branch":
			return 1
		}
		return 2
	}
	return slices.SortedFunc(maps.Keys(d.Refs), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

// columnNames returns the names of the columns of all schemas by their ids. The current schema
// wins.
func (d document) columnNames() map[int]string {
	names := map[int]string{}
	for _, each := range d.Schemas {
		for _, field := range each.Fields {
			nameFields(names, "", field)
		}
	}
	for _, field := range d.schemaNow().Fields {
		nameFields(names, "", field)
	}
	return names
}

// nameFields adds the names of a field and of the fields in it.
func nameFields(names map[int]string, within string, f schemaField) {
	path := f.Name
	if within != "" {
		path = within + "." + f.Name
	}
	names[f.ID] = path
	for _, inner := range nested(f.Type) {
		nameFields(names, path, inner)
	}
}

// nested returns the fields in a type: the fields of a struct, the element of a list, key and value
// of a map.
func nested(typ json.RawMessage) []schemaField {
	var t struct {
		Fields    []schemaField   `json:"fields"`
		ElementID int             `json:"element-id"`
		Element   json.RawMessage `json:"element"`
		Key       json.RawMessage `json:"key"`
		KeyID     int             `json:"key-id"`
		Value     json.RawMessage `json:"value"`
		ValueID   int             `json:"value-id"`
	}
	if json.Unmarshal(typ, &t) != nil {
		return nil // a primitive type
	}
	fields := t.Fields
	if t.Element != nil {
		fields = append(fields, schemaField{ID: t.ElementID, Name: "element", Type: t.Element})
	}
	if t.Key != nil {
		fields = append(fields, schemaField{ID: t.KeyID, Name: "key", Type: t.Key},
			schemaField{ID: t.ValueID, Name: "value", Type: t.Value})
	}
	return fields
}

// defaults returns the defaults of the columns of a schema by their ids, as JSON.
func (s schema) defaults() map[int]string {
	found := map[int]string{}
	var visit func(f schemaField)
	visit = func(f schemaField) {
		if value := cmp.Or(string(f.Write), string(f.Initial)); value != "" {
			found[f.ID] = value
		}
		for _, inner := range nested(f.Type) {
			visit(inner)
		}
	}
	for _, f := range s.Fields {
		visit(f)
	}
	return found
}

// partitioning returns how the table is partitioned: "month(ordered_at), bucket[16](id)".
func (d document) partitioning() []string {
	names := d.columnNames()
	var parts []string
	for _, each := range d.Specs {
		if each.ID != d.DefaultSpec {
			continue
		}
		for _, f := range each.Fields {
			parts = append(parts, transformed(f.Transform, sourceName(names, f.Source, f.Sources)))
		}
	}
	return parts
}

// sorting returns how the rows are sorted: "ordered_at desc nulls last".
func (d document) sorting() []string {
	names := d.columnNames()
	var parts []string
	for _, each := range d.Orders {
		if each.ID != d.DefaultOrder {
			continue
		}
		for _, f := range each.Fields {
			part := transformed(f.Transform, sourceName(names, f.Source, nil)) + " " + f.Direction
			if f.Nulls != "" {
				part += ", " + map[string]string{"nulls-first": "nulls first", "nulls-last": "nulls last"}[f.Nulls]
			}
			parts = append(parts, part)
		}
	}
	return parts
}

func sourceName(names map[int]string, source int, sources []int) string {
	if len(sources) > 0 {
		source = sources[0]
	}
	if found, ok := names[source]; ok {
		return found
	}
	return "column " + strconv.Itoa(source)
}

// transformed returns a column with its transform.
func transformed(transform, column string) string {
	if transform == "identity" || transform == "" {
		return column
	}
	return transform + "(" + column + ")"
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
