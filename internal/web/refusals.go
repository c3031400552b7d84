package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// refusalsPause is the time between two log lines about equal refusals.
	refusalsPause = time.Minute
	// refusalsMax and refusalPathBytesMax limit the memory for refusals to 1 MiB.
	refusalsMax         = 1000
	refusalPathBytesMax = 1000
)

// refusal identifies the requests that share log lines: its fields are equal for all of them.
type refusal struct {
	operation *operation
	status    int
	about     string // the path, or the client's address; empty for requests beyond refusalsMax
}

// refusals decides which refused requests get a log line at info level. The server may refuse
// racing writers thousands of times a second, and each line costs a system call. The zero value is
// ready for use. It is safe for concurrent use.
type refusals struct {
	mu     sync.Mutex // guards the fields below; no other lock is taken under it
	lines  map[refusal]*refusalLine
	pruned time.Time // when lines was last pruned
}

// refusalLine describes the last log line about a refusal.
type refusalLine struct {
	logged  time.Time
	skipped int // requests since then without a line
}

// SumRefusals limits the log lines at info level about requests of these operations that were
// answered 409. The limit is one line a minute for each path. The line has the number of requests
// that were left out since the previous line. Those are logged at debug level. The limit also holds
// for answers of 404 by any operation. For 401, 421 and 429, and for requests that matched no
// route, the limit is one line a minute for each client address. A limit for each path would not
// help, because any client can invent paths. The package that adds the operations must call
// SumRefusals before the first request.
func (s *Server) SumRefusals(operations ...string) {
	for _, name := range operations {
		s.summed[name] = true
	}
}

// refusalOf returns the refusal that identifies the log lines of the request. It returns false if
// the request does not share a line with others.
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

// next counts a refused request. It returns whether the request gets a line, and how many requests
// have got no line since the previous one.
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
			of.about = "" // beyond refusalsMax: one line for each operation and status
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

// pruneLocked removes lines that are older than refusalsPause, and their counts, at most once a
// second. f.mu must be held.
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
