package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"moorage"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// droppedPage is the dropped tables and views of a warehouse or namespace.
type droppedPage struct {
	now     time.Time
	object  client.Object
	isEnded bool // also objects that cannot come back
	page    client.DroppedPage
}

// loadDropped loads what was dropped in a warehouse or namespace, and below it.
func loadDropped(ctx context.Context, v *visit) (*page, error) {
	model := droppedPage{now: v.now, object: v.object(), isEnded: v.query.Has("ended")}
	model.object.Table, model.object.View = "", ""
	query := url.Values{"recursive": {"true"}, "pageSize": {browseRows}, "pageToken": {v.query.Get("page")}}
	if model.isEnded {
		query.Set("ended", "true")
	}
	var err error
	if model.page, err = listDropped(ctx, v, model.object, query); err != nil {
		return nil, err
	}
	beside, err := loadTree(ctx, v, model.object)
	if err != nil {
		return nil, err
	}
	return &page{
		title: "Dropped", section: placeWarehouses, aside: beside.node(), body: model.node(),
		crumbs: append(crumbsOf(model.object), crumb{name: "Dropped"}),
	}, nil
}

// listDropped asks for dropped objects.
func listDropped(ctx context.Context, v *visit, of client.Object, query url.Values) (page client.DroppedPage,
	err error) {
	query.Set("warehouse", of.Warehouse)
	if len(of.Namespace) > 0 {
		query.Set("namespace", client.JoinLevels(of.Namespace))
	}
	err = v.get(ctx, "/dropped", query, &page)
	return page, err
}

// node returns the page.
func (m droppedPage) node() g.Node {
	ended := link(to(placeDropped, m.object, "ended", "yes"), h.Class("button"),
		g.Text("Show also what cannot come back"))
	if m.isEnded {
		ended = link(to(placeDropped, m.object), h.Class("button"), g.Text("Only what can come back"))
	}
	more := g.Node(nil)
	if next := m.page.Next(); next != "" {
		asked := to(placeDropped, m.object, "page", next)
		if m.isEnded {
			asked.more.Set("ended", "yes")
		}
		more = h.Div(h.Class("pager"), link(asked, h.Rel("next"), g.Text("Next page")))
	}
	body := g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("Dropped from "), name(shortName(m.object)))),
		h.P(h.Class("lead"),
			g.Text("Tables and views that were dropped here and below. Each can come back until the time in its row.")),
		h.Div(h.Class("tools"), ended),
	}
	if len(m.page.Dropped) == 0 {
		return append(body, empty("No table or view that you may see was dropped here.", shellLine{}), more)
	}
	return append(body, droppedGrid(m.now, m.page.Dropped), more)
}

// droppedGrid returns dropped objects as a table.
func droppedGrid(now time.Time, dropped []client.Dropped) g.Node {
	list := grid{label: "Dropped objects", stacks: true, columns: []column{
		{"Name", "wide"}, {"Dropped", ""}, {"By", ""}, {"Rows", "num"}, {"Size", "num"}, {"Can come back until", ""},
		{"", "next"},
	}}
	for _, d := range dropped {
		s := d.Summary
		if s == nil {
			s = &client.ObjectSummary{}
		}
		until := g.Group{agoOf(now, d.EndsAt)}
		if d.Purge != client.PurgeNone && d.Purge != "" {
			until = append(until, g.Text(" "), badge("warn", "purge "+d.Purge))
		}
		if d.Undrop != client.UndropYes {
			until = append(until, h.Div(h.Class("faint"), text(d.Undrop)))
		}
		dropped := d.At
		list.rows = append(list.rows, []cell{
			{h.Span(h.Class("object"), icon(d.Kind), name(moorage.PersonLevels(d.Levels()...))), d.Name},
			timed(now, &dropped), plain(caller(d.By)), numeric(number(s.Rows), s.Rows), numeric(size(s.Bytes), s.Bytes),
			{until, timed(now, d.EndsAt).order}, plain(droppedActions(d)),
		})
	}
	return list.node()
}

// droppedActions returns what a visitor can do with a dropped object.
func droppedActions(d client.Dropped) g.Node {
	if d.State != client.StateDropped {
		return nil
	}
	within := client.Object{Warehouse: d.Warehouse, Namespace: d.Namespace}
	ask := func(change, words string) g.Node {
		return link(to(placeUndrop, within, "change", change, "id", d.ID), g.Text(words))
	}
	return h.Span(h.Class("actions"),
		g.Iff(d.Undrop == client.UndropYes, func() g.Node { return ask("undrop", "bring back …") }),
		ask("purge", "purge …"), ask("forget", "forget …"))
}

// loadUndrop prepares what becomes of a dropped object. The API finds the object by its id, and the
// page shows what it found: an address can have any words in it.
func loadUndrop(ctx context.Context, v *visit) (*page, error) {
	d, err := loadDroppedItem(ctx, v)
	if err != nil {
		return nil, err
	}
	within := client.Object{Warehouse: d.Warehouse, Namespace: d.Namespace}
	shown := h.Strong(name(moorage.PersonLevels(d.Levels()...)))
	made := prepared{
		key: newKey(), back: to(placeDropped, within), body: json.RawMessage("{}"), says: []g.Node{
			g.Group{g.Text("This is the " + d.Kind + " "), shown, g.Text(" of the warehouse "), name(d.Warehouse),
				g.Text(", which was dropped "), ago(v.now, d.At), by(d.By), g.Text(".")},
		},
	}
	rename := g.Node(nil)
	switch change := v.text("change"); change {
	case "undrop":
		asked := client.UndropRequest{ID: d.ID}
		made.title, made.button, made.path = "Bring back", "Bring back "+d.Name, client.RootManagement+"/undrop"
		named := within
		named.Table = d.Name
		words := []string{"moorage", "undrop", nameOf(named)}
		if as := v.query.Get("as"); as != "" {
			asked.As = &client.Identifier{Namespace: within.Namespace, Name: as}
			words = append(words, "--as",
				nameOf(client.Object{Warehouse: moorage.DefaultWarehouse, Namespace: within.Namespace, Table: as}))
		}
		made.command = command(words...)
		if made.body, err = json.Marshal(asked); err != nil {
			return nil, err
		}
		made.back = to(placeBrowse, within)
		made.says = append(made.says,
			g.Group{shown, g.Text(" comes back with its id, its rows, its grants, labels and maintenance.")},
			g.Text("A purge that was asked for and has not begun is called off."))
		rename = ask(to(placeUndrop, within, "change", change, "id", d.ID), h.Div(h.Class("tools"),
			h.Label(g.Text("Under another name "), h.Input(h.Name("as"), h.Required())),
			h.Button(g.Text("Prepare …"))))
	case "purge":
		made.title, made.button, made.isFinal = "Purge", "Purge "+d.Name, true
		made.path = client.RootManagement + client.Path("dropped", d.ID, change)
		made.warnings = []string{"The files are deleted, and nothing brings them back."}
		made.says = append(made.says, g.Group{g.Text("The purge of "), shown,
			g.Text(" begins as soon as no engine may be reading its files.")})
	case "forget":
		made.title, made.button, made.isFinal = "Forget", "Forget "+d.Name, true
		made.path = client.RootManagement + client.Path("dropped", d.ID, change)
		made.warnings = []string{"It cannot be brought back by name. Its files stay, and can be registered."}
		made.says = append(made.says, g.Group{g.Text("The server forgets "), shown, g.Text(" now.")})
	default:
		return nil, &client.Error{Code: http.StatusBadRequest, Message: "There is no such change of a dropped object."}
	}
	return &page{
		title: made.title, section: placeWarehouses, crumbs: append(crumbsOf(within), crumb{name: "Dropped"}),
		body: g.Group{made.node(), rename},
	}, nil
}

// loadDroppedItem loads the dropped object whose id the address has.
func loadDroppedItem(ctx context.Context, v *visit) (client.Dropped, error) {
	id := v.text("id")
	none := &client.Error{
		Code: http.StatusNotFound, Message: "There is no dropped object with this id that you may see.",
		Help: "It came back, it ended, or its name is in another warehouse. Look at the list of dropped objects.",
	}
	if id == "" {
		return client.Dropped{}, none
	}
	found, err := listDropped(ctx, v, client.Object{Warehouse: v.object().Warehouse}, url.Values{"id": {id}})
	if err != nil {
		return client.Dropped{}, err
	}
	if len(found.Dropped) != 1 || found.Dropped[0].ID != id {
		return client.Dropped{}, none
	}
	return found.Dropped[0], nil
}

// droppedOf returns the dropped objects that had the name of an object, or nil if there are none or
// the visitor may not see them.
func droppedOf(ctx context.Context, v *visit, o client.Object) []client.Dropped {
	leaf := o.Table + o.View
	if leaf == "" {
		return nil
	}
	within := client.Object{Warehouse: o.Warehouse, Namespace: o.Namespace}
	page, err := listDropped(ctx, v, within, url.Values{"name": {leaf}, "ended": {"true"}})
	if err != nil {
		return nil // the failure that led here is what the visitor must know
	}
	return page.Dropped
}
