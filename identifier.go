package moorage

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of names. Keys in the store contain names, and caches hold many keys in memory. So names
// must be short.
const (
	// NameBytesMax is the maximum length of a table name or namespace level, in bytes of UTF-8.
	NameBytesMax = 1024
	// NamespaceLevelsMax is the maximum number of levels of a namespace.
	NamespaceLevelsMax = 32
)

// LevelSeparator is the byte that joins namespace levels on the wire unless the
// server advertises another one. No level or name may contain it.
// Source: REST specification, parameter "namespace".
const LevelSeparator = "\x1f"

// Namespace is the path of a namespace, outermost level first. The empty namespace means the
// warehouse itself and holds no tables. A Namespace is never modified after its creation; callers
// must not write to it.
type Namespace []string

// String returns the levels joined by dots, for messages only: a level may
// itself contain a dot.
func (n Namespace) String() string { return strings.Join(n, ".") }

// Parent returns all levels but the last; the parent of an empty namespace is empty.
func (n Namespace) Parent() Namespace {
	if len(n) == 0 {
		return nil
	}
	return n[: len(n)-1 : len(n)-1]
}

// Child returns the namespace called name directly below n.
func (n Namespace) Child(name string) Namespace {
	return append(slices.Clip(slices.Clone(n)), name)
}

// Name returns the last level, "" for an empty namespace.
func (n Namespace) Name() string {
	if len(n) == 0 {
		return ""
	}
	return n[len(n)-1]
}

// Equal reports whether n and other have the same levels.
func (n Namespace) Equal(other Namespace) bool { return slices.Equal(n, other) }

// Validate returns a KindBadRequest error if n is empty, too deep, or has a level that is not a
// valid name (see ValidateName).
func (n Namespace) Validate() error {
	if len(n) == 0 {
		return Errorf(KindBadRequest, "Invalid namespace: it must have at least one level")
	}
	if len(n) > NamespaceLevelsMax {
		return Errorf(KindBadRequest, "Invalid namespace: %d levels, at most %d are allowed", len(n),
			NamespaceLevelsMax)
	}
	for _, level := range n {
		if err := ValidateName("namespace level", level); err != nil {
			return err
		}
	}
	return nil
}

// Identifier names one table or view.
type Identifier struct {
	Warehouse string    `json:"warehouse"`
	Namespace Namespace `json:"namespace"`
	Name      string    `json:"name"`
}

// String returns the namespace and name joined by dots, without the warehouse, as Iceberg clients
// print them.
func (i Identifier) String() string {
	if len(i.Namespace) == 0 {
		return i.Name
	}
	return i.Namespace.String() + "." + i.Name
}

// PersonName returns i in the form used by commands for people: see the function PersonName.
func (i Identifier) PersonName() string {
	return PersonName(i.Warehouse, append(slices.Clone(i.Namespace), i.Name)...)
}

// Equal reports whether i and other are the same identifier.
func (i Identifier) Equal(other Identifier) bool {
	return i.Warehouse == other.Warehouse && i.Name == other.Name && i.Namespace.Equal(other.Namespace)
}

// Validate returns a KindBadRequest error unless the namespace and the name are valid.
func (i Identifier) Validate() error {
	if err := i.Namespace.Validate(); err != nil {
		return err
	}
	return ValidateName("name", i.Name)
}

// ValidateWarehouse checks the name of a warehouse. It returns a KindNoSuchWarehouse error if name
// is empty, and the errors of ValidateName.
func ValidateWarehouse(name string) error {
	if name == "" {
		return Errorf(KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
	}
	return ValidateName("warehouse name", name)
}

// ValidateName returns a KindBadRequest error if name is empty, longer than NameBytesMax, not
// UTF-8, or contains NUL or LevelSeparator. All other characters are allowed, including slashes,
// dots and percent signs. The parameter what describes the name in the message.
func ValidateName(what, name string) error {
	switch {
	case name == "":
		return Errorf(KindBadRequest, "Invalid %s: it must not be empty", what)
	case len(name) > NameBytesMax:
		return Errorf(KindBadRequest, "Invalid %s: %d bytes, at most %d are allowed", what, len(name), NameBytesMax)
	case !utf8.ValidString(name):
		return Errorf(KindBadRequest, "Invalid %s: not valid UTF-8", what)
	case strings.ContainsAny(name, "\x00"+LevelSeparator):
		return Errorf(KindBadRequest, "Invalid %s: it must not contain NUL or the unit separator 0x1F", what)
	}
	return nil
}
