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

// errGivenUp says that the caller of a write has gone, while the server has not answered.
var errGivenUp = errors.New("the caller gave up before the server answered")

// write calls do, once, with a connection that may write. It returns when do does, or when ctx
// ends: then with ErrUnknown, while do goes on with a context that does not end.
//
// The connection and the slot of do stay taken until the server has answered or its process has
// ended. So the slots bound not only the connections of this node. They also bound the processes of
// the server that work for it, or wait for a standby, with nobody waiting for them.
//
// If write returns ErrClosed, ErrUnavailable or the error of ctx alone without having called do,
// nothing was sent. After an error the caller must not look at what do sets.
func (s *Store) write(ctx context.Context, do func(detached context.Context, conn *pgxpool.Conn) error) error {
	conn, release, err := s.acquireToWrite(ctx)
	if err != nil {
		return err
	}
	return s.writeOn(ctx, conn, release, do)
}

// writeAgain is write of what may happen twice, and again, as read does it. It returns the error of
// ctx when that ends.
func (s *Store) writeAgain(ctx context.Context, do func(detached context.Context, conn *pgxpool.Conn) error) error {
	return s.again(ctx, func() (bool, error) {
		conn, release, err := s.acquireToWrite(ctx)
		if err != nil {
			return false, err
		}
		return true, s.writeOn(ctx, conn, release, do)
	})
}

// writeOn is write with a connection, which it releases.
func (s *Store) writeOn(ctx context.Context, conn *pgxpool.Conn, release func(),
	do func(context.Context, *pgxpool.Conn) error) error {
	w := newSending(conn)
	go func() { // s.calls waits for it
		w.err = worker.Safely(context.WithoutCancel(ctx),
			func(detached context.Context) error { return do(detached, conn) })
		if _, panicked := errors.AsType[*worker.PanicError](w.err); panicked {
			// Some of it may have been sent: nobody may take this for a write that did not happen.
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

// pipelined is what one pipeline carries out.
type pipelined struct {
	statements *pgx.Batch
	// refused reports whether the statements wrote nothing, when none failed. Nil: they wrote.
	refused func() bool
	// undone names the failure of a statement that met a guard or a row with the same key.
	undone func(*pgconn.PgError) error
}

// pipeline returns what sends p, for write. Errors are those of Store.Apply, errSendAgain and what
// p.undone returns.
func (s *Store) pipeline(ctx context.Context, p pipelined) func(context.Context, *pgxpool.Conn) error {
	return func(detached context.Context, conn *pgxpool.Conn) error {
		raw := conn.Conn().PgConn()
		// The driver also calls some errors safe to send again that come when everything was sent
		// and committed. So this code does not ask it.
		if raw.IsClosed() {
			return errSendAgain
		}
		forgetWarnings(raw, p.statements)
		err := conn.SendBatch(detached, p.statements).Close()
		switch {
		case err == nil && p.refused != nil && p.refused():
			return nil // whatever became of its commit
		case err == nil:
			return commitWarning(raw)
		case stateOf(err) == stateReadOnly:
			// The server has become a standby: the next connections are made to one that is none.
			_ = conn.Conn().Close(detached)
			s.reads.Reset()
		}
		return failure(ctx, err, p.undone)
	}
}

// acquireToWrite is acquire of pool, behind a slot.
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

// Bounds of the work for writes whose callers have gone.
const (
	// keptInterval is the time between two looks at whether the server still works on them.
	keptInterval = 5 * time.Second
	// missesMax is how many looks in a row must miss a process before its connection is cut: its
	// answer may be on the way.
	missesMax = 2
	// looksMax is how many looks a connection is kept whose process is not known, because a proxy
	// is before it: 5 minutes.
	looksMax = 60
)

// process is a process of a server. No other has the same two.
type process struct {
	pid   int32
	began string // as processBegan
}

// processKey is the key in a connection's custom data for the process that serves it; there is none
// behind a proxy.
const processKey = "moorage process"

// processBegan is the SQL that says when a process a of pg_stat_activity began.
const processBegan = "extract(epoch FROM a.backend_start)::text"

// sending is a write that is under way.
type sending struct {
	process process // zero behind a proxy
	line    *line
	ended   chan struct{} // closed when err is set and the connection was given back
	err     error

	looks, misses int // of watchKept alone
}

func newSending(conn *pgxpool.Conn) *sending {
	raw := conn.Conn().PgConn()
	serving, _ := raw.CustomData()[processKey].(process)
	return &sending{process: serving, line: lineOf(raw.Conn()), ended: make(chan struct{})}
}

// kept are the writes whose callers have gone. It is safe for concurrent use.
type kept struct {
	interval time.Duration

	mu       sync.Mutex // guards the fields below; leaf
	sendings []*sending
	watched  bool // watchKept runs
}

// keep looks after w from now on.
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

// watchKept cuts the connections of writes whose callers have gone when the server no longer works
// on them, until there are none. It may have been ended, or stand still for good while another has
// taken its place: no answer comes then, and no error.
func (s *Store) watchKept() {
	ticker := time.NewTicker(s.kept.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.closing:
			return
		}
		sendings := s.kept.left()
		if len(sendings) == 0 {
			return
		}
		s.cutEnded(sendings)
	}
}

// left returns those that have not ended, and notes that nobody watches them if there are none.
func (k *kept) left() []*sending {
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

// cutEnded cuts those of sendings for which no process of the server works any more.
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
		case err != nil: // which may pass
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
			_ = w.line.Close() // there is nobody to tell
		}
	}
}

// processes returns the server's processes that have one of pids and work, or wait for a standby.
// One that is idle has answered, or never got what was sent: then the answer never comes.
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
