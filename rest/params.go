package rest

import (
	"net/http"
	"net/url"
	"strings"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// namespaceSeparator is the separator of namespace levels that GET /v1/config advertises.
const namespaceSeparator = "%1F"

// pathWarehouse returns the warehouse named in the path, as its prefix.
func pathWarehouse(r *http.Request) (string, error) {
	prefix, err := web.PathParam(r, "prefix")
	if err != nil {
		return "", err
	}
	if prefix == "" {
		return moorage.DefaultWarehouse, nil
	}
	return prefix, moorage.ValidateName("prefix", prefix)
}

// pathNamespace returns the warehouse and the namespace named in the path.
func pathNamespace(r *http.Request) (warehouse string, ns moorage.Namespace, err error) {
	if warehouse, err = pathWarehouse(r); err != nil {
		return "", nil, err
	}
	joined, err := web.PathParam(r, "namespace")
	if err != nil {
		return "", nil, err
	}
	ns = splitNamespace(joined)
	return warehouse, ns, ns.Validate()
}

// Path parameters that name an object in a namespace.
const (
	paramTable = "table"
	paramView  = "view"
)

// pathIdentifier returns the table or view in the path parameter param. If the path has no
// namespace, the error is "not found". Java clients rely on this: if the table ns.files is not
// found, they request the table ns, because ns.files could be its metadata table "files".
func pathIdentifier(r *http.Request, param string) (moorage.Identifier, error) {
	warehouse, ns, invalid := pathNamespace(r)
	name, err := web.PathParam(r, param)
	if err == nil {
		err = moorage.ValidateName("name", name)
	}
	switch {
	case err != nil:
		return moorage.Identifier{}, err
	case invalid == nil:
		return moorage.Identifier{Warehouse: warehouse, Namespace: ns, Name: name}, nil
	case !ns.Equal(splitNamespace("")):
		return moorage.Identifier{}, invalid
	case param == paramView:
		return moorage.Identifier{}, moorage.Errorf(moorage.KindNoSuchView, "View does not exist: %s", name)
	}
	return moorage.Identifier{}, moorage.Errorf(moorage.KindNoSuchTable, "Table does not exist: %s", name)
}

// splitNamespace returns the levels of a decoded namespace. The level of a one-level namespace
// shares memory with joined.
func splitNamespace(joined string) moorage.Namespace {
	return strings.Split(joined, moorage.LevelSeparator)
}

// namespaceIn returns the namespace in the member "namespace", which is required.
func namespaceIn(f *web.Fields) moorage.Namespace {
	f.Require("namespace")
	ns := moorage.Namespace(f.Texts("namespace"))
	if err := ns.Validate(); err != nil {
		f.Refuse(err)
	}
	return ns
}

// nameIn returns the member "name", which is required and must be a valid name.
func nameIn(f *web.Fields) string {
	f.Require("name")
	name := f.Text("name")
	if err := moorage.ValidateName("name", name); err != nil {
		f.Refuse(err)
	}
	return name
}

// identifierIn returns the table or view in a member with namespace and name.
func identifierIn(f *web.Fields, member, warehouse string) moorage.Identifier {
	f.Require(member)
	value := f.Typed(member, jsontext.Object)
	if value.IsZero() {
		return moorage.Identifier{}
	}
	inner := f.Within(value, "member", member)
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: namespaceIn(inner), Name: nameIn(inner)}
	f.Keep(inner.Failure)
	return ident
}

// readNamed parses a body that names a table or view to create in the namespace of the path.
func readNamed(r *http.Request, body []byte, what string) (ident moorage.Identifier, f *web.Fields, err error) {
	if ident.Warehouse, ident.Namespace, err = pathNamespace(r); err != nil {
		return ident, nil, err
	}
	if f, err = web.ParseFields(body, what); err != nil {
		return ident, nil, err
	}
	ident.Name = nameIn(f)
	return ident, f, nil
}

// readCommit parses a body that changes the table or view in the path parameter param. It fails if
// the member "identifier" names another table or view.
func readCommit(r *http.Request, body []byte, param, what string) (moorage.Identifier, *web.Fields, error) {
	ident, err := pathIdentifier(r, param)
	if err != nil {
		return ident, nil, err
	}
	f, err := web.ParseFields(body, what)
	if err != nil || f.Get("identifier").IsZero() {
		return ident, f, err
	}
	named := identifierIn(f, "identifier", ident.Warehouse)
	if f.Failure == nil && !named.Equal(ident) {
		f.Fail("it names %s %s, but the path names %s", param, named, ident)
	}
	return ident, f, nil
}

// metadataLocationIn returns the member "metadata-location", which is required and must not be
// empty.
func metadataLocationIn(f *web.Fields) string {
	const name = "metadata-location"
	f.Require(name)
	location := f.Text(name)
	if f.Failure == nil && location == "" {
		f.Fail("member %q must not be empty", name)
	}
	return location
}

// escapePrefix returns a warehouse's name in the form in which clients put it into paths. Clients
// use the prefix in the configuration unchanged, so escapePrefix escapes it in the way that
// web.PathParam decodes. Names that would have a special meaning as a path segment are escaped
// further.
func escapePrefix(warehouse string) string {
	switch warehouse {
	case "namespaces": // begins the paths without a prefix
		return "%6Eamespaces"
	case ".", "..":
		return strings.ReplaceAll(warehouse, ".", "%2E")
	}
	return strings.ReplaceAll(url.QueryEscape(warehouse), "+", "%20")
}

// pageSizes are the page sizes of lists. Java clients always request pages, and follow the tokens.
var pageSizes = web.PageSizes{Default: 1000, Max: 10_000}

// pageOf converts the position of pages into a page of the catalog's list.
func pageOf(pages web.Pager) moorage.Page {
	return moorage.Page{After: pages.After, Limit: pages.Limit}
}
