package console

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/management/client"
)

// loadHealth loads the judgement of a table; nil if the visitor may not see it.
func loadHealth(ctx context.Context, v *visit, o client.Object, isDeep bool) (*client.Health, error) {
	query := o.Query()
	if isDeep {
		query.Set("deep", "true")
	}
	var made client.Health
	if err := v.get(ctx, "/health", query, &made); err != nil {
		return nil, optional(err)
	}
	return &made, nil
}

// healthPanel returns the judgement of a table: first what is not well, with the command against
// it.
func healthPanel(o client.Object, health *client.Health) g.Node {
	if health == nil {
		return nil
	}
	var bad, well []client.HealthFinding
	for _, each := range health.Findings {
		if each.Level == client.LevelOK {
			well = append(well, each)
		} else {
			bad = append(bad, each)
		}
	}
	advices := healthAdvice()
	finding := func(f client.HealthFinding) g.Node {
		return findingItem(f.Level, f.What, text(f.Fact),
			g.If(f.Limit != "", h.Span(h.Class("faint"), text(" (limit: "+f.Limit+")"))),
			g.If(f.Command != "", h.Div(copied(f.Command))),
			g.Iff(f.Level != client.LevelOK, advices[f.What].node))
	}
	title := "Health: nothing to do"
	if len(bad) > 0 {
		title = "Health"
	}
	return panel(title, h.Ul(h.Class("findings"), g.Map(bad, finding)),
		g.If(len(well) > 0, h.Details(h.Summary(g.Text(countedWord(len(well), "check")+" passed")),
			h.Ul(h.Class("findings"), g.Map(well, finding)))),
		g.Iff(health.Shape == nil, func() g.Node {
			return h.P(link(to(placeTable, o, "deep", "yes"),
				g.Text("Read the manifests: file sizes and partitions")))
		}),
		g.Iff(health.Shape != nil, func() g.Node { return shapePanel(health.Shape) }))
}

// shapePanel returns how the files of a table are distributed.
func shapePanel(s *client.Shape) g.Node {
	worst := grid{label: "Partitions with the most small files", columns: []column{
		{"Partition", "wide"}, {"Files", "num"}, {"Below 32 MB", "num"}, {"Size", "num"}, {"Delete files", "num"},
	}}
	for _, p := range s.Worst {
		worst.rows = append(worst.rows, []cell{
			plain(mono(p.Partition)), numeric(number(&p.Files), &p.Files), numeric(number(&p.Small), &p.Small),
			numeric(size(&p.Bytes), &p.Bytes), numeric(number(&p.Deletes), &p.Deletes),
		})
	}
	return g.Group{
		barPlot("Data files by size", "Files", sizeBars(s.Sizes)),
		barPlot("Data files by number of rows", "Files", countBars(s.ByRows)),
		barPlot("Partitions by number of data files", "Partitions", countBars(s.ByFiles)),
		g.Iff(len(worst.rows) > 0, func() g.Node {
			return g.Group{h.H3(g.Text("Partitions with the most small files")), worst.node(),
				h.P(h.Class("faint"), g.Text("A few small files do no harm. The checks above have the limits."))}
		}),
		g.If(s.Stopped != "", h.P(h.Class("faint"), text(s.Stopped))),
	}
}

// loadRefusals loads the refused commits of a table; none if the visitor may not see them.
func loadRefusals(ctx context.Context, v *visit, o client.Object) (refused client.Refusals, err error) {
	return refused, optional(v.get(ctx, "/refusals", o.Query(), &refused))
}

// refusalPanel returns refused commits with the reason of each. changed returns a link to what a
// change did, or nil.
func refusalPanel(now time.Time, refused client.Refusals, changed func(change string) g.Node) g.Node {
	if len(refused.Refusals) == 0 {
		return nil
	}
	list := grid{label: "Refused commits", stacks: true,
		columns: []column{{"When", ""}, {"By", ""}, {"From", ""}, {"Why", "wide"}}}
	for _, r := range refused.Refusals {
		why := g.Group{badge("bad", strings.TrimSuffix(r.Type, "Exception")), g.Text(" "), text(r.Reason)}
		if r.By != "" {
			why = append(why, h.Div(h.Class("faint"), g.Text("lost a race against a commit by "), name(r.By),
				g.Text(", "), ago(now, r.LastAt), g.Text(". "), changed(r.Change)))
		}
		list.rows = append(list.rows, []cell{
			timed(now, &r.Time), plain(caller(r.Caller)),
			plain(eventClient(client.Event{Client: r.Client, RequestID: r.RequestID})), plain(why),
		})
	}
	return panel("Refused commits", list.node(), nodesAsked(now, refused.Nodes))
}

// nodesAsked returns which nodes an answer has, and since when they remember.
func nodesAsked(now time.Time, nodes []client.NodeAsked) g.Node {
	return h.P(h.Class("faint"), g.Text("Kept in memory by "), g.Map(nodes, func(n client.NodeAsked) g.Node {
		if n.Failed != "" {
			return g.Group{name(n.Name), text(" (no answer: " + n.Failed + ") ")}
		}
		return g.Group{name(n.Name), g.Text(" since it started "), ago(now, n.Since), g.Text(" ")}
	}))
}

// topPanel returns what the answering node does. about are tiles about the node itself.
func topPanel(top *client.Top, about ...fact) g.Node {
	if top == nil {
		return nil
	}
	rate := func(perSecond float64) g.Node { return g.Text(strconv.FormatFloat(perSecond, 'f', 1, 64) + "/s") }
	tile := func(title string, value g.Node, more g.Node) g.Node {
		return h.Div(h.Class("tile"), h.Dt(g.Text(title)), h.Dd(value), g.If(more != nil, h.Dd(h.Class("faint"), more)))
	}
	p99 := func(ms float64) g.Node {
		if ms == 0 {
			return nil
		}
		return g.Text("p99 " + strconv.FormatFloat(ms, 'f', 1, 64) + " ms")
	}
	milliseconds := func(ms float64) g.Node {
		if ms == 0 {
			return dash()
		}
		return g.Text(strconv.FormatFloat(ms, 'f', 1, 64) + " ms")
	}
	list := grid{label: "Busiest tables", columns: []column{
		{"Table", "wide"}, {"Commits/s", "num"}, {"Conflicts/s", "num"}, {"Loads/s", "num"}, {"Wait p99", "num"},
		{"Last by", ""},
	}}
	for _, b := range top.Tables {
		o := client.Object{Warehouse: b.Warehouse, Namespace: b.Namespace, Table: b.Name}
		list.rows = append(list.rows, []cell{
			plain(link(pageOf(o), icon("table"),
				name(strings.Join(append(append([]string{}, b.Namespace...), b.Name), ".")))),
			plain(rate(b.Commits)), plain(rate(b.Conflicts)), plain(rate(b.Loads)), plain(milliseconds(b.WaitP99)),
			plain(caller(b.LastBy)),
		})
	}
	return panel("This node",
		h.Dl(h.Class("tiles"),
			tile("Commits", rate(top.Commits), p99(top.CommitP99)),
			tile("Conflicts", rate(top.Conflicts), nil),
			tile("Loads of tables", rate(top.Loads), p99(top.LoadP99)),
			g.Map(about, func(f fact) g.Node { return tile(f.title, f.value, nil) }),
		),
		h.P(h.Class("faint"),
			g.Text("Rates are means of the last ten seconds, and of tables of the last half minute.")),
		minutesPlot(top.Minutes),
		g.Iff(len(list.rows) > 0, func() g.Node { return g.Group{h.H3(g.Text("Busiest tables")), list.node()} }))
}

// minutesPlot returns the commits and loads of the last hour as bars, with the numbers as a table.
func minutesPlot(minutes []client.Minute) g.Node {
	if len(minutes) < 2 {
		return nil
	}
	const width, height, step = 600, 48, 10
	var most uint64 = 1
	for _, m := range minutes {
		most = max(most, m.Commits+m.Loads)
	}
	bars := g.Group{}
	list := grid{label: "Last minutes", plain: true,
		columns: titled("Minute", "#Commits", "#Conflicts", "#Loads", "#Commit p99", "#Load p99")}
	for i, m := range minutes {
		high := int((m.Commits + m.Loads) * height / most)
		bars = append(bars, g.El("rect", h.Class("lane0"), g.Attr("x", strconv.Itoa(i*step)),
			g.Attr("y", strconv.Itoa(height-high)),
			h.Width(strconv.Itoa(step-2)), h.Height(strconv.Itoa(high))))
		commits, conflicts, loads := int64(m.Commits), int64(m.Conflicts), int64(m.Loads)
		list.rows = append(list.rows, []cell{
			plain(g.Text(m.At.UTC().Format("15:04"))), plain(number(&commits)), plain(number(&conflicts)),
			plain(number(&loads)),
			plain(g.Text(fmt.Sprintf("%.1f ms", m.CommitP99))), plain(g.Text(fmt.Sprintf("%.1f ms", m.LoadP99))),
		})
	}
	return g.Group{
		h.SVG(h.Class("plot"), g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height)),
			h.Height(strconv.Itoa(height)), h.Role("img"),
			g.El("title", g.Text("Commits and loads in each of the last minutes")),
			g.El("desc", g.Text(fmt.Sprintf("%d minutes; the highest has %d", len(minutes), most))), bars),
		h.Details(h.Summary(g.Text("As a table")), list.node()),
	}
}

// loadTop loads what the answering node does; nil if the visitor may not see it.
func loadTop(ctx context.Context, v *visit) (*client.Top, error) {
	var top client.Top
	if err := v.get(ctx, "/top", nil, &top); err != nil {
		return nil, optional(err)
	}
	return &top, nil
}

// denialPanel returns the requests that nodes denied lately.
func denialPanel(now time.Time, denied *client.NodeDenials) g.Node {
	if denied == nil {
		return nil
	}
	list := grid{label: "Denials",
		columns: []column{{"When", ""}, {"Caller", ""}, {"Operation", ""}, {"Object", "wide"}, {"Missing", ""},
			{"Request", ""}}}
	for _, d := range denied.Denials {
		list.rows = append(list.rows, []cell{
			timed(now, &d.Time), plain(caller(d.Caller)), plain(text(d.Operation)),
			plain(text(d.Kind + " " + d.Object)),
			plain(mono(strings.Join(d.Missing, ", "))), plain(h.Span(h.Class("faint short"), text(d.RequestID))),
		})
	}
	return panel("Denied lately", filled(list, "No request was denied since the nodes started.", shellLine{}),
		nodesAsked(now, denied.Nodes))
}

// loadDenials loads the last denials; nil if the visitor may not see them.
func loadDenials(ctx context.Context, v *visit) (*client.NodeDenials, error) {
	var denied client.NodeDenials
	if err := v.get(ctx, "/denials", url.Values{}, &denied); err != nil {
		return nil, optional(err)
	}
	return &denied, nil
}
