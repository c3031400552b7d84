package viewtest

import (
	"testing"
	"time"

	"moorage/internal/nodetest"
)

// The judge finds what is wrong, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	at := func(e Event, from, to time.Duration) Event {
		e.Name, e.From, e.To = "v", from, to
		return e
	}
	made := func(uuid string, queries ...string) Event {
		return Event{Query: queries[len(queries)-1], Seen: nodetest.View{UUID: uuid, Queries: queries}}
	}
	load := func(uuid string, queries ...string) Event {
		return Event{Seen: nodetest.View{UUID: uuid, Queries: queries}}
	}
	drop, absent := Event{Drops: true}, Event{Absent: true, Outcome: nodetest.Refused}
	lost := func(query string, outcome nodetest.Outcome) Event {
		return Event{Query: query, Outcome: outcome}
	}
	for _, row := range []struct {
		name   string
		events []Event
		want   int
	}{
		{"nothing", nil, 0},
		{"one after the other", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b"), 4, 5)}, 0},
		{"at once", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 5), at(made("u", "a", "c"), 2, 5)}, 0},
		{"unknown, and there", []Event{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Unknown), 2, 3), at(load("u", "a", "b"), 2, 3)}, 0},
		{"unknown, and not there", []Event{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Unknown), 2, 3), at(load("u", "a"), 4, 5)}, 0},
		{"dropped and made again", []Event{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(made("w", "b"), 4, 5), at(load("w", "b"), 6, 7)}, 0},
		{"overwritten", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 4), at(made("u", "a", "c"), 2, 4)}, 1},
		{"lost", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"unknown, seen and lost", []Event{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Unknown), 2, 3), at(load("u", "a", "b"), 4, 5), at(load("u", "a"), 6, 7)}, 1},
		{"twice", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b", "b"), 4, 5)}, 1},
		{"in two views", []Event{at(made("u", "a"), 0, 1), at(load("w", "a"), 2, 3)}, 2},
		{"refused, and there", []Event{at(made("u", "a"), 0, 1), at(lost("b", nodetest.Refused), 2, 3), at(load("u", "a", "b"), 4, 5)}, 1},
		{"made by nobody", []Event{at(load("u", "a"), 4, 5)}, 1},
		{"not the one that was made", []Event{at(made("u", "a"), 0, 1), at(Event{Query: "b", Seen: nodetest.View{UUID: "u", Queries: []string{"a"}}}, 2, 3)}, 1},
		{"before it was asked for", []Event{at(made("u", "a"), 0, 1), at(load("u", "a", "b"), 2, 3), at(made("u", "a", "b"), 4, 5)}, 1},
		{"in the wrong order", []Event{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 3), at(made("u", "a", "c"), 4, 5)}, 2},
		{"there after a drop", []Event{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"gone, and there", []Event{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"two at one name", []Event{at(made("u", "a"), 0, 1), at(made("w", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 2},
		{"two names", []Event{at(made("u", "a"), 0, 1), {Name: "w", Seen: nodetest.View{UUID: "u", Queries: []string{"a"}}, From: 2, To: 3}}, 1},
		{"gone", []Event{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(absent, 4, 5)}, 1},
		{"gone, and another there", []Event{at(made("u", "a"), 0, 1), at(made("w", "b"), 2, 3)}, 1},
		{"gone after a drop", []Event{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(absent, 4, 5)}, 0},
		{"gone after a drop that was refused", []Event{at(made("u", "a"), 0, 1), at(Event{Drops: true, Outcome: nodetest.Refused}, 2, 3), at(absent, 4, 5)}, 1},
		{"gone after a drop without an answer", []Event{at(Event{Drops: true, Outcome: nodetest.Unknown}, 0, 1), at(made("u", "a"), 2, 3), at(absent, 4, 5)}, 0},
		{"gone after the drop of another", []Event{at(drop, 0, 1), at(made("u", "a"), 2, 3), at(absent, 4, 5)}, 1},
		{"gone before a drop", []Event{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(drop, 4, 5)}, 1},
		{"gone while it is dropped", []Event{at(made("u", "a"), 0, 1), at(drop, 2, 5), at(absent, 3, 4)}, 0},
		{"another one gone", []Event{at(made("u", "a"), 0, 1), {Name: "w", Absent: true, Outcome: nodetest.Refused, From: 2, To: 3}}, 0},
	} {
		if got := Judge(row.events); len(got) != row.want {
			t.Errorf("%s: %d problems, want %d: %q", row.name, len(got), row.want, got)
		}
	}
}
