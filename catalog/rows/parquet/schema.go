package parquet

import "strings"

// Type is the physical type of a column.
type Type uint8

// The physical types, with the numbers of the format.
const (
	Boolean Type = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedBytes
	typesCount
)

var typeNames = [typesCount]string{
	"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
}

// String returns the name of the format.
func (t Type) String() string { return typeNames[t] }

// Annotation is the logical type of a column or group.
type Annotation uint8

// The annotations. Other means an annotation that this package does not know.
const (
	None Annotation = iota
	String
	Map
	List
	Enum
	Decimal
	Date
	Time
	Timestamp
	Integer
	Null
	JSON
	BSON
	UUID
	Other
)

var annotationNames = [...]string{
	"none", "STRING", "MAP", "LIST", "ENUM", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "INTEGER", "NULL", "JSON", "BSON",
	"UUID", "one that is not known",
}

// String returns the name of the format.
func (a Annotation) String() string { return annotationNames[a] }

// Unit is the unit of times and timestamps.
type Unit uint8

// The units. Zero is no unit.
const (
	Millis Unit = iota + 1
	Micros
	Nanos
)

// Repetition is how often a node may occur in its parent.
type Repetition uint8

// The repetitions, with the numbers of the format.
const (
	Required Repetition = iota
	Optional
	Repeated
)

// Node is a column or a group of columns. It is immutable.
type Node struct {
	Name       string
	Repetition Repetition
	ID         int // the field id
	HasID      bool
	Annotation Annotation
	// Scale and Precision apply to decimals, Unit and UTC to times and timestamps, and Bits and
	// Signed to integers.
	Scale, Precision int
	Unit             Unit
	UTC              bool
	Bits             int
	Signed           bool
	// Children are the nodes in a group. They are nil for a column.
	Children []*Node
	// Type is the type of a column. If it is FixedBytes, Length is the length of its values.
	Type   Type
	Length int
	// Definition is the definition level of a value that is present. Repeat is the maximum
	// repetition level.
	Definition, Repeat int

	leaf   int   // the index of the column; -1 for a group
	parent *Node // nil for the root
}

// IsColumn reports whether n is a column rather than a group.
func (n *Node) IsColumn() bool { return n.leaf >= 0 }

// Path returns the names on the path from the root to n, separated by dots. The root is left out.
func (n *Node) Path() string { return strings.Join(n.names(), ".") }

// names returns the names on the path from the root to n, without the root.
func (n *Node) names() []string {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.names(), n.Name)
}

// element is the description of a node in the footer.
type element struct {
	Node

	children  int
	hasType   bool
	converted int // -1 if absent
	hasRepeat bool
}

// element reads one element of the schema.
func (t *thrift) element() (e element, err error) {
	e.converted, e.leaf = -1, -1
	kind := 0
	err = t.structure(0, func(id int, wire byte) (bool, error) {
		if id == 10 && wire == thriftStruct {
			return true, t.logical(&e.Node)
		}
		if id == 4 && wire == thriftBinary {
			name, err := t.binary()
			e.Name = string(name)
			return true, err
		}
		if wire != thriftInt {
			return false, nil
		}
		switch id {
		case 1:
			e.hasType = true
			return t.into(&kind)
		case 2:
			return t.into(&e.Length)
		case 3:
			var repetition int
			_, err := t.into(&repetition)
			if err == nil && repetition > int(Repeated) {
				err = damaged("a repetition is %d", repetition)
			}
			e.Repetition, e.hasRepeat = Repetition(repetition), true
			return true, err
		case 5:
			return t.into(&e.children)
		case 6:
			return t.into(&e.converted)
		case 7:
			n, err := t.integer()
			if e.Annotation != Decimal {
				e.Scale = int(n)
			}
			return true, err
		case 8:
			n, err := t.integer()
			if e.Annotation != Decimal {
				e.Precision = int(n)
			}
			return true, err
		case 9:
			n, err := t.integer()
			e.ID, e.HasID = int(n), true
			return true, err
		}
		return false, nil
	})
	switch {
	case err != nil:
		return e, err
	case e.hasType && (kind >= int(typesCount) || e.children > 0):
		return e, damaged("the column %.40q has the type %d and %d children", e.Name, kind, e.children)
	case e.hasType && Type(kind) == FixedBytes && (e.Length <= 0 || e.Length > pageBytesMax):
		return e, damaged("the values of column %.40q have the length %d", e.Name, e.Length)
	}
	e.Type = Type(kind)
	if e.Annotation == None {
		e.convert()
	}
	return e, nil
}

// logicalTypes maps numbers of the format to annotations.
var logicalTypes = [...]Annotation{
	Other, String, Map, List, Enum, Decimal, Date, Time, Timestamp, Other, Integer, Null, JSON, BSON, UUID,
}

// logical reads the annotation of an element. It is a structure with one field, and that field
// identifies the annotation.
func (t *thrift) logical(n *Node) error {
	return t.structure(1, func(id int, wire byte) (bool, error) {
		if n.Annotation = Other; id > 0 && id < len(logicalTypes) {
			n.Annotation = logicalTypes[id]
		}
		if wire != thriftStruct {
			return false, nil
		}
		return true, t.structure(2, func(id int, wire byte) (bool, error) { return t.parameter(n, id, wire) })
	})
}

// parameter reads a parameter of the annotation of n.
func (t *thrift) parameter(n *Node, id int, wire byte) (read bool, err error) {
	isBool := wire == thriftTrue || wire == thriftFalse
	switch {
	case n.Annotation == Decimal && id == 1 && wire == thriftInt:
		return t.into(&n.Scale)
	case n.Annotation == Decimal && id == 2 && wire == thriftInt:
		return t.into(&n.Precision)
	case (n.Annotation == Time || n.Annotation == Timestamp) && id == 1 && isBool:
		n.UTC = wire == thriftTrue
		return true, nil
	case (n.Annotation == Time || n.Annotation == Timestamp) && id == 2 && wire == thriftStruct:
		return true, t.structure(3, func(id int, _ byte) (bool, error) {
			if id < int(Millis) || id > int(Nanos) {
				return false, damaged("a time has the unit %d", id)
			}
			n.Unit = Unit(id)
			return false, nil
		})
	case n.Annotation == Integer && id == 1 && wire == thriftByte:
		bits, err := t.next()
		n.Bits = int(bits)
		return true, err
	case n.Annotation == Integer && id == 2 && isBool:
		n.Signed = wire == thriftTrue
		return true, nil
	}
	return false, nil
}

// convert sets the annotation from the older form of annotations.
func (e *element) convert() {
	set := func(a Annotation) { e.Annotation = a }
	switch e.converted {
	case -1:
	case 0:
		set(String)
	case 1, 2:
		set(Map)
	case 3:
		set(List)
	case 4:
		set(Enum)
	case 5:
		set(Decimal)
	case 6:
		set(Date)
	case 7, 8:
		set(Time)
		e.UTC, e.Unit = true, Unit(e.converted-6)
	case 9, 10:
		set(Timestamp)
		e.UTC, e.Unit = true, Unit(e.converted-8)
	case 11, 12, 13, 14:
		set(Integer)
		e.Bits = 8 << (e.converted - 11)
	case 15, 16, 17, 18:
		set(Integer)
		e.Bits, e.Signed = 8<<(e.converted-15), true
	case 19:
		set(JSON)
	case 20:
		set(BSON)
	default:
		set(Other)
	}
}

// tree makes the nodes for the elements of a schema.
func tree(elements []element) (root *Node, columns []*Node, err error) {
	if len(elements) == 0 || elements[0].hasType {
		return nil, nil, damaged("the schema has no root")
	}
	next := 0
	var build func(parent *Node, depth int) (*Node, error)
	build = func(parent *Node, depth int) (*Node, error) {
		if next == len(elements) || depth > depthMax {
			return nil, damaged("the schema has %d elements and %d levels", len(elements), depth)
		}
		e := &elements[next]
		n := &e.Node
		next++
		if parent != nil {
			n.Definition, n.Repeat = parent.Definition, parent.Repeat
			n.parent = parent
			if n.Repetition != Required {
				n.Definition++
			}
			if n.Repetition == Repeated {
				n.Repeat++
			}
			if !e.hasRepeat {
				return nil, damaged("the element %.40q has no repetition", n.Name)
			}
		}
		if e.hasType {
			n.leaf = len(columns)
			columns = append(columns, n)
			return n, nil
		}
		for range min(e.children, len(elements)) {
			child, err := build(n, depth+1)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, child)
		}
		return n, nil
	}
	elements[0].Repetition = Required // in the format, the root has no repetition
	root, err = build(nil, 0)
	if err == nil && next != len(elements) {
		err = damaged("the schema has elements outside the root")
	}
	return root, columns, err
}
