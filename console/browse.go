package console

import (
	"context"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// warehousesPage is the list of warehouses.
type warehousesPage struct {
	warehouses []warehouseRow
	more       bool
	isCounted  bool
}

// warehouseRow is a warehouse with its counts, which are nil if they are not known.
type warehouseRow struct {
	client.WarehouseSummary
	stats *client.Stats
}

// loadWarehouses loads the page with all warehouses.
func loadWarehouses(ctx context.Context, v *visit) (*page, error) {
	model, err := loadWarehouseRows(ctx, v, v.query.Has("counts"))
	if err != nil {
		return nil, err
	}
	body := g.Group{h.H1(g.Text("Warehouses")), model.list()}
	return &page{title: "Warehouses", section: placeWarehouses, crumbs: crumbsOf(client.Object{}), body: body}, nil
}

// loadWarehouseRows loads the list of warehouses. It counts what is in them if withCounts is true:
// a count reads all pointers of a warehouse, unless the server has one that is younger than a
// minute.
func loadWarehouseRows(ctx context.Context, v *visit, withCounts bool) (model warehousesPage, err error) {
	var listed client.WarehousesPage
	if err := v.get(ctx, "/warehouses", url.Values{"pageSize": {"100"}}, &listed); err != nil {
		return model, err
	}
	model.more, model.isCounted = listed.Next() != "", withCounts
	for i, each := range listed.Warehouses {
		row := warehouseRow{WarehouseSummary: each}
		if withCounts && i < warehousesCountedMax {
			var stats client.Stats
			err := v.get(ctx, client.Path("warehouses", each.Name, "stats"), url.Values{"max-age": {"1m"}}, &stats)
			if err == nil {
				row.stats = &stats
			} else if optional(err) != nil {
				return model, err
			}
		}
		model.warehouses = append(model.warehouses, row)
	}
	return model, nil
}

// warehousesCountedMax is how many warehouses a page counts.
const warehousesCountedMax = 10

// list returns the warehouses.
func (m warehousesPage) list() g.Node {
	if len(m.warehouses) == 0 {
		return empty("There is no warehouse that you may see.",
			command("moorage", "warehouse", "create", "lake", "--location", "s3://bucket/prefix"))
	}
	list := grid{label: "Warehouses", columns: []column{{"Name", ""}, {"Location", "wide"}}}
	if m.isCounted {
		list.columns = append(list.columns, titled("#Namespaces", "#Tables", "#Views", "#Rows", "#Size", "#Dropped")...)
	}
	for _, w := range m.warehouses {
		row := []cell{
			plain(link(to(placeBrowse, client.Object{Warehouse: w.Name}), icon("warehouse"), name(w.Name))),
			plain(mono(w.Location)),
		}
		s := w.stats
		if s == nil {
			s = &client.Stats{Namespaces: -1, Tables: -1, Views: -1, Rows: -1, Bytes: -1, Dropped: -1}
		}
		if m.isCounted {
			row = append(row, numeric(number(&s.Namespaces), &s.Namespaces), numeric(number(&s.Tables), &s.Tables),
				numeric(number(&s.Views), &s.Views), numeric(number(&s.Rows), &s.Rows),
				numeric(size(&s.Bytes), &s.Bytes),
				numeric(number(&s.Dropped), &s.Dropped))
		}
		list.rows = append(list.rows, row)
	}
	count := to(placeWarehouses, client.Object{}, "counts", "yes")
	return h.Div(h.ID("warehouses"), g.If(!m.isCounted, h.Data("load", count.href())),
		list.node(),
		g.If(m.more, h.P(h.Class("faint"), g.Text("Only the first 100 are shown."))),
		g.If(!m.isCounted, h.P(h.Class("faint"), link(count, g.Text("Count what is in them")))))
}

// browsePage is what is in a warehouse or a namespace.
type browsePage struct {
	now     time.Time
	object  client.Object
	prefix  string
	details *client.ObjectDetails // nil if the visitor may not see them
	page    client.ObjectsPage
	isFirst bool
}

// browseRows is the size of a page of the list.
const browseRows = "100"

// loadBrowse loads what is in a warehouse or a namespace.
func loadBrowse(ctx context.Context, v *visit) (*page, error) {
	o := v.object()
	o.Table, o.View = "", ""
	token := v.query.Get("page")
	model := browsePage{now: v.now, object: o, prefix: v.text("prefix"), isFirst: token == ""}
	query := url.Values{"pageSize": {browseRows}, "pageToken": {token}}
	if model.prefix != "" {
		query.Set("prefix", model.prefix)
	}
	var err error
	if model.page, err = listObjects(ctx, v, o, query); err != nil {
		return nil, err
	}
	if model.details, err = loadObject(ctx, v, o); optional(err) != nil {
		return nil, err
	}
	beside, err := loadTree(ctx, v, o)
	if err != nil {
		return nil, err
	}
	crumbs := crumbsOf(o)
	return &page{
		title: crumbs[len(crumbs)-1].name, section: placeWarehouses, crumbs: crumbs, aside: beside.node(),
		body: model.node(),
	}, nil
}

// loadObject asks what an object is. It returns nil if the answer is an error.
func loadObject(ctx context.Context, v *visit, o client.Object) (*client.ObjectDetails, error) {
	path := o.Namespace
	if leaf := o.Table + o.View; leaf != "" {
		path = append(path[:len(path):len(path)], leaf)
	}
	query := url.Values{"warehouse": {o.Warehouse}}
	if len(path) > 0 {
		query.Set("path", client.JoinLevels(path))
	}
	var details client.ObjectDetails
	if err := v.get(ctx, "/object", query, &details); err != nil {
		return nil, err
	}
	return &details, nil
}

// node returns the page.
func (m browsePage) node() g.Node {
	kind, title := "warehouse", m.object.Warehouse
	if n := len(m.object.Namespace); n > 0 {
		kind, title = "namespace", m.object.Namespace[n-1]
	}
	body := g.Group{h.Div(h.Class("title"), icon(kind), h.H1(name(title)), badge("", kind), m.owner())}
	body = append(body, m.description())
	body = append(body, h.Div(h.Class("tools"), ask(to(placeBrowse, m.object),
		h.Input(h.Type("search"), h.Name("prefix"), h.Value(term.Clean(m.prefix)), h.Placeholder("Begins with …"),
			h.Aria("label", "Names that begin with")),
		h.Button(g.Text("Filter"))), link(to(placeDropped, m.object), h.Class("button"), g.Text("Dropped tables")),
		g.If(kind == "warehouse", link(to(placeWarehouse, m.object), h.Class("button"), g.Text("Settings")))))
	if len(m.page.Objects) == 0 {
		return append(body, m.nothing(), m.properties())
	}
	return append(body, objectGrid(m.now, m.page.Objects), m.pager(), m.properties())
}

func (m browsePage) owner() g.Node {
	if m.details == nil || m.details.Owner == "" {
		return nil
	}
	return h.Span(h.Class("faint"), g.Text("owner "), name(m.details.Owner))
}

// description returns the comment of the namespace, if it has one.
func (m browsePage) description() g.Node {
	if m.details == nil || m.details.Properties["comment"] == "" {
		return nil
	}
	return h.P(h.Class("lead"), text(m.details.Properties["comment"]))
}

// nothing returns the text of an empty list.
func (m browsePage) nothing() g.Node {
	switch {
	case m.prefix != "":
		return empty("Nothing here begins with these letters.", shellLine{})
	case !m.isFirst:
		return empty("There is nothing further.", shellLine{})
	case len(m.object.Namespace) == 0:
		return empty("This warehouse has no namespaces that you may see.",
			command("moorage", "mk",
				nameOf(client.Object{Warehouse: m.object.Warehouse, Namespace: []string{"sales"}})))
	}
	return empty("This namespace is empty, or you may not see what is in it.", shellLine{})
}

// pager returns the link to the next page.
func (m browsePage) pager() g.Node {
	if m.page.Next() == "" && m.isFirst {
		return nil
	}
	return h.Div(h.Class("pager"),
		g.Iff(!m.isFirst, func() g.Node {
			return link(to(placeBrowse, m.object, "prefix", m.prefix),
				g.Text("First page"))
		}),
		g.Iff(m.page.Next() != "", func() g.Node {
			return link(to(placeBrowse, m.object, "prefix", m.prefix, "page", m.page.Next()), h.Rel("next"),
				g.Text("Next page"))
		}))
}

// properties returns the properties of the container.
func (m browsePage) properties() g.Node {
	if m.details == nil || len(m.details.Properties) == 0 {
		return nil
	}
	return panel("Properties", propertyGrid(m.details.Properties))
}

// objectGrid returns a list of objects of one container.
func objectGrid(now time.Time, objects []client.Row) g.Node {
	list := grid{label: "Objects", columns: []column{
		{"Name", "wide"}, {"Rows", "num"}, {"Size", "num"}, {"Files", "num"}, {"Last commit", ""}, {"By", ""},
	}}
	for _, row := range objects {
		s := row.Summary
		if s == nil {
			s = &client.ObjectSummary{}
		}
		list.rows = append(list.rows, []cell{
			{h.Span(h.Class("object"), link(pageOf(objectOf(row)), icon(row.Kind), name(row.Name)), comment(s.Comment)),
				orderOf(row.Kind) + row.Name},
			numeric(number(s.Rows), s.Rows), numeric(size(s.Bytes), s.Bytes), numeric(number(s.Files), s.Files),
			{h.Span(agoOf(now, s.At), operation(s.Operation)), timed(now, s.At).order}, plain(caller(row.By)),
		})
	}
	return list.node()
}

// orderOf makes namespaces come before tables, and tables before views.
func orderOf(kind string) string {
	switch kind {
	case client.KindNamespace:
		return "0"
	case client.KindTable:
		return "1"
	}
	return "2"
}

// comment returns a comment beside a name.
func comment(words string) g.Node {
	if words == "" {
		return nil
	}
	return h.Span(h.Class("comment"), text(words))
}

// operation returns what a snapshot did, beside its time.
func operation(word string) g.Node {
	if word == "" {
		return nil
	}
	return g.Group{g.Text(" "), h.Span(h.Class("faint"), text(word))}
}

// caller returns the name of a caller; a dash if it is not known.
func caller(who string) g.Node {
	if who == "" {
		return dash()
	}
	return name(who)
}

// propertyGrid returns properties, ordered by name.
func propertyGrid(properties map[string]string) g.Node {
	list := grid{label: "Properties", columns: []column{{"Name", ""}, {"Value", "wide"}}}
	for _, key := range sortedKeys(properties) {
		list.rows = append(list.rows, []cell{plain(mono(key)), plain(mono(properties[key]))})
	}
	return list.node()
}
