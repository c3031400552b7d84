package console

import (
	"context"
	"net/url"
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

// loadHome loads the first page.
func loadHome(ctx context.Context, v *visit) (*page, error) {
	model := homePage{now: v.now}
	var err error
	if model.warehouses, err = loadWarehouseRows(ctx, v, false); err != nil {
		return nil, err
	}
	feed, err := loadFeed(ctx, v, url.Values{"tail": {homeEvents}})
	switch {
	case err == nil:
		model.events = feed.Events
	case optional(err) == nil:
		model.noEvents = err.Error()
	default:
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
		panel("Last changes", h.Div(h.ID("live"), h.Data("poll", "5"), h.Aria("live", "polite"), m.changes()),
			h.P(link(to(placeChanges, client.Object{}), g.Text("All changes")))),
		topPanel(m.now, m.top),
	}
}

// attention returns what needs an operator.
func (m homePage) attention() g.Node {
	if len(m.findings) == 0 {
		return h.P(h.Class("calm"), badge("good", "ok"), g.Text(" Nothing needs an operator."))
	}
	return panel("Needs an operator", findingList(m.findings))
}

// findingList returns findings with what to do about each.
func findingList(findings []client.Finding) g.Node {
	return h.Ul(h.Class("findings"), g.Map(findings, func(f client.Finding) g.Node {
		look := map[string]string{client.LevelBad: "bad", client.LevelWarn: "warn", client.LevelOK: "good"}[f.Level]
		return h.Li(badge(look, f.Level), h.Div(h.Strong(text(f.What)), h.Div(text(f.Fact)),
			g.If(f.Remedy != "", h.Div(copied(f.Remedy)))))
	}))
}

// changes returns the last changes.
func (m homePage) changes() g.Node {
	switch {
	case m.noEvents != "":
		return h.P(h.Class("faint"), text(m.noEvents))
	case len(m.events) == 0:
		return empty("Nothing has changed since the log of changes begins.", command("moorage", "changes", "--follow"))
	}
	return eventGrid(m.now, m.events)
}
