package console

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// place is the path of a page or a change, below Root.
type place string

// The places.
const (
	placeHome       place = ""
	placeWarehouses place = "/warehouses"
	placeBrowse     place = "/browse"
	placeSearch     place = "/search"
	placeChanges    place = "/changes"
	placeTable      place = "/table"
	placeHistory    place = "/table/history"
	placeDiff       place = "/table/diff"
	placeRollback   place = "/table/rollback"
	placeMetadata   place = "/table/metadata"
	placeRaw        place = "/table/metadata.json"
	placeView       place = "/view"
	placeTheme      place = "/theme"
	placeDropped    place = "/dropped"
	placeUndrop     place = "/dropped/change"
	placeRows       place = "/table/rows"
	placeWarehouse  place = "/warehouse"
	placeValidate   place = "/warehouse/test"
	placeLogin      place = "/login"
	placeProvider   place = "/login/provider"
	placeLogout     place = "/logout"
	placeDo         place = "/do"
	placeSnapshots  place = "/table/snapshots"
	placeRef        place = "/table/ref"
	placeMaintain   place = "/table/maintenance"
	placeRun        place = "/maintenance/change"
	placeGrants     place = "/grants"
	placeGrant      place = "/grants/change"
	placePrincipals place = "/principals"
	placePrincipal  place = "/principal"
	placeKey        place = "/principal/key"
	placeMakeKey    place = "/principal/key/make"
	placeWithdraw   place = "/principal/key/withdraw"
	placeOperations place = "/operations"
	placeUnfinished place = "/operations/change"
	placeAPI        place = "/api"
	placeCluster    place = "/cluster"
)

// returnPath begins the paths to which identity providers send browsers, below Root. The rest is
// the name of the provider, so that no provider can answer for another one.
const returnPath = "/login/at/"

// staticPath begins the paths of files, below Root.
const staticPath = "/static/"

// target is what a link leads to: a place, the object that the place is about, and what else the
// page needs to know.
type target struct {
	place  place
	object client.Object
	more   url.Values
}

// to returns a target. more are pairs of a name and a value; pairs with an empty value are left
// out.
func to(p place, o client.Object, more ...string) target {
	made := target{place: p, object: o, more: url.Values{}}
	for i := 0; i+1 < len(more); i += 2 {
		if more[i+1] != "" {
			made.more.Set(more[i], more[i+1])
		}
	}
	return made
}

// The parameters that name an object. A namespace has a parameter for each level.
const (
	paramWarehouse = "warehouse"
	paramNamespace = "namespace"
	paramTable     = "table"
	paramView      = "view"
)

// href returns the address of t.
func (t target) href() string {
	var address strings.Builder
	address.WriteString(Root + string(t.place))
	separator := "?"
	add := func(name, value string) {
		address.WriteString(separator + name + "=" + url.QueryEscape(value))
		separator = "&"
	}
	for _, field := range t.fields() {
		add(field.name, field.value)
	}
	return address.String()
}

// fields returns the parameters of t. The parameters of its object come first.
func (t target) fields() []field {
	all := fieldsOf(t.object)
	for _, name := range slices.Sorted(maps.Keys(t.more)) {
		for _, value := range t.more[name] {
			all = append(all, field{name, value})
		}
	}
	return all
}

// field is a parameter of an address, or a field of a form.
type field struct{ name, value string }

// fieldsOf returns the fields that name an object.
func fieldsOf(o client.Object) (fields []field) {
	if o.IsServer() {
		return nil
	}
	fields = append(fields, field{paramWarehouse, o.Warehouse})
	for _, level := range o.Namespace {
		fields = append(fields, field{paramNamespace, level})
	}
	if o.Table != "" {
		fields = append(fields, field{paramTable, o.Table})
	}
	if o.View != "" {
		fields = append(fields, field{paramView, o.View})
	}
	return fields
}

// objectIn returns the object that the fields of an address or a form name.
func objectIn(values url.Values) client.Object {
	return client.Object{
		Warehouse: values.Get(paramWarehouse), Namespace: values[paramNamespace],
		Table: values.Get(paramTable), View: values.Get(paramView),
	}
}

// objectOf returns the object of a row.
func objectOf(row client.Row) client.Object {
	o := client.Object{Warehouse: row.Warehouse, Namespace: row.Namespace}
	switch row.Kind {
	case client.KindTable:
		o.Table = row.Name
	case client.KindView:
		o.View = row.Name
	case client.KindNamespace:
		o.Namespace = row.Levels()
	}
	return o
}

// pageOf returns the page of an object.
func pageOf(o client.Object) target {
	switch {
	case o.Table != "":
		return to(placeTable, o)
	case o.View != "":
		return to(placeView, o)
	case o.IsServer():
		return to(placeWarehouses, o)
	}
	return to(placeBrowse, o)
}

// link returns a link to t.
func link(t target, children ...g.Node) g.Node {
	return h.A(h.Href(t.href()), g.Group(children))
}

// anchor returns a link to a part of the same page.
func anchor(id string, children ...g.Node) g.Node { return h.A(h.Href("#"+id), g.Group(children)) }

// outside returns a link to a page of another server, or the words alone if a browser must not
// follow the address.
func outside(address string, children ...g.Node) g.Node {
	if read, err := url.Parse(address); err != nil || read.Scheme != "https" && read.Scheme != "http" {
		return g.Group(children)
	}
	return h.A(h.Href(address), h.Rel("noreferrer"), g.Group(children))
}

// ask returns a form that leads to t, and adds what the visitor types to its address.
func ask(t target, children ...g.Node) g.Node {
	return h.Form(h.Method("get"), h.Action(Root+string(t.place)), hidden(t), g.Group(children))
}

// act returns a form that sends a change to t.
func act(t target, children ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(Root+string(t.place)), hidden(t), g.Group(children))
}

// fieldEscaped is a field of a form that has other fields in escaped form.
const fieldEscaped = "escaped"

// hidden returns the fields of a form that have the object and the other parameters of t. Browsers
// change line breaks in fields, so fields with control characters are sent in escaped form.
func hidden(t target) g.Node {
	var inputs g.Group
	escaped := url.Values{}
	add := func(name, value string) {
		if term.Clean(value) != value {
			escaped.Add(name, value)
			return
		}
		inputs = append(inputs, h.Input(h.Type("hidden"), h.Name(name), h.Value(value)))
	}
	for _, field := range t.fields() {
		add(field.name, field.value)
	}
	if len(escaped) > 0 {
		add(fieldEscaped, escaped.Encode())
	}
	return inputs
}

// unescaped returns the fields of a form or an address, with those in escaped form as they were.
func unescaped(fields url.Values) url.Values {
	inner, err := url.ParseQuery(fields.Get(fieldEscaped))
	if err != nil {
		return fields
	}
	fields.Del(fieldEscaped)
	for name, values := range inner {
		fields[name] = append(fields[name], values...)
	}
	return fields
}

// fileAddress returns the address of one of the console's files. version changes with its content.
func fileAddress(name, version string) string { return Root + staticPath + name + "?v=" + version }

// back returns the page of the console whose address a form has, or the first page.
func back(address string) target {
	read, err := url.Parse(address)
	path, isOurs := "", false
	if err == nil && read.Host == "" && read.Scheme == "" {
		path, isOurs = strings.CutPrefix(read.Path, Root)
	}
	if _, isPage := pages()[place(path)]; !isOurs || !isPage {
		return to(placeHome, client.Object{})
	}
	made := target{place: place(path), object: objectIn(read.Query()), more: read.Query()}
	for _, name := range []string{paramWarehouse, paramNamespace, paramTable, paramView} {
		made.more.Del(name)
	}
	return made
}
