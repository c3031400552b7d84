package transfers

import (
	"fmt"
	"math"
	"strings"

	"moorage/testkit/servers"
)

// node is an event that happened at one moment: a transfer that has happened, or a load.
type node struct {
	name     string
	from, to int64 // the moment is between from and to
	later    []int // nodes with later moments

	waits int // number of preceding nodes that have no moment yet
	// earliest is the earliest possible moment of the node. cause is the preceding node that
	// prevents an earlier moment, or -1 if earliest is the node's own start.
	earliest int64
	cause    int
}

// order searches for a moment for each transfer and each load. The order of a table's versions is
// known. So the order of the events that made or saw these versions is known too. Each event gets
// the earliest moment that the events before it allow. If that moment is too late for an event,
// there is no valid order.
func (j *judge) order(loads []Load) {
	nodes, makers := j.makers()
	for _, load := range loads {
		at, known := j.places[load.Location]
		if !known || at.table != load.Table {
			j.report("client %d was answered %s for %s, which was never current", load.Client, load.Location,
				load.Table)
			continue
		}
		made := makers[at.table]
		nodes = append(nodes, node{
			name: fmt.Sprintf("load of %s by client %d, which saw version %d", load.Table, load.Client, at.index),
			from: load.From, to: load.To,
		})
		self := len(nodes) - 1
		if at.index > 0 {
			precede(nodes, made[at.index], self)
		}
		if at.index+1 < len(made) {
			precede(nodes, self, made[at.index+1])
		}
	}
	j.schedule(nodes)
}

// precede records that the node with index before must have an earlier moment than the node with
// index after.
func precede(nodes []node, before, after int) {
	if before != after {
		nodes[before].later = append(nodes[before].later, after)
		nodes[after].waits++
	}
}

// makers returns a node for each transfer that has happened, and the makers of each table's
// versions.
func (j *judge) makers() (nodes []node, makers map[string][]int) {
	makers = map[string][]int{}
	at := map[string]int{}
	for _, table := range j.tables() {
		made := []int{-1} // the first version has no maker
		for i, v := range j.chains[table][1:] {
			n, known := at[v.Transfer]
			if !known {
				event := j.events[v.Transfer]
				n = len(nodes)
				at[v.Transfer] = n
				nodes = append(nodes, node{name: event.String(), from: event.From, to: event.To})
				if event.Outcome == servers.Unknown {
					nodes[n].to = math.MaxInt64
				}
			}
			made = append(made, n)
			if i > 0 {
				precede(nodes, made[i], n)
			}
		}
		makers[table] = made
	}
	for id, n := range at {
		for _, p := range j.events[id].Parts {
			base, known := j.places[p.Base]
			if p.Mode == Stamps || p.Mode == Creates || !known {
				continue // the transfer required nothing, or its base is from before the history
			}
			if base.index > 0 {
				precede(nodes, makers[p.Table][base.index], n)
			}
			if next := j.moved(base); next < len(makers[p.Table]) {
				precede(nodes, n, makers[p.Table][next])
			}
		}
	}
	return nodes, makers
}

// schedule gives each node its moment, in order.
func (j *judge) schedule(nodes []node) {
	var ready []int
	for n := range nodes {
		nodes[n].earliest, nodes[n].cause = nodes[n].from, -1
		if nodes[n].waits == 0 {
			ready = append(ready, n)
		}
	}
	done, late := 0, 0
	for ; len(ready) > 0; done++ {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		if nodes[n].earliest > nodes[n].to {
			if late++; late <= problemsMax {
				j.report("%s", explain(nodes, n))
			}
			nodes[n].earliest = nodes[n].to // so that its consequences are reported only once
		}
		for _, next := range nodes[n].later {
			if nodes[n].earliest > nodes[next].earliest {
				nodes[next].earliest, nodes[next].cause = nodes[n].earliest, n
			}
			if nodes[next].waits--; nodes[next].waits == 0 {
				ready = append(ready, next)
			}
		}
	}
	if done < len(nodes) {
		j.report("%s", circle(nodes))
	}
}

// explain describes why a node cannot have a moment before its end.
func explain(nodes []node, n int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s ended at %d, but", nodes[n].name, nodes[n].to)
	for at := nodes[n].cause; at >= 0; at = nodes[at].cause {
		fmt.Fprintf(&text, " must be after %s, which", nodes[at].name)
		if nodes[at].cause < 0 {
			fmt.Fprintf(&text, " began at %d", nodes[at].from)
		}
	}
	return text.String()
}

// circle names nodes that form a cycle: each must be before the next, and the last before the
// first.
func circle(nodes []node) string {
	at := 0
	for nodes[at].waits == 0 {
		at++
	}
	// Every waiting node is preceded by another waiting node. So a walk back from node to node
	// reaches some node twice.
	before := make([]int, len(nodes))
	for n := range nodes {
		for _, next := range nodes[n].later {
			if nodes[n].waits > 0 && nodes[next].waits > 0 {
				before[next] = n
			}
		}
	}
	for range nodes {
		at = before[at]
	}
	names := []string{nodes[at].name}
	for n := before[at]; n != at && len(names) < problemsMax; n = before[n] {
		names = append(names, nodes[n].name)
	}
	return "each of these must be after the next, and the last after the first: " + strings.Join(names, "; ")
}
