package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"moorage"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// viewPage is a view.
type viewPage struct {
	now      time.Time
	object   client.Object
	details  *client.ObjectDetails
	document viewDocument
	events   []client.Event
}

// viewDocument has the members of a view's metadata that pages show.
type viewDocument struct {
	Current    int               `json:"current-version-id"`
	Versions   []viewVersion     `json:"versions"`
	Properties map[string]string `json:"properties"`
}

type viewVersion struct {
	ID              int               `json:"version-id"`
	MS              int64             `json:"timestamp-ms"`
	Summary         map[string]string `json:"summary"`
	Representations []representation  `json:"representations"`
	Catalog         string            `json:"default-catalog"`
	Namespace       []string          `json:"default-namespace"`
}

type representation struct {
	SQL     string `json:"sql"`
	Dialect string `json:"dialect"`
}

// loadView loads a view.
func loadView(ctx context.Context, v *visit) (*page, error) {
	o := v.object()
	o.Table = ""
	noView := &client.Error{Code: http.StatusNotFound, Message: "There is no view of this name."}
	if o.View == "" {
		return nil, noView
	}
	model := viewPage{now: v.now, object: o}
	var err error
	if model.details, err = loadObject(ctx, v, o); err != nil {
		return nil, err
	}
	if model.details.Kind != client.KindView {
		return nil, noView
	}
	loaded := struct {
		Metadata *viewDocument `json:"metadata"`
	}{&model.document}
	asked := client.Request{Method: http.MethodGet, Whole: client.ViewPath(o.Warehouse, o.Namespace, o.View)}
	if err := v.api.Do(ctx, asked, &loaded); err != nil {
		return nil, err
	}
	var history client.History
	query := o.Query()
	query.Set("pageSize", homeEvents)
	if err := v.get(ctx, "/history", query, &history); optional(err) != nil {
		return nil, err
	}
	model.events = history.Versions
	beside, err := loadTree(ctx, v, o)
	if err != nil {
		return nil, err
	}
	return &page{
		title: o.View, section: placeWarehouses, crumbs: crumbsOf(o), aside: beside.node(), body: model.node(),
	}, nil
}

// node returns the page.
func (m viewPage) node() g.Node {
	var now viewVersion
	for _, each := range m.document.Versions {
		if each.ID == m.document.Current {
			now = each
		}
	}
	about := []fact{{"Location", copiedPath(m.details.Location)}}
	if len(now.Namespace) > 0 {
		about = append(about, fact{"Default namespace", mono(moorage.PersonLevels(now.Namespace...))})
	}
	if m.details.Owner != "" {
		about = append(about, fact{"Definer", name(m.details.Owner)})
	}
	about = append(about, fact{"UUID", copied(m.details.UUID)})
	room := newTextRoom()
	return g.Group{
		h.Div(h.Class("title"), icon("view"), h.H1(name(m.object.View)), badge("", "view"),
			labelBadges(m.details.Labels)),
		g.If(m.details.Properties["comment"] != "", h.P(h.Class("lead"), text(m.details.Properties["comment"]))),
		h.Div(h.Class("split"),
			h.Div(
				g.Map(firstDialects(now), func(r representation) g.Node {
					return panel("SQL for "+r.Dialect, room.show(r.SQL))
				}),
				dialectsLeftOut(now), m.columns(), m.versions(room),
				g.Iff(len(m.events) > 0, func() g.Node {
					return panel("Last changes", eventGrid(m.now, m.events).without("Object").node())
				}),
			),
			h.Div(h.Class("beside"), panel("About", facts(about...)),
				g.Iff(len(m.details.Properties) > 0, func() g.Node {
					return panel("Properties", propertyGrid(m.details.Properties))
				})),
		),
	}
}

// columns returns the columns of the view.
func (m viewPage) columns() g.Node {
	list := grid{label: "Columns", columns: []column{{"Id", "num"}, {"Name", "wide"}, {"Type", ""}}}
	for _, c := range m.details.Columns[:min(len(m.details.Columns), columnsShown)] {
		id := int64(c.ID)
		list.rows = append(list.rows, []cell{
			numeric(number(&id), &id), {g.Group{columnName(c.Path), comment(c.Doc)}, c.Path}, plain(mono(c.Type)),
		})
	}
	return panel(countedWord(len(m.details.Columns), "column"), list.node())
}

// Bounds of the versions of a view on its page.
const (
	viewVersionsShown = 20
	dialectsShown     = 8 // of a version
)

// firstDialects returns the first representations of a version.
func firstDialects(v viewVersion) []representation {
	return v.Representations[:min(len(v.Representations), dialectsShown)]
}

// dialectsLeftOut returns how many representations of a version the page does not show; nil for
// none.
func dialectsLeftOut(v viewVersion) g.Node {
	left := len(v.Representations) - dialectsShown
	if left <= 0 {
		return nil
	}
	return h.P(h.Class("faint"), g.Text(countedWord(left, "more dialect")+" are left out."))
}

// versions returns the last versions of the view, the newest first, with the SQL of each, and what
// it changed.
func (m viewPage) versions(room *textRoom) g.Node {
	all := m.document.Versions
	if len(all) < 2 {
		return nil
	}
	var items g.Group
	for i := len(all) - 1; i >= 0 && len(items) < viewVersionsShown; i-- {
		each := all[i]
		at := time.UnixMilli(each.MS)
		items = append(items, h.Details(
			h.Summary(g.Textf("Version %d, ", each.ID), ago(m.now, at),
				g.If(each.ID == m.document.Current, g.Group{g.Text(" "), badge("good", "current")}),
				g.If(each.Summary["engine-name"] != "",
					h.Span(h.Class("faint"), text(" "+each.Summary["engine-name"])))),
			g.Map(firstDialects(each), func(r representation) g.Node {
				changed := g.Node(nil)
				if i > 0 {
					changed = room.change(all[i-1].sql(r.Dialect), r.SQL)
				}
				return g.Group{h.P(h.Class("faint"), text(r.Dialect)), room.show(r.SQL), changed}
			}),
			dialectsLeftOut(each)))
	}
	return panel("Versions", h.Div(h.Class("recipes"), items),
		g.Iff(len(all) > len(items), func() g.Node {
			return g.Group{
				h.P(h.Class("faint"), g.Textf("These are the last %d of %d versions. To see an earlier one:",
					len(items), len(all))),
				command("moorage", "show", nameOf(m.object), "--at", "now~"+strconv.Itoa(len(items))).node(),
			}
		}))
}

// sql returns the SQL of a version in a dialect; empty if it has none.
func (v viewVersion) sql(dialect string) string {
	for _, r := range v.Representations {
		if r.Dialect == dialect {
			return r.SQL
		}
	}
	return ""
}
