package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/internal/worker"
	"moorage/registry"
)

// errGivenUp means that the caller of a write gave up before the answer of the server arrived.
var errGivenUp = errors.New("the caller gave up before the server answered")

// write calls the function do once with a connection that may write. It returns when do returns, or
// when ctx ends. If ctx ends first, write returns ErrUnknown, and do continues with a context that
// does not end.
//
// The connection and the slot stay taken until the server has answered or its process has ended. So
// the slots bound the connections of this node. They also bound the server processes that still
// work, or wait for a standby, after their callers gave up.
//
// If write returns ErrClosed, ErrUnavailable or just the error of ctx, without having called do,
// nothing was sent. After an error the caller must not read the variables set by the function do.
func (s *Store) write(ctx context.Context, do func(detached context.Context, conn *pgxpool.Conn) error) error {
	conn, release, err := s.acquireToWrite(ctx)
	if err != nil {
		return err
	}
	return s.writeOn(ctx, conn, release, do)
}

// writeAgain is like write, for statements that may happen twice. It repeats them like read. It
// returns the error of ctx if ctx ends.
func (s *Store) writeAgain(ctx context.Context, do func(detached context.Context, conn *pgxpool.Conn) error) error {
	return s.retry(ctx, func() (bool, error) {
		conn, release, err := s.acquireToWrite(ctx)
		if err != nil {
			return false, err
		}
		return true, s.writeOn(ctx, conn, release, do)
	})
}

// writeOn is like write, on the connection conn, which it releases.
func (s *Store) writeOn(ctx context.Context, conn *pgxpool.Conn, release func(),
	do func(context.Context, *pgxpool.Conn) error) error {
	w := newSending(conn)
	go func() { // s.calls waits for it
		w.err = worker.Safely(context.WithoutCancel(ctx),
			func(detached context.Context) error { return do(detached, conn) })
		if _, panicked := errors.AsType[*worker.PanicError](w.err); panicked {
			// Part of the write may have been sent, so the error must not mean that the write did
			// not happen.
			w.err = fmt.Errorf("%w: %w", registry.ErrUnknown, w.err)
		}
		release()
		close(w.ended)
	}()
	select {
	case <-w.ended:
		return w.err
	case <-ctx.Done():
	}
	s.keep(w)
	return unknownError(ctx, errGivenUp)
}

// pipelined is the content of one pipeline.
type pipelined struct {
	statements *pgx.Batch
	// refused reports whether the statements wrote nothing although they succeeded. If it is nil,
	// successful statements always write.
	refused func() bool
	// undone returns the error for a statement that failed at a guard or because of a row with the
	// same key.
	undone func(*pgconn.PgError) error
}

// pipeline returns a function for write that sends p. It returns the errors of Store.Apply and of
// p.undone, and errSendAgain.
func (s *Store) pipeline(ctx context.Context, p pipelined) func(context.Context, *pgxpool.Conn) error {
	return func(detached context.Context, conn *pgxpool.Conn) error {
		raw := conn.Conn().PgConn()
		// The driver marks some errors as safe to resend although everything was sent and
		// committed. So this code does not rely on that mark.
		if raw.IsClosed() {
			return errSendAgain
		}
		forgetWarnings(raw, p.statements)
		err := conn.SendBatch(detached, p.statements).Close()
		switch {
		case err == nil && p.refused != nil && p.refused():
			return nil // nothing was written, whatever the result of the commit is
		case err == nil:
			return commitWarning(raw)
		case stateOf(err) == stateReadOnly:
			// The server has become a standby. The next connections go to a primary.
			_ = conn.Conn().Close(detached)
			s.reads.Reset()
		}
		return failure(ctx, err, p.undone)
	}
}

// acquireToWrite takes a slot, and then acquires a connection of s.pool.
func (s *Store) acquireToWrite(ctx context.Context) (conn *pgxpool.Conn, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	slotCtx, cancel := context.WithTimeout(ctx, s.acquireTimeout)
	defer cancel()
	if err := s.slots.take(slotCtx); err != nil {
		return nil, nil, unconnectedError(ctx, err)
	}
	conn, giveBack, err := s.acquire(ctx, s.pool)
	if err != nil {
		s.slots.give()
		return nil, nil, err
	}
	return conn, func() {
		giveBack()
		s.slots.give()
	}, nil
}

// Bounds of the work for writes whose callers gave up.
const (
	// keptInterval is the time between two checks whether the server still works on these writes.
	keptInterval = 5 * time.Second
	// A connection is cut after missesMax consecutive checks that do not find its process. After
	// only one, the answer may still be on the way.
	missesMax = 2
	// Behind a proxy the process of a connection is unknown. Such a connection is kept for looksMax
	// checks, which take 5 minutes.
	looksMax = 60
)

// process identifies a server process by two values that together are unique.
type process struct {
	pid   int32
	began string // when the process began, in the form of processBegan
}

// processKey is the key in a connection's custom data for the process that serves it. Behind a
// proxy the key is not set.
const processKey = "moorage process"

// processBegan is the SQL for when a process a of pg_stat_activity began.
const processBegan = "extract(epoch FROM a.backend_start)::text"

// sending is a write in progress.
type sending struct {
	process process // zero behind a proxy
	line    *line
	ended   chan struct{} // closed when err is set and the connection was returned
	err     error

	looks, misses int // used only by watchKept
}

func newSending(conn *pgxpool.Conn) *sending {
	raw := conn.Conn().PgConn()
	serving, _ := raw.CustomData()[processKey].(process)
	return &sending{process: serving, line: lineOf(raw.Conn()), ended: make(chan struct{})}
}

// kept holds the unfinished writes whose callers gave up. It is safe for concurrent use.
type kept struct {
	interval time.Duration

	mu       sync.Mutex // guards the fields below; no lock is taken under it
	sendings []*sending
	watched  bool // watchKept is running
}

// keep adds w to the writes that watchKept watches.
func (s *Store) keep(w *sending) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	s.kept.sendings = append(s.kept.sendings, w)
	if s.kept.watched {
		return
	}
	s.enter.RLock()
	defer s.enter.RUnlock()
	if s.closed.Load() { // Close cuts all connections itself
		return
	}
	s.kept.watched = true
	s.calls.Go(s.watchKept)
}

// watchKept cuts the connections of abandoned writes on which the server no longer works, until no
// such writes are left. It is needed because the server's machine may have been stopped, or may
// hang for good while another server has taken its place. Then neither an answer nor an error
// arrives.
func (s *Store) watchKept() {
	ticker := time.NewTicker(s.kept.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.closing:
			return
		}
		sendings := s.kept.unfinished()
		if len(sendings) == 0 {
			return
		}
		s.cutEnded(sendings)
	}
}

// unfinished returns the writes that have not ended. If there are none, it records that watchKept
// ends.
func (k *kept) unfinished() []*sending {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sendings = slices.DeleteFunc(k.sendings, func(w *sending) bool {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	})
	k.watched = len(k.sendings) > 0
	return slices.Clone(k.sendings)
}

// cutEnded cuts the connections of writes that no server process works on any more.
func (s *Store) cutEnded(sendings []*sending) {
	var pids []int32
	for _, w := range sendings {
		pids = append(pids, w.process.pid)
	}
	alive, err := s.processes(pids)
	for _, w := range sendings {
		w.looks++
		switch {
		case w.process == process{} && w.looks < looksMax:
			continue
		case w.process == process{}: // cut
		case err != nil: // the error may be temporary
			continue
		case alive[w.process]:
			w.misses = 0
			continue
		default:
			if w.misses++; w.misses < missesMax {
				continue
			}
		}
		if w.line != nil {
			_ = w.line.Close() // no caller could use an error
		}
	}
}

// processes returns the server's processes in pids that work, or wait for a standby. An idle
// process has already answered, or never got the statements. In either case, no further answer will
// arrive.
func (s *Store) processes(pids []int32) (found map[process]bool, err error) {
	err = s.readInTime(context.Background(), func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, "SELECT a.pid, "+processBegan+" FROM pg_stat_activity AS a WHERE a.pid = "+
			"ANY($1::integer[]) AND a.state IS DISTINCT FROM 'idle'", pids)
		if err != nil {
			return err
		}
		found = make(map[process]bool)
		var p process
		_, err = pgx.ForEachRow(rows, []any{&p.pid, &p.began}, func() error {
			found[p] = true
			return nil
		})
		return err
	})
	return found, err
}
