package schema

import (
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// Fresh gives the schema of a new table ids from 1 on, and binds the spec and the order to them.
// The schema gets id 0, and the spec gets id 0 with field ids from 1000. The sort order gets id 1,
// or 0 if it is unsorted. p and o may be nil. Everything else stays as the client sent it. All
// fields of a struct get their ids before the fields nested in them. Clients that request
// particular ids expect this order.
//
// Fresh returns KindValidation if a source of the spec or order is not in s. It makes no other
// checks: the caller must parse the results and call Check, which also checks the new ids. Source:
// Java TableMetadata.newTableMetadata, AssignFreshIds.
func Fresh(s *Schema, p *Spec, o *SortOrder) (
	schemaRaw, specRaw, orderRaw []byte, lastColumnID, lastPartitionID int, err error,
) {
	f := &freshIDs{ids: make(map[int]int, len(s.byID)), patches: slices.Clone(s.patches)}
	f.assign(s.root)
	if schemaRaw, err = f.schema(s); err != nil {
		return nil, nil, nil, 0, 0, err
	}
	specRaw, lastPartitionID = []byte(`{"spec-id":0,"fields":[]}`), FirstPartitionFieldID-1
	if p != nil {
		lastPartitionID += len(p.fields)
		if specRaw, err = f.spec(p); err != nil {
			return nil, nil, nil, 0, 0, err
		}
	}
	orderRaw = []byte(`{"order-id":0,"fields":[]}`)
	if o != nil {
		if orderRaw, err = f.order(o); err != nil {
			return nil, nil, nil, 0, 0, err
		}
	}
	return schemaRaw, specRaw, orderRaw, f.last, lastPartitionID, nil
}

// freshIDs maps the field ids of a request to the ids of the new table.
type freshIDs struct {
	ids     map[int]int
	last    int
	patches []jsontext.Patch // to the schema
}

func (f *freshIDs) assign(t *fieldType) {
	for _, child := range t.fields {
		f.last++
		f.ids[child.id] = f.last
		f.patches = append(f.patches, jsontext.Patch{At: child.idAt, With: strconv.Itoa(f.last)})
	}
	for _, child := range t.fields {
		f.assign(child.typ)
	}
}

func (f *freshIDs) schema(s *Schema) ([]byte, error) {
	patches := append(f.patches, s.members.Set("schema-id", "0"))
	if len(s.identifiers) > 0 {
		ids, missing := f.mapped(s.identifiers)
		if len(ids) < len(s.identifiers) {
			return nil, s.checkIdentifier(missing)
		}
		slices.Sort(ids)
		patches = append(patches, s.members.Set("identifier-field-ids", intList(ids)))
	}
	return jsontext.ApplyPatches(s.Raw, patches), nil
}

// mapped returns the new ids of the fields with the given ids. It stops at the first unknown field,
// and returns that field's id as missing.
func (f *freshIDs) mapped(ids []int) (fresh []int, missing int) {
	for _, id := range ids {
		freshID, ok := f.ids[id]
		if !ok {
			return fresh, id
		}
		fresh = append(fresh, freshID)
	}
	return fresh, 0
}

// sources returns the patches that bind a partition or sort field to the new ids.
func (f *freshIDs) sources(t columnTransform, members jsontext.Fields, what string) ([]jsontext.Patch, error) {
	ids, _ := f.mapped(t.sources)
	if len(ids) < len(t.sources) {
		return nil, moorage.Errorf(moorage.KindValidation, "Cannot find source column for %s", what)
	}
	var patches []jsontext.Patch
	if _, ok := members.Find("source-id"); ok {
		patches = append(patches, members.Set("source-id", strconv.Itoa(ids[0])))
	}
	if _, ok := members.Present("source-ids"); ok {
		patches = append(patches, members.Set("source-ids", intList(ids)))
	}
	return patches, nil
}

func (f *freshIDs) spec(p *Spec) ([]byte, error) {
	patches := append(slices.Clone(p.patches), p.members.Set("spec-id", "0"))
	for i, field := range p.fields {
		bound, err := f.sources(field.transform, field.members, "partition field: "+field.String())
		if err != nil {
			return nil, err
		}
		id := strconv.Itoa(FirstPartitionFieldID + i)
		patches = append(append(patches, bound...), field.members.Set("field-id", id))
	}
	return jsontext.ApplyPatches(p.Raw, patches), nil
}

func (f *freshIDs) order(o *SortOrder) ([]byte, error) {
	id := "1"
	if o.IsUnsorted() {
		id = "0"
	}
	patches := append(slices.Clone(o.patches), o.members.Set("order-id", id))
	for _, field := range o.fields {
		bound, err := f.sources(field.transform, field.members, "sort field: "+field.String())
		if err != nil {
			return nil, err
		}
		patches = append(patches, bound...)
	}
	return jsontext.ApplyPatches(o.Raw, patches), nil
}

func intList(ids []int) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return "[" + strings.Join(texts, ",") + "]"
}
