package console

import (
	"context"
	"net/url"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// homePage is the first page: what changed, what there is, and what needs an operator.
type homePage struct {
	now        time.Time
	warehouses warehousesPage
	events     []client.Event
	noEvents   string // why there are no events; empty if there are
	findings   []client.Finding
	top        *client.Top // nil if the visitor may not see it
	isOperator bool        // the visitor may see the findings
}

// homeEvents is how many of the last changes the page shows.
const homeEvents = "12"

// homeLive is the value of the parameter part that asks for the part of the page that refreshes.
const homeLive = "live"

// loadHome loads the first page, or the part of it that refreshes.
func loadHome(ctx context.Context, v *visit) (*page, error) {
	model := homePage{now: v.now}
	feed, err := loadFeed(ctx, v, url.Values{"tail": {homeEvents}})
	switch {
	case err == nil:
		model.events = feed.Events
	case optional(err) == nil:
		model.noEvents = err.Error()
	default:
		return nil, err
	}
	if v.text("part") == homeLive {
		return &page{title: "Overview", section: placeHome, body: model.live()}, nil
	}
	if model.warehouses, err = loadWarehouseRows(ctx, v, false); err != nil {
		return nil, err
	}
	if model.top, err = loadTop(ctx, v); err != nil {
		return nil, err
	}
	var found client.FindingsPage
	err = v.get(ctx, "/doctor", nil, &found)
	if optional(err) != nil {
		return nil, err
	}
	model.isOperator = err == nil
	for _, each := range found.Findings {
		if each.Level != client.LevelOK {
			model.findings = append(model.findings, each)
		}
	}
	return &page{title: "Overview", section: placeHome, body: model.node()}, nil
}

// node returns the page.
func (m homePage) node() g.Node {
	return g.Group{
		h.H1(h.Class("hidden"), g.Text("Overview")),
		g.Iff(m.isOperator, m.attention),
		panel("Warehouses", m.warehouses.list()),
		panel("Last changes", m.live(),
			h.P(link(to(placeChanges, client.Object{}), g.Text("All changes")))),
		topPanel(m.top, m.aboutNode()...),
	}
}

// aboutNode returns what the answering node is.
func (m homePage) aboutNode() []fact {
	if m.top == nil {
		return nil
	}
	return []fact{
		{"Node", name(m.top.Node)}, {"Nodes", g.Text(strconv.Itoa(m.top.Nodes))}, {"Started", ago(m.now, m.top.Since)},
	}
}

// attention returns what needs an operator.
func (m homePage) attention() g.Node {
	if len(m.findings) == 0 {
		return h.P(h.Class("calm"), badge("good", "ok"), g.Text(" "),
			link(to(placeOperations, client.Object{}), g.Text("Nothing needs an operator")))
	}
	return panel("Needs an operator", findingList(m.findings, func(client.Finding) g.Node { return nil }),
		h.P(link(to(placeOperations, client.Object{}), g.Text("All findings"))))
}

// live returns the part of the page that refreshes. It comes from an address of its own, which asks
// the API for nothing else.
func (m homePage) live() g.Node {
	from := to(placeHome, client.Object{}, "part", homeLive)
	return h.Div(h.ID("live"), h.Data("poll", "5"), h.Data("from", from.href()),
		h.Aria("live", "polite"), m.changes())
}

// changes returns the last changes.
func (m homePage) changes() g.Node {
	switch {
	case m.noEvents != "":
		return h.P(h.Class("faint"), text(m.noEvents))
	case len(m.events) == 0:
		return empty("None of the last changes is one that you may see.", command("moorage", "changes", "--follow"))
	}
	return eventGrid(m.now, m.events).node()
}
