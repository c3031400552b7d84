package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"moorage"
	"moorage/metadata/schema"
)

// defaulted returns a schema with one field of the given type and write-default.
func defaulted(typ, literal string) string {
	return fmt.Sprintf(`{"type":"struct","fields":[{"id":1,"name":"c","required":false,"type":%s,"write-default":%s}]}`, typ, literal)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ typ, good, bad string }{ // literals, separated by blanks
		{"boolean", `true false`, `0 1 "true" {} []`},
		{"int", `0 -0 -1 2147483647 -2147483648`, `2147483648 1.0 1e2 "1" true [1]`},
		{"long", `0 9223372036854775807 -9223372036854775808 9007199254740993`, `9223372036854775808 0.0 "0"`},
		{"float", `0.0 -0.0 1.5 1e3 1E-3 3.4e38`, `0 1 -7 1e39 "1.0" "NaN"`},
		{"double", `0.0 -0.0 1.5 1e300 0.1`, `0 10 1e999 "1.0" "Infinity" true`},
		{"decimal(9,2)", `"0.00" "-1.20" "1234567.89" "+1.00" "123e-2" ".12"`, `1.20 "1.2" "1" "1.234" "12345678.90" "" "x" "1.2.3" "1e400"`},
		{"decimal(9,0)", `"0" "7" "007" "70e0" "7." `, `7 "7.0" "7e1"`},
		{"date", `"2024-02-29" "1969-12-31" "0000-01-01" "-0001-01-01" "+12345-01-01"`, `"2023-02-29" "2024-13-01" "2024-1-1" "12345-01-01" "2024-02-29T00:00" 19000 ""`},
		{"time", `"00:00" "23:59:59" "10:11:12.123456" "10:11:12.1"`, `"24:00" "23:60" "23:59:60" "10:11:12." "1:00" 5 "10:11:12Z"`},
		{"timestamp", `"2024-02-29T10:11:12.123456" "1969-12-31T23:59" "2024-02-29t10:11"`, `"2024-02-29" "2024-02-29T10:11:12+00:00" "2024-02-29_10:11" "2023-02-29T10:11" 1`},
		{"timestamptz", `"2024-02-29T10:11:12.123456+00:00" "1969-12-31T23:59Z" "1969-12-31T23:59-00:00"`, `"2024-02-29T10:11:12" "2024-02-29T10:11:12+01:00" "2024-02-29+00:00"`},
		{"timestamp_ns", `"2024-02-29T10:11:12.123456789" "1677-09-21T00:12:43.145224192" "2262-04-11T23:47:16.854775807"`, `"1677-09-21T00:12:43.145224191" "2262-04-11T23:47:16.854775808" "9999-01-01T00:00"`},
		{"timestamptz_ns", `"2024-02-29T10:11:12.123456789+00:00"`, `"2024-02-29T10:11:12.123456789" "2024-02-29T10:11:12.123456789+05:30"`},
		{"string", `"" "a\u0000\"b" "null"`, `0 true [] {}`},
		{"uuid", `"f79c3e09-677c-4bbd-a479-3f349cb785e7" "F79C3E09-677C-4BBD-A479-3F349CB785E7"`, `"f79c3e09677c4bbda4793f349cb785e7" "f79c3e09-677c-4bbd-a479-3f349cb785eg" "" 1`},
		{"fixed[2]", `"01Ff"`, `"01" "01ff00" "01fg" "" 1`},
		{"binary", `"" "00" "DEADbeef"`, `"0" "0x" [0] 0`},
		{"unknown", ``, `"" 0 {}`},
		{"variant", ``, `"" 0 {}`},
		{"geometry", ``, `"" "POINT(1)"`},
		{"geography", ``, `"" 0`},
	}
	for _, tt := range tests {
		t.Run(tt.typ, func(t *testing.T) {
			t.Parallel()
			quoted := fmt.Sprintf("%q", tt.typ)
			for literal := range strings.FieldsSeq(tt.good) {
				if err := mustSchema(t, defaulted(quoted, literal)).Check(3); err != nil {
					t.Errorf("default %s: %v", literal, err)
				}
			}
			for literal := range strings.FieldsSeq(tt.bad) {
				s, err := schema.Parse([]byte(defaulted(quoted, literal)))
				if err != nil {
					t.Fatalf("schema.Parse with default %s: %v", literal, err)
				}
				err = s.Check(3)
				if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.HasPrefix(moorage.MessageOf(err), "Cannot parse default as a ") {
					t.Errorf("default %s: %v, want it refused", literal, err)
				}
			}
		})
	}
}

func TestDefaultOfNestedTypeMustBeNull(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{
		`{"type":"struct","fields":[]}`,
		`{"type":"list","element-id":2,"element-required":true,"element":"int"}`,
		`{"type":"map","key-id":2,"key":"int","value-id":3,"value-required":true,"value":"int"}`,
	} {
		for _, literal := range []string{`{}`, `[]`, `{"keys":[],"values":[]}`, `0`, `""`} {
			err := mustSchema(t, defaulted(typ, literal)).Check(3)
			if !strings.HasPrefix(moorage.MessageOf(err), "Invalid default value for ") {
				t.Errorf("default %s of %s: %v, want it refused", literal, typ, err)
			}
		}
		if err := mustSchema(t, defaulted(typ, `null`)).Check(3); err != nil {
			t.Errorf("null default of %s: %v", typ, err)
		}
	}
}

func TestEqualDefaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		typ, a, b string
		want      bool
	}{
		{"long", `9007199254740993`, `9007199254740992`, false},
		{"double", `1e1`, `10.0`, true},
		{"double", `0.0`, `-0.0`, false},
		{"double", `10`, `10.0`, true}, // a document from another library may contain it
		{"float", `0.1`, `0.10000000149`, true},
		{"double", `0.1`, `0.10000000149`, false},
		{"decimal(9,2)", `"1.20"`, `"+01.20"`, true},
		{"decimal(9,2)", `"-1.20"`, `"1.20"`, false},
		{"decimal(9,2)", `"-0.00"`, `"0.00"`, true},
		{"date", `"1969-12-31"`, `"1970-01-01"`, false},
		{"time", `"10:00"`, `"10:00:00.000"`, true},
		{"timestamp", `"1969-12-31T23:59"`, `"1969-12-31t23:59:00"`, true},
		{"timestamptz", `"2024-01-01T00:00Z"`, `"2024-01-01T00:00:00+00:00"`, true},
		{"timestamp_ns", `"2024-01-01T00:00:00.000000001"`, `"2024-01-01T00:00:00.000000002"`, false},
		{"uuid", `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, `"F79C3E09-677C-4BBD-A479-3F349CB785E7"`, true},
		{"binary", `"ab"`, `"AB"`, true},
		{"string", `"a"`, `"\u0061"`, true},
		{"string", `"a"`, `"A"`, false},
		{"string", `"a"`, `null`, false},
	}
	for _, tt := range tests {
		quoted := fmt.Sprintf("%q", tt.typ)
		a, b := mustSchema(t, defaulted(quoted, tt.a)), mustSchema(t, defaulted(quoted, tt.b))
		if got := a.SameAs(b); got != tt.want {
			t.Errorf("%s: %s equals %s = %v, want %v", tt.typ, tt.a, tt.b, got, tt.want)
		}
	}
}
