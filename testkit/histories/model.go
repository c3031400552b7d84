package histories

import (
	"slices"

	"moorage"
)

// state is the model's state of a group. It reports whether the namespace is gone. It has the
// version of each name, and how many answers have contained that version so far. It also counts,
// for each effect, the calls that may still happen (see judge).
type state struct {
	gone  bool
	names [Names]Version
	shown [Names]int // at most judge.answers
	spare string     // a count for each of judge.effects, 0 for effects beyond its end
}

// find returns the index of the table's name, or -1 if the table has no name.
func (s state) find(table string) int {
	return slices.IndexFunc(s.names[:], func(v Version) bool { return v.Table == table })
}

func (s state) empty() bool { return s.names == [Names]Version{} }

func (s state) with(name int, v Version) state {
	if s.names[name] != v {
		s.names[name], s.shown[name] = v, 0
	}
	return s
}

func (s state) renamed(from, to int) state {
	s.names[to], s.shown[to] = s.names[from], s.shown[from]
	return s.with(from, Version{})
}

func (s state) withNamespace(there bool) state {
	s.gone = !there
	return s
}

// step reports whether the call could have this answer in state s, and returns the state after it.
func (j *judge) step(s state, call Call, answer Answer) (bool, state) {
	if answer.Err != nil {
		return j.mayRefuse(s, call, moorage.KindOf(answer.Err)), s
	}
	now := s.names[call.Name]
	switch call.Action {
	case Load, Refresh:
		return now == answer.Version, j.show(s, call.Name)
	case Exists:
		return now != Version{}, s
	case List:
		for name, listed := range answer.Listed {
			if listed != (s.names[name] != Version{}) {
				return false, s
			}
		}
		return !s.gone, s
	case Create:
		return !s.gone && now == Version{}, j.show(s.with(call.Name, answer.Version), call.Name)
	case Drop:
		return j.mayEnd(now) && j.allShown(s, call.Name), s.with(call.Name, Version{})
	case Unregister:
		return now == answer.Version && j.allShown(s, call.Name), s.with(call.Name, Version{})
	case Rename:
		return now != Version{} && s.names[call.To] == Version{}, s.renamed(call.Name, call.To)
	case CreateNS:
		return s.gone, s.withNamespace(true)
	case DropNS:
		return !s.gone && s.empty(), s.withNamespace(false)
	}
	return j.commit(s, call, Version{answer.Table, answer.Base}, answer.Version)
}

// commit reports whether a commit could make the version next on top of base, and returns the state
// after the commit. If several commits made next together, the first one in the order makes it.
// When the others are judged, next is already the current version.
func (j *judge) commit(s state, call Call, base, next Version) (bool, state) {
	at := call.Name
	if call.Table != "" {
		at = s.find(call.Table) // the call follows the table to its new name
	}
	switch {
	case at < 0, s.names[at] != base && s.names[at] != next:
		return false, s
	case call.Action == Append && j.head(base) != call.Parent:
		return false, s
	case s.names[at] == base && !j.allShown(s, at):
		return false, s
	}
	return slices.Contains(j.files[next.Location].authors, call.ID), j.show(s.with(at, next), at)
}

// show returns the state after an answer that contained the current version of a name.
func (j *judge) show(s state, name int) state {
	if s.shown[name] < j.answers[s.names[name].Location] {
		s.shown[name]++
	}
	return s
}

// allShown reports whether every answer that contains the name's current version has been placed
// before s. No location is used twice, so only then can the name get another version.
func (j *judge) allShown(s state, name int) bool {
	return s.shown[name] >= j.answers[s.names[name].Location]
}

// mayEnd reports whether v can have been a table's last version.
func (j *judge) mayEnd(v Version) bool { return v != Version{} && !j.followed[v.Location] }

// head returns the snapshot of the branch main in a version. It returns 0 if there is none, and -1
// if it is unknown.
func (j *judge) head(v Version) int64 {
	if v.Location == unseenAppend {
		return -1
	}
	f, ok := j.files[v.Location]
	if !ok {
		return 0
	}
	return Head(f.document)
}

// mayRefuse reports whether a call in state s could fail with an error of the given kind.
func (j *judge) mayRefuse(s state, call Call, kind moorage.Kind) bool {
	now := s.names[call.Name]
	switch kind {
	case moorage.KindUnavailable:
		return false // the history does not contain failures that faults explain
	case moorage.KindNoSuchNamespace:
		return s.gone
	case moorage.KindNamespaceNotEmpty:
		return call.Action == DropNS && !s.empty()
	case moorage.KindAlreadyExists:
		switch call.Action {
		case Create:
			return now != Version{}
		case Rename:
			return s.names[call.To] != Version{}
		case CreateNS:
			return !s.gone
		}
	case moorage.KindNoSuchTable:
		return now == Version{} || call.Table != "" && s.find(call.Table) < 0
	case moorage.KindCommitFailed:
		if call.Table == "" {
			return false // the call required nothing
		}
		at := s.find(call.Table)
		return now != Version{} && now.Table != call.Table ||
			call.Action == Append && at >= 0 && j.head(s.names[at]) != call.Parent
	}
	return false
}
