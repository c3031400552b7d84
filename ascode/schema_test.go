package ascode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// The schema accepts what Encode writes, and refuses what Decode refuses for its form.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("code.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("code.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(file string) error {
		var value any
		if err := yaml.Unmarshal([]byte(file), &value); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	each(t, func(t *testing.T, _ random, c Catalog, _ World, _ Options) {
		file, err := Encode(c)
		if err == nil {
			err = validate(string(file))
		}
		if err != nil {
			t.Errorf("%v\n%s", err, file)
		}
	})
	if err := validate("roles: {a: , b: {members: [1]}}\nwarehouses: {l: {properties: {a: 1.5, b: true}}}"); err != nil {
		t.Errorf("scalars of other types: %v", err)
	}
	for _, file := range []string{
		"warehouse: {}", "roles: {a: {member: []}}", "roles: {a: {members: b}}", "warehouses: {l: {protected: maybe}}",
		"warehouses: {l: {namespaces: {n: {tables: {t: {managed: true}}}}}}", "warehouses: {l: {secret: {kind: access-key}}}",
		"server: {maintenance: {icebergCompaction: {status: maybe}}}", "warehouses: {l: {secret: {kind: a, env: B, secret-access-key: c}}}",
	} {
		_, decoded := Decode(File{"a.yaml", []byte(file)})
		if validate(file) == nil || decoded == nil {
			t.Errorf("%s: the schema says %v, Decode %v", file, validate(file), decoded)
		}
	}
}
