package rows

import (
	"encoding/json"
	"slices"

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

// parseMapping reads the property schema.name-mapping.default.
func parseMapping(text string) ([]mappedField, error) {
	var mapping []mappedField
	if err := json.Unmarshal([]byte(text), &mapping); err != nil {
		return nil, notShown("the property schema.name-mapping.default is no name mapping")
	}
	return mapping, nil
}

// mapIDs gives the nodes in a group the ids of a mapping. The elements of lists, and the keys and
// values of maps, have the names element, key and value there.
func (b *binder) mapIDs(group *parquet.Node, mapping []mappedField) {
	for i, n := range group.Children {
		names := []string{n.Name}
		switch {
		case group.Repetition != parquet.Repeated:
		case len(group.Children) == 1:
			names = []string{"element"}
		case len(group.Children) == 2:
			names = []string{[]string{"key", "value"}[i]}
		}
		at := slices.IndexFunc(mapping, func(f mappedField) bool { return slices.Contains(f.Names, names[0]) })
		if at < 0 {
			continue
		}
		if mapping[at].ID != nil {
			b.ids[n] = *mapping[at].ID
		}
		inner := n
		if (n.Annotation == parquet.List || n.Annotation == parquet.Map) && len(n.Children) == 1 {
			inner = n.Children[0]
		}
		b.mapIDs(inner, mapping[at].Fields)
	}
}
