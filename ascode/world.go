package ascode

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of an object.
type Kind int

// The kinds of objects.
const (
	ServerKind Kind = iota
	RoleKind
	WarehouseKind
	NamespaceKind
	TableKind
	ViewKind
)

// String returns the word for k.
func (k Kind) String() string {
	return [...]string{"server", "role", "warehouse", "namespace", "table", "view"}[k]
}

// Object names an object that files describe. The zero value is the server.
type Object struct {
	Kind      Kind
	Warehouse string
	// Path has the levels of a namespace, or of the namespace of a table or view, each with a NUL
	// behind it. So the namespaces in it have it as a prefix.
	Path string
	Name string // of a role, table or view
}

// PathOf returns levels in the form of Object.Path.
func PathOf(levels []string) string {
	path := ""
	for _, level := range levels {
		path += level + "\x00"
	}
	return path
}

// Levels returns the levels of the namespace of o.
func (o Object) Levels() []string {
	if o.Path == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(o.Path, "\x00"), "\x00")
}

// Up returns the container of o: the warehouse of a namespace at the top.
func (o Object) Up() Object {
	levels := o.Levels()
	if o.Kind == NamespaceKind {
		levels = levels[:len(levels)-1]
	}
	up := Object{Kind: NamespaceKind, Warehouse: o.Warehouse, Path: PathOf(levels)}
	if len(levels) == 0 {
		up.Kind = WarehouseKind
	}
	return up
}

// Compare orders objects: the server, roles, and each container before what is in it.
func (o Object) Compare(other Object) int {
	return cmp.Or(cmp.Compare(min(o.Kind, WarehouseKind), min(other.Kind, WarehouseKind)),
		strings.Compare(o.Warehouse, other.Warehouse), strings.Compare(o.Path, other.Path),
		cmp.Compare(o.Kind, other.Kind), strings.Compare(o.Name, other.Name))
}

// Attribute is what a fact is about.
type Attribute string

// The attributes of objects. The comment has the Key and the Item of their facts, and the value.
const (
	Location        Attribute = "location"         // the location
	AllowedLocation Attribute = "allowed location" // Key: the location
	Delegation      Attribute = "delegation"       // the delegations, with commas between them
	Storage         Attribute = "storage"          // Key: the option
	Secret          Attribute = "secret"           // the kind of the secret
	Property        Attribute = "property"         // Key: the name
	Protected       Attribute = "protected"        // true or false
	Owner           Attribute = "owner"            // the owner
	Managed         Attribute = "managed"          // true or false
	Grant           Attribute = "grant"            // Key: the grantee, Item: the privilege
	Maintenance     Attribute = "maintenance"      // Key: the type; the JSON of a Rule
	Label           Attribute = "label"            // Key: the name
	ColumnLabel     Attribute = "column"           // Key: the column, Item: the name of the label
	Description     Attribute = "description"      // of a role
	Member          Attribute = "member"           // Key: the member
)

// isAccess reports whether a decides who may do what.
func (a Attribute) isAccess() bool {
	return a == Owner || a == Managed || a == Grant || a == Member || a == Description
}

// Fact names one thing that can be said of an object.
type Fact struct {
	Attribute Attribute
	Key, Item string
}

// Compare orders facts.
func (f Fact) Compare(other Fact) int {
	return cmp.Or(strings.Compare(string(f.Attribute), string(other.Attribute)), strings.Compare(f.Key, other.Key),
		strings.Compare(f.Item, other.Item))
}

// Facts has the values of facts of one object.
type Facts map[Fact]string

// World has the facts of each object that exists, or that files describe.
type World map[Object]Facts

// Rule is the value of a fact about Maintenance.
type Rule struct {
	Status   string            `json:"status"`
	Settings map[string]string `json:"settings,omitempty"`
	Unsafe   bool              `json:"unsafe,omitempty"`
}

// Text returns r as JSON, with the members in a fixed order.
func (r Rule) Text() string {
	text, _ := json.Marshal(r) // strings can always be encoded
	return string(text)
}

// RuleOf returns the rule that Text has written.
func RuleOf(text string) (r Rule) {
	_ = json.Unmarshal([]byte(text), &r)
	return r
}

// add adds an object, if it is new, and returns its facts.
func (w World) add(o Object) Facts {
	if w[o] == nil {
		w[o] = make(Facts)
	}
	return w[o]
}

// sorted returns the objects of w in their order.
func (w World) sorted() []Object { return slices.SortedFunc(maps.Keys(w), Object.Compare) }

// World returns the facts of c. Secrets of warehouses have the names of environment variables.
func (c Catalog) World() World {
	w := World{Object{}: {}}
	if c.Server != nil {
		w[Object{}].grants(c.Server.Grants)
		w[Object{}].policies(c.Server.Maintenance)
	}
	for name, role := range c.Roles {
		facts := w.add(Object{Kind: RoleKind, Name: name})
		facts.text(Description, role.Description)
		facts.list(Member, role.Members)
	}
	for name, warehouse := range c.Warehouses {
		at := Object{Kind: WarehouseKind, Warehouse: name}
		facts := w.add(at)
		facts.text(Location, warehouse.Location)
		facts.list(AllowedLocation, warehouse.AllowedLocations)
		facts.pairs(Storage, warehouse.Storage)
		facts.text(Delegation, strings.Join(warehouse.Delegation, ","))
		if warehouse.Secret != nil {
			facts.text(Secret, warehouse.Secret.Kind)
		}
		w.container(at, warehouse.Container)
	}
	return w
}

// container adds the facts of a container, and all in it.
func (w World) container(at Object, c Container) {
	facts := w[at]
	facts.pairs(Property, c.Properties)
	facts.truth(Protected, c.Protected)
	facts.truth(Managed, c.Managed)
	facts.access(c.Access)
	facts.policies(c.Maintenance)
	for name, namespace := range c.Namespaces {
		inner := Object{Kind: NamespaceKind, Warehouse: at.Warehouse, Path: at.Path + name + "\x00"}
		w.add(inner)
		w.container(inner, namespace.Container)
		for name, table := range namespace.Tables {
			facts := w.add(Object{TableKind, inner.Warehouse, inner.Path, name})
			facts.view(table.View)
			facts.policies(table.Maintenance)
		}
		for name, view := range namespace.Views {
			w.add(Object{ViewKind, inner.Warehouse, inner.Path, name}).view(*view)
		}
	}
}

func (f Facts) view(v View) {
	f.pairs(Property, v.Properties)
	f.truth(Protected, v.Protected)
	f.access(v.Access)
	f.pairs(Label, v.Labels)
	for column, labels := range v.Columns {
		for name, value := range labels {
			f[Fact{ColumnLabel, column, name}] = value
		}
	}
}

func (f Facts) access(a Access) {
	f.text(Owner, a.Owner)
	f.grants(a.Grants)
}

func (f Facts) grants(g Grants) {
	for grantee, privileges := range g {
		for _, privilege := range privileges {
			f[Fact{Grant, grantee, privilege}] = ""
		}
	}
}

func (f Facts) policies(policies map[string]*Policy) {
	for of, policy := range policies {
		rule := Rule{Status: policy.Status, Settings: policy.Settings, Unsafe: policy.Unsafe != nil && *policy.Unsafe}
		f[Fact{Attribute: Maintenance, Key: of}] = rule.Text()
	}
}

func (f Facts) text(a Attribute, value string) {
	if value != "" {
		f[Fact{Attribute: a}] = value
	}
}

func (f Facts) truth(a Attribute, value *bool) {
	if value != nil {
		f[Fact{Attribute: a}] = strconv.FormatBool(*value)
	}
}

func (f Facts) list(a Attribute, keys []string) {
	for _, key := range keys {
		f[Fact{Attribute: a, Key: key}] = ""
	}
}

func (f Facts) pairs(a Attribute, values map[string]string) {
	for key, value := range values {
		f[Fact{Attribute: a, Key: key}] = value
	}
}

// values returns the values of the facts about a, by key. It is nil if there are none.
func (f Facts) values(a Attribute) (values map[string]string) {
	for fact, value := range f {
		if fact.Attribute == a {
			if values == nil {
				values = make(map[string]string)
			}
			values[fact.Key] = value
		}
	}
	return values
}

// keys returns the keys of the facts about a, sorted.
func (f Facts) keys(a Attribute) []string { return slices.Sorted(maps.Keys(f.values(a))) }
