package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata/schema"
)

func mustSortOrder(t testing.TB, raw string) *schema.SortOrder {
	t.Helper()
	o, err := schema.ParseSortOrder([]byte(raw))
	if err != nil {
		t.Fatalf("schema.ParseSortOrder(%s): %v", raw, err)
	}
	return o
}

// sorted returns a sort order with one field.
func sorted(transform string, source int) string {
	return fmt.Sprintf(`{"order-id":1,"fields":[{"transform":%q,"source-id":%d,"direction":"asc","null-order":"nulls-first"}]}`, transform, source)
}

func TestParseSortOrder(t *testing.T) {
	t.Parallel()
	if o := mustSortOrder(t, sorted("identity", 1)); o.ID != 1 || o.IsUnsorted() {
		t.Errorf("id %d, unsorted %v", o.ID, o.IsUnsorted())
	}
	if o := mustSortOrder(t, `{"fields":[]}`); o.ID != 0 || !o.IsUnsorted() {
		t.Errorf("id %d, unsorted %v", o.ID, o.IsUnsorted())
	}
	if o := mustSortOrder(t, strings.Replace(sorted("identity", 1), `"order-id":1,`, ``, 1)); o.ID != 1 {
		t.Errorf("id %d without order-id", o.ID)
	}
}

func TestParseSortOrderRefuses(t *testing.T) {
	t.Parallel()
	field := func(members string) string { return `{"order-id":1,"fields":[{` + members + `}]}` }
	tests := []struct{ name, raw, text string }{
		{"empty", ``, "Cannot parse JSON"},
		{"text", `"x"`, "Cannot parse sort order from non-object"},
		{"no fields", `{"order-id":1}`, "Cannot parse missing field: fields"},
		{"fields text", `{"order-id":1,"fields":"x"}`, "Cannot parse sort order fields, not an array"},
		{"order-id fraction", `{"order-id":1.5,"fields":[]}`, "Cannot parse to an integer value: order-id: 1.5"},
		{"unsorted with id", `{"order-id":1,"fields":[]}`, "Unsorted order ID must be 0"},
		{"sorted with id 0", strings.Replace(sorted("identity", 1), `:1`, `:0`, 1), "Sort order ID 0 is reserved for unsorted order"},
		{"field number", `{"order-id":1,"fields":[1]}`, "Cannot parse sort field from non-object: 1"},
		{"no transform", field(`"source-id":1,"direction":"asc","null-order":"nulls-first"`), "Cannot parse missing string: transform"},
		{"no source-id", field(`"transform":"identity","direction":"asc","null-order":"nulls-first"`), "Cannot parse missing int: source-id"},
		{"no direction", field(`"transform":"identity","source-id":1,"null-order":"nulls-first"`), "Cannot parse missing string: direction"},
		{"other direction", field(`"transform":"identity","source-id":1,"direction":"up","null-order":"nulls-first"`), "Invalid sort direction: up"},
		{"no null-order", field(`"transform":"identity","source-id":1,"direction":"asc"`), "Cannot parse missing string: null-order"},
		{"other null-order", field(`"transform":"identity","source-id":1,"direction":"asc","null-order":"first"`), "Unexpected null order: first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, err := schema.ParseSortOrder([]byte(tt.raw))
			if o != nil || moorage.KindOf(err) != moorage.KindBadRequest || !strings.Contains(moorage.MessageOf(err), tt.text) {
				t.Errorf("schema.ParseSortOrder(%s) = %v, %v; want %q", tt.raw, o, err, tt.text)
			}
		})
	}
}

func TestSortOrderCheck(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, text string }{
		{"identity", sorted("identity", 1), ""},
		{"bucket", sorted("bucket[4]", 2), ""},
		{"unknown transform", sorted("hilbert", 2), ""},
		{"unsorted", `{"order-id":0,"fields":[]}`, ""},
		{"missing source", sorted("identity", 99), "Cannot find source column for sort field: identity(99) ASC NULLS FIRST"},
		{"missing source of void", sorted("void", 99), "Cannot find source column for sort field: void(99) ASC NULLS FIRST"},
		{"struct", sorted("identity", 7), "Cannot sort by non-primitive source field: struct<8: x: optional int>"},
		{"source-id together with source-ids", `{"fields":[{"transform":"x","source-id":1,"source-ids":[1],"direction":"asc","null-order":"nulls-first"}]}`, "Invalid source-id together with source-ids: x(1) ASC NULLS FIRST"},
		{"source id 0", sorted("identity", 0), "Invalid source id: identity(0) ASC NULLS FIRST"},
		{"day of long", sorted("day", 1), "Invalid source type long for transform: day"},
	}
	s := mustSchema(t, columns)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := mustSortOrder(t, tt.raw).Check(s)
			if (err == nil) != (tt.text == "") || moorage.MessageOf(err) != tt.text ||
				err != nil && moorage.KindOf(err) != moorage.KindValidation {
				t.Errorf("check of %s = %v, want %q", tt.raw, err, tt.text)
			}
		})
	}
}

func TestSortOrderSameAsAndWithID(t *testing.T) {
	t.Parallel()
	base := sorted("identity", 1)
	shout := strings.NewReplacer("identity", "Identity", "asc", "ASC", "nulls-first", "NULLS-FIRST").Replace(base)
	for other, want := range map[string]bool{
		base:                                    true,
		shout:                                   true,
		strings.Replace(base, ":1", ":4", 1):    true,
		sorted("identity", 2):                   false,
		sorted("void", 1):                       false,
		strings.Replace(base, "asc", "desc", 1): false,
		strings.Replace(base, "first", "last", 1): false,
		`{"order-id":0,"fields":[]}`:              false,
	} {
		if got := mustSortOrder(t, base).SameAs(mustSortOrder(t, other)); got != want {
			t.Errorf("%s same as %s = %v, want %v", base, other, got, want)
		}
	}
	if got := string(mustSortOrder(t, shout).WithID(1)); got != base {
		t.Errorf("withID corrects the spelling to %s, want %s", got, base)
	}
	if got := string(mustSortOrder(t, `{"fields":[] , "x":0.0}`).WithID(0)); got != `{"order-id":0,"fields":[] , "x":0.0}` {
		t.Errorf("withID(0) = %s", got)
	}
}
