package servers

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// JudgeViews returns the problems in clients' observations of views. The views must keep all their
// versions.
//
// For each view there must be an order of its versions that agrees with all answers. The order must
// contain every acknowledged version once, and no refused version. An answer must contain all
// versions that were acknowledged or seen before its request was sent. It must not contain a
// version that was requested after the answer arrived.
//
// Between two answers that contain a view, no drop of its name may be acknowledged. No client may
// see another view, or no view, with its name in that time. After the last answer that contains the
// view, a client may see another view or none, but only if a drop explains it.
func JudgeViews(events []ViewEvent) (problems []string) {
	problem := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	makers := map[string]ViewEvent{}
	for _, e := range events {
		if e.Query != "" {
			makers[e.Query] = e
		}
	}
	views := longest(events, problem)
	homes := map[string]string{}
	for uuid, queries := range views {
		for _, query := range queries {
			maker, made := makers[query]
			if home, twice := homes[query]; twice || !made || maker.Outcome == Refused {
				problem("%s holds %q, which %s made, and which is in %q too", uuid, query, maker, home)
			}
			homes[query] = uuid
		}
	}
	for _, e := range events {
		if e.Outcome != Acknowledged || e.Drops {
			continue
		}
		if last := len(e.Seen.Queries) - 1; e.Query != "" && (last < 0 || e.Seen.Queries[last] != e.Query) {
			problem("%s was answered %q", e, e.Seen.Queries)
			continue
		}
		for _, query := range e.Seen.Queries {
			if maker, made := makers[query]; made && maker.From > e.To {
				problem("%s was shown %s", e, maker)
			}
		}
	}
	return slices.Concat(problems, judgeLosses(events), judgeSpans(events), judgeEnds(events))
}

// longest returns, for each view, the longest list of its versions that a client saw. Every other
// list must be a prefix of it.
func longest(events []ViewEvent, problem func(string, ...any)) map[string][]string {
	views := map[string][]string{}
	for _, e := range events {
		if len(e.Seen.Queries) > len(views[e.Seen.UUID]) {
			views[e.Seen.UUID] = e.Seen.Queries
		}
	}
	for _, e := range events {
		if whole := views[e.Seen.UUID]; !slices.Equal(e.Seen.Queries, whole[:len(e.Seen.Queries)]) {
			problem("%s was shown %q, and others %q", e, e.Seen.Queries, whole)
		}
	}
	return views
}

// judgeLosses returns the answers that lack versions. An answer must contain the versions of each
// answer that arrived before its request was sent. The answer to a client that makes a version must
// contain that version.
func judgeLosses(events []ViewEvent) (problems []string) {
	began := slices.DeleteFunc(slices.Clone(events), func(e ViewEvent) bool { return e.Seen.UUID == "" })
	ended := slices.Clone(began)
	slices.SortFunc(began, func(a, b ViewEvent) int { return cmp.Compare(a.From, b.From) })
	slices.SortFunc(ended, func(a, b ViewEvent) int { return cmp.Compare(a.To, b.To) })
	most := map[string]ViewEvent{}
	next := 0
	for _, e := range began {
		for ; ended[next].To < e.From; next++ {
			if before := ended[next]; len(before.Seen.Queries) > len(most[before.Seen.UUID].Seen.Queries) {
				most[before.Seen.UUID] = before
			}
		}
		if before := most[e.Seen.UUID]; len(before.Seen.Queries) > len(e.Seen.Queries) {
			problems = append(problems, fmt.Sprintf("%s was not shown %q, as was %s", e,
				before.Seen.Queries[len(e.Seen.Queries):], before))
		}
	}
	return problems
}

// judgeSpans returns each drop or absence of a name at a time when the name's view is known to have
// existed. A view is known to have existed from the end of the first call that saw it to the
// beginning of the last.
func judgeSpans(events []ViewEvent) (problems []string) {
	type span struct {
		name     string
		from, to time.Duration
	}
	spans := map[string]span{}
	for _, e := range events {
		if e.Seen.UUID == "" {
			continue
		}
		s, known := spans[e.Seen.UUID]
		if !known {
			s = span{e.Name, e.To, e.From}
		}
		if s.name != e.Name {
			problems = append(problems, fmt.Sprintf("%s is %s and %s", e.Seen.UUID, s.name, e.Name))
		}
		spans[e.Seen.UUID] = span{s.name, min(s.from, e.To), max(s.to, e.From)}
	}
	for _, e := range events {
		if e.Seen.UUID == "" && !e.Absent && (!e.Drops || e.Outcome != Acknowledged) {
			continue
		}
		for uuid, s := range spans {
			if uuid != e.Seen.UUID && s.name == e.Name && s.from < e.From && e.To < s.to {
				problems = append(problems, fmt.Sprintf("%s, while %s was there", e, uuid))
			}
		}
	}
	return problems
}

// judgeEnds returns the views that are gone or replaced although no client can have dropped them.
func judgeEnds(events []ViewEvent) (problems []string) {
	last := map[string]ViewEvent{} // the last event that saw each view
	for _, e := range events {
		if l, known := last[e.Seen.UUID]; e.Seen.UUID != "" && (!known || e.From > l.From) {
			last[e.Seen.UUID] = e
		}
	}
	told := map[string]bool{}
	for _, e := range events {
		if !e.Absent && e.Seen.UUID == "" {
			continue
		}
		for uuid, l := range last {
			if uuid == e.Seen.UUID || l.Name != e.Name || e.From <= l.To || told[uuid] {
				continue
			}
			// A drop with an unknown outcome may still happen.
			explained := slices.ContainsFunc(events, func(d ViewEvent) bool {
				return d.Drops && d.Name == e.Name && d.From < e.To &&
					(d.Outcome == Unknown || d.Outcome == Acknowledged && d.To > l.From)
			})
			if !explained {
				told[uuid] = true
				problems = append(problems, fmt.Sprintf("%s, and %s, which %s, was not dropped", e, uuid, l))
			}
		}
	}
	return problems
}
