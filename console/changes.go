package console

import (
	"context"
	"net/http"
	"net/url"
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
	atEnd  bool
	first  string
}

// feedFilters are the parameters of the page that the feed also has.
var feedFilters = []string{"kind", "operation", "caller"}

// changesTail is how many events the page shows.
const changesTail = "100"

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
	query.Set("tail", changesTail)
	feed, err := loadFeed(ctx, v, query)
	if err != nil {
		return nil, err
	}
	model.events, model.atEnd, model.first = feed.Events, feed.AtEnd, feed.First
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

// loadFeed loads a page of the feed, with the newest event first.
func loadFeed(ctx context.Context, v *visit, query url.Values) (feed client.ChangesPage, err error) {
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
	field := func(param, label, hint string) g.Node {
		return h.Label(g.Text(label+" "),
			h.Input(h.Name(param), h.Value(term.Clean(m.filter.Get(param))), h.Placeholder(hint)))
	}
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("Changes"))),
		h.P(h.Class("lead"), g.Text("What changed, who changed it, and from where. The newest comes first.")),
		h.Div(h.Class("tools"), ask(to(placeChanges, client.Object{}),
			field("caller", "By", "key:etl"), field("operation", "Operation", "drop-table"),
			field("kind", "Kind", "table"),
			h.Button(g.Text("Filter")), link(to(placeChanges, client.Object{}), h.Class("button"), g.Text("All")))),
		h.Div(h.ID("live"), h.Data("poll", "5"), h.Aria("live", "polite"), m.list()),
	}
}

// list returns the events.
func (m changesPage) list() g.Node {
	if len(m.events) == 0 {
		return empty("No change that you may see matches. The server keeps changes for 7 days by default.",
			command("moorage", "changes", "--follow"))
	}
	return eventGrid(m.now, m.events)
}

// eventGrid returns events as a table.
func eventGrid(now time.Time, events []client.Event) g.Node {
	list := grid{label: "Changes",
		columns: []column{{"When", ""}, {"What", ""}, {"Object", "wide"}, {"By", ""}, {"From", ""}}}
	for _, e := range events {
		list.rows = append(list.rows, []cell{
			timed(now, &e.Time), plain(g.Group{eventWord(e), eventMore(e)}), plain(eventObject(e)),
			plain(caller(e.Caller)),
			plain(eventClient(e)),
		})
	}
	return list.node()
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
