package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// refusalsPause is the time between two lines of the log about requests that are refused alike.
	refusalsPause = time.Minute
	// refusalsMax and refusalPathBytesMax bound the memory for that, to 1 MiB.
	refusalsMax         = 1000
	refusalPathBytesMax = 1000
)

// refusal is what requests have in common that share the lines of the log.
type refusal struct {
	operation *operation
	status    int
	about     string // the path, or the address of a stranger; empty for all that are beyond the bounds
}

// refusals decides which refused requests have a line of the log at info level. Writers that race
// each other are refused thousands of times a second, and each line costs a system call. The zero
// value is ready. It is safe for concurrent use.
type refusals struct {
	mu     sync.Mutex // guards the fields below; leaf
	lines  map[refusal]*refusalLine
	pruned time.Time // when lines was looked through last
}

// refusalLine is the last line about a refusal.
type refusalLine struct {
	logged  time.Time
	skipped int // requests since, which had none
}

// SumRefusals lets 409 of these operations have one line of the log for each path in a minute, with
// the number of those that were skipped before it. The others are logged at debug level. So it is
// with 404 of all operations. 401, 421 and 429, and requests that met no route, have one line for
// each address: strangers choose the path. It must be called before the first request.
func (s *Server) SumRefusals(operations ...string) {
	for _, name := range operations {
		s.summed[name] = true
	}
}

// refusalOf returns what the request has in common with others that share a line of the log; false
// if it has a line of its own.
func (s *Server) refusalOf(x *exchange, r *http.Request) (refusal, bool) {
	isOfStranger := x.operation == s.unknown
	switch x.status {
	case http.StatusUnauthorized, http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		isOfStranger = true
	case http.StatusNotFound:
	case http.StatusConflict:
		if !s.summed[x.operation.name] {
			return refusal{}, false
		}
	default:
		return refusal{}, false
	}
	if isOfStranger {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		return refusal{x.operation, x.status, host}, true
	}
	return refusal{x.operation, x.status, EscapedPath(r.URL)}, true
}

// next counts a refused request. It returns true if a line is due, and how many were skipped since
// the one before.
func (f *refusals) next(of refusal, now time.Time) (skipped int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(of.about) > refusalPathBytesMax {
		of.about = ""
	}
	line := f.lines[of]
	if line == nil && len(f.lines) >= refusalsMax {
		f.pruneLocked(now)
		if len(f.lines) >= refusalsMax {
			of.about = "" // one line for each operation and status
			line = f.lines[of]
		}
	}
	switch {
	case line == nil:
		if f.lines == nil {
			f.lines = map[refusal]*refusalLine{}
		}
		f.lines[of] = &refusalLine{logged: now}
		return 0, true
	case now.Sub(line.logged) < refusalsPause:
		line.skipped++
		return 0, false
	}
	skipped, line.skipped, line.logged = line.skipped, 0, now
	return skipped, true
}

// pruneLocked forgets the lines that are older than refusalsPause, and what they skipped, once a
// second at most. f.mu must be held.
func (f *refusals) pruneLocked(now time.Time) {
	if now.Sub(f.pruned) < time.Second {
		return
	}
	f.pruned = now
	for of, line := range f.lines {
		if now.Sub(line.logged) >= refusalsPause {
			delete(f.lines, of)
		}
	}
}
