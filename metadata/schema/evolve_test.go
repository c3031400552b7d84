package schema_test

import (
	"fmt"
	"testing"

	"moorage"
	"moorage/metadata/schema"
)

// A field keeps its type, or gets a type to which the specification allows promotion.
func TestCheckEvolved(t *testing.T) {
	t.Parallel()
	one := func(typ string) *schema.Schema {
		t.Helper()
		s, err := schema.Parse(fmt.Appendf(nil, `{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":%s}]}`, typ))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const list = `{"type":"list","element-id":2,"element":%q,"element-required":false}`
	for _, tt := range []struct {
		from, to string
		version  int
		ok       bool
	}{
		{`"int"`, `"int"`, 2, true}, {`"int"`, `"long"`, 1, true}, {`"long"`, `"int"`, 2, false},
		{`"float"`, `"double"`, 2, true}, {`"double"`, `"float"`, 2, false}, {`"int"`, `"string"`, 2, false},
		{`"decimal(9,2)"`, `"decimal(12,2)"`, 2, true}, {`"decimal(12,2)"`, `"decimal(9,2)"`, 2, false},
		{`"decimal(9,2)"`, `"decimal(12,3)"`, 2, false}, {`"fixed[4]"`, `"fixed[8]"`, 2, false},
		{`"date"`, `"timestamp"`, 3, true}, {`"date"`, `"timestamp_ns"`, 3, true},
		{`"date"`, `"timestamp"`, 2, false}, {`"date"`, `"timestamptz"`, 3, false},
		{`"unknown"`, `"string"`, 3, true}, {`"unknown"`, fmt.Sprintf(list, "int"), 3, true},
		{fmt.Sprintf(list, "int"), fmt.Sprintf(list, "long"), 2, true},
		{fmt.Sprintf(list, "long"), fmt.Sprintf(list, "int"), 2, false},
		{fmt.Sprintf(list, "int"), `"int"`, 2, false},
		{fmt.Sprintf(list, "int"), `{"type":"struct","fields":[]}`, 2, false},
	} {
		err := one(tt.to).CheckEvolved(one(tt.from), nil, tt.version)
		if (err == nil) != tt.ok || err != nil && moorage.KindOf(err) != moorage.KindValidation {
			t.Errorf("%s to %s in format %d: %v", tt.from, tt.to, tt.version, err)
		}
	}
}
