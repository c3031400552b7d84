package console

import (
	"errors"
	"net/http"
	"time"

	"moorage"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// notFound returns the page for an address without a page.
func notFound() *page {
	return problem{status: http.StatusNotFound, title: "No such page",
		message: "The console has no page at this address."}.page()
}

// problem is a request that could not be answered.
type problem struct {
	status    int
	title     string
	message   string
	help      string
	requestID string
	dropped   []client.Dropped // dropped objects of this name
	now       time.Time        // if there are dropped objects
	object    client.Object    // what the request was about; the page links what contains it
}

// failed returns the page for an error of the API.
func failed(v *visit, err error) *page { return problemOf(v, err).page() }

// problemOf returns what a page says about an error of the API.
func problemOf(v *visit, err error) problem {
	shown := problem{
		status: http.StatusBadGateway, title: "The server did not answer",
		message: "The page could not be made. Try again.",
		object:  v.object(),
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		shown.status, shown.message = refused.Code, refused.Message
		shown.help, shown.requestID = refused.Help, refused.RequestID
		shown.title = titles[refused.Code]
		if shown.title == "" {
			shown.title = http.StatusText(refused.Code)
		}
	}
	return shown
}

// titles maps the status of an error to the text that pages show for it.
var titles = map[int]string{
	http.StatusBadRequest:            "This request is not valid",
	http.StatusUnauthorized:          "Sign in first",
	http.StatusForbidden:             "You may not do this",
	http.StatusNotFound:              "There is no such object",
	http.StatusConflict:              "This conflicts with the present state",
	http.StatusPreconditionFailed:    "Something changed meanwhile",
	http.StatusTooManyRequests:       "Too many requests",
	http.StatusRequestEntityTooLarge: "This is too large",
	http.StatusServiceUnavailable:    "The server cannot do this now",
}

// page returns the page that explains what happened and what to do.
func (p problem) page() *page {
	crumbs := crumbsOf(p.object)
	if len(p.dropped) > 0 {
		last := p.dropped[0]
		p.title, p.help = moorage.PersonLevels(last.Levels()...)+" was dropped", ""
	}
	// The API's help for names that do not exist is for programs.
	isElsewhere := p.status == http.StatusNotFound && p.requestID != "" && p.object.Warehouse != ""
	return &page{
		title: p.title, status: p.status, section: placeWarehouses, crumbs: crumbs,
		body: h.Div(h.Class("problem"),
			h.H1(text(p.title)),
			h.P(text(p.message)),
			g.If(p.help != "" && !isElsewhere, h.P(h.Class("faint"), text(p.help))),
			g.Iff(p.requestID != "", func() g.Node {
				return h.P(h.Class("faint"), g.Text("Request "), copied(p.requestID))
			}),
			g.Iff(len(p.dropped) > 0, func() g.Node {
				return panel("When, and by whom", droppedGrid(p.now, p.dropped))
			}),
			g.Iff(isElsewhere, func() g.Node { return waysFrom(p.object) }),
			h.P(link(to(placeWarehouses, client.Object{}), g.Text("All warehouses"))),
		),
	}
}

// waysFrom returns the links from an object that does not exist to what contains it.
func waysFrom(o client.Object) g.Node {
	within := client.Object{Warehouse: o.Warehouse}
	if o.Table+o.View != "" {
		within.Namespace = o.Namespace
	} else if len(o.Namespace) > 0 {
		within.Namespace = o.Namespace[:len(o.Namespace)-1]
	}
	return h.Ul(h.Class("says"),
		h.Li(link(to(placeBrowse, within), g.Text("What there is in "), name(shortName(within)))),
		h.Li(link(to(placeDropped, within), g.Text("What was dropped from "), name(shortName(within)))),
		h.Li(link(to(placeChanges, within), g.Text("What changed in "), name(shortName(within)))))
}
