package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage/internal/nodetest"
)

// viewEvent is what a client knows of a call that was about a view.
type viewEvent struct {
	name    string
	query   string // of the version that it makes; "" if it makes none
	drops   bool
	absent  bool // it was refused because there is no view
	outcome nodetest.Outcome
	seen    nodetest.View // what an acknowledged call was answered; nothing if it drops
	from    time.Duration // when it was sent first
	to      time.Duration // when the answer came
}

// String describes the event.
func (e viewEvent) String() string {
	verb := "load of"
	switch {
	case e.drops:
		verb = "drop of"
	case e.query != "":
		verb = e.query + " for"
	}
	outcome := []string{"acknowledged", "refused", "unknown"}[e.outcome]
	return fmt.Sprintf("%s %s, %s to %s, %s", verb, e.name, e.from, e.to, outcome)
}

// judgeViews returns what is wrong with what clients saw of views that keep all their versions. For each view there must be an order of
// its versions that all answers agree with, in which every acknowledged one is once and no refused one; an answer must
// hold all that was acknowledged before its request was sent, and nothing that was asked for after it came. Between two
// sights of a view no drop of its name was acknowledged, and nobody saw another view there, or none.
func judgeViews(events []viewEvent) (problems []string) {
	problem := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	makers := map[string]viewEvent{}
	for _, e := range events {
		if e.query != "" {
			makers[e.query] = e
		}
	}
	views := longest(events, problem)
	homes := map[string]string{}
	for uuid, queries := range views {
		for _, query := range queries {
			maker, made := makers[query]
			if home, twice := homes[query]; twice || !made || maker.outcome == nodetest.Refused {
				problem("%s holds %q, which was made by %s, and which is in %q too", uuid, query, maker, home)
			}
			homes[query] = uuid
		}
	}
	for _, e := range events {
		if e.outcome != nodetest.Acknowledged || e.drops {
			continue
		}
		if last := len(e.seen.Queries) - 1; e.query != "" && (last < 0 || e.seen.Queries[last] != e.query) {
			problem("%s was answered %q", e, e.seen.Queries)
			continue
		}
		for at, query := range views[e.seen.UUID] {
			maker, made := makers[query]
			if !made {
				continue // told above
			}
			if at >= len(e.seen.Queries) && maker.outcome == nodetest.Acknowledged && maker.to < e.from {
				problem("%s was not shown %s", e, maker)
			}
			if at < len(e.seen.Queries) && maker.from > e.to {
				problem("%s was shown %s", e, maker)
			}
		}
	}
	return append(problems, judgeSpans(events)...)
}

// longest returns the longest list of versions that was seen of each view, of which every other one must be the beginning.
func longest(events []viewEvent, problem func(string, ...any)) map[string][]string {
	views := map[string][]string{}
	for _, e := range events {
		if len(e.seen.Queries) > len(views[e.seen.UUID]) {
			views[e.seen.UUID] = e.seen.Queries
		}
	}
	for _, e := range events {
		if whole := views[e.seen.UUID]; !slices.Equal(e.seen.Queries, whole[:len(e.seen.Queries)]) {
			problem("%s was shown %q, and others %q", e, e.seen.Queries, whole)
		}
	}
	return views
}

// judgeSpans returns what happened to names while views certainly were there: from the end of the first call that saw a view to the
// beginning of the last.
func judgeSpans(events []viewEvent) (problems []string) {
	type span struct {
		name     string
		from, to time.Duration
	}
	spans := map[string]span{}
	for _, e := range events {
		if e.seen.UUID == "" {
			continue
		}
		s, known := spans[e.seen.UUID]
		if !known {
			s = span{e.name, e.to, e.from}
		}
		if s.name != e.name {
			problems = append(problems, fmt.Sprintf("%s is %s and %s", e.seen.UUID, s.name, e.name))
		}
		spans[e.seen.UUID] = span{s.name, min(s.from, e.to), max(s.to, e.from)}
	}
	for _, e := range events {
		if e.seen.UUID == "" && !e.absent && (!e.drops || e.outcome != nodetest.Acknowledged) {
			continue
		}
		for uuid, s := range spans {
			if uuid != e.seen.UUID && s.name == e.name && s.from < e.from && e.to < s.to {
				problems = append(problems, fmt.Sprintf("%s, while %s was there", e, uuid))
			}
		}
	}
	return problems
}

// The judge finds what is wrong, and nothing else.
func TestJudgeViews(t *testing.T) {
	t.Parallel()
	at := func(e viewEvent, from, to time.Duration) viewEvent {
		e.name, e.from, e.to = "v", from, to
		return e
	}
	made := func(uuid string, queries ...string) viewEvent {
		return viewEvent{query: queries[len(queries)-1], seen: nodetest.View{UUID: uuid, Queries: queries}}
	}
	load := func(uuid string, queries ...string) viewEvent {
		return viewEvent{seen: nodetest.View{UUID: uuid, Queries: queries}}
	}
	drop := viewEvent{drops: true}
	lost := func(query string, outcome nodetest.Outcome) viewEvent {
		return viewEvent{query: query, outcome: outcome}
	}
	for _, row := range []struct {
		name   string
		events []viewEvent
		want   int
	}{
		{"nothing", nil, 0},
		{"one after the other", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b"), 4, 5)}, 0},
		{"at once", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 5), at(made("u", "a", "c"), 2, 5)}, 0},
		{"unknown, and there", []viewEvent{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Unknown), 2, 3), at(load("u", "a", "b"), 2, 3)}, 0},
		{"unknown, and not there", []viewEvent{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Unknown), 2, 3), at(load("u", "a"), 4, 5)}, 0},
		{"dropped and made again", []viewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(made("w", "b"), 4, 5), at(load("w", "b"), 6, 7)}, 0},
		{"overwritten", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 4), at(made("u", "a", "c"), 2, 4)}, 1},
		{"lost", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"twice", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b", "b"), 4, 5)}, 1},
		{"in two views", []viewEvent{at(made("u", "a"), 0, 1), at(load("w", "a"), 2, 3)}, 1},
		{"refused, and there", []viewEvent{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Refused), 2, 3), at(load("u", "a", "b"), 4, 5)}, 1},
		{"made by nobody", []viewEvent{at(load("u", "a"), 4, 5)}, 1},
		{"not the one that was made", []viewEvent{at(made("u", "a"), 0, 1), at(viewEvent{query: "b", seen: nodetest.View{UUID: "u", Queries: []string{"a"}}}, 2, 3)}, 1},
		{"before it was asked for", []viewEvent{at(made("u", "a"), 0, 1), at(load("u", "a", "b"), 2, 3), at(made("u", "a", "b"), 4, 5)}, 1},
		{"in the wrong order", []viewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 3), at(made("u", "a", "c"), 4, 5)}, 2},
		{"there after a drop", []viewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"gone, and there", []viewEvent{at(made("u", "a"), 0, 1), at(viewEvent{absent: true, outcome: nodetest.Refused}, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"two at one name", []viewEvent{at(made("u", "a"), 0, 1), at(made("w", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"two names", []viewEvent{at(made("u", "a"), 0, 1), {name: "w", seen: nodetest.View{UUID: "u", Queries: []string{"a"}}, from: 2, to: 3}}, 1},
	} {
		if got := judgeViews(row.events); len(got) != row.want {
			t.Errorf("%s: %d problems, want %d: %q", row.name, len(got), row.want, got)
		}
	}
}
