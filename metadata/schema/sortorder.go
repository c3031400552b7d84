package schema

import (
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// SortOrder is a parsed sort order, with its bytes from the request. It is immutable, and safe for
// concurrent use.
type SortOrder struct {
	ID      int    // order-id; if absent, 0 for an unsorted order and otherwise 1
	Raw     []byte // as sent
	fields  []sortField
	members jsontext.Fields
	patches []jsontext.Patch
}

// sortField is a field of a sort order.
type sortField struct {
	transform columnTransform
	direction string // "asc" or "desc"
	nullOrder string // "nulls-first" or "nulls-last"
	members   jsontext.Fields
}

// ParseSortOrder reads a sort order. It returns KindBadRequest if the JSON is malformed, a member
// is missing, a direction is unknown, or the id is wrong. The id 0 is reserved for the unsorted
// order.
func ParseSortOrder(raw []byte) (*SortOrder, error) {
	members, err := jsontext.ParseFields(raw, "sort order")
	if err != nil {
		return nil, err
	}
	o := &SortOrder{Raw: raw, members: members}
	fields, err := members.Required("fields")
	if err != nil {
		return nil, err
	}
	isArray, err := members.EachObject(fields, "sort field", o.parseField)
	switch {
	case err != nil:
		return nil, err
	case !isArray:
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse sort order fields, not an array: %s", jsontext.Clip(members.Text(fields)))
	}
	if err := o.parseID(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *SortOrder) parseID() error {
	if !o.IsUnsorted() {
		o.ID = 1
	}
	if _, ok := o.members.Present("order-id"); !ok {
		return nil
	}
	var err error
	if o.ID, _, err = o.members.Int("order-id"); err != nil {
		return err
	}
	if o.IsUnsorted() && o.ID != 0 {
		return moorage.Errorf(moorage.KindBadRequest, "Unsorted order ID must be 0")
	}
	if !o.IsUnsorted() && o.ID == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "Sort order ID 0 is reserved for unsorted order")
	}
	return nil
}

func (o *SortOrder) parseField(members jsontext.Fields) error {
	f := sortField{members: members}
	var err error
	if f.transform, err = parseColumnTransform(members); err != nil {
		return err
	}
	o.patches = append(o.patches, f.transform.spelling()...)
	if f.direction, err = o.parseWord(members, "direction", "Invalid sort direction: %s", "asc", "desc"); err != nil {
		return err
	}
	f.nullOrder, err = o.parseWord(members, "null-order", "Unexpected null order: %s", "nulls-first", "nulls-last")
	if err != nil {
		return err
	}
	o.fields = append(o.fields, f)
	return nil
}

// parseWord reads a member that is one of two words, in any letter case. It corrects the spelling
// in the stored bytes.
func (o *SortOrder) parseWord(members jsontext.Fields, key, refusal string, words ...string) (string, error) {
	text, at, err := members.Str(key)
	if err != nil {
		return "", err
	}
	word := strings.ToLower(text)
	if !slices.Contains(words, word) {
		return "", moorage.Errorf(moorage.KindBadRequest, refusal, jsontext.Clip(text))
	}
	if word != text {
		o.patches = append(o.patches, jsontext.Patch{At: at, With: jsontext.Quote(word)})
	}
	return word, nil
}

// IsUnsorted reports whether the order has no fields.
func (o *SortOrder) IsUnsorted() bool { return len(o.fields) == 0 }

// SameAs reports whether two orders have equal fields. Ids do not matter. Source: Java
// SortOrder.sameOrder.
func (o *SortOrder) SameAs(other *SortOrder) bool {
	return slices.EqualFunc(o.fields, other.fields, func(f, g sortField) bool {
		return f.direction == g.direction && f.nullOrder == g.nullOrder && f.transform.sameAs(g.transform)
	})
}

// String returns the field as the Java reference prints it.
func (f sortField) String() string {
	nulls := strings.ToUpper(strings.ReplaceAll(f.nullOrder, "-", " "))
	return jsontext.Clip(f.transform.String()) + " " + strings.ToUpper(f.direction) + " " + nulls
}

// Check returns KindValidation for an order that must not be added to a table with the current
// schema s. It refuses every order that CheckBound refuses. It also refuses orders that the Java
// reference would write but some other reader could not load.
func (o *SortOrder) Check(s *Schema) error {
	for _, f := range o.fields {
		if err := f.transform.checkMembers(f.members, f.String()); err != nil {
			return err
		}
	}
	return o.CheckBound(s)
}

// CheckBound returns KindValidation for an order that cannot be applied to the schema s. Source
// columns must exist, be primitive and have a type that the transform accepts. Source: Java
// SortOrder.checkCompatibility.
func (o *SortOrder) CheckBound(s *Schema) error {
	for _, f := range o.fields {
		if err := f.transform.checkSources(s, "sort by", "sort field: "+f.String()); err != nil {
			return err
		}
	}
	return nil
}

// WithID returns the order as it was sent, with its order-id replaced or added.
func (o *SortOrder) WithID(id int) []byte {
	patches := append(slices.Clone(o.patches), o.members.Set("order-id", strconv.Itoa(id)))
	return jsontext.ApplyPatches(o.Raw, patches)
}
