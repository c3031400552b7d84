package client

import (
	"encoding/json"
	"net/url"
	"strings"
)

// RootIceberg is the prefix of the paths of the operations of the Iceberg REST specification.
const RootIceberg = "/v1"

// IcebergPath returns the path of an Iceberg operation in a warehouse. It escapes each segment.
func IcebergPath(warehouse string, segments ...string) string {
	prefix := segment(warehouse)
	if warehouse == "namespaces" { // such a prefix would look like a path without a prefix
		prefix = "%6Eamespaces"
	}
	path := RootIceberg + "/" + prefix
	for _, each := range segments {
		path += "/" + segment(each)
	}
	return path
}

// segment returns a name as a segment of a path. It escapes plus signs, because the server decodes
// them as spaces.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// NamespacePath returns the path of a namespace.
func NamespacePath(warehouse string, namespace []string) string {
	return IcebergPath(warehouse, "namespaces", JoinLevels(namespace))
}

// TablePath returns the path of a table.
func TablePath(warehouse string, namespace []string, name string) string {
	return IcebergPath(warehouse, "namespaces", JoinLevels(namespace), "tables", name)
}

// ViewPath returns the path of a view.
func ViewPath(warehouse string, namespace []string, name string) string {
	return IcebergPath(warehouse, "namespaces", JoinLevels(namespace), "views", name)
}

// JoinLevels returns the levels of a namespace as one text, in the form of the Iceberg operations.
func JoinLevels(levels []string) string { return strings.Join(levels, levelSeparator) }

// Identifier is the name of a table or view.
type Identifier struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

// NamespacesPage is a page of the namespaces in a warehouse or in another namespace.
type NamespacesPage struct {
	Namespaces [][]string `json:"namespaces"`
	NextPage
}

// IdentifiersPage is a page of the tables or views in a namespace.
type IdentifiersPage struct {
	Identifiers []Identifier `json:"identifiers"`
	NextPage
}

// LoadedNamespace is a namespace with its properties.
type LoadedNamespace struct {
	Namespace  []string          `json:"namespace"`
	Properties map[string]string `json:"properties"`
}

// Loaded is the present version of a table or view.
type Loaded struct {
	MetadataLocation string            `json:"metadata-location"`
	Metadata         json.RawMessage   `json:"metadata"`
	Config           map[string]string `json:"config"`
}
