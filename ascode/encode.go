package ascode

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CatalogOf returns the description of w: the inverse of Catalog.World. For each secret it names an
// environment variable of its own. It leaves out what is in a namespace or warehouse that w lacks.
func CatalogOf(w World) Catalog {
	c := Catalog{Roles: make(map[string]*Role), Warehouses: make(map[string]*Warehouse)}
	if facts := w[Object{}]; len(facts) > 0 {
		c.Server = &Server{Grants: facts.grantsOf(), Maintenance: facts.policiesOf()}
	}
	containers := make(map[Object]*Container)
	namespaces := make(map[Object]*Namespace)
	variables := make(map[string]bool)
	for _, o := range w.sorted() {
		facts := w[o]
		switch o.Kind {
		case RoleKind:
			c.Roles[o.Name] = &Role{Description: facts[Fact{Attribute: Description}], Members: facts.keys(Member)}
		case WarehouseKind:
			made := &Warehouse{
				Location: facts[Fact{Attribute: Location}], AllowedLocations: facts.keys(AllowedLocation),
				Storage: facts.values(Storage), Container: facts.containerOf(),
				Secret: secretOf(o.Warehouse, facts[Fact{Attribute: Secret}], variables),
			}
			if offered := facts[Fact{Attribute: Delegation}]; offered != "" {
				made.Delegation = strings.Split(offered, ",")
			}
			c.Warehouses[o.Warehouse], containers[o] = made, &made.Container
		case NamespaceKind:
			of, isThere := containers[o.Up()]
			if !isThere {
				continue
			}
			made := &Namespace{
				Container: facts.containerOf(), Tables: make(map[string]*Table), Views: make(map[string]*View),
			}
			levels := o.Levels()
			of.Namespaces[levels[len(levels)-1]] = made
			containers[o], namespaces[o] = &made.Container, made
		case TableKind:
			if of, isThere := namespaces[o.Up()]; isThere {
				of.Tables[o.Name] = &Table{View: facts.viewOf(), Maintenance: facts.policiesOf()}
			}
		case ViewKind:
			if of, isThere := namespaces[o.Up()]; isThere {
				made := facts.viewOf()
				of.Views[o.Name] = &made
			}
		}
	}
	return c
}

func (f Facts) containerOf() Container {
	return Container{
		Properties: f.values(Property), Protected: f.truthOf(Protected), Managed: f.truthOf(Managed),
		Access: f.accessOf(), Maintenance: f.policiesOf(), Namespaces: make(map[string]*Namespace),
	}
}

func (f Facts) viewOf() View {
	v := View{
		Properties: f.values(Property), Protected: f.truthOf(Protected), Access: f.accessOf(), Labels: f.values(Label),
	}
	for fact, value := range f {
		if fact.Attribute != ColumnLabel {
			continue
		}
		if v.Columns == nil {
			v.Columns = make(map[string]map[string]string)
		}
		if v.Columns[fact.Key] == nil {
			v.Columns[fact.Key] = make(map[string]string)
		}
		v.Columns[fact.Key][fact.Item] = value
	}
	return v
}

func (f Facts) accessOf() Access {
	return Access{Owner: f[Fact{Attribute: Owner}], Grants: f.grantsOf()}
}

func (f Facts) grantsOf() (grants Grants) {
	for _, fact := range slices.SortedFunc(maps.Keys(f), Fact.Compare) {
		if fact.Attribute == Grant {
			if grants == nil {
				grants = make(Grants)
			}
			grants[fact.Key] = append(grants[fact.Key], fact.Item)
		}
	}
	return grants
}

func (f Facts) policiesOf() (policies map[string]*Policy) {
	for of, text := range f.values(Maintenance) {
		if policies == nil {
			policies = make(map[string]*Policy)
		}
		rule := RuleOf(text)
		policies[of] = &Policy{Status: rule.Status, Settings: rule.Settings}
		if rule.Unsafe {
			policies[of].Unsafe = &rule.Unsafe
		}
	}
	return policies
}

func (f Facts) truthOf(a Attribute) *bool {
	value, isSet := f[Fact{Attribute: a}]
	if !isSet {
		return nil
	}
	truth := value == "true"
	return &truth
}

// Encode writes c as a file. Equal catalogs are equal bytes.
func Encode(c Catalog) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(nodeOf(reflect.ValueOf(c))); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// nodeOf returns a value of a catalog as YAML: keys of objects in the order of the fields, others
// sorted. It leaves out what is not set.
func nodeOf(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Pointer:
		return nodeOf(v.Elem())
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	case reflect.String:
		return textNode(v.String())
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			list.Content = append(list.Content, textNode(v.Index(i).String()))
		}
		return list
	case reflect.Map:
		made := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			made.Content = append(made.Content, textNode(key.String()), nodeOf(v.MapIndex(key)))
		}
		return made
	}
	made := &yaml.Node{Kind: yaml.MappingNode}
	for _, field := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(field.index)
		isEmpty := value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 ||
			value.Kind() == reflect.Slice && value.Len() == 0
		if !isEmpty {
			made.Content = append(made.Content, textNode(field.key), nodeOf(value))
		}
	}
	return made
}

// textNode returns a text as YAML, quoted if it would otherwise be something else.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
