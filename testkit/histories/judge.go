package histories

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"moorage"
)

// judge searches for an order of the calls of one group.
//
// A call whose outcome is unknown may happen at any time after it began, or never. With a dozen
// such calls, trying each of them at each place would take too long. So the search, which package
// porcupine does, treats them specially:
//
//   - A call whose version was seen happened before the version was first seen. The search treats
//     it like a call that ended at that time.
//   - A call whose version was not seen matters only by its effect, which may explain other
//     answers.
//   - Calls with the same effect are interchangeable. So the search only counts how many of them
//     have begun.
//
// It is unknown which of these calls have happened. So the state of the model is a set of the
// states in which a group may be. If two of these states differ only in the calls that may still
// happen, the one with fewer calls is omitted. The other one explains at least as many answers.
//
// A version may end only after every call whose answer contains it. Without this rule, the search
// would notice too late that it had ended a version too early: only at the end of such a call. It
// would then try all orders of the calls in between.
//
// Only one goroutine may use a judge.
type judge struct {
	*Checker
	// followed holds the locations of the versions that are known to have a successor. A table
	// cannot have been dropped at one of these versions, because no location is used twice.
	followed map[string]bool
	required map[string]bool // the tables that calls require by their table-uuid
	answers  map[string]int  // by location: number of calls that show its version as they happen
	effects  []effect
	closures map[state][]state
}

// effect is a change that a call with an unknown outcome may have made unseen.
type effect struct {
	action Action
	name   int
	to     int     // the other name of a rename
	base   Version // for an append: the previous version
	made   Version // for a create: the version that it made
}

// begun is an operation that marks, in the order of a group, where a call with an effect began. Its
// value is the effect's number.
type begun int

// These constants replace the parts of versions that no client loaded. Such versions only explain
// that a name exists, or that an append was refused.
const (
	unseenTable  = "a table that nobody loaded"
	unseenAppend = "an append that nobody loaded"
)

// verdict is the result of the search for an order in a group.
type verdict struct {
	events []Event
	model  porcupine.Model
	result porcupine.CheckResult
	info   porcupine.LinearizationInfo
}

// judgeGroup judges the events of one group.
func (k *Checker) judgeGroup(events []Event) verdict {
	j := &judge{Checker: k, followed: map[string]bool{}, required: map[string]bool{}, closures: map[state][]state{}}
	for _, event := range events {
		j.required[event.Call.Table] = true
	}
	v := verdict{events: events, model: j.model()}
	operations, possible := j.operations(events)
	j.answers = answersOf(operations)
	v.result, v.info = porcupine.CheckOperationsVerbose(v.model, operations, checkTimeout)
	if !possible {
		v.result = porcupine.Illegal
	}
	return v
}

// operations returns the operations to put into an order. possible is false if a version was seen
// before it could have been made. Then there is no order, and no search is needed.
func (j *judge) operations(events []Event) (operations []porcupine.Operation, possible bool) {
	seen := j.sightings(events)
	for location := range seen {
		if base := j.files[location].base; base != "" {
			j.followed[base] = true
		}
	}
	times := j.periods(events, seen)
	add := func(event Event, output any, to int64) {
		operations = append(operations, porcupine.Operation{
			ClientId: event.Call.Client, Input: event.Call, Call: event.From, Output: output, Return: to,
		})
	}
	for _, event := range events {
		switch {
		case j.faults && moorage.KindOf(event.Answer.Err) == moorage.KindUnavailable: // a failure that shows nothing
		case !event.Answer.Unknown():
			event = times.narrow(event)
			add(event, event.Answer, event.To)
		default:
			if made, to, ok := j.madeBy(event.Call, seen); ok {
				event.Answer, event.To = Answer{Version: made.Version, Base: made.base}, max(to, event.From)
				event = times.narrow(event)
				add(event, event.Answer, event.To)
				continue
			}
			for _, e := range j.effectsOf(event.Call, seen) {
				add(event, begun(j.number(e)), event.From)
			}
		}
	}
	return operations, times.arePossible()
}

// answersOf returns the number of calls that show each version as they happen, by location. A call
// that unregisters a table ends the version that it shows, so that call does not count.
func answersOf(operations []porcupine.Operation) map[string]int {
	answers := map[string]int{}
	for _, operation := range operations {
		answer, known := operation.Output.(Answer)
		if known && answer.Err == nil && operation.Input.(Call).Action != Unregister {
			answers[answer.Location]++
		}
	}
	return answers
}

// madeBy returns the version that a call with an unknown outcome made, and when the version was
// first seen. If two versions of a call were seen, the call happened twice; the method contents
// reports that.
func (j *judge) madeBy(call Call, seen map[string]int64) (made version, to int64, ok bool) {
	for _, v := range j.authored[call.ID] {
		if at, was := seen[v.Location]; was && (!ok || at < to) {
			made, to, ok = v, at, true
		}
	}
	return made, to, ok
}

// effectsOf returns the possible effects of a call whose version was not seen. If a call would have
// made a version, but there is no file with that version, the call had no effect. Properties that
// no client saw explain nothing.
func (j *judge) effectsOf(call Call, seen map[string]int64) (effects []effect) {
	made := j.authored[call.ID]
	switch call.Action {
	case Drop, Unregister:
		return []effect{{action: Drop, name: call.Name}}
	case Rename:
		return []effect{{action: Rename, name: call.Name, to: call.To}}
	case CreateNS, DropNS:
		return []effect{{action: call.Action}}
	case Create:
		for _, v := range made {
			e := effect{action: Create, name: call.Name, made: v.Version}
			if !j.required[v.Table] {
				e.made = Version{unseenTable, unseenTable} // all such versions are equivalent
			}
			effects = append(effects, e)
		}
	case Append:
		for _, v := range made {
			base := v.base
			for _, was := seen[base]; !was && j.files[base].base != ""; _, was = seen[base] {
				base = j.files[base].base // made by another commit that was not seen
			}
			effects = append(effects, effect{action: Append, base: Version{v.Table, base}})
		}
	}
	return effects
}

// number returns the index of an effect in the group's effects, and adds the effect if it is new.
func (j *judge) number(e effect) int {
	i := slices.Index(j.effects, e)
	if i < 0 {
		i = len(j.effects)
		j.effects = append(j.effects, e)
	}
	return i
}

// apply returns the state after effect e. If e changes nothing, it returns s.
func (j *judge) apply(s state, e effect) state {
	now := s.names[e.name]
	switch e.action {
	case Drop:
		if j.mayEnd(now) && j.allShown(s, e.name) {
			return s.with(e.name, Version{})
		}
	case Rename:
		if now != (Version{}) && s.names[e.to] == (Version{}) {
			return s.renamed(e.name, e.to)
		}
	case Create:
		if now == (Version{}) && !s.gone {
			return s.with(e.name, e.made)
		}
	case Append:
		if at := slices.Index(s.names[:], e.base); at >= 0 && !j.followed[e.base.Location] && j.allShown(s, at) {
			return s.with(at, Version{e.base.Table, unseenAppend})
		}
	case CreateNS:
		return s.withNamespace(true)
	case DropNS:
		if s.empty() {
			return s.withNamespace(false)
		}
	}
	return s
}

// spareMax bounds the count of calls with one effect. More calls make no difference.
const spareMax = 255

// count returns the number of calls with the i-th effect that may still happen.
func (s state) count(i int) int {
	if i >= len(s.spare) {
		return 0
	}
	return int(s.spare[i])
}

// counted returns a copy of s in which change is added to the number of calls with the i-th effect
// that may still happen.
func (s state) counted(i, change int) state {
	counts := []byte(s.spare)
	for len(counts) <= i {
		counts = append(counts, 0)
	}
	counts[i] = byte(min(int(counts[i])+change, spareMax))
	s.spare = strings.TrimRight(string(counts), "\x00")
	return s
}

// covers reports whether every answer that is possible in the state other is also possible in s.
func (s state) covers(other state) bool {
	if s.gone != other.gone || s.names != other.names || s.shown != other.shown {
		return false
	}
	for i := range other.spare {
		if s.count(i) < other.count(i) {
			return false
		}
	}
	return true
}

// joined returns states and s, without states that are covered by others.
func joined(states []state, s state) []state {
	if slices.ContainsFunc(states, func(other state) bool { return other.covers(s) }) {
		return states
	}
	return append(slices.DeleteFunc(states, func(other state) bool { return s.covers(other) }), s)
}

// closure returns the states that a group can reach from state s by effects that may still happen.
// They include s.
func (j *judge) closure(s state) []state {
	if found, ok := j.closures[s]; ok {
		return found
	}
	reached := []state{s}
	for i := 0; i < len(reached); i++ { // later states have fewer calls left, so they cover no earlier state
		for n, e := range j.effects {
			now := reached[i]
			if now.count(n) == 0 {
				continue
			}
			next := j.apply(now, e)
			if next == now {
				continue
			}
			next = next.counted(n, -1)
			if !slices.ContainsFunc(reached, func(other state) bool { return other.covers(next) }) {
				reached = append(reached, next)
			}
		}
	}
	j.closures[s] = reached
	return reached
}

// stepAll reports whether the call could have this answer in one of the states, and returns the
// states after it.
func (j *judge) stepAll(states []state, call Call, answer Answer) (bool, []state) {
	var after []state
	for _, s := range states {
		for _, reached := range j.closure(s) {
			if ok, next := j.step(reached, call, answer); ok {
				after = joined(after, next)
			}
		}
	}
	return len(after) > 0, after
}

// begin returns the states after a call with an unknown outcome has begun: from then on its effect
// may happen.
func (j *judge) begin(states []state, effect begun) []state {
	after := make([]state, len(states))
	for i, s := range states {
		after[i] = s.counted(int(effect), 1)
	}
	return after
}

// model returns a model of a group, for porcupine, as if only one client used it.
func (j *judge) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []state{{}} },
		Step: func(s, input, output any) (bool, any) {
			if effect, ok := output.(begun); ok {
				return true, j.begin(s.([]state), effect)
			}
			return j.stepAll(s.([]state), input.(Call), output.(Answer))
		},
		Equal: func(a, b any) bool {
			these, those := a.([]state), b.([]state)
			return len(these) == len(those) && !slices.ContainsFunc(these,
				func(s state) bool { return !slices.Contains(those, s) })
		},
		DescribeOperation: func(input, output any) string {
			if effect, ok := output.(begun); ok {
				return fmt.Sprintf("%s %s: begun, outcome unknown, may do %v", input.(Call).ID, input.(Call).Action,
					j.effects[effect])
			}
			return describe(input.(Call), output.(Answer))
		},
		DescribeState: func(s any) string { return fmt.Sprint(s) },
	}
}
