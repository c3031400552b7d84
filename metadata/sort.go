package metadata

import (
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
)

// sortOrder is a parsed sort order, with the bytes it was sent as. It is immutable, and safe for
// concurrent use.
type sortOrder struct {
	id      int    // order-id; if the order does not say, 0 when it is unsorted, else 1
	raw     []byte // as sent
	fields  []sortField
	members jsonObject
	patches []patch
}

// sortField is a field of a sort order.
type sortField struct {
	transform columnTransform
	direction string // "asc" or "desc"
	nullOrder string // "nulls-first" or "nulls-last"
	members   jsonObject
}

// parseSortOrder reads a sort order. Malformed JSON, a missing member, an unknown direction and an
// id that does not fit (0 is the unsorted order, and only that) are KindBadRequest.
func parseSortOrder(raw []byte) (*sortOrder, error) {
	members, err := parseObject(raw, "sort order")
	if err != nil {
		return nil, err
	}
	o := &sortOrder{raw: raw, members: members}
	fields, err := members.required("fields")
	if err != nil {
		return nil, err
	}
	isArray, err := members.eachObject(fields, "sort field", o.parseField)
	switch {
	case err != nil:
		return nil, err
	case !isArray:
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse sort order fields, not an array: %s", jsontext.Clip(members.text(fields)))
	}
	if err := o.parseID(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *sortOrder) parseID() error {
	if !o.isUnsorted() {
		o.id = 1
	}
	if _, ok := o.members.present("order-id"); !ok {
		return nil
	}
	var err error
	if o.id, _, err = o.members.integer("order-id"); err != nil {
		return err
	}
	if o.isUnsorted() && o.id != 0 {
		return moorage.Errorf(moorage.KindBadRequest, "Unsorted order ID must be 0")
	}
	if !o.isUnsorted() && o.id == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "Sort order ID 0 is reserved for unsorted order")
	}
	return nil
}

func (o *sortOrder) parseField(members jsonObject) error {
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
// in what is stored.
func (o *sortOrder) parseWord(members jsonObject, key, refusal string, words ...string) (string, error) {
	text, at, err := members.str(key)
	if err != nil {
		return "", err
	}
	word := strings.ToLower(text)
	if !slices.Contains(words, word) {
		return "", moorage.Errorf(moorage.KindBadRequest, refusal, jsontext.Clip(text))
	}
	if word != text {
		o.patches = append(o.patches, patch{at, jsontext.Quote(word)})
	}
	return word, nil
}

// isUnsorted reports whether the order has no fields.
func (o *sortOrder) isUnsorted() bool { return len(o.fields) == 0 }

// sameAs reports whether two orders have equal fields. Ids do not matter. Source: Java
// SortOrder.sameOrder.
func (o *sortOrder) sameAs(other *sortOrder) bool {
	return slices.EqualFunc(o.fields, other.fields, func(f, g sortField) bool {
		return f.direction == g.direction && f.nullOrder == g.nullOrder && f.transform.sameAs(g.transform)
	})
}

// String returns the field as the Java reference prints it.
func (f sortField) String() string {
	nulls := strings.ToUpper(strings.ReplaceAll(f.nullOrder, "-", " "))
	return jsontext.Clip(f.transform.String()) + " " + strings.ToUpper(f.direction) + " " + nulls
}

// check refuses an order that must not be added to a table with the current schema s. It refuses
// what checkBound refuses, and what the Java reference would write and another reader could not
// load (KindValidation).
func (o *sortOrder) check(s *schema) error {
	for _, f := range o.fields {
		if err := f.transform.checkMembers(f.members, f.String()); err != nil {
			return err
		}
	}
	return o.checkBound(s)
}

// checkBound refuses an order that cannot be applied to the schema s (KindValidation). Source
// columns must exist, be primitive and have a type that the transform takes. Source: Java
// SortOrder.checkCompatibility.
func (o *sortOrder) checkBound(s *schema) error {
	for _, f := range o.fields {
		if err := f.transform.checkSources(s, "sort by", "sort field: "+f.String()); err != nil {
			return err
		}
	}
	return nil
}

// withID returns the order as it was sent, with its order-id replaced or added.
func (o *sortOrder) withID(id int) []byte {
	patches := append(slices.Clone(o.patches), o.members.setMember("order-id", strconv.Itoa(id)))
	return applyPatches(o.raw, patches)
}
