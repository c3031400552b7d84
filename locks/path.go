package locks

import (
	"fmt"
	"iter"
	"strings"

	"moorage"
)

// Shards is the number of shards of a namespace's registry.
const Shards = 16

// Level is the kind of object that a path locks.
type Level uint8

// The levels of the tree, coarsest first. The zero Path has the zero Level.
const (
	LevelWarehouse Level = iota + 1
	LevelNamespace
	LevelShard
	LevelPointer
)

// String returns the level in one word, for logs and as a label of metrics.
func (l Level) String() string {
	switch l {
	case LevelWarehouse:
		return "warehouse"
	case LevelNamespace:
		return "namespace"
	case LevelShard:
		return "shard"
	case LevelPointer:
		return "pointer"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// Path addresses something that can be locked. Paths are values: they can be compared with ==, be
// keys of a map, and be ordered with Compare. The zero Path addresses nothing and may not be
// locked.
type Path struct {
	// text is the segments, each after a slash, with escaped names. It is the identity, the order
	// (an ancestor is a prefix, hence smaller) and the readable form.
	text string
}

// Warehouse returns the path of a warehouse. Any name is allowed.
func Warehouse(name string) Path { return Path{}.child("", name) }

// NamespacePath returns the path of a namespace. If ns is empty, it returns the path of the
// warehouse.
func NamespacePath(warehouse string, ns moorage.Namespace) Path {
	path := Warehouse(warehouse)
	for _, level := range ns {
		path = path.Namespace(level)
	}
	return path
}

// Pointer returns the path of a pointer of the warehouse p. Pointers are next to the namespaces,
// not below them, because a pointer does not change when its table is renamed.
func (p Path) Pointer(id string) Path {
	if p.Level() != LevelWarehouse {
		panic(fmt.Sprintf("locks: %s %q has no pointers", p.Level(), p.text))
	}
	return p.child("@", id)
}

// Attempt returns the path that is locked by attempts of one mutation in the warehouse p. key
// identifies the mutation, and consists of letters, digits and dashes. The path is ordered directly
// before the paths of pointers, whose ids are hexadecimal. So an operation that needs both waits
// for the attempt before it waits for a pointer.
func (p Path) Attempt(key string) Path { return p.Pointer("!" + key) }

// Namespace returns the path of the namespace called level directly below p, which must be a
// warehouse or a namespace.
func (p Path) Namespace(level string) Path {
	p.mustHaveChildren()
	return p.child("", level)
}

// Shard returns the path of shard n of the namespace p; n is less than Shards.
func (p Path) Shard(n uint8) Path {
	p.mustHaveChildren()
	if n >= Shards {
		panic(fmt.Sprintf("locks: shard %d of %d", n, Shards))
	}
	return p.child("#", fmt.Sprintf("%x", n))
}

// String returns the path with its names percent-encoded just enough to keep different paths
// different. It encodes every byte that is not printable ASCII, and % / # @ and space. The zero
// Path is the empty string.
func (p Path) String() string { return p.text }

// IsZero reports whether p addresses nothing.
func (p Path) IsZero() bool { return p.text == "" }

// Compare orders paths by the bytes of their String, so ancestors come before descendants. It
// returns -1, 0 or +1.
func (p Path) Compare(other Path) int { return strings.Compare(p.text, other.text) }

// Level returns the level of p.
func (p Path) Level() Level {
	switch slash := strings.LastIndexByte(p.text, '/'); {
	case slash < 0:
		return 0
	case slash == 0:
		return LevelWarehouse
	case strings.HasPrefix(p.text[slash:], "/#"):
		return LevelShard
	case strings.HasPrefix(p.text[slash:], "/@"):
		return LevelPointer
	}
	return LevelNamespace
}

// Contains reports whether other is p or lies below it.
func (p Path) Contains(other Path) bool {
	rest, below := strings.CutPrefix(other.text, p.text)
	return below && (rest == "" || rest[0] == '/')
}

// Parent returns the path directly above p. It is the zero Path above a warehouse.
func (p Path) Parent() Path {
	return Path{p.text[:max(0, strings.LastIndexByte(p.text, '/'))]}
}

// Ancestors returns every path above p, from the warehouse down.
func (p Path) Ancestors() iter.Seq[Path] {
	return func(yield func(Path) bool) {
		for i := 1; i < len(p.text); i++ {
			if p.text[i] == '/' && !yield(Path{p.text[:i]}) {
				return
			}
		}
	}
}

func (p Path) mustHaveChildren() {
	if level := p.Level(); level != LevelWarehouse && level != LevelNamespace {
		panic(fmt.Sprintf("locks: %s %q has nothing below it", level, p.text))
	}
}

func (p Path) child(kind, name string) Path {
	return Path{p.text + "/" + kind + escape(name)}
}

// escape keeps a name from being read as more than one segment, or as a segment of another type. It
// does not depend on Unicode tables, so that all releases of Moorage write a path in the same way.
func escape(name string) string {
	const hexDigits = "0123456789ABCDEF"
	plain := func(c byte) bool { return ' ' < c && c < 0x7f && c != '%' && c != '/' && c != '#' && c != '@' }

	first := 0 // start of the part to be escaped
	for first < len(name) && plain(name[first]) {
		first++
	}
	if first == len(name) {
		return name
	}
	var escaped strings.Builder
	escaped.Grow(len(name))
	escaped.WriteString(name[:first])
	for _, c := range []byte(name[first:]) {
		if plain(c) {
			escaped.WriteByte(c)
			continue
		}
		escaped.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&0xf]})
	}
	return escaped.String()
}
