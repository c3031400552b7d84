package audit

import (
	"sync"
	"time"
)

const (
	// sumsMax bounds the sums of a minute. Lines that would need a further sum are each written.
	sumsMax = 10_000
	// denialsEach is how many denials of a caller in a minute get their own lines.
	denialsEach = 100
)

// sums counts similar lines by minute. The first ones are written at once. The rest of a minute
// becomes one line with their number, so that no line is lost and none pushes others out of the
// files. The zero value is empty. It is safe for concurrent use.
type sums struct {
	mu     sync.Mutex // guards the fields below; leaf
	counts map[alike]*sum
	order  []alike // the keys of counts, the oldest first
}

// alike has the fields that the lines of a sum have in common.
type alike struct {
	minute    int64 // since 1970
	event     Event
	caller    string
	operation string
	decision  string
	object    string // empty for any object
}

// sum counts similar lines.
type sum struct {
	line Line // the first line that was not written
	seen int
	more int // lines that were not written
}

// alikeOf returns the fields by which line is summed. perObject includes the object.
func alikeOf(line *Line, perObject bool) alike {
	of := alike{
		minute: line.Time.Unix() / 60, event: line.Event, caller: line.Caller, operation: line.Operation,
		decision: line.Decision,
	}
	if perObject {
		o := line.Object
		w := members{}
		w.quote(o.Kind)
		w.quote(o.ID)
		if o.ID == "" { // an object without a decision has no id
			w.quote(o.Warehouse)
			w.quote(o.Name)
			for _, level := range o.Namespace {
				w.quote(level)
			}
		}
		of.object = string(w.text)
	}
	return of
}

// takesRead reports whether an allowed read is summed. Only the first read of a caller, an
// operation and an object in a minute is not.
func (s *sums) takesRead(line *Line) bool { return s.takes(alikeOf(line, true), line, 1) }

// takesDenial reports whether a denial is summed. The first denials of a caller are not. The
// objects of the rest do not count, because a caller may make up names.
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
	}
	return true
}

// countLocked counts one more, and reports whether there was room for it. s.mu must be held.
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

// flush returns a line for each sum of the minutes before now, or for all sums if all is set. It
// removes these sums.
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
			if of.object == "" {
				counted.line.Object = Object{Kind: counted.line.Object.Kind}
			}
			lines = append(lines, counted.line)
		}
		delete(s.counts, of)
	}
	s.order = rest
	return lines
}
