package audit

import (
	"sync"
	"time"
)

const (
	// sumsMax is the maximum number of sums in a minute. A line that would need another sum is
	// written itself.
	sumsMax = 10_000
	// denialsEach is the number of a caller's denials in a minute that get their own lines.
	denialsEach = 100
)

// sums counts similar lines by minute. The first lines of a kind in a minute are written at once.
// The other lines become one line with their number. So no line is lost, and many such lines do not
// push others out of the files. The zero value is empty. It is safe for concurrent use.
type sums struct {
	mu     sync.Mutex // guards the fields below; no lock is taken under it
	counts map[alike]*sum
	order  []alike // the keys of counts, oldest first
	// reads holds the sums of allowed reads in the minute readsMinute that already have a line. A
	// lookup by their short keys takes a third of the time of a lookup in counts.
	reads       map[Read]*sum
	readsMinute int64
}

// alike holds the fields that the lines of a sum have in common.
type alike struct {
	minute    int64 // number of the minute since 1970
	event     Event
	caller    string
	operation string
	decision  string
	// kind and id name the object. Both are empty if the object does not matter.
	kind, id string
	names    string // of an object without an id
}

// Read is an allowed read of an object that has an id.
type Read struct{ Caller, Operation, Kind, ID string }

// sum counts similar lines.
type sum struct {
	line Line // the first line that was not written itself
	seen int
	more int // number of lines that were not written themselves
}

// alikeOf returns the fields that identify the sum of line. If perObject is true, they include the
// object.
func alikeOf(line *Line, perObject bool) alike {
	of := alike{
		minute: line.Time.Unix() / 60, event: line.Event, caller: line.Caller, operation: line.Operation,
		decision: line.Decision,
	}
	if !perObject {
		return of
	}
	o := line.Object
	if of.kind, of.id = o.Kind, o.ID; o.ID == "" { // an object without a decision has no id
		w := members{}
		w.quote(o.Warehouse)
		w.quote(o.Name)
		for _, level := range o.Namespace {
			w.quote(level)
		}
		of.names = string(w.text)
	}
	return of
}

// addRead counts another read, and reports whether it did. If the sum of the read has no line yet,
// it returns false.
func (s *sums) addRead(read Read, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := s.reads[read]
	if counted == nil || now.Unix()/60 != s.readsMinute {
		return false
	}
	counted.seen++
	counted.more++
	return true
}

// keepReadLocked lets addRead count the reads of a sum. s.mu must be held.
func (s *sums) keepReadLocked(of alike, counted *sum) {
	if of.minute != s.readsMinute || s.reads == nil {
		s.reads, s.readsMinute = make(map[Read]*sum), of.minute
	}
	s.reads[Read{of.caller, of.operation, of.kind, of.id}] = counted
}

// takesRead reports whether an allowed read is summed. In each minute, the first read with the same
// caller, operation and object is not summed.
func (s *sums) takesRead(line *Line) bool { return s.takes(alikeOf(line, true), line, 1) }

// takesDenial reports whether a denial is summed. In each minute, the first denials of a caller are
// not summed. Further denials are summed without their objects, because a caller may invent names.
func (s *sums) takesDenial(line *Line) bool {
	all := alike{minute: line.Time.Unix() / 60, caller: line.Caller, decision: "denied"}
	s.mu.Lock()
	first := s.countLocked(all) && s.counts[all].seen <= denialsEach
	s.mu.Unlock()
	return !first && s.takes(alikeOf(line, false), line, 0)
}

// takes counts line, and reports whether it is summed instead of written.
func (s *sums) takes(of alike, line *Line, each int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.countLocked(of) {
		return false
	}
	counted := s.counts[of]
	if counted.seen <= each {
		return false
	}
	if counted.more++; counted.more == 1 {
		counted.line = *line
		if of.event == Decision && of.decision == Allowed && of.id != "" {
			s.keepReadLocked(of, counted)
		}
	}
	return true
}

// countLocked counts another line of a sum. It returns false if there is no room for another sum.
// s.mu must be held.
func (s *sums) countLocked(of alike) bool {
	counted := s.counts[of]
	if counted == nil {
		if len(s.order) >= sumsMax {
			return false
		}
		if s.counts == nil {
			s.counts = make(map[alike]*sum)
		}
		counted = &sum{}
		s.counts[of] = counted
		s.order = append(s.order, of)
	}
	counted.seen++
	return true
}

// flush returns a line for each sum of the minutes before now, and removes these sums. If all is
// true, it takes all sums.
func (s *sums) flush(now time.Time, all bool) (lines []Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.order[:0]
	for _, of := range s.order {
		if !all && of.minute >= now.Unix()/60 {
			rest = append(rest, of)
			continue
		}
		if counted := s.counts[of]; counted.more > 0 {
			counted.line.Count = counted.more
			if of.kind == "" {
				counted.line.Object = Object{Kind: counted.line.Object.Kind}
			}
			lines = append(lines, counted.line)
		}
		delete(s.counts, of)
		if of.minute == s.readsMinute {
			s.reads = nil
		}
	}
	s.order = rest
	return lines
}
