package console

import (
	"bytes"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// page is an answer to a browser.
type page struct {
	title   string
	status  int   // 0 means 200
	section place // of the navigation
	// crumbs are the links to what contains the page. The last one is the page itself.
	crumbs []crumb
	aside  g.Node // beside the content: the tree; nil for none
	body   g.Node
	isBare bool // without navigation, for visitors that are not signed in
	// next is the address of another server to which the browser goes on at once; empty for none.
	next string
}

// crumb is a link to something that contains a page.
type crumb struct {
	kind string // of the object, for its icon; may be empty
	name string
	to   target
}

// crumbsOf returns the links from the list of warehouses to an object.
func crumbsOf(o client.Object) []crumb {
	all := []crumb{{name: "Warehouses", to: to(placeWarehouses, client.Object{})}}
	if o.IsServer() {
		return all
	}
	all = append(all, crumb{"warehouse", o.Warehouse, to(placeBrowse, client.Object{Warehouse: o.Warehouse})})
	for i, level := range o.Namespace {
		within := client.Object{Warehouse: o.Warehouse, Namespace: o.Namespace[:i+1]}
		all = append(all, crumb{"namespace", level, to(placeBrowse, within)})
	}
	switch {
	case o.Table != "":
		all = append(all, crumb{"table", o.Table, to(placeTable, o)})
	case o.View != "":
		all = append(all, crumb{"view", o.View, to(placeView, o)})
	}
	return all
}

// section is an entry of the navigation.
type section struct {
	place place
	word  string
}

// sections returns the entries of the navigation.
func sections() []section {
	return []section{
		{placeHome, "Overview"}, {placeWarehouses, "Browse"}, {placeChanges, "Changes"},
		{placeOperations, "Operations"},
		{placeCluster, "Cluster"}, {placePrincipals, "Access"}, {placeAPI, "API"},
	}
}

// frame has what all pages of a server have in common.
type frame struct {
	version       string
	style, script string // addresses
	mark          string // address of the icon
	theme         string
	here          string // address of the page
	who           string // name of the visitor; empty without a session
	isDone        bool   // the visitor has just made a change
}

// document returns the whole page.
func (f frame) document(p *page) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"), g.If(f.theme != "", h.Data("theme", f.theme)),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(text(p.title), g.Text(" · Moorage")),
			h.Link(h.Rel("icon"), h.Type("image/svg+xml"), h.Href(f.mark)),
			h.Link(h.Rel("stylesheet"), h.Href(f.style)),
			h.Script(h.Type("module"), h.Src(f.script)),
		),
		h.Body(
			anchorOnly("content", "Skip to the content"),
			f.header(p),
			h.Div(h.Class("middle"),
				g.Iff(p.aside != nil, func() g.Node {
					return h.Aside(h.Class("aside"), h.Aria("label", "Tree"),
						p.aside)
				}),
				h.Main(h.ID("content"), h.TabIndex("-1"),
					g.If(f.isDone, h.P(h.Class("done"), h.Role("status"), g.Text("Done. The log of changes has it."))),
					p.trail(), p.body),
			),
			h.Footer(g.Text("Moorage "+f.version),
				h.Span(h.Class("keys"), g.Text(" · press "), h.Kbd(g.Text("?")), g.Text(" for keyboard shortcuts"))),
		),
	))
}

// anchorOnly returns a link that is visible only while it has the focus.
func anchorOnly(id, words string) g.Node {
	return h.Div(h.Class("skip"), anchor(id, g.Text(words)))
}

// header returns the top of a page.
func (f frame) header(p *page) g.Node {
	brand := h.Div(h.Class("brand"), link(to(placeHome, client.Object{}), mark(), h.Span(g.Text("Moorage"))))
	theme := h.Div(h.Class("theme"), act(to(placeTheme, client.Object{}, fieldBack, f.here),
		h.Button(h.Name("theme"), h.Value(otherTheme(f.theme)), h.Title("Light or dark"),
			h.Aria("label", "Switch between light and dark"), icon("theme"))))
	if p.isBare {
		return h.Header(h.Class("top bare"), brand, theme)
	}
	return h.Header(h.Class("top"),
		brand,
		h.Nav(h.Aria("label", "Sections"), h.Ul(g.Map(sections(), func(s section) g.Node {
			return h.Li(g.If(s.place == p.section, h.Class("here")), link(to(s.place, client.Object{}), g.Text(s.word)))
		}))),
		h.Div(h.Class("find"), h.Role("search"), ask(to(placeSearch, client.Object{}),
			icon("search"),
			h.Input(h.Type("search"), h.Name("q"), h.ID("find"), h.Placeholder("Search names"),
				h.Aria("label", "Search names"), h.AutoComplete("off"), h.MaxLength(strconv.Itoa(searchBytesMax))),
			h.Kbd(h.Aria("hidden", "true"), g.Text("/")))),
		f.visitor(),
		theme,
	)
}

// trail returns the links to what contains the page.
func (p *page) trail() g.Node {
	if len(p.crumbs) < 2 {
		return nil
	}
	last := len(p.crumbs) - 1
	return h.Nav(h.Class("trail"), h.Aria("label", "Breadcrumb"), h.Ol(g.Map(p.crumbs[:last], func(c crumb) g.Node {
		return h.Li(link(c.to, g.If(c.kind != "", icon(c.kind)), name(c.name)))
	})))
}

// mark returns the sign of the product: a bollard with a rope.
func mark() g.Node {
	return h.SVG(h.Class("mark"), g.Attr("viewBox", "0 0 24 24"), h.Width("24"), h.Height("24"),
		h.Aria("hidden", "true"),
		g.El("path", g.Attr("fill", "currentColor"), g.Attr("d",
			"M6 3h12a2 2 0 0 1 0 4h-1.5l1.2 10H19a1.5 1.5 0 0 1 1.5 1.5V21h-17v-2.500"+
				"A1.500 1.500 0 0 1 5 17h1.300L7.500 7H6a2 2 0 0 1 0-4z")),
		g.El("path", h.Class("rope"), g.Attr("fill", "none"), g.Attr("stroke-width", "1.6"),
			g.Attr("d", "M7.200 10.500h9.600M6.900 13.300h10.200")))
}

// themeCookie has the visitor's choice between light and dark.
const themeCookie = "moorage-theme"

// The themes.
const (
	themeLight = "light"
	themeDark  = "dark"
)

func isTheme(word string) bool { return word == themeLight || word == themeDark }

// otherTheme returns what the switch changes to. Without a choice a script finds out which theme
// the browser prefers.
func otherTheme(now string) string {
	if now == themeDark {
		return themeLight
	}
	return themeDark
}

// answer sends a page.
func (c *console) answer(w http.ResponseWriter, r *http.Request, v *visit, p *page) error {
	made := frame{
		version: c.config.Version, theme: v.theme, here: v.here, isDone: v.query.Has(doneParam),
		who:    v.name,
		style:  fileAddress("console.css", c.files["console.css"].version),
		script: fileAddress("console.js", c.files["console.js"].version),
		mark:   fileAddress("mark.svg", c.files["mark.svg"].version),
	}
	var body bytes.Buffer
	if err := made.document(p).Render(&body); err != nil {
		return err
	}
	if err := c.server.HoldAnswer(w, r, nil, int64(body.Len())); err != nil {
		return err
	}
	header := w.Header()
	guard(header)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	if p.next != "" {
		header.Set("Refresh", "0; url="+p.next)
	}
	for _, cookie := range v.cookies {
		http.SetCookie(w, cookie)
	}
	return c.server.AnswerBody(w, r, max(p.status, http.StatusOK), body.Bytes())
}
