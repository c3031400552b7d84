package web

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"moorage"
)

// An answer is in memory until its client has taken it. So large ones take room, as large bodies
// do, and have to be taken at a pace.
const (
	// answerBytesFree is the length up to which answers ask for no room. Nearly all are shorter.
	answerBytesFree = 256 << 10
	// answerPatience is how long a client may take nothing of a large answer at first.
	answerPatience = time.Minute
	// answerTimeMax is for the whole of a large answer. Each part of it has to be taken in its part
	// of the time. A load of the longest document has to go at 900 KiB a second, if it is not
	// compressed.
	answerTimeMax = 5 * time.Minute
	// answerPartBytes is how much is written between two looks at the pace.
	answerPartBytes = 256 << 10
)

// answers is the room for what large answers are made of. It is safe for concurrent use.
type answers struct {
	room *room

	// mu guards the fields below; leaf.
	mu      sync.Mutex
	shared  map[any]*heldAnswer // by what they are made of
	waiting int64               // bytes of answers that wait for room
}

// heldAnswer is the room for one thing that answers are made of.
type heldAnswer struct {
	share share
	users int // guarded by answers.mu
}

func newAnswers(bytesMax, bytesOfOne int64) *answers {
	return &answers{room: newRoom(bytesMax, bytesOfOne), shared: make(map[any]*heldAnswer)}
}

// HoldAnswer takes room for what an answer is made of, so many bytes, until the request is
// answered. From then on the client has to take the answer at a pace. source is what other answers
// may be made of at the same time, which takes room once: a value that can be compared; nil: of
// nothing.
//
// A read for which there is no room is KindTooManyRequests. A change has happened, so its answer is
// never refused. It takes room that others then lack.
func (s *Server) HoldAnswer(w http.ResponseWriter, r *http.Request, source any, bytes int64) error {
	x, isExchange := w.(*exchange)
	if !isExchange || bytes <= answerBytesFree || r.Method == http.MethodHead {
		return nil
	}
	x.pace.isKept, x.pace.now = true, s.config.Now
	owner := ""
	if s.config.Authenticate != nil {
		owner = CallerOf(r).Name
	}
	isRead := r.Method == http.MethodGet
	release, ok := s.answers.hold(r.Context(), source, owner, bytes, isRead)
	if !ok {
		if err := r.Context().Err(); err != nil {
			return err
		}
		return moorage.Errorf(moorage.KindTooManyRequests,
			"Too many large answers are being read; nothing was changed, try again later")
	}
	x.pace.releases = append(x.pace.releases, release)
	return nil
}

// hold takes room for source, unless another answer holds it already. It waits for room, for
// roomWait at most, and not if much waits already: what waits is in memory too. It gives up, and
// reports false, only if it may be refused. release gives the room back.
func (a *answers) hold(ctx context.Context, source any, owner string, bytes int64, mayRefuse bool,
) (release func(), ok bool) {
	a.mu.Lock()
	held := a.shared[source]
	if source != nil && held != nil {
		held.users++
		a.mu.Unlock()
		return func() { a.release(source, held) }, true
	}
	mayWait := a.waiting+bytes <= a.room.total/4
	if mayWait {
		a.waiting += bytes
	}
	a.mu.Unlock()

	held = &heldAnswer{share: share{owner: owner}, users: 1}
	wait := roomWait
	if !mayWait {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ok = a.room.take(ctx, &held.share, bytes)
	if !ok && !mayRefuse {
		a.room.force(&held.share, bytes)
		ok = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if mayWait {
		a.waiting -= bytes
	}
	if !ok {
		return nil, false
	}
	if _, taken := a.shared[source]; source != nil && !taken {
		a.shared[source] = held
	}
	return func() { a.release(source, held) }, true
}

// release ends one use of held. Its room is free when that was the last.
func (a *answers) release(source any, held *heldAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if held.users--; held.users > 0 {
		return
	}
	if a.shared[source] == held {
		delete(a.shared, source)
	}
	a.room.giveBack(&held.share)
}

// pace is how an answer that holds room has to be taken. The zero value is of one that holds none.
type pace struct {
	isKept   bool
	now      func() time.Time
	began    time.Time // zero: nothing was written
	total    int64     // bytes of the answer
	releases []func()  // of room
}

// endPace gives the room of x back, and ends the deadline of its connection.
func (x *exchange) endPace() {
	if !x.pace.isKept {
		return
	}
	for _, release := range x.pace.releases {
		release()
	}
	if !x.pace.began.IsZero() {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Time{})
	}
	x.pace = pace{}
}

// writePaced writes a part of an answer that holds room. It cuts the connection of a client that is
// too slow.
func (x *exchange) writePaced(text []byte) (written int, err error) {
	if x.pace.began.IsZero() {
		x.pace.began = x.pace.now()
		x.pace.total, _ = strconv.ParseInt(x.Header().Get("Content-Length"), 10, 64)
	}
	for len(text) > 0 && err == nil {
		part := text[:min(len(text), answerPartBytes)]
		earned := answerTimeMax // of an answer whose length is not known
		if taken := x.bytes + int64(len(part)); taken < x.pace.total {
			earned = time.Duration(float64(answerTimeMax) * float64(taken) / float64(x.pace.total))
		}
		due := x.pace.began.Add(answerPatience + earned)
		if x.pace.now().After(due) {
			panic(http.ErrAbortHandler)
		}
		// Only a connection has one.
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(due)
		var n int
		n, err = x.ResponseWriter.Write(part)
		written, text = written+n, text[n:]
		x.bytes += int64(n)
	}
	return written, err
}
