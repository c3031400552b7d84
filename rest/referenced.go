package rest

import (
	"net/http"
	"net/url"
	"strings"

	"moorage"
	"moorage/internal/web"
)

// paramReferencedBy is the parameter with the views through which an engine reaches a table or
// view.
const paramReferencedBy = "referenced-by"

// referencedBy returns the views in the parameter referenced-by, the outermost first, or nil if
// there is no such parameter. The views are in the warehouse of the request. Commas separate the
// views. Each view is a namespace and a name, joined by the namespace separator and
// percent-encoded. So the value is split before it is decoded: a comma in a name is %2C. Source:
// REST specification, referenced-by.
//
// Some programs encode parameters themselves, and so encode the whole value twice. Such a value can
// be recognised: after one decoding it contains no separator, but each view must contain one.
//
// Errors: KindBadRequest. The catalog limits the number of views.
func referencedBy(r *http.Request, warehouse string) (views []moorage.Identifier, err error) {
	raw, given, err := web.RawText(r, paramReferencedBy)
	if err != nil || !given {
		return nil, err
	}
	if once, err := url.QueryUnescape(raw); err == nil && !strings.Contains(once, moorage.LevelSeparator) {
		raw = once
	}
	for item := range strings.SplitSeq(raw, ",") {
		view, err := viewIn(item)
		if err != nil {
			return nil, err
		}
		view.Warehouse = warehouse
		views = append(views, view)
	}
	return views, nil
}

// viewIn parses one view in referenced-by.
func viewIn(item string) (view moorage.Identifier, err error) {
	text, err := url.QueryUnescape(item)
	if err != nil {
		return view, moorage.Errorf(moorage.KindBadRequest, "Malformed %s: %q", paramReferencedBy, item)
	}
	last := strings.LastIndex(text, moorage.LevelSeparator)
	if last < 0 {
		return view, moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: %q is not a view: write its namespace and name with %s between them",
			paramReferencedBy, text, namespaceSeparator)
	}
	view.Namespace, view.Name = splitNamespace(text[:last]), text[last+1:]
	if err := view.Namespace.Validate(); err != nil {
		return view, err
	}
	return view, moorage.ValidateName("name", view.Name)
}

// queryOfViews returns the query for further requests through the same views. It returns "" if
// there are no views.
func queryOfViews(views []moorage.Identifier) string {
	if len(views) == 0 {
		return ""
	}
	items := make([]string, len(views))
	for i, view := range views {
		name := strings.Join(append(view.Namespace[:len(view.Namespace):len(view.Namespace)], view.Name),
			moorage.LevelSeparator)
		items[i] = strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return "?" + paramReferencedBy + "=" + strings.Join(items, ",")
}
