package console

import (
	"context"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// searchBytesMax bounds the words of a search, as the API does.
const searchBytesMax = 200

// searchPage has the objects whose names match some words.
type searchPage struct {
	words string
	all   bool // as many as a search finds
	found client.Found
}

// searchLimit and searchLimitAll are how many names the page shows at first, and on demand.
const searchLimit, searchLimitAll = "50", "200"

// loadSearch loads what matches the words of the address.
func loadSearch(ctx context.Context, v *visit) (*page, error) {
	model := searchPage{words: v.text("q"), all: v.query.Has("all")}
	if model.words != "" {
		limit := searchLimit
		if model.all {
			limit = searchLimitAll
		}
		if err := v.get(ctx, "/search", url.Values{"q": {model.words}, "limit": {limit}}, &model.found); err != nil {
			return nil, err
		}
	}
	return &page{title: "Search", section: placeWarehouses, body: model.node()}, nil
}

// node returns the page.
func (m searchPage) node() g.Node {
	return g.Group{
		h.H1(g.Text("Search")),
		ask(to(placeSearch, client.Object{}), h.Div(h.Class("tools"),
			h.Input(h.Type("search"), h.Name("q"), h.Value(term.Clean(m.words)), h.Aria("label", "Words in the name"),
				h.AutoFocus()),
			h.Button(g.Text("Search")))),
		m.results(),
	}
}

// results returns what was found. Scripts take it over into the palette by its id.
func (m searchPage) results() g.Node {
	if m.words == "" {
		return h.Div(h.ID("found"), h.P(h.Class("faint"), g.Text("Type a part of a name, or several: ship 2025.")))
	}
	if len(m.found.Objects) == 0 {
		return h.Div(h.ID("found"), h.P(h.Class("faint"), g.Text("No name that you may see has all these words.")))
	}
	return h.Div(h.ID("found"), h.Ul(h.Class("hits"), g.Map(m.found.Objects, func(row client.Row) g.Node {
		around := append([]string{row.Warehouse}, row.Namespace...)
		return h.Li(link(pageOf(objectOf(row)), icon(row.Kind), h.Strong(name(row.Name)),
			h.Span(h.Class("faint"), text(row.Kind+" in "), name(strings.Join(around, " / ")))))
	})), g.If(m.found.More && m.all, h.P(h.Class("faint"), g.Text("There are more: add a word."))),
		g.If(m.found.More && !m.all, h.P(link(to(placeSearch, client.Object{}, "q", m.words, "all", "yes"),
			g.Text("Show more names, or add a word")))))
}
