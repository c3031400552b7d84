package ascode

import (
	"reflect"
	"strings"
)

// Schema returns the JSON Schema of a file, as a value that encoding/json writes. It is made of the
// types that Decode reads. Source: JSON Schema, draft 2020-12.
func Schema() map[string]any {
	definitions := make(map[string]any)
	root := schemaOf(reflect.TypeFor[Catalog](), definitions)
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Moorage: a catalog as code",
		"$defs": definitions, "$ref": root["$ref"],
	}
}

// schemaOf returns the schema of a type. That of an object is in definitions, and the result refers
// to it.
func schemaOf(t reflect.Type, definitions map[string]any) map[string]any {
	scalar := []string{"string", "number", "boolean"}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Bool {
			return map[string]any{"type": "boolean"}
		}
		return schemaOf(t.Elem(), definitions)
	case reflect.String:
		return map[string]any{"type": scalar}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": map[string]any{"type": scalar}, "uniqueItems": true}
	case reflect.Map:
		inner := schemaOf(t.Elem(), definitions)
		if reference, isObject := inner["$ref"]; isObject { // a name alone describes an object
			inner = map[string]any{"anyOf": []any{map[string]any{"$ref": reference}, map[string]any{"type": "null"}}}
		}
		return map[string]any{"type": "object", "additionalProperties": inner}
	}
	name := strings.ToLower(t.Name())
	reference := map[string]any{"$ref": "#/$defs/" + name}
	if _, isMade := definitions[name]; isMade {
		return reference
	}
	properties, needed := make(map[string]any), []string{}
	made := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	definitions[name] = made // before its fields: a namespace has namespaces
	for _, field := range fieldsOf(t) {
		inner := schemaOf(field.kind, definitions)
		described := map[string]any{"description": field.help}
		for key, value := range inner {
			described[key] = value
		}
		if field.only != "" {
			described["enum"] = strings.Split(field.only, ",")
		}
		properties[field.key] = described
		if field.isNeeded {
			needed = append(needed, field.key)
		}
	}
	if len(needed) > 0 {
		made["required"] = needed
	}
	return reference
}
