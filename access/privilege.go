package access

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Privileges is a set of privileges, one bit for each. The zero value is the empty set. Records
// contain the words of privileges, never the numbers.
type Privileges uint32

// The privileges.
const (
	Describe    Privileges = 1 << iota // see it, load its metadata, list its children
	Read                               // read its data, and reach objects through a view
	Write                              // add snapshots, create and move refs, set statistics
	Alter                              // schema, partition spec, sort order, properties; replace a view
	Maintain                           // remove parts of the history
	Create                             // create namespaces, tables and views below
	Locate                             // choose where files are
	Drop                               // drop, unregister, restore what was dropped
	Purge                              // delete its files too
	Manage                             // grant and revoke; move it into another namespace
	Delegate                           // the catalog trusts its report of the views that a query goes through
	Admin                              // warehouses, secrets, principals, roles, grants anywhere
	Operate                            // check, back up, recover, read metrics
	Audit                              // explain decisions about other callers
	Impersonate                        // act in the name of other callers

	everyPrivilege = Impersonate<<1 - 1
)

// See asks whether the caller sees the object. It requires no privilege.
const See Privileges = 0

// OfAdministrators holds the privileges that a new administrator gets on the server.
const OfAdministrators = Admin | Operate | Audit

// Kind is the kind of an object.
type Kind uint8

// The kinds.
const (
	Server Kind = iota
	Warehouse
	Namespace
	Table
	View
	Function
)

var kindNames = [...]string{
	Server: "server", Warehouse: "warehouse", Namespace: "namespace",
	Table: "table", View: "view", Function: "function",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ParseKind reads the text of Kind.String.
func ParseKind(text string) (Kind, error) {
	if i := slices.Index(kindNames[:], text); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("unknown kind of object %q: it is one of %s", text, strings.Join(kindNames[:], ", "))
}

// privilege holds the fixed facts about one privilege.
type privilege struct {
	word    string
	implies Privileges // the privileges that it implies directly
	on      []Kind     // the kinds on which it can be granted
}

// privileges has one row for each privilege, in the order of the bits. It is never written to.
var privileges = [...]privilege{
	{"describe", 0, []Kind{Server, Warehouse, Namespace, Table, View, Function}},
	{"read", Describe, []Kind{Warehouse, Namespace, Table, View, Function}},
	{"write", Read, []Kind{Warehouse, Namespace, Table}},
	{"alter", Describe, []Kind{Warehouse, Namespace, Table, View}},
	{"maintain", Describe, []Kind{Warehouse, Namespace, Table}},
	{"create", Describe, []Kind{Warehouse, Namespace}},
	{"locate", 0, []Kind{Warehouse, Namespace}},
	{"drop", Describe, []Kind{Namespace, Table, View}},
	{"purge", Drop, []Kind{Namespace, Table, View}},
	{"manage", Describe, []Kind{Server, Warehouse, Namespace, Table, View, Function}},
	{"delegate", 0, []Kind{Warehouse}},
	{"admin", 0, []Kind{Server}},
	{"operate", 0, []Kind{Server}},
	{"audit", 0, []Kind{Server}},
	{"impersonate", 0, []Kind{Server}},
}

// closed holds, for each privilege, the set of it and all privileges that it implies, directly or
// indirectly. It is never written to.
var closed = func() (table [len(privileges)]Privileges) {
	for i := range privileges {
		table[i] = 1<<i | privileges[i].implies
		for range privileges { // more rounds than the longest chain of implications needs
			for j := range privileges {
				if table[i].Has(1 << j) {
					table[i] |= privileges[j].implies
				}
			}
		}
	}
	return table
}()

// grantable holds the privileges that can be granted on each kind. It is never written to.
var grantable = func() (table [len(kindNames)]Privileges) {
	for i, p := range privileges {
		for _, kind := range p.on {
			table[kind] |= 1 << i
		}
	}
	return table
}()

// Every returns all privileges, in order.
func Every() []Privileges { return everyPrivilege.Each() }

// Each returns the privileges of the set, one at a time, in order.
func (p Privileges) Each() []Privileges {
	each := make([]Privileges, 0, bits.OnesCount32(uint32(p)))
	for rest := p & everyPrivilege; rest != 0; rest &= rest - 1 {
		each = append(each, rest&-rest)
	}
	return each
}

// Has reports whether the set contains all of others. Each set contains the empty set.
func (p Privileges) Has(others Privileges) bool { return p&others == others }

// Implied returns the set with all privileges that its members imply.
func (p Privileges) Implied() Privileges {
	all := p & everyPrivilege
	for rest := all; rest != 0; rest &= rest - 1 {
		all |= closed[bits.TrailingZeros32(uint32(rest))]
	}
	return all
}

// Words returns the words of the privileges in the set, in order. It is nil if the set is empty.
func (p Privileges) Words() (words []string) {
	for _, each := range p.Each() {
		words = append(words, privileges[bits.TrailingZeros32(uint32(each))].word)
	}
	return words
}

// String returns the words of the set, joined by ", ".
func (p Privileges) String() string { return strings.Join(p.Words(), ", ") }

// Parse returns the set with the given words. If some words are unknown, the error names them, and
// the set contains the others. So this version can use a record of a newer version.
func Parse(words []string) (set Privileges, err error) {
	var unknown []string
	for _, word := range words {
		i := slices.IndexFunc(privileges[:], func(p privilege) bool { return p.word == word })
		if i < 0 {
			unknown = append(unknown, fmt.Sprintf("%q", word))
			continue
		}
		set |= 1 << i
	}
	if unknown != nil {
		err = fmt.Errorf("unknown privilege %s: it is one of %s", strings.Join(unknown, ", "), everyPrivilege)
	}
	return set, err
}

// Grantable returns the privileges that can be granted on an object of kind.
func Grantable(kind Kind) Privileges {
	if int(kind) < len(grantable) {
		return grantable[kind]
	}
	return 0
}

// OfOwner returns the privileges of the owner of an object of kind. These are the privileges that
// can be granted on the object or on a kind below it. For example, the owner of a table lacks
// Locate, and the owner of a warehouse may drop its tables.
func OfOwner(kind Kind) Privileges {
	switch kind {
	case Warehouse:
		return grantable[Warehouse] | grantable[Namespace]
	case Server: // the server has no owner
		return 0
	}
	return Grantable(kind)
}

// CheckGrantable returns an error that names the privileges of set that cannot be granted on an
// object of kind.
func CheckGrantable(set Privileges, kind Kind) error {
	if wrong := set &^ Grantable(kind); wrong != 0 {
		return fmt.Errorf("%s cannot be granted on a %s: a %s takes %s", wrong, kind, kind, Grantable(kind))
	}
	return nil
}
