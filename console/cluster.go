package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"moorage/internal/term"
	"moorage/management/client"
)

// clusterPage is the nodes of the cluster, as each of them answers.
type clusterPage struct {
	now   time.Time
	nodes []client.NodeState
	top   *client.Top // what the answering node does; nil if the visitor may not see it
}

// loadCluster loads the state of the nodes.
func loadCluster(ctx context.Context, v *visit) (*page, error) {
	model := clusterPage{now: v.now}
	var state client.Cluster
	if err := v.get(ctx, "/cluster", nil, &state); err != nil {
		return nil, err
	}
	model.nodes = state.Nodes
	var err error
	if model.top, err = loadTop(ctx, v); err != nil {
		return nil, err
	}
	return &page{title: "Cluster", section: placeCluster, body: model.node()}, nil
}

// node returns the page.
func (m clusterPage) node() g.Node {
	return g.Group{
		h.Div(h.Class("title"), h.H1(g.Text("Cluster"))),
		m.warnings(),
		panel(countedWord(len(m.nodes), "node"), m.list()),
		g.Map(m.nodes, m.calls),
		topPanel(m.top),
	}
}

// warnings returns what an operator should look at: nodes without an answer, and several versions.
func (m clusterPage) warnings() g.Node {
	var lines g.Group
	versions := map[string]bool{}
	for _, n := range m.nodes {
		if n.Failed != "" {
			lines = append(lines, h.P(h.Class("warning"), g.Text("The node "), name(n.Name),
				text(" does not answer: "+n.Failed)))
		} else {
			versions[n.Version] = true
		}
	}
	if len(versions) > 1 {
		lines = append(lines, h.P(h.Class("warning"),
			g.Text("The nodes run different versions. Run one version on all of them.")))
	}
	return lines
}

// list returns the nodes.
func (m clusterPage) list() g.Node {
	list := grid{label: "Nodes", columns: []column{
		{"Node", "wide"}, {"State", ""}, {"Version", ""}, {"Started", ""}, {"Sees", "num"}, {"Connections", "num"},
		{"Cache of metadata", "num"}, {"Heap", "num"},
	}}
	for i, n := range m.nodes {
		shown := g.Group{name(n.Name)}
		if i == 0 {
			shown = append(shown, g.Text(" "), badge("", "this node"))
		}
		if n.Failed != "" {
			list.rows = append(list.rows, []cell{
				plain(shown), plain(badge("bad", "no answer")), plain(dash()), plain(dash()), plain(dash()),
				plain(dash()), plain(dash()), plain(dash()),
			})
			continue
		}
		list.rows = append(list.rows, []cell{
			plain(shown), plain(badge("good", "answers")),
			plain(h.Span(h.Class("short"), h.Title(term.Clean(n.Version)), text(n.Version))), timed(m.now, &n.Since),
			plain(text(countedWord(n.Members, "node"))), plain(connections(n.Connections)), plain(cacheUse(n.Cached)),
			numeric(size(&n.HeapBytes), &n.HeapBytes),
		})
	}
	return list.node()
}

// connections returns the use of a pool.
func connections(c *client.Connections) g.Node {
	if c == nil {
		return dash()
	}
	return h.Span(h.Title(fmt.Sprintf("%d in use, %d idle, at most %d", c.Used, c.Idle, c.Max)),
		g.Text(fmt.Sprintf("%d of %d", c.Used, c.Max)))
}

// cacheUse returns how full a cache is.
func cacheUse(c *client.CacheUse) g.Node {
	if c == nil {
		return dash()
	}
	return g.Group{size(&c.Bytes), g.Text(" of "), size(&c.BytesMax)}
}

// calls returns how long calls to the store take from a node.
func (m clusterPage) calls(n client.NodeState) g.Node {
	if n.Failed != "" {
		return nil
	}
	if len(n.Store) == 0 {
		return panel("Calls to the store from "+n.Name, empty("The node has made no call to the store yet.",
			shellLine{}))
	}
	list := grid{label: "Calls to the store from " + n.Name, columns: []column{
		{"Call", "wide"}, {"Done", "num"}, {"Refused or failed", "num"}, {"p50", "num"}, {"p99", "num"},
	}}
	for _, c := range n.Store {
		list.rows = append(list.rows, []cell{
			plain(mono(c.Call)), numeric(number(&c.Count), &c.Count), numeric(number(&c.Failed), &c.Failed),
			plain(callSpan(c.Count, c.P50)), plain(callSpan(c.Count, c.P99)),
		})
	}
	return panel("Calls to the store from "+n.Name, list.node(),
		h.P(h.Class("faint"), g.Text("Since the start of the node. Conflicts are among the refused calls, "+
			"timeouts among the failed ones. Half of the calls take at most p50, and 99 % at most p99.")))
}

// callSpan returns a duration in milliseconds; none without calls.
func callSpan(count int64, milliseconds float64) g.Node {
	if count == 0 {
		return dash()
	}
	return g.Text(strconv.FormatFloat(milliseconds, 'f', 2, 64) + " ms")
}
