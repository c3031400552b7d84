package rows

import (
	"encoding/json"

	"moorage/catalog/rows/parquet"
)

// mappedField is a field of a name mapping.
//
// Source: table specification, "Column Projection", "Name Mapping Serialization".
type mappedField struct {
	ID     *int          `json:"field-id"`
	Names  []string      `json:"names"`
	Fields []mappedField `json:"fields"`
}

// mapping holds the fields of a group by name.
type mapping map[string]*mapped

// mapped is the entry of one name in a mapping.
type mapped struct {
	id    *int // may be nil
	inner mapping
}

// parseMapping reads the property schema.name-mapping.default.
func parseMapping(text string) (mapping, error) {
	var fields []mappedField
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, notShown("the property schema.name-mapping.default is no name mapping")
	}
	return mappingOf(fields), nil
}

// mappingOf returns the mapping of fields. If a name occurs twice, the first field gets it.
func mappingOf(fields []mappedField) mapping {
	m := make(mapping, len(fields))
	for _, f := range fields {
		field := &mapped{f.ID, mappingOf(f.Fields)}
		for _, name := range f.Names {
			if m[name] == nil {
				m[name] = field
			}
		}
	}
	return m
}

// mapIDs assigns the IDs of a mapping to the nodes in a group. If the group is the repeated group
// of a list or map, of is the annotation of that list or map. Otherwise it is None. It matters
// because a mapping calls list elements "element", and map keys and values "key" and "value".
func (b *binder) mapIDs(group *parquet.Node, of parquet.Annotation, names mapping) {
	for i, n := range group.Children {
		name := n.Name
		switch {
		case of == parquet.List && len(group.Children) == 1:
			name = "element"
		case of == parquet.Map && len(group.Children) == 2:
			name = []string{"key", "value"}[i]
		}
		field := names[name]
		if field == nil {
			continue
		}
		if field.id != nil {
			b.ids[n] = *field.id
		}
		if (n.Annotation == parquet.List || n.Annotation == parquet.Map) && len(n.Children) == 1 {
			b.mapIDs(n.Children[0], n.Annotation, field.inner)
			continue
		}
		b.mapIDs(n, parquet.None, field.inner)
	}
}
