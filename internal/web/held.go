package web

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"moorage"
)

// An answer is in memory until its client has received it. So large answers need room, like large
// request bodies, and the client must receive them at a minimum pace.
const (
	// answerBytesFree is the length up to which an answer needs no room. Nearly all answers are
	// shorter.
	answerBytesFree = 256 << 10
	// answerPatience is the maximum time for a client to receive the first part of a large answer.
	answerPatience = time.Minute
	// answerTimeMax is the maximum time for a whole large answer. The client must receive each part
	// within its share of this time. For an uncompressed load of the longest document, that means
	// 900 KiB a second.
	answerTimeMax = 5 * time.Minute
	// answerPartBytes is the number of bytes that the server writes between two checks of the pace.
	answerPartBytes = 256 << 10
)

// answers manages the room for large answers. Answers with the same source share room. It is safe
// for concurrent use.
type answers struct {
	room *room

	// mu guards the fields below. No other lock is taken under it.
	mu      sync.Mutex
	shared  map[any]*heldAnswer // by source
	waiting int64               // bytes of answers that wait for room
}

// heldAnswer is the room that the answers from one source share.
type heldAnswer struct {
	share share
	users int // guarded by answers.mu
}

func newAnswers(bytesMax, bytesOfOne int64) *answers {
	return &answers{room: newRoom(bytesMax, bytesOfOne), shared: make(map[any]*heldAnswer)}
}

// HoldAnswer takes room for an answer of the given number of bytes, and keeps the room until the
// request is answered. Meanwhile the client must receive the answer at a minimum pace. source
// identifies the data from which the answer is made: answers with the same source take room only
// once. It must be comparable. It is nil if the answer shares its room with no other answer.
//
// If there is no room for a read, the error is KindTooManyRequests. The answer to a change is never
// refused, because the change has happened. Such an answer takes room even if none is left, and
// other answers wait longer.
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

// hold takes room for source, unless another answer holds it already. It waits for room, at most
// roomWait. It does not wait if many bytes of answers already wait, because waiting answers are in
// memory too. If there is no room, it returns false if mayRefuse is true, and otherwise takes the
// room anyway. release gives the room back.
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

// release ends one use of held. The last use frees its room.
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

// pace enforces the minimum pace of an answer that holds room. The zero value is for an answer that
// needs no room.
type pace struct {
	isKept   bool
	now      func() time.Time
	began    time.Time // zero before the first write
	total    int64     // bytes of the answer
	releases []func()  // each gives room back
}

// endPace gives back the room of x, and removes the write deadline of its connection. An answer
// that stays in this process keeps its room.
func (x *exchange) endPace() {
	if !x.pace.isKept {
		return
	}
	if kept, isKept := x.ResponseWriter.(*keptAnswer); isKept {
		kept.releases, x.pace.releases = append(kept.releases, x.pace.releases...), nil
	}
	for _, release := range x.pace.releases {
		release()
	}
	if !x.pace.began.IsZero() {
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Time{})
	}
	x.pace = pace{}
}

// writePaced writes a part of an answer that holds room. It closes the connection if the client is
// too slow.
func (x *exchange) writePaced(text []byte) (written int, err error) {
	if x.pace.began.IsZero() {
		x.pace.began = x.pace.now()
		x.pace.total, _ = strconv.ParseInt(x.Header().Get("Content-Length"), 10, 64)
	}
	for len(text) > 0 && err == nil {
		part := text[:min(len(text), answerPartBytes)]
		earned := answerTimeMax // an answer of unknown length gets the whole time from the start
		if taken := x.bytes + int64(len(part)); taken < x.pace.total {
			earned = time.Duration(float64(answerTimeMax) * float64(taken) / float64(x.pace.total))
		}
		due := x.pace.began.Add(answerPatience + earned)
		if x.pace.now().After(due) {
			panic(http.ErrAbortHandler)
		}
		// An error is ignored: a ResponseWriter that is not a connection, as in tests, has no
		// deadline.
		_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(due)
		var n int
		n, err = x.ResponseWriter.Write(part)
		written, text = written+n, text[n:]
		x.bytes += int64(n)
	}
	return written, err
}
