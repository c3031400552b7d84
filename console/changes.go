package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// changesPage is the feed of changes, the newest first.
type changesPage struct {
	now    time.Time
	filter url.Values // parameters of the page that filter events
	events []client.Event
	since  string // the events begin at this time; empty: the page has the last ones
	isTail bool   // the events are the last ones that the API found
	older  int    // how many later events are left out
	// laterFrom is the position from which the next page goes on; empty for none. hasOlder means
	// that there may be events before these.
	laterFrom string
	hasOlder  bool
}

// feedFilters are the parameters of the page that the feed also has.
var feedFilters = []string{"kind", "operation", "caller"}

const (
	// changesShown is how many events the page shows.
	changesShown = 100
	// changesTailMax is the largest tail of the feed. What is older is found by its time.
	changesTailMax = 1000
)

// loadChanges loads the last changes of the server, or of the object in the address.
func loadChanges(ctx context.Context, v *visit) (*page, error) {
	model := changesPage{now: v.now, filter: url.Values{}}
	for _, name := range feedFilters {
		if value := v.text(name); value != "" {
			model.filter.Set(name, value)
		}
	}
	query := feedQuery(v.object())
	for name, values := range model.filter {
		query[name] = values
	}
	model.since = v.text("since")
	switch after := v.text("after"); {
	case after != "":
		query.Set("after", after)
		query.Set("limit", strconv.Itoa(changesShown))
	case model.since != "":
		query.Set("since", model.since)
		query.Set("limit", strconv.Itoa(changesShown))
	default:
		model.older, _ = strconv.Atoi(v.text("older"))
		model.older = max(0, min(model.older, changesTailMax-changesShown))
		query.Set("tail", strconv.Itoa(model.older+changesShown))
	}
	feed, err := loadFeed(ctx, v, query)
	if err != nil {
		return nil, err
	}
	model.events = feed.Events
	if model.isTail = query.Has("tail"); model.isTail {
		// There can be more events than requested, since the events of one change are never split.
		model.hasOlder = len(feed.Events) >= model.older+changesShown
		model.events = model.events[min(model.older, len(feed.Events)):]
	} else if !feed.AtEnd {
		model.laterFrom = feed.Next
	}
	return &page{title: "Changes", section: placeChanges, body: model.node()}, nil
}

// feedQuery returns the parameters of the feed for what happened to an object and in it.
func feedQuery(o client.Object) url.Values {
	query := url.Values{}
	if !o.IsServer() {
		query.Set("warehouse", o.Warehouse)
	}
	if len(o.Namespace) > 0 {
		query.Set("namespace", client.JoinLevels(o.Namespace))
	}
	if leaf := o.Table + o.View; leaf != "" {
		query.Set("name", leaf)
	}
	return query
}

// feedWithin is how long the feed looks back for the last events that a visitor may see. Others are
// found by their time.
const feedWithin = "50ms"

// loadFeed loads a page of the feed, with the newest event first.
func loadFeed(ctx context.Context, v *visit, query url.Values) (feed client.ChangesPage, err error) {
	if query.Has("tail") {
		query.Set("within", feedWithin)
	}
	err = v.get(ctx, "/changes", query, &feed)
	if statusOf(err) == http.StatusGone {
		query.Del("after")
		err = v.get(ctx, "/changes", query, &feed)
	}
	for i, j := 0, len(feed.Events)-1; i < j; i, j = i+1, j-1 {
		feed.Events[i], feed.Events[j] = feed.Events[j], feed.Events[i]
	}
	return feed, err
}

// node returns the page.
func (m changesPage) node() g.Node {
	field := func(param, label, hint string, suggested []string) g.Node {
		list := "of-" + param
		return h.Label(g.Text(label+" "),
			h.Input(h.Name(param), h.Value(term.Clean(m.filter.Get(param))), h.Placeholder(hint),
				g.If(len(suggested) > 0, h.List(list))),
			g.If(len(suggested) > 0, h.DataList(h.ID(list), g.Map(suggested, func(word string) g.Node {
				return h.Option(h.Value(word))
			}))))
	}
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("Changes"))),
		h.P(h.Class("lead"), g.Text("What changed, who changed it, and from where. The newest comes first.")),
		h.Div(h.Class("tools"), ask(to(placeChanges, client.Object{}),
			field("caller", "By", "key:etl", nil),
			field("operation", "Operation", "drop-table", suggestedOperations),
			field("kind", "Kind", "table", suggestedKinds),
			h.Label(g.Text("Since "), h.Input(h.Name("since"), h.Value(term.Clean(m.since)),
				h.Placeholder("2h, or a time"))),
			h.Button(g.Text("Filter")), link(to(placeChanges, client.Object{}), h.Class("button"), g.Text("Clear")))),
		h.Div(h.ID("live"), g.If(m.older == 0 && m.laterFrom == "", h.Data("poll", "5")), h.Aria("live", "polite"),
			m.list()),
		m.pager(),
	}
}

// The words that fields of the filter suggest. The API takes several, with commas between them.
var (
	suggestedKinds      = []string{client.KindTable, client.KindView, client.KindNamespace, client.KindWarehouse}
	suggestedOperations = []string{
		"create-table", "update-table", "rename-table", "drop-table", "create-view", "update-view", "drop-view",
		"create-namespace", "update-namespace-properties", "drop-namespace", "x-undrop", "x-purge", "x-protect",
		"x-policy", "x-grants",
	}
)

// pager returns the links to earlier and later events.
func (m changesPage) pager() g.Node {
	at := func(more ...string) target {
		asked := to(placeChanges, client.Object{}, more...)
		for name, values := range m.filter {
			asked.more[name] = values
		}
		return asked
	}
	links := g.Group{}
	if m.older > 0 {
		links = append(links, link(at("older", strconv.Itoa(m.older-changesShown)), h.Rel("prev"),
			g.Text("Later changes")))
	}
	switch {
	case m.laterFrom != "":
		links = append(links, link(at("since", m.since, "after", m.laterFrom), h.Rel("next"), g.Text("Later changes")))
	case m.hasOlder && m.older+2*changesShown <= changesTailMax:
		links = append(links, link(at("older", strconv.Itoa(m.older+changesShown)), h.Rel("next"),
			g.Text("Earlier changes")))
	case m.isTail: // the API reads back for a short time
		links = append(links, h.Span(h.Class("faint"), g.Text("For earlier changes type a time under Since.")))
	}
	return h.Div(h.Class("pager"), links)
}

// list returns the events.
func (m changesPage) list() g.Node {
	if len(m.events) == 0 {
		words := "No change that you may see matches. The server keeps changes for 7 days by default."
		if m.isTail {
			words = "None of the last changes is one that you may see and that matches."
		}
		return empty(words, command("moorage", "changes", "--follow"))
	}
	return eventGrid(m.now, m.events).node()
}

// eventGrid returns events as a table.
func eventGrid(now time.Time, events []client.Event) grid {
	list := grid{label: "Changes", stacks: true,
		columns: []column{{"When", ""}, {"What", "wide"}, {"Object", "thing"}, {"By", ""}, {"Client", ""}}}
	for _, e := range events {
		list.rows = append(list.rows, []cell{
			{agoAt(now, e.Time), timed(now, &e.Time).order}, plain(g.Group{eventWord(e), eventMore(e)}),
			plain(eventObject(e)),
			plain(caller(e.Caller)),
			plain(eventClient(e)),
		})
	}
	return list
}

// eventWord returns what happened, as a badge.
func eventWord(e client.Event) g.Node {
	word := strings.TrimPrefix(e.Operation, "x-")
	switch {
	case strings.HasPrefix(word, "drop-") || word == "purge" || word == "forget" || word == "unregister":
		return badge("bad", word)
	case e.Operation == "update-table" || e.Operation == "update-view":
		return h.Span(h.Title(e.Operation), badge("", updateWord(e)))
	case strings.HasPrefix(word, "create-") || strings.HasPrefix(word, "register-") || word == "undrop":
		return badge("good", word)
	}
	return badge("", word)
}

// updateWord returns what an update did: the operation of its snapshot, or the part of the table
// that it changed.
func updateWord(e client.Event) string {
	if hasSnapshot(e) && e.Summary != nil && e.Summary.Operation != "" {
		return e.Summary.Operation
	}
	for _, action := range e.Actions {
		for _, each := range []struct{ begins, word string }{
			{"rollback", "rollback"}, {"set-snapshot-ref main", "move main"}, {"add-schema", "schema"},
			{"set-current-schema", "schema"},
			{"add-spec", "partitioning"}, {"add-sort-order", "sort order"}, {"set-properties", "properties"},
			{"remove-properties", "properties"}, {"set-snapshot-ref", "ref"}, {"remove-snapshot-ref", "ref"},
			{"remove-snapshots", "expire"}, {"add-view-version", "version"},
		} {
			if strings.HasPrefix(action, each.begins) {
				return each.word
			}
		}
	}
	return "update"
}

// eventMore returns details of what happened.
func eventMore(e client.Event) g.Node {
	var words []string
	for _, action := range e.Actions {
		if !isUsual(action) {
			words = append(words, action)
		}
	}
	if e.Purge {
		words = append(words, "with a purge")
	}
	if len(e.Members) > 1 {
		words = append(words, "several commits in one version")
	}
	if len(words) == 0 {
		return nil
	}
	return h.Span(h.Class("faint"), g.Text(" "), text(strings.Join(words, ", ")))
}

// isUsual reports whether an action says no more than that a snapshot was added to main.
func isUsual(action string) bool {
	return action == "add-snapshot" || action == "set-snapshot-ref main" || action == "assign-uuid"
}

// hasSnapshot reports whether the event added a snapshot.
func hasSnapshot(e client.Event) bool {
	for _, action := range e.Actions {
		if action == "add-snapshot" {
			return true
		}
	}
	return false
}

// eventTarget returns the object of an event.
func eventTarget(e client.Event) client.Object {
	return objectOf(client.Row{Kind: e.Kind, Warehouse: e.Warehouse, Namespace: e.Namespace, Name: e.Name})
}

// eventObject returns the object of an event, as a link.
func eventObject(e client.Event) g.Node {
	var levels []string
	levels = append(levels, e.Namespace...)
	if e.Name != "" {
		levels = append(levels, e.Name)
	}
	if len(levels) == 0 {
		levels = []string{e.Warehouse}
	}
	o := eventTarget(e)
	if e.Kind == client.KindNamespace && e.Name == "" {
		o = client.Object{Warehouse: e.Warehouse, Namespace: e.Namespace}
	}
	shown := g.Group{g.If(e.Kind != "", icon(e.Kind)), name(strings.Join(levels, "."))}
	if o.IsServer() {
		return shown
	}
	moved := g.Node(nil)
	if e.Previous != nil {
		before := append(append([]string{}, e.Previous.Namespace...), e.Previous.Name)
		moved = h.Span(h.Class("faint"), g.Text(" was "), name(strings.Join(before, ".")))
	}
	return g.Group{link(pageOf(o), shown), moved}
}

// eventClient returns the program of an event, shortened, with its request.
func eventClient(e client.Event) g.Node {
	if e.Client == "" {
		return dash()
	}
	return h.Span(h.Class("faint short"), h.Title(term.Clean("client "+e.Client+", request "+e.RequestID)),
		text(e.Client))
}
