package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"moorage"
)

// Object is the object of a grant: a warehouse, or a namespace, table, view or function in it. The
// zero value is the server. In JSON, the server is the string "server", and every other value is an
// object.
type Object struct {
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"table,omitempty"`
	View      string   `json:"view,omitempty"`
	Function  string   `json:"function,omitempty"`
}

// objectServer means the server.
const objectServer = "server"

// levelSeparator separates the levels of a namespace in a query, as in the Iceberg operations.
const levelSeparator = "\x1f"

// IsServer reports whether o is the server.
func (o Object) IsServer() bool { return o.Warehouse == "" }

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	if o.IsServer() {
		return json.Marshal(objectServer)
	}
	type plain Object
	return json.Marshal(plain(o))
}

// UnmarshalJSON implements json.Unmarshaler. It refuses unknown members, and values that name no
// object.
func (o *Object) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		if word != objectServer {
			return fmt.Errorf("object %q is not known: it is %q, or a JSON object with a warehouse", word, objectServer)
		}
		*o = Object{}
		return nil
	}
	type plain Object
	var read plain
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return fmt.Errorf("an object has the members warehouse, namespace, and table, view or function: %w", err)
	}
	*o = Object(read)
	return o.Validate()
}

// Validate returns an error if the members of an object other than the server are not valid.
func (o Object) Validate() error {
	names := 0
	for _, name := range []string{o.Table, o.View, o.Function} {
		if name != "" {
			names++
		}
	}
	switch {
	case o.Warehouse == "":
		return errors.New("an object has a warehouse")
	case names > 1:
		return errors.New("an object is a table, a view or a function, not several")
	case names == 1 && len(o.Namespace) == 0:
		return errors.New("a table, view or function has a namespace")
	}
	return nil
}

// Query returns the query parameters that name o.
func (o Object) Query() url.Values {
	if o.IsServer() {
		return url.Values{"object": {objectServer}}
	}
	values := url.Values{"warehouse": {o.Warehouse}}
	for name, value := range map[string]string{
		"namespace": strings.Join(o.Namespace, levelSeparator),
		"table":     o.Table, "view": o.View, "function": o.Function,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// ObjectOfQuery returns the object named by the query parameters of a request. parameter is a
// function that returns the value of a query parameter, or "" if it is absent.
func ObjectOfQuery(parameter func(name string) string) (Object, error) {
	o := Object{
		Warehouse: parameter("warehouse"), Table: parameter("table"), View: parameter("view"),
		Function: parameter("function"),
	}
	if namespace := parameter("namespace"); namespace != "" {
		o.Namespace = strings.Split(namespace, levelSeparator)
	}
	switch word := parameter("object"); {
	case word == "":
		return o, o.Validate()
	case word != objectServer || o.Warehouse != "" || o.Namespace != nil || o.Table+o.View+o.Function != "":
		return o, fmt.Errorf("object can only be %q, without other parameters", objectServer)
	}
	return Object{}, nil
}

// String returns o in the command line's form: its kind and its name.
func (o Object) String() string {
	if o.IsServer() {
		return objectServer
	}
	kind, levels := "warehouse", append([]string{o.Warehouse}, o.Namespace...)
	switch {
	case o.Table != "":
		kind, levels = "table", append(levels, o.Table)
	case o.View != "":
		kind, levels = "view", append(levels, o.View)
	case o.Function != "":
		kind, levels = "function", append(levels, o.Function)
	case len(o.Namespace) > 0:
		kind = "namespace"
	}
	return kind + " " + moorage.CommandName(levels...)
}

// ParseObject parses the kind and the name that String writes.
func ParseObject(kind, name string) (Object, error) {
	levels, err := splitName(name)
	if err != nil {
		return Object{}, err
	}
	o := Object{Warehouse: levels[0]}
	inner := levels[1:]
	needs := 2
	switch kind {
	case "warehouse":
		if len(inner) > 0 {
			return Object{}, fmt.Errorf("%s is no warehouse: the name of one with a dot stands in double quotes", name)
		}
		return o, nil
	case "namespace":
		o.Namespace = inner
		needs = 1
	case "table", "view", "function":
		if len(inner) > 0 {
			o.Namespace = inner[:len(inner)-1]
			last := inner[len(inner)-1]
			switch kind {
			case "table":
				o.Table = last
			case "view":
				o.View = last
			case "function":
				o.Function = last
			}
		}
	default:
		return Object{}, fmt.Errorf("%q is not server, warehouse, namespace, table, view or function", kind)
	}
	if len(inner) < needs {
		return Object{}, fmt.Errorf("%s does not name a %s: begin with the warehouse, as in default.sales.orders",
			name, kind)
	}
	return o, nil
}

// splitName returns the parts of a name, which dots separate. A part in double quotes may contain
// dots.
func splitName(name string) (parts []string, err error) {
	malformed := fmt.Errorf("%s is not a name such as default.sales.orders; a part with a dot stands in double quotes",
		name)
	for rest := name; ; {
		var part strings.Builder
		if strings.HasPrefix(rest, `"`) {
			rest = rest[1:]
			for {
				before, after, closed := strings.Cut(rest, `"`)
				if !closed {
					return nil, malformed
				}
				part.WriteString(before)
				rest = after
				if !strings.HasPrefix(rest, `"`) {
					break
				}
				part.WriteByte('"')
				rest = rest[1:]
			}
		} else {
			end := strings.IndexByte(rest, '.')
			if end < 0 {
				end = len(rest)
			}
			part.WriteString(rest[:end])
			rest = rest[end:]
		}
		if part.Len() == 0 {
			return nil, malformed
		}
		parts = append(parts, part.String())
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, malformed
		}
		rest = rest[1:]
	}
}
