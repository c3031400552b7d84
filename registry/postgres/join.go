package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"moorage/internal/worker"
	"moorage/registry"
)

// Bounds of moves that are joined.
const (
	// movesMax is the maximum number of transactions of moves in progress, unless the store has
	// fewer connections for writing. Further moves wait and are joined. Commits that wait for the
	// disk share a sync on the server, so a few more transactions cost little. With a limit of two,
	// eight clients reached half of their rate without joining. With a limit of eight, they reach
	// the same rate as without joining, and 64 clients reach twice the rate.
	movesMax = 8
	// joinedMovesMax is the maximum number of moves in one transaction. All of them wait for the
	// slowest row, and after an error of one move all of them are sent again.
	joinedMovesMax = 16
	// joinedBytesMax bounds the total length of the values of a move that can be joined. A typical
	// commit is far shorter.
	joinedBytesMax = 64 << 10
)

// joins reports whether m may share a transaction with other moves: it updates exactly one row,
// which is a pointer.
func (m *move) joins() bool {
	return m.follows() && m.moved().Key.Table == registry.TablePointer && m.bytes <= joinedBytesMax
}

// joiner joins the moves of one node. While movesMax transactions are in progress, moves wait for
// one to end. Then up to joinedMovesMax waiting moves become one transaction. A move never waits
// for later moves. If a transaction takes longer than slowStatement, the next transaction does not
// wait for it. It is safe for concurrent use.
type joiner struct {
	store *Store
	most  int

	mu       sync.Mutex // guards the fields below and the fields of each joining; no lock is taken under it
	underWay int
	waiting  []*joining
}

// joining is a move that waits for a shared transaction, or is in one.
type joining struct {
	move *move
	done chan struct{} // closed when err is set
	err  error

	left  bool   // its caller has returned
	joint *joint // nil while it waits
}

// joint is a set of moves that share one transaction.
type joint struct {
	calls   []*joining
	here    int                // the number of callers that still wait
	abandon context.CancelFunc // ends the context of carryOut
	sent    bool               // true if sent to the server, or about to be sent
}

// apply carries out m, alone or with others. It returns the errors of sendSealed.
func (j *joiner) apply(ctx context.Context, m *move) error {
	j.mu.Lock()
	if j.underWay < j.most {
		j.underWay++
		j.mu.Unlock()
		defer j.begin()()
		return j.store.sendMove(ctx, m)
	}
	call := &joining{move: m, done: make(chan struct{})}
	j.waiting = append(j.waiting, call)
	j.mu.Unlock()
	select {
	case <-call.done:
		return call.err
	case <-ctx.Done():
		return j.leave(ctx, call)
	}
}

// leave returns the error of a call whose ctx has ended. It is the error of ctx if the move was not
// sent, and otherwise ErrUnknown.
func (j *joiner) leave(ctx context.Context, call *joining) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-call.done:
		return call.err
	default:
	}
	call.left = true
	if call.joint == nil {
		j.waiting = slices.DeleteFunc(j.waiting, func(other *joining) bool { return other == call })
		return ctx.Err()
	}
	if call.joint.here--; call.joint.here == 0 {
		call.joint.abandon()
	}
	if !call.joint.sent {
		return ctx.Err()
	}
	return unknownError(ctx, errGivenUp)
}

// begin begins a transaction. The transaction counts as in progress until end is called, or until
// slowStatement has passed.
func (j *joiner) begin() (end func()) {
	next := sync.OnceFunc(j.next)
	slow := time.AfterFunc(slowStatement, next)
	return func() {
		slow.Stop()
		next()
	}
}

// next starts the next transaction for the waiting moves.
func (j *joiner) next() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		j.underWay--
		return
	}
	ctx, abandon := context.WithCancel(context.Background())
	t := j.takeLocked()
	t.abandon = abandon
	go j.carryOut(ctx, t)
}

// takeLocked takes the first waiting moves, one for each pointer. At least one move must wait, and
// mu must be held.
func (j *joiner) takeLocked() *joint {
	t := &joint{}
	pointers := make(map[registry.Key]bool)
	j.waiting = slices.DeleteFunc(j.waiting, func(call *joining) bool {
		key := call.move.moved().Key
		if len(t.calls) == joinedMovesMax || pointers[key] {
			return false
		}
		pointers[key] = true
		call.joint = t
		t.calls = append(t.calls, call)
		return true
	})
	t.here = len(t.calls)
	return t
}

// carryOut carries out the moves of t and answers their callers. ctx ends when no caller waits any
// more.
func (j *joiner) carryOut(ctx context.Context, t *joint) {
	defer j.begin()()
	defer t.abandon()
	var verdict func(*move) error
	err := worker.Safely(ctx, func(ctx context.Context) (err error) {
		verdict, err = j.send(ctx, t)
		return err
	})
	for _, call := range t.calls {
		if call.err = err; err == nil {
			call.err = verdict(call.move)
		}
		close(call.done)
	}
}

// send sends the moves of t whose callers still wait, as one transaction. verdict returns the
// result of a move. err is the result of all moves: nothing was sent, the outcome is unknown, or
// (errSendAgain) nothing happened.
func (j *joiner) send(ctx context.Context, t *joint) (verdict func(*move) error, err error) {
	conn, release, err := j.store.acquireToWrite(ctx)
	if err != nil {
		return nil, err
	}
	moves := j.seal(t)
	if len(moves) == 0 {
		release()
		return nil, ctx.Err()
	}
	sent := newSent(moves)
	sent.undone = func(answered *pgconn.PgError) error { return fmt.Errorf("%w: %w", errSendAgain, answered) }
	err = j.store.writeOn(ctx, conn, release, j.store.pipeline(ctx, sent.pipelined))
	if err != nil && !errors.Is(err, registry.ErrUnknown) && !errors.Is(err, errSendAgain) {
		err = fmt.Errorf("%w: %w", errSendAgain, err) // a single move may be the cause
	}
	return func(m *move) error { return m.refusal(sent.updated) }, err
}

// seal returns the moves of t whose callers still wait, and marks t as sent. From then on the moves
// may happen.
func (j *joiner) seal(t *joint) (moves []*move) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t.sent = true
	for _, call := range t.calls {
		if !call.left {
			moves = append(moves, call.move)
		}
	}
	return moves
}
