package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/metadata/schema"
)

// The transforms come from iceberg-go. This test compares them with Transform.canTransform in the
// Java reference.
func TestTransformsTakeTheTypesThatJavaTakes(t *testing.T) {
	t.Parallel()
	const (
		times   = "timestamp timestamptz timestamp_ns timestamptz_ns"
		hashed  = "int long decimal(9,2) date time string uuid fixed[7] binary " + times
		plain   = hashed + " boolean float double unknown"
		strange = "variant geometry geography"
	)
	tests := []struct{ transform, takes string }{
		{"identity", plain},
		{"void", plain + " " + strange},
		{"zorder", plain + " " + strange},
		{"bucket[16]", hashed},
		{"truncate[4]", "int long decimal(9,2) string binary"},
		{"year", "date " + times},
		{"month", "date " + times},
		{"day", "date " + times},
		{"hour", times},
	}
	for _, tt := range tests {
		transform, err := schema.ParseTransform(tt.transform)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(plain + " " + strange) {
			typ, _, _, err := schema.ParsePrimitive(name)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Contains(strings.Fields(tt.takes), name)
			if got := transform.CanTransform(typ); got != want {
				t.Errorf("%s takes %s: %v, want %v", tt.transform, name, got, want)
			}
		}
	}
}

func TestParseTransform(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"identity": "identity", "Identity": "identity", "VOID": "void", "Year": "year", "month": "month", "DAY": "day", "hour": "hour",
		"bucket[16]": "bucket[16]", "BUCKET[016]": "bucket[16]", "truncate[2147483647]": "truncate[2147483647]",
		"Zorder[3]": "Zorder[3]", "bucket": "bucket", "bucket[]": "bucket[]", "bucket[-1]": "bucket[-1]", "bucket[ 4 ]": "bucket[ 4 ]",
		"days": "days", " identity": " identity",
	} {
		transform, err := schema.ParseTransform(name)
		if err != nil || transform.String() != want {
			t.Errorf("schema.ParseTransform(%q) = %v, %v, want %s", name, transform, err, want)
			continue
		}
		if raw := string(mustSpec(t, partitioned("p", name, 1)).WithID(0)); raw != partitioned("p", want, 1) {
			t.Errorf("transform %q is stored in %s", name, raw)
		}
	}
}

// If both packages parse two specs, either both consider them equal, or neither does.
func TestSpecSameAsAgainstOracle(t *testing.T) {
	t.Parallel()
	var raws []string
	for _, name := range []string{"p", "q"} {
		for _, transform := range []string{"identity", "bucket[4]", "Bucket[5]", "zorder", "ZORDER", "void"} {
			for source := 1; source <= 2; source++ {
				raws = append(raws, partitioned(name, transform, source))
			}
		}
	}
	raws = append(raws, `{"fields":[]}`, `{"fields":[{"name":"p","transform":"zorder","source-ids":[1,2],"field-id":1000}]}`,
		`{"fields":[{"name":"p","transform":"zorder","source-ids":[2,1],"field-id":1000}]}`,
		`{"fields":[{"name":"p","transform":"void","field-id":1000}]}`)
	theirs := make([]iceberg.PartitionSpec, len(raws))
	for i, raw := range raws {
		if err := theirs[i].UnmarshalJSON([]byte(raw)); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	for i, a := range raws {
		for j, b := range raws {
			got, want := mustSpec(t, a).SameAs(mustSpec(t, b)), theirs[i].CompatibleWith(&theirs[j])
			if got != want {
				t.Errorf("same %v, theirs %v:\n%s\n%s", got, want, a, b)
			}
		}
	}
}

// Every spec that may be added can be loaded by iceberg-go.
func TestAddedSpecsLoadInOracle(t *testing.T) {
	t.Parallel()
	s := mustSchema(t, columns)
	fields := []string{}
	for _, transform := range []string{"identity", "bucket[4]", "year", "hour", "truncate[3]", "void", "zorder"} {
		for _, source := range []int{0, 1, 2, 3, 6, 8, 11, 99} {
			fields = append(fields, fmt.Sprintf(`"transform":%q,"source-id":%d`, transform, source))
		}
	}
	fields = append(fields, `"transform":"zorder","source-ids":[1,2]`, `"transform":"zorder","source-id":1,"source-ids":[1,2]`,
		`"transform":"day","source-ids":[3]`, `"transform":"void"`)
	accepted := 0
	for _, first := range fields {
		for _, second := range fields {
			raw := fmt.Sprintf(`{"spec-id":0,"fields":[{"name":"a","field-id":1000,%s},{"name":"b","field-id":1001,%s}]}`, first, second)
			p, err := schema.ParseSpec([]byte(raw))
			if err != nil || p.Check(s, 2) != nil {
				continue
			}
			accepted++
			var theirs iceberg.PartitionSpec
			if err := theirs.UnmarshalJSON(p.WithID(1)); err != nil {
				t.Errorf("theirs cannot load %s: %v", p.WithID(1), err)
			}
		}
	}
	if accepted < 100 {
		t.Errorf("only %d specs are accepted", accepted)
	}
}
