package ascode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is a file to decode.
type File struct {
	Name string // for faults
	Text []byte
}

// Fault is what is wrong at one place of a file.
type Fault struct {
	File string
	Line int
	Text string
}

// Error implements error.
func (f Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Decode reads files, which together describe one catalog. Several files can describe parts of one
// object, but no two of them the same value. It returns all faults that it finds, joined; each is a
// Fault.
func Decode(files ...File) (Catalog, error) {
	var c Catalog
	d := decoder{places: make(map[string]Fault)}
	for _, file := range files {
		d.file = file.Name
		documents := yaml.NewDecoder(bytes.NewReader(file.Text))
		for {
			var document yaml.Node
			err := documents.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				d.faults = append(d.faults, yamlFault(file.Name, err))
				break
			}
			if content := resolved(&document); !isNull(content) {
				d.value(content, reflect.ValueOf(&c).Elem(), "", "")
			}
		}
	}
	return c, errors.Join(d.faults...)
}

// yamlFault returns the fault in an error of the YAML parser, which begins with "yaml: line N: ".
func yamlFault(file string, err error) Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	fault := Fault{File: file, Line: 1, Text: text}
	if after, found := strings.CutPrefix(text, "line "); found {
		number, rest, _ := strings.Cut(after, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			fault.Line, fault.Text = line, rest
		}
	}
	return fault
}

// decoder reads nodes of YAML into the types of a Catalog.
type decoder struct {
	file   string
	places map[string]Fault // where each value was set, by its path
	faults []error

	open    []*yaml.Node // the nodes with an anchor around the present one, by aliases
	aliased int          // how many values were decoded by aliases
}

// aliasedMax bounds the values that aliases repeat, so that a short file cannot fill the memory.
const aliasedMax = 100_000

func (d *decoder) fault(node *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, Fault{d.file, node.Line, fmt.Sprintf(format, args...)})
}

// resolved returns the node that node is, behind documents and aliases.
func resolved(node *yaml.Node) *yaml.Node {
	for {
		switch {
		case node.Kind == yaml.DocumentNode && len(node.Content) > 0:
			node = node.Content[0]
		case node.Kind == yaml.AliasNode:
			node = node.Alias
		default:
			return node
		}
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == 0 || node.Tag == "!!null" }

// value decodes node into to. path has the keys from the document to node. only has the words that
// a text may be, with commas between them; empty for any.
func (d *decoder) value(node *yaml.Node, to reflect.Value, path, only string) {
	if at, target := node, resolved(node); at != target {
		if slices.Contains(d.open, target) {
			d.fault(at, "%s has an alias of what it is in", path)
			return
		}
		d.open = append(d.open, target)
		defer func() { d.open = d.open[:len(d.open)-1] }()
		node = target
	}
	if len(d.open) > 0 {
		if d.aliased++; d.aliased == aliasedMax {
			d.fault(node, "aliases repeat more than %d values: write them out", aliasedMax)
		}
		if d.aliased >= aliasedMax {
			return
		}
	}
	switch to.Kind() {
	case reflect.Struct:
		d.object(node, to, path)
		return
	case reflect.Map:
		d.mapping(node, to, path)
		return
	case reflect.Pointer:
		if to.Type().Elem().Kind() == reflect.Struct {
			if to.IsNil() {
				to.Set(reflect.New(to.Type().Elem()))
			}
			if !isNull(node) { // a name alone describes an object without anything
				d.value(node, to.Elem(), path, "")
			}
			return
		}
	}
	if !d.setOnce(node, path) {
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		d.truth(node, to, path)
	case reflect.Slice:
		d.texts(node, to, path)
	default:
		if text, isText := d.text(node, path); isText {
			if words := strings.Split(only, ","); only != "" && !slices.Contains(words, text) {
				d.fault(node, "%s is %q, and can be %s", path, text, strings.Join(words, " or "))
			}
			to.SetString(text)
		}
	}
}

// setOnce reports whether the value at path is set for the first time.
func (d *decoder) setOnce(node *yaml.Node, path string) bool {
	if first, twice := d.places[path]; twice {
		d.fault(node, "%s is set a second time; the first is at %s:%d", path, first.File, first.Line)
		return false
	}
	d.places[path] = Fault{File: d.file, Line: node.Line}
	return true
}

// pairs calls do with each key of a mapping and its value.
func (d *decoder) pairs(node *yaml.Node, path string, do func(key *yaml.Node, name string, value *yaml.Node)) {
	if node.Kind != yaml.MappingNode {
		d.fault(node, "%s takes keys and values, such as name: value", orFile(path))
		return
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolved(node.Content[i])
		if key.Kind != yaml.ScalarNode || isNull(key) {
			d.fault(key, "a key of %s is no text", orFile(path))
			continue
		}
		if first, twice := lines[key.Value]; twice {
			d.fault(key, "%s stands twice; the first is at line %d", joined(path, key.Value), first)
			continue
		}
		lines[key.Value] = key.Line
		do(key, key.Value, node.Content[i+1])
	}
}

func orFile(path string) string {
	if path == "" {
		return "a file"
	}
	return path
}

// joined returns the path of a key. Different keys have different paths: one with a dot is quoted.
func joined(path, key string) string {
	if strings.ContainsAny(key, `."`) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// object decodes a mapping with fixed keys.
func (d *decoder) object(node *yaml.Node, to reflect.Value, path string) {
	fields := fieldsOf(to.Type())
	d.pairs(node, path, func(key *yaml.Node, name string, value *yaml.Node) {
		for _, field := range fields {
			if field.key == name {
				d.value(value, to.FieldByIndex(field.index), joined(path, name), field.only)
				return
			}
		}
		d.fault(key, "%s", unknownKey(path, name, fields))
	})
	for _, field := range fields {
		if field.isNeeded && to.FieldByIndex(field.index).IsZero() {
			d.fault(node, "%s needs the key %s", path, field.key)
		}
	}
}

// unknownKey returns the fault of an unknown key, with the nearest known one.
func unknownKey(path, name string, fields []field) string {
	text := fmt.Sprintf("unknown key %q", name)
	if path != "" {
		text += " in " + path
	}
	nearest, least := "", 3 // keys further away are no help
	var known []string
	for _, field := range fields {
		known = append(known, field.key)
		if away := distance(name, field.key); away < least {
			nearest, least = field.key, away
		}
	}
	if nearest != "" {
		return text + "; close: " + nearest
	}
	return text + "; there are: " + strings.Join(known, ", ")
}

// distance returns how many letters must be added, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := above
			if a[i] != b[j] {
				next = min(above, row[j], row[j+1]) + 1
			}
			above, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// mapping decodes a mapping with free keys.
func (d *decoder) mapping(node *yaml.Node, to reflect.Value, path string) {
	if to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	d.pairs(node, path, func(key *yaml.Node, name string, value *yaml.Node) {
		if name == "" || strings.ContainsRune(name, 0) {
			d.fault(key, "a key of %s is empty, or has a NUL", path)
			return
		}
		made := reflect.New(to.Type().Elem()).Elem()
		if present := to.MapIndex(reflect.ValueOf(name)); present.IsValid() {
			made.Set(present)
		}
		d.value(value, made, joined(path, name), "")
		to.SetMapIndex(reflect.ValueOf(name), made)
	})
}

// text returns the text of a scalar.
func (d *decoder) text(node *yaml.Node, path string) (text string, isText bool) {
	if node.Kind != yaml.ScalarNode || isNull(node) {
		d.fault(node, "%s takes a text; an empty one is \"\"", path)
		return "", false
	}
	return node.Value, true
}

func (d *decoder) truth(node *yaml.Node, to reflect.Value, path string) {
	if node.Kind != yaml.ScalarNode || node.Value != "true" && node.Value != "false" {
		d.fault(node, "%s is true or false", path)
		return
	}
	truth := node.Value == "true"
	to.Set(reflect.ValueOf(&truth))
}

func (d *decoder) texts(node *yaml.Node, to reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.fault(node, "%s takes a list, such as [a, b]", path)
		return
	}
	texts := []string{}
	for _, each := range node.Content {
		text, isText := d.text(resolved(each), "an element of "+path)
		switch {
		case isText && slices.Contains(texts, text):
			d.fault(each, "%q stands twice in %s", text, path)
		case isText:
			texts = append(texts, text)
		}
	}
	to.Set(reflect.ValueOf(texts))
}

// field is a key of a mapping with fixed keys.
type field struct {
	key, help, only string
	isNeeded        bool
	index           []int
	kind            reflect.Type
}

// fieldsOf returns the keys of a type and of the types that it embeds.
func fieldsOf(t reflect.Type) (fields []field) {
	for i := range t.NumField() {
		each := t.Field(i)
		if !each.Anonymous {
			fields = append(fields, field{
				each.Tag.Get("code"), each.Tag.Get("help"), each.Tag.Get("only"), each.Tag.Get("needed") != "",
				each.Index, each.Type,
			})
			continue
		}
		for _, inner := range fieldsOf(each.Type) {
			inner.index = append([]int{i}, inner.index...)
			fields = append(fields, inner)
		}
	}
	return fields
}
