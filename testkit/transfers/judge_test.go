package transfers

import (
	"fmt"
	"strings"
	"testing"

	"moorage/testkit/servers"
)

// story is a handwritten history. Its calls happen one after another, unless they are stretched.
type story struct {
	chains  map[string][]Version
	history History
	count   int64
}

// newStory returns a story with three tables, each with a counter of 100.
func newStory() *story {
	s := &story{chains: map[string][]Version{}}
	for _, table := range []string{"a", "b", "c"} {
		s.chains[table] = []Version{{Location: table + "0", Head: 1, Counter: 100}}
	}
	return s
}

func (s *story) now() int64 { s.count += 10; return s.count }

func (s *story) last(table string) Version { return s.chains[table][len(s.chains[table])-1] }

// commit adds a version to a table.
func (s *story) commit(id string, p Part) {
	if s.chains[p.Table] == nil {
		s.chains[p.Table] = []Version{{}}
	}
	before := s.last(p.Table)
	v := Version{
		Location: fmt.Sprintf("%s%d", p.Table, len(s.chains[p.Table])), Base: before.Location,
		Head: before.Head, Counter: before.Counter + p.Change, Transfer: id,
	}
	if p.Mode == Moves {
		v.Head++
	}
	s.chains[p.Table] = append(s.chains[p.Table], v)
}

// request adds a transfer without adding any effect.
func (s *story) request(id string, outcome servers.Outcome, parts ...Part) *Event {
	for i, p := range parts {
		if p.Base == "" && p.Mode != Creates {
			parts[i].Base = s.last(p.Table).Location
		}
	}
	s.history.Events = append(s.history.Events, Event{Transfer{ID: id, Parts: parts}, outcome, s.now(), s.now()})
	return &s.history.Events[len(s.history.Events)-1]
}

// transfer adds a transfer, together with its effect.
func (s *story) transfer(id string, outcome servers.Outcome, parts ...Part) *Event {
	event := s.request(id, outcome, parts...)
	for _, p := range parts {
		if p.Mode != Requires {
			s.commit(id, p)
		}
	}
	return event
}

// load adds a load of a table. index is the index of the version that it finds.
func (s *story) load(table string, index int) *Load {
	s.history.Loads = append(s.history.Loads, Load{0, table, s.chains[table][index].Location, s.now(), s.now()})
	return &s.history.Loads[len(s.history.Loads)-1]
}

// sweep adds a load of all tables by a client.
func (s *story) sweep(a, b, c int) {
	tables := map[string]string{}
	for table, index := range map[string]int{"a": a, "b": b, "c": c} {
		tables[table] = s.chains[table][index].Location
	}
	s.history.Sweeps = append(s.history.Sweeps, Sweep{0, tables})
}

func move(table string, change int) Part { return Part{Table: table, Change: change} }

const (
	ack     = servers.Acknowledged
	refused = servers.Refused
	unknown = servers.Unknown
)

// The judge finds the problems, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		tell func(s *story)
		want string // part of a problem; "" if there is none
	}{
		{"one after the other", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.load("a", 1)
			s.transfer("2", ack, move("b", -3), move("c", 3), Part{Table: "a", Mode: Requires})
			s.load("c", 1)
			s.load("b", 2)
		}, ""},
		{"unknown, happened and did not", func(s *story) {
			s.transfer("1", unknown, move("a", -5), move("b", 5))
			s.request("2", unknown, move("a", -5), move("b", 5))
			s.load("a", 1)
		}, ""},
		{"unknown, and happened late", func(s *story) {
			s.request("1", unknown, move("a", -5), move("b", 5))
			s.load("a", 0)
			s.load("b", 0)
			s.commit("1", move("a", -5))
			s.commit("1", move("b", 5))
			s.load("a", 1)
		}, ""},
		{"unknown, and half of it happened", func(s *story) {
			s.request("1", unknown, move("a", -5), move("b", 5))
			s.commit("1", move("a", -5))
		}, "is in 1 of 2 tables"},
		{"acknowledged and not there", func(s *story) { s.request("1", ack, move("a", -5), move("b", 5)) }, "was acknowledged and is in 0 of 2"},
		{"acknowledged and half there", func(s *story) {
			s.request("1", ack, move("a", -5), move("b", 5))
			s.commit("1", move("b", 5))
		}, "was acknowledged and is in 1 of 2"},
		{"refused and there", func(s *story) { s.transfer("1", refused, move("a", -5), move("b", 5)) }, "was refused and is in 2 of 2"},
		{"refused and half there", func(s *story) {
			s.request("1", refused, move("a", -5), move("b", 5))
			s.commit("1", move("b", 5))
		}, "was refused and is in 1 of 2"},
		{"happened twice", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.commit("1", move("a", -5))
			s.commit("1", move("b", 5))
		}, "happened 2 times in a"},
		{"nobody asked", func(s *story) { s.commit("9", move("a", 0)) }, "did not ask for it"},
		{"only required and written", func(s *story) {
			s.transfer("1", ack, move("a", 0), Part{Table: "c", Mode: Requires})
			s.commit("1", Part{Table: "c", Mode: Stamps})
		}, "did not ask for it"},
		{"lost update", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.transfer("2", ack, move("a", -1), move("c", 1))
			s.chains["a"][2].Counter = 99
		}, "an update was lost"},
		{"made on another version", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.transfer("2", ack, move("a", -1), move("c", 1))
			s.chains["a"][2].Base = "a0"
		}, "but a1 stands before it"},
		{"sum changed", func(s *story) { s.transfer("1", ack, move("a", -5), move("b", 6)) }, "the sum of all counters was 300 and is 301"},
		{"half seen, and later the old half", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5)).To = 1000
			s.load("a", 1)
			s.load("b", 0)
		}, "load of b by client 0, which saw version 0"},
		{"half seen, and the old half at the same time", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5)).To = 1000
			s.load("a", 1).To = 1000
			s.load("b", 0)
		}, ""},
		{"unknown, half seen, and later the old half", func(s *story) {
			s.transfer("1", unknown, move("a", -5), move("b", 5), move("c", 0))
			s.load("c", 1)
			s.load("b", 0)
		}, "ended at 40, but must be after transfer 1 of a(-5) b(+5) c(+0), which must be after load of b"},
		{"old half seen through another transfer", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5)).To = 1000
			s.transfer("2", ack, move("b", -5), move("c", 5)).To = 1000
			s.load("c", 1)
			s.load("a", 0)
		}, "load of a by client 0, which saw version 0"},
		{"stale load", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.load("a", 0)
		}, "transfer 1 of a(-5) b(+5) ended at 20, but must be after load of a"},
		{"seen before it was sent", func(s *story) {
			s.request("1", ack, move("a", -5), move("b", 5))
			s.commit("1", move("a", -5))
			s.commit("1", move("b", 5))
			s.load("a", 1)
			s.history.Events[0].From, s.history.Events[0].To = 100, 110
		}, "load of a by client 0, which saw version 1"},
		{"answered a version that never was", func(s *story) { s.load("a", 0).Location = "a7" }, "a7 for a, which was never current"},
		{"two transfers in opposite orders", func(s *story) {
			s.request("1", ack, move("a", -5), move("b", 5)).To = 1000
			s.request("2", ack, move("a", -5), move("b", 5)).To = 1000
			s.commit("1", Part{Table: "a", Change: -5, Mode: Stamps})
			s.commit("2", Part{Table: "a", Change: -5, Mode: Stamps})
			s.commit("2", Part{Table: "b", Change: 5, Mode: Stamps})
			s.commit("1", Part{Table: "b", Change: 5, Mode: Stamps})
		}, "each of these must be after the next"},
		{"write skew", func(s *story) {
			s.request("1", ack, move("a", 0), Part{Table: "b", Mode: Requires}).To = 1000
			s.request("2", ack, move("b", 0), Part{Table: "a", Mode: Requires}).To = 1000
			s.commit("1", move("a", 0))
			s.commit("2", move("b", 0))
		}, "each of these must be after the next"},
		{"required what had moved", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.transfer("2", ack, move("c", 0), Part{Table: "a", Mode: Requires, Base: "a0"})
		}, "transfer 1 of a(-5) b(+5) ended at 20, but must be after transfer 2"},
		{"required what had only been stamped", func(s *story) {
			s.transfer("1", ack, Part{Table: "a", Mode: Stamps})
			s.transfer("2", ack, move("c", 0), Part{Table: "a", Mode: Requires, Base: "a0"})
		}, ""},
		{"wrong sum in a set that stood still", func(s *story) {
			s.request("1", unknown, move("a", -5), move("b", 5)) // and its second half comes after two rounds of loads
			s.commit("1", move("a", -5))
			s.sweep(1, 0, 0)
			s.sweep(1, 0, 0)
			s.commit("1", move("b", 5))
		}, "client 0 saw the sum 295, want 300"},
		{"another sum in a set that moved", func(s *story) {
			s.transfer("1", ack, move("a", -5), move("b", 5))
			s.sweep(1, 0, 0)
			s.sweep(1, 1, 0)
		}, ""},
		{"created", func(s *story) {
			s.transfer("1", ack, move("a", -5), Part{Table: "made", Mode: Creates, Change: 5})
			s.load("a", 1)
		}, ""},
		{"created, and not there", func(s *story) {
			s.transfer("1", ack, move("a", -5), Part{Table: "made", Mode: Creates, Change: 5})
			delete(s.chains, "made")
		}, "was acknowledged and is in 1 of 2"},
		{"refused, and created", func(s *story) {
			s.request("1", refused, move("a", -5), Part{Table: "made", Mode: Creates, Change: 5})
			s.commit("1", Part{Table: "made", Mode: Creates, Change: 5})
		}, "was refused and is in 1 of 2"},
		{"answers that contradict one another", func(s *story) { s.history.Failures = []string{"200 and 409"} }, "200 and 409"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStory()
			tt.tell(s)
			problems := Judge(s.chains, s.history)
			found := tt.want == "" && len(problems) == 0
			for _, problem := range problems {
				found = found || tt.want != "" && strings.Contains(problem, tt.want)
			}
			if !found {
				t.Errorf("judged %q, want %q", problems, tt.want)
			}
		})
	}
}
