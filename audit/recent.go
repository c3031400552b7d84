package audit

import "sync"

// DenialsMax is the number of denials that a node remembers.
const DenialsMax = 10_000

// recent remembers the last denials. The zero value is empty. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex // guards the fields below; no lock is taken under it
	lines []Line     // a ring once it has DenialsMax lines
	next  int        // index of the oldest line in the ring
}

func (r *recent) add(line Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < DenialsMax {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.next] = line
	r.next = (r.next + 1) % DenialsMax
}

// last returns at most limit lines, newest first.
func (r *recent) last(limit int) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make([]Line, 0, min(limit, len(r.lines)))
	for i := range cap(found) {
		found = append(found, r.lines[(r.next+len(r.lines)-1-i)%len(r.lines)])
	}
	return found
}

// ofRequest returns the lines of a request, oldest first. It searches all lines, because it is
// called rarely.
func (r *recent) ofRequest(requestID string) (found []Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.lines {
		if line := r.lines[(r.next+i)%len(r.lines)]; line.RequestID == requestID {
			found = append(found, line)
		}
	}
	return found
}
