package manifests

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

const (
	// schemaBytesMax is the maximum length of a schema's text. The schema of a manifest has about 6
	// KiB, and 100 bytes for each field of the partition.
	schemaBytesMax = 256 << 10
	// schemaNodesMax is the maximum number of nodes in a schema. Each reference to a named type
	// counts as a copy of that type. So a few lines of JSON can describe more nodes than fit into
	// memory.
	schemaNodesMax = 4096
	// schemaDepthMax is the maximum depth of a schema, and so of the steps that one byte of a
	// record can cost. Manifests have 6 levels.
	schemaDepthMax = 16
	// noID stands for a missing id. It is not 0, because one field of manifests has the id 0.
	noID = -1
)

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindFixed
	kindEnum
	kindRecord
	kindArray
	kindMap
	kindUnion
)

// kindOf returns the kind for a type name. A union has no type name.
func kindOf(name string) (kind, bool) {
	names := [...]string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum",
		"record", "array", "map"}
	at := slices.Index(names[:], name)
	return kind(max(at, 0)), at >= 0
}

// schema is an Avro type. Its inner types are a tree without references and cycles. It is
// immutable.
type schema struct {
	text    string // its JSON; only for the type of a file's records
	kind    kind
	size    int64     // of a fixed: bytes
	symbols []string  // of an enum
	fields  []field   // of a record: the fields whose values take bytes
	inner   []*schema // of a union: its branches; of an array or a map: the type of its items
	// keyID and itemID are Iceberg's ids: key-id and value-id of a map, element-id of an array.
	keyID, itemID int
	nodes, depth  int // size and depth of the tree
	// empty is set if values take no bytes, such as the values of a record without fields. A short
	// file can have any number of such items.
	empty bool
}

type field struct {
	name   string
	id     int
	schema *schema
}

// parseSchema returns the type of the records of a file. The type has at least one field that takes
// bytes. Every error is ErrDamaged.
func parseSchema(text string) (*schema, error) {
	if len(text) > schemaBytesMax {
		return nil, damaged("schema has %d bytes", len(text))
	}
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, damaged("schema: %v", err)
	}
	p := schemaParser{make(map[string]*schema)}
	s, err := p.parse(tree, "")
	if err != nil {
		return nil, err
	}
	if s.kind != kindRecord || s.empty {
		return nil, damaged("schema is not that of a record with fields")
	}
	s.text = text
	return s, nil
}

// schemaParser holds the named types that were read completely, by full name. So a reference from a
// type to itself is an error. Files of Iceberg have no recursive types.
type schemaParser struct{ named map[string]*schema }

// parse returns the type that tree, a decoded JSON value, describes in namespace.
func (p *schemaParser) parse(tree any, namespace string) (s *schema, err error) {
	switch t := tree.(type) {
	case string:
		return p.reference(t, namespace)
	case []any:
		s = &schema{kind: kindUnion, nodes: 1}
		for _, branch := range t {
			if err := p.add(s, branch, namespace); err != nil {
				return nil, err
			}
		}
		return s, nil
	case map[string]any:
		name, ok := t["type"].(string)
		if !ok {
			return p.parse(t["type"], namespace)
		}
		if kind, ok := kindOf(name); ok {
			return p.complex(kind, t, namespace)
		}
		return p.reference(name, namespace)
	}
	return nil, damaged("schema has %T where a type should be", tree)
}

// reference returns the primitive or named type that name refers to.
func (p *schemaParser) reference(name, namespace string) (*schema, error) {
	if kind, ok := kindOf(name); ok && kind < kindFixed {
		return &schema{kind: kind, empty: kind == kindNull, nodes: 1}, nil
	}
	for _, full := range []string{fullName(name, namespace), name} {
		if s, ok := p.named[full]; ok {
			return s, nil
		}
	}
	return nil, damaged("schema refers to %.40q, which it does not define before", name)
}

// complex returns a type that an object describes.
func (p *schemaParser) complex(kind kind, object map[string]any, namespace string) (*schema, error) {
	s := &schema{kind: kind, nodes: 1, keyID: idOf(object, "key-id"), itemID: idOf(object, "element-id")}
	name, _ := object["name"].(string)
	if space, ok := object["namespace"].(string); ok {
		namespace = space
	}
	full := fullName(name, namespace)
	switch kind {
	case kindFixed:
		size, ok := object["size"].(float64)
		if !ok || size < 0 || size > FileBytesMax || size != math.Trunc(size) {
			return nil, damaged("schema has no size of %.40q", name)
		}
		s.size, s.empty = int64(size), size == 0
	case kindEnum:
		symbols, _ := object["symbols"].([]any)
		for _, symbol := range symbols {
			text, ok := symbol.(string)
			if !ok {
				return nil, damaged("schema has a symbol that is no string")
			}
			s.symbols = append(s.symbols, text)
		}
	case kindArray:
		return s, p.add(s, object["items"], namespace)
	case kindMap:
		s.itemID = idOf(object, "value-id")
		return s, p.add(s, object["values"], namespace)
	case kindRecord:
		if dot := strings.LastIndexByte(full, '.'); dot >= 0 {
			namespace = full[:dot]
		}
		if err := p.fields(s, object["fields"], namespace); err != nil {
			return nil, err
		}
	default:
		s.empty = kind == kindNull
		return s, nil
	}
	if _, known := p.named[full]; known || name == "" {
		return nil, damaged("schema has %.40q twice or without a name", name)
	}
	p.named[full] = s
	return s, nil
}

// fields reads the fields of the record s.
func (p *schemaParser) fields(s *schema, list any, namespace string) error {
	fields, ok := list.([]any)
	if !ok {
		return damaged("schema has a record without fields")
	}
	for _, item := range fields {
		object, ok := item.(map[string]any)
		if !ok {
			return damaged("schema has %T where a field should be", item)
		}
		f := field{id: idOf(object, "field-id")}
		f.name, _ = object["name"].(string)
		if _, twice := s.like(f); twice {
			return damaged("schema has field %d %.40q twice", f.id, f.name)
		}
		if err := p.add(s, object["type"], namespace); err != nil {
			return err
		}
		if f.schema = s.inner[len(s.inner)-1]; !f.schema.empty {
			s.fields = append(s.fields, f)
		}
	}
	s.inner, s.empty = nil, len(s.fields) == 0
	return nil
}

// add reads a type inside s.
func (p *schemaParser) add(s *schema, tree any, namespace string) error {
	inner, err := p.parse(tree, namespace)
	if err != nil {
		return err
	}
	s.inner = append(s.inner, inner)
	s.nodes, s.depth = s.nodes+inner.nodes, max(s.depth, inner.depth+1)
	if s.nodes > schemaNodesMax || s.depth > schemaDepthMax {
		return damaged("schema has %d nodes and %d levels", s.nodes, s.depth)
	}
	return nil
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

// idOf returns object's id under key, or noID.
func idOf(object map[string]any, key string) int {
	n, ok := object[key].(float64)
	if !ok || n < 0 || n > math.MaxInt32 || n != math.Trunc(n) {
		return noID
	}
	return int(n)
}

// field returns the field of record s that has id.
func (s *schema) field(id int) (field, bool) {
	for _, f := range s.fields {
		if f.id == id {
			return f, true
		}
	}
	return field{}, false
}
