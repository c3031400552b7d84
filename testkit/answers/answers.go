// Package answers validates the answers of a server against OpenAPI files: one of the Iceberg REST
// specification, and one of Moorage's management API. A Judge finds the operation for a request. It
// validates the answer against the file's schema for the status.
package answers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// schemaURL is the address of a file for the compiler of its schemas.
const schemaURL = "openapi.json"

// Judge validates answers against one OpenAPI file. It is safe for concurrent use.
type Judge struct {
	file    map[string]any
	paths   [][]string // of the operations, in segments
	base    string     // the first segments of all paths in the file
	failure string     // the schema of all failures

	mu       sync.Mutex // guards the fields below; leaf
	compiler *jsonschema.Compiler
}

// Specification returns the Judge of the Iceberg REST specification. text is its OpenAPI file.
// Every failure must be an IcebergErrorResponse, which all clients can read, although for
// operations on views the file has an ErrorModel without that envelope. Specification also adds
// members that clients read, but that the file may lack: labels of tables and views (pull request
// 15750 of apache/iceberg) and remote-signing-config (16822).
func Specification(text []byte) (*Judge, error) {
	return read(text, "/v1/", "#/components/schemas/IcebergErrorResponse", func(file map[string]any) error {
		for _, name := range []string{"LoadTableResult", "LoadViewResult"} {
			properties, ok := dig(file, "components", "schemas", name, "properties").(map[string]any)
			if !ok {
				return fmt.Errorf("the file has no schema %s with properties", name)
			}
			properties["labels"] = labels()
		}
		table := dig(file, "components", "schemas", "LoadTableResult", "properties").(map[string]any)
		if table["remote-signing-config"] == nil {
			table["remote-signing-config"] = map[string]any{"type": "object"}
		}
		// Java writes null for tables of format 3 without a snapshot.
		current := dig(file, "components", "schemas", "TableMetadata", "properties", "current-snapshot-id")
		if schema, ok := current.(map[string]any); ok {
			schema["type"] = []any{"integer", "null"}
		}
		// A number fits the file's integer, long and more; "variant" fits its primitive types too.
		for _, name := range []string{"PrimitiveTypeValue", "Type"} {
			if value, ok := dig(file, "components", "schemas", name).(map[string]any); ok {
				value["anyOf"] = value["oneOf"]
				delete(value, "oneOf")
			}
		}
		return nil
	})
}

// labels returns the schema of the labels in the answer to a load.
func labels() map[string]any {
	texts := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	field := map[string]any{
		"type": "object", "required": []any{"field-id", "labels"},
		"properties": map[string]any{"field-id": map[string]any{"type": "integer"}, "labels": texts},
	}
	return map[string]any{
		"type":       "object",
		"properties": map[string]any{"object-labels": texts, "fields": map[string]any{"type": "array", "items": field}},
	}
}

// Management returns the Judge of the management API. text is its OpenAPI file. An object must not
// have members that the file does not describe, unless the file allows additionalProperties there.
func Management(text []byte) (*Judge, error) {
	const failure = "#/components/responses/failure/content/application~1json/schema"
	j, err := read(text, "/management/v1/", failure, func(file map[string]any) error {
		closeObjects(file)
		return nil
	})
	if err == nil {
		j.compiler.AssertFormat() // the specification's file has formats that JSON schema does not define
	}
	return j, err
}

// closeObjects forbids members that a file does not describe, in value and everything in it.
func closeObjects(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			closeObjects(item)
		}
	case map[string]any:
		if _, open := value["additionalProperties"]; value["type"] == "object" && !open {
			value["additionalProperties"] = false
		}
		for _, item := range value {
			closeObjects(item)
		}
	}
}

func read(text []byte, base, failure string, change func(file map[string]any) error) (*Judge, error) {
	var file any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	whole, ok := plain(file).(map[string]any)
	if !ok {
		return nil, errors.New("the file is not an object")
	}
	if err := change(whole); err != nil {
		return nil, err
	}
	j := &Judge{file: whole, base: base, failure: failure, compiler: jsonschema.NewCompiler()}
	content, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	j.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := j.compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	paths, _ := whole["paths"].(map[string]any)
	for path := range paths {
		j.paths = append(j.paths, strings.Split(path, "/"))
	}
	slices.SortFunc(j.paths, slices.Compare)
	return j, nil
}

// plain converts value to the form of a JSON schema. Keys become text, because YAML reads statuses
// as numbers. The keyword nullable of OpenAPI 3.0 becomes a type.
func plain(value any) any {
	object := map[string]any{}
	switch value := value.(type) {
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = plain(item)
		}
		return items
	case map[string]any:
		for key, item := range value {
			object[key] = plain(item)
		}
	case map[any]any:
		for key, item := range value {
			object[fmt.Sprint(key)] = plain(item)
		}
	default:
		return value
	}
	if kind, ok := object["type"].(string); ok && object["nullable"] == true {
		object["type"] = []any{kind, "null"}
	}
	return object
}

// dig returns the value at a path of keys below object, or nil.
func dig(object any, path ...string) any {
	for _, key := range path {
		members, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = members[key]
	}
	return object
}

// File returns the file with the changes that the Judge made to it. The caller must not modify the
// result.
func (j *Judge) File() map[string]any { return j.file }

// Operation returns the operation of the file for a request, or nil.
func (j *Judge) Operation(method, path string) map[string]any {
	found, _ := j.operation(method, path)
	operation, _ := found.(map[string]any)
	return operation
}

// Answer is a response to a request.
type Answer struct {
	Method string
	Path   string // escaped, as the client sent it
	Status int
	Header http.Header
	Body   []byte
}

// Fault returns an error if a does not match the file, and nil if it does. Answers to paths outside
// of the file's API have no fault.
func (j *Judge) Fault(a Answer) error {
	if !strings.HasPrefix(a.Path, j.base) {
		return nil
	}
	operation, pointer := j.operation(a.Method, a.Path)
	responses, _ := dig(operation, "responses").(map[string]any)
	switch {
	case a.Method == http.MethodHead || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified:
		if len(a.Body) > 0 {
			return fmt.Errorf("%d bytes, where no body may be", len(a.Body))
		}
		if a.Status == http.StatusNoContent && a.Method != http.MethodHead && responses["204"] == nil {
			return errors.New("the file has no answer 204")
		}
		return nil
	case a.Status < http.StatusBadRequest && responses[fmt.Sprint(a.Status)] == nil:
		return fmt.Errorf("the file has no answer %d", a.Status)
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type: %w", err)
	}
	schema, err := j.schema(responses, pointer, a.Status, kind)
	if err != nil || schema == "" {
		return err
	}
	body, err := unpacked(a)
	if err != nil {
		return err
	}
	return j.validate(schema, body)
}

// operation returns the operation of the file for a request, and the JSON pointer to it. It is nil
// if there is none. The file has {prefix} in its paths, which requests may leave out.
func (j *Judge) operation(method, path string) (operation any, pointer string) {
	segments := strings.Split(path, "/")
	method = strings.ToLower(method)
	for _, withPrefix := range []bool{false, true} {
		for _, pattern := range j.paths {
			wanted := slices.Clone(pattern)
			if !withPrefix {
				wanted = slices.DeleteFunc(wanted, func(segment string) bool { return segment == "{prefix}" })
			}
			whole := strings.Join(pattern, "/")
			found := dig(j.file, "paths", whole, method)
			if found != nil && slices.EqualFunc(wanted, segments, matches) {
				escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(whole)
				return found, "#/paths/" + escaped + "/" + method
			}
		}
	}
	return nil, ""
}

// matches reports whether a path segment matches a pattern segment. {name} matches any text.
func matches(pattern, segment string) bool {
	return pattern == segment || strings.HasPrefix(pattern, "{") && segment != ""
}

// schema returns the JSON pointer to the schema of an answer. It is empty if the file describes no
// schema for the answer's media type, such as text.
func (j *Judge) schema(responses map[string]any, pointer string, status int, kind string) (string, error) {
	if status >= http.StatusBadRequest {
		if kind != "application/json" {
			return "", fmt.Errorf("a failure of the type %q", kind)
		}
		return j.failure, nil
	}
	response, _ := responses[fmt.Sprint(status)].(map[string]any)
	at := fmt.Sprintf("%s/responses/%d", pointer, status)
	if reference, ok := response["$ref"].(string); ok {
		at = reference
		response, _ = dig(j.file, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...).(map[string]any)
	}
	media, ok := dig(response, "content", kind).(map[string]any)
	if !ok {
		return "", fmt.Errorf("the file has no answer %d of the type %q", status, kind)
	}
	if media["schema"] == nil || kind != "application/json" {
		return "", nil
	}
	return at + "/content/application~1json/schema", nil
}

func unpacked(a Answer) ([]byte, error) {
	if a.Header.Get("Content-Encoding") != "gzip" {
		return a.Body, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(a.Body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func (j *Judge) validate(pointer string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	j.mu.Lock()
	schema, err := j.compiler.Compile(schemaURL + pointer)
	j.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
