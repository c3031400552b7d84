package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"moorage"
)

// namespaceSeparator is what GET /v1/config tells clients to join namespace levels with.
const namespaceSeparator = "%1F"

// pathParam returns a name that stands in the path, decoded once. The router works on the
// escaped path, so a slash inside a name arrives here as %2F. A plus is a space, because
// Java clients form-encode names; a client that means a plus sends %2B.
func pathParam(r *http.Request, name string) (string, error) {
	escaped := chi.URLParam(r, name)
	decoded, err := url.QueryUnescape(escaped)
	if err != nil {
		return "", moorage.Errorf(moorage.KindBadRequest, "Malformed %s in the path: %q", name, escaped)
	}
	return decoded, nil
}

// pathWarehouse returns the warehouse that the path names as its prefix.
func pathWarehouse(r *http.Request) (string, error) {
	prefix, err := pathParam(r, "prefix")
	if err != nil {
		return "", err
	}
	if prefix == "" {
		return DefaultWarehouse, nil
	}
	return prefix, moorage.ValidateName("prefix", prefix)
}

// pathNamespace returns the warehouse and the namespace that the path names.
func pathNamespace(r *http.Request) (warehouse string, ns moorage.Namespace, err error) {
	if warehouse, err = pathWarehouse(r); err != nil {
		return "", nil, err
	}
	joined, err := pathParam(r, "namespace")
	if err != nil {
		return "", nil, err
	}
	ns = splitNamespace(joined)
	return warehouse, ns, ns.Validate()
}

// Parameters of paths that name what stands in a namespace.
const (
	paramTable = "table"
	paramView  = "view"
)

// pathIdentifier returns the table or view that the path names in the parameter param. Without a namespace there is none:
// Java clients that look for a table ns.files, and are told that it is not there, ask for a table ns, of which that would be a metadata table.
func pathIdentifier(r *http.Request, param string) (moorage.Identifier, error) {
	warehouse, ns, invalid := pathNamespace(r)
	name, err := pathParam(r, param)
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

// splitNamespace returns the levels of a decoded namespace. The text of the only level
// of "a" is shared with joined.
func splitNamespace(joined string) moorage.Namespace {
	return strings.Split(joined, moorage.LevelSeparator)
}

// query is a decoded query string.
type query url.Values

// queryOf decodes the query string of r; a malformed one is a KindBadRequest.
func queryOf(r *http.Request) (query, error) {
	if r.URL.RawQuery == "" {
		return nil, nil // the usual load; spares a map
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Malformed query string: %q", r.URL.RawQuery)
	}
	return query(values), nil
}

// text returns the parameter called name, and whether it was given. A parameter that is
// given twice is a KindBadRequest: which of the two is meant cannot be told.
func (q query) text(name string) (value string, given bool, err error) {
	values := q[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", true, moorage.Errorf(moorage.KindBadRequest, "Parameter %s is given %d times", name, len(values))
}

// boolean returns the parameter called name; false if it is not given.
func (q query) boolean(name string) (bool, error) {
	value, given, err := q.text(name)
	switch {
	case err != nil || !given:
		return false, err
	case strings.EqualFold(value, "true"):
		return true, nil
	case strings.EqualFold(value, "false"):
		return false, nil
	}
	return false, moorage.Errorf(moorage.KindBadRequest, "Invalid %s: %q, want true or false", name, value)
}

// escapePrefix returns a warehouse's name as clients put it into paths: they use the prefix of
// the configuration as it is, so it is escaped here, for pathParam to decode. Names that would
// mean something else as a segment are escaped further.
func escapePrefix(warehouse string) string {
	switch warehouse {
	case "namespaces": // begins the paths without a prefix
		return "%6Eamespaces"
	case ".", "..":
		return strings.ReplaceAll(warehouse, ".", "%2E")
	}
	return strings.ReplaceAll(url.QueryEscape(warehouse), "+", "%20")
}
