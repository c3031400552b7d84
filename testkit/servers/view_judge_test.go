package servers

import (
	"testing"
	"time"
)

// The judge finds the problems, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	at := func(e ViewEvent, from, to time.Duration) ViewEvent {
		e.Name, e.From, e.To = "v", from, to
		return e
	}
	made := func(uuid string, queries ...string) ViewEvent {
		return ViewEvent{Query: queries[len(queries)-1], Seen: View{UUID: uuid, Queries: queries}}
	}
	load := func(uuid string, queries ...string) ViewEvent {
		return ViewEvent{Seen: View{UUID: uuid, Queries: queries}}
	}
	drop, absent := ViewEvent{Drops: true}, ViewEvent{Absent: true, Outcome: Refused}
	lost := func(query string, outcome Outcome) ViewEvent {
		return ViewEvent{Query: query, Outcome: outcome}
	}
	for _, row := range []struct {
		name   string
		events []ViewEvent
		want   int
	}{
		{"nothing", nil, 0},
		{"one after the other", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b"), 4, 5)}, 0},
		{"at once", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 5), at(made("u", "a", "c"), 2, 5)}, 0},
		{"unknown, and there", []ViewEvent{at(made("u", "a"), 0, 1), at(lost("b", Unknown), 2, 3), at(load("u", "a", "b"), 2, 3)}, 0},
		{"unknown, and not there", []ViewEvent{at(made("u", "a"), 0, 1), at(lost("b", Unknown), 2, 3), at(load("u", "a"), 4, 5)}, 0},
		{"dropped and made again", []ViewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(made("w", "b"), 4, 5), at(load("w", "b"), 6, 7)}, 0},
		{"overwritten", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 4), at(made("u", "a", "c"), 2, 4)}, 1},
		{"lost", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"unknown, seen and lost", []ViewEvent{at(made("u", "a"), 0, 1), at(lost("b", Unknown), 2, 3), at(load("u", "a", "b"), 4, 5), at(load("u", "a"), 6, 7)}, 1},
		{"twice", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "b"), 2, 3), at(load("u", "a", "b", "b"), 4, 5)}, 1},
		{"in two views", []ViewEvent{at(made("u", "a"), 0, 1), at(load("w", "a"), 2, 3)}, 2},
		{"refused, and there", []ViewEvent{at(made("u", "a"), 0, 1), at(lost("b", Refused), 2, 3), at(load("u", "a", "b"), 4, 5)}, 1},
		{"made by nobody", []ViewEvent{at(load("u", "a"), 4, 5)}, 1},
		{"not the one that was made", []ViewEvent{at(made("u", "a"), 0, 1), at(ViewEvent{Query: "b", Seen: View{UUID: "u", Queries: []string{"a"}}}, 2, 3)}, 1},
		{"before it was asked for", []ViewEvent{at(made("u", "a"), 0, 1), at(load("u", "a", "b"), 2, 3), at(made("u", "a", "b"), 4, 5)}, 1},
		{"in the wrong order", []ViewEvent{at(made("u", "a"), 0, 1), at(made("u", "a", "c", "b"), 2, 3), at(made("u", "a", "c"), 4, 5)}, 2},
		{"there after a drop", []ViewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"gone, and there", []ViewEvent{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(load("u", "a"), 4, 5)}, 1},
		{"two at one name", []ViewEvent{at(made("u", "a"), 0, 1), at(made("w", "b"), 2, 3), at(load("u", "a"), 4, 5)}, 2},
		{"two names", []ViewEvent{at(made("u", "a"), 0, 1), {Name: "w", Seen: View{UUID: "u", Queries: []string{"a"}}, From: 2, To: 3}}, 1},
		{"gone", []ViewEvent{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(absent, 4, 5)}, 1},
		{"gone, and another there", []ViewEvent{at(made("u", "a"), 0, 1), at(made("w", "b"), 2, 3)}, 1},
		{"gone after a drop", []ViewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 3), at(absent, 4, 5)}, 0},
		{"gone after a drop that was refused", []ViewEvent{at(made("u", "a"), 0, 1), at(ViewEvent{Drops: true, Outcome: Refused}, 2, 3), at(absent, 4, 5)}, 1},
		{"gone after a drop without an answer", []ViewEvent{at(ViewEvent{Drops: true, Outcome: Unknown}, 0, 1), at(made("u", "a"), 2, 3), at(absent, 4, 5)}, 0},
		{"gone after the drop of another", []ViewEvent{at(drop, 0, 1), at(made("u", "a"), 2, 3), at(absent, 4, 5)}, 1},
		{"gone before a drop", []ViewEvent{at(made("u", "a"), 0, 1), at(absent, 2, 3), at(drop, 4, 5)}, 1},
		{"gone while it is dropped", []ViewEvent{at(made("u", "a"), 0, 1), at(drop, 2, 5), at(absent, 3, 4)}, 0},
		{"another one gone", []ViewEvent{at(made("u", "a"), 0, 1), {Name: "w", Absent: true, Outcome: Refused, From: 2, To: 3}}, 0},
	} {
		if got := JudgeViews(row.events); len(got) != row.want {
			t.Errorf("%s: %d problems, want %d: %q", row.name, len(got), row.want, got)
		}
	}
}
