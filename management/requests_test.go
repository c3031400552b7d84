package management

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// asker draws random requests from their descriptions in openapi.yaml.
type asker struct {
	file   map[string]any
	random *rand.Rand
	wild   float64             // probability that a value breaks the description
	known  map[string][]string // texts by the name of the member or parameter, or by operation.name
	id     string              // id of the requested operation
}

// request is a request that an asker drew.
type request struct {
	method, target, body string
	headers              []string // names and values, alternating
}

// names returns values of members and parameters, by name, with which requests can succeed.
func names() map[string][]string {
	return map[string][]string{
		"warehouse": {"w", "w", "w", "lake"}, "namespace": {"a", "a", "a", "b"}, "table": {"t", "u"}, "view": {"v"},
		"function": {"f"}, "name": {"w", "lake", "t", "monday", "key:etl", "corp:ann"}, "holder": {"spark 17"},
		"principal": {"key:etl", "corp:ann"}, "role": {"staff", "analysts"}, "members": {"key:etl", "staff", "corp/analysts"},
		"add": {"key:etl", "corp:ann"}, "remove": {"key:etl", "corp:bob"}, "roles": {"staff"}, "key": {"drawn1", "drawn2"},
		"grantee": {"key:etl", "staff", "corp/analysts", "corp:ann"}, "owner": {"corp:ann", ""}, "engine": {"corp:trino"},
		"kind": {"snapshots", "orphans", "compaction"}, "operation": {"load-table", "create-table", "drop-warehouse"},
		"location": {"s3://lake/one", "s3://lake/two", "file:///lake/w"}, "allowed-locations": {"s3://other/more"},
		"reason": {"migration"}, "speaks-for": {"corp"}, "request": {"ABCDEFGHIJ-17"}, "description": {"nightly"},
		"version": {"now", "now~1", "2h"}, "from": {"now", "now~1"}, "to": {"now", "now~1", "main"}, "ref": {"main"},
		"takeLease.name": {"t"}, "explainAccess.name": {"key:etl"}, "checkAccess.name": {"corp:ann"},
	}
}

// oddTexts returns texts that are barely valid, or invalid.
func oddTexts() []string {
	odd := []string{
		"", " ", ".", "..", "a/b", "a.b", "a b", "%", "%2F", "%zz", "+", "\"", "\\", "\x00", "\x1f", "a\x1fb", "\n", "\u00fc", "e\u0301", "\u65e5\u672c",
		"\u202e", "\ufeff", "\U0001f600", "*", "system:command", "key:", ":x", "server", "anonymous", "null", "0", "-1",
		"s3://", "s3://b/../c", "file:///", "file:///etc", "gs://b/w", "http://x", "00000000000000000000000000000000",
	}
	for _, length := range []int{100, 101, 200, 201, 255, 256, 1023, 1024, 1025, 2559, 2560, 2561, 3000, 70000} {
		odd = append(odd, strings.Repeat("x", length), strings.Repeat("\u00fc", length/2))
	}
	return odd
}

// request draws a request for an operation of the file.
func (a *asker) request(op operation, described map[string]any) request {
	a.id = op.id
	r := request{method: op.method}
	path, query := base+op.path, url.Values{}
	parameters, _ := described["parameters"].([]any)
	whole := a.random.IntN(4) > 0 // parameters for an object: all levels, or a random choice
	for _, each := range parameters {
		p := a.resolve(each)
		name := p["name"].(string)
		required := p["required"] == true
		switch p["in"] {
		case "path":
			text := a.text(p["schema"], name)
			if text == "" {
				text = "x" // an empty segment would match another route
			}
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
		case "query":
			if !required && !whole && a.random.IntN(2) == 0 || name == "object" && a.random.IntN(4) > 0 || name == "view" || name == "function" || name == "grantee" && a.random.IntN(3) > 0 {
				if a.random.Float64() >= a.wild {
					continue
				}
			}
			if (name == "pageToken" || name == "pageSize") && a.random.IntN(3) > 0 {
				continue
			}
			for range 1 + a.chance() {
				query.Add(name, a.text(p["schema"], name))
			}
		case "header":
			if a.random.IntN(4) == 0 {
				r.headers = append(r.headers, name, strings.Map(visible, a.text(p["schema"], name)))
			}
		}
	}
	if r.target = path; len(query) > 0 {
		r.target += "?" + query.Encode()
	}
	if a.chance() > 0 {
		r.target += []string{"?%zz=1", "?x=y", "?warehouse=%ff&warehouse=w", "?object=server"}[a.random.IntN(4)]
	}
	if body, ok := described["requestBody"].(map[string]any); ok {
		content := body["content"].(map[string]any)["application/json"].(map[string]any)
		r.body = a.body(content, body["required"] == true)
	}
	return r
}

// visible removes characters that a header cannot contain.
func visible(c rune) rune {
	if c < ' ' || c > '~' {
		return -1
	}
	return c
}

// body draws the body of a request. It is usually an object from the schema, and sometimes the
// example or something that is not an object.
func (a *asker) body(content map[string]any, required bool) string {
	if a.chance() > 0 || !required && a.random.IntN(2) == 0 {
		return []string{"", "", "null", "[]", `"x"`, "1", "{", `{"a":}`, "{}", "{\"\xff\":1}", strings.Repeat("[", 20000), `{"object":{}}`}[a.random.IntN(12)]
	}
	value := a.value(content["schema"], "", 0)
	if a.random.IntN(5) == 0 {
		value = content["example"]
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values above can all be written
	}
	waits := bytes.Contains(text, []byte("wait-seconds"))
	text = bytes.ReplaceAll(text, []byte(`"wait-seconds":30`), []byte(`"wait-seconds":0`)) // of an example
	if a.chance() > 0 && len(text) > 2 && !waits {                                         // changes one byte
		text[a.random.IntN(len(text))] = byte(a.random.UintN(256))
	}
	return string(text)
}

// chance returns 1 if the next value must be wrong, and 0 otherwise.
func (a *asker) chance() int {
	if a.random.Float64() < a.wild {
		return 1
	}
	return 0
}

// resolve returns the object that value is or refers to.
func (a *asker) resolve(value any) map[string]any {
	object, _ := value.(map[string]any)
	for {
		ref, ok := object["$ref"].(string)
		if !ok {
			return object
		}
		var found any = a.file
		for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			found = found.(map[string]any)[name]
		}
		object = found.(map[string]any)
	}
}

// text draws the value of a parameter.
func (a *asker) text(schema any, name string) string {
	if name == "namespace" && a.chance() == 0 {
		return strings.Join(slices.Repeat([]string{pick(a, a.known[name])}, 1), "\x1f")
	}
	switch value := a.value(schema, name, 0).(type) {
	case string:
		return value
	default:
		return fmt.Sprint(value)
	}
}

func pick[T any](a *asker, list []T) T { return list[a.random.IntN(len(list))] }

// value draws a value from a schema. name is the name of the member or parameter.
func (a *asker) value(schema any, name string, depth int) any {
	s := a.resolve(schema)
	if a.random.Float64() < a.wild/3 {
		return a.stray()
	}
	if words, ok := s["enum"].([]any); ok {
		if a.chance() > 0 {
			return pick(a, oddTexts())
		}
		return pick(a, words)
	}
	if choices, ok := s["anyOf"].([]any); ok {
		if name == "object" && a.random.IntN(4) > 0 {
			return a.value(choices[len(choices)-1], name, depth)
		}
		return a.value(pick(a, choices), name, depth)
	}
	kind := s["type"]
	if kinds, ok := kind.([]any); ok {
		kind = pick(a, kinds)
	}
	switch kind {
	case "string":
		return a.string(s, name)
	case "integer":
		return a.integer(s, name)
	case "boolean":
		return a.random.IntN(2) == 0
	case "array":
		return a.array(s, name, depth)
	case "null":
		return nil
	case "object":
		return a.object(s, name, depth)
	}
	if s["patternProperties"] != nil || s["properties"] != nil {
		return a.object(s, name, depth)
	}
	return a.stray()
}

// stray draws a value of any type.
func (a *asker) stray() any {
	return pick(a, []any{
		nil, true, 0, -1, json.Number("1.5"), json.Number("1e400"), json.Number("9223372036854775808"), "", "x", []any{},
		[]any{nil}, []any{1}, []any{"x", []any{}}, map[string]any{}, map[string]any{"": ""}, map[string]any{"x": nil},
		pick(a, oddTexts()),
	})
}

func (a *asker) string(s map[string]any, name string) string {
	if a.chance() > 0 {
		return pick(a, oddTexts())
	}
	pattern, _ := s["pattern"].(string)
	switch {
	case name == "scope":
		return pick(a, []string{"*", "job:compaction", "part:00ff"})
	case name == "name" && pattern != "":
		return "monday"
	case pattern != "", name == "leases":
		if known := a.known[name]; len(known) > 0 && a.random.IntN(3) > 0 {
			return pick(a, known)
		}
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(a.random.UintN(256))
		}
		if text := hex.EncodeToString(id); name != "lease" && name != "leases" {
			return text
		}
		return hex.EncodeToString(id) + "-1"
	case s["format"] == "date-time":
		return pick(a, []string{"2126-01-31T12:00:00Z", "2026-12-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"})
	case s["format"] == "uuid":
		return fmt.Sprintf("%08x-0000-7000-8000-00000000000%d", a.random.Uint32(), a.random.IntN(3))
	case name == "pageToken":
		return ""
	}
	for _, name := range []string{a.id + "." + name, name} {
		if known := a.known[name]; len(known) > 0 {
			return pick(a, known)
		}
	}
	return pick(a, []string{"x", "v1", "\u00fc"})
}

func (a *asker) integer(s map[string]any, name string) any {
	if name == "wait-seconds" { // no request waits
		return pick(a, []any{0, 0, 0, 61, -1})
	}
	least, most := 0, 1000
	if n, ok := s["minimum"].(int); ok {
		least = n
	}
	if n, ok := s["maximum"].(int); ok {
		most = n
	}
	if a.chance() > 0 {
		return pick(a, []any{
			least - 1, most + 1, -1, 1 << 31, json.Number("9223372036854775807"), json.Number("9223372036854775808"),
			json.Number("-9223372036854775808"), json.Number("1.0"), json.Number("0.5"), json.Number("1e3"), json.Number("-0"),
		})
	}
	return pick(a, []any{least, most, least + a.random.IntN(most-least+1)})
}

func (a *asker) array(s map[string]any, name string, depth int) any {
	length := 1
	if name != "namespace" {
		length += a.random.IntN(2)
	}
	if a.chance() > 0 {
		length = pick(a, []int{0, 3, 11, 33, 1001})
	}
	list := make([]any, length)
	for i := range list {
		list[i] = a.value(s["items"], name, depth+1)
	}
	return list
}

func (a *asker) object(s map[string]any, name string, depth int) any {
	made := make(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, member := range slices.Sorted(maps.Keys(properties)) {
		isRequired := slices.Contains(required, any(member))
		if isRequired && a.chance() > 0 || !isRequired && a.random.IntN(2) == 0 {
			continue
		}
		if (member == "view" || member == "function") && (made["table"] != nil || name != "through" && a.random.IntN(4) > 0) && a.chance() == 0 {
			continue
		}
		made[member] = a.value(properties[member], member, depth+1)
	}
	if _, isTable := made["table"]; name == "object" && isTable && made["namespace"] == nil && a.chance() == 0 {
		made["namespace"] = []any{"a"}
	}
	for _, of := range []any{s["additionalProperties"], slices.Collect(maps.Values(patternsOf(s)))} {
		if list, ok := of.([]any); ok {
			if len(list) == 0 {
				continue
			}
			of = list[0]
		}
		if of == nil || of == false || depth > 6 {
			continue
		}
		for range a.random.IntN(3) {
			key := pick(a, []string{
				"k", "icebergCompaction", "icebergSnapshotManagement", "icebergUnreferencedFileRemoval", "maxSnapshotAgeHours",
				"minSnapshotsToKeep", "s3.region", "access-key-id", "secret-access-key",
			})
			if a.chance() > 0 {
				key = pick(a, oddTexts())
			}
			made[key] = a.value(of, key, depth+1)
		}
	}
	if a.chance() > 0 {
		made[pick(a, oddTexts())] = a.stray()
	}
	return made
}

func patternsOf(s map[string]any) map[string]any {
	patterns, _ := s["patternProperties"].(map[string]any)
	return patterns
}
