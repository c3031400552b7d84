package locks

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"moorage/internal/worker"
)

// sessionNameBytes is the number of random bytes in the name of a session.
const sessionNameBytes = 16

// presentSession returns the last opened session, or nil before the first.
func (d *Distributed) presentSession() *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

// opening is an attempt to open a session.
type opening struct {
	done    chan struct{} // closed when the fields below are set
	session *session
	err     error
}

// openSession returns the node's session, and opens one if necessary. If a session is already being
// opened, openSession waits for it, and returns the same error if that fails. If operations called
// the store one at a time instead, the last of many would wait for long.
func (d *Distributed) openSession(ctx context.Context) (*session, error) {
	for {
		s, under, mine, err := d.enterOpening()
		if s != nil || err != nil {
			return s, err
		}
		if mine {
			d.finishOpening(ctx, under)
			return under.session, under.err
		}
		select {
		case <-under.done:
			if under.session != nil || errors.Is(under.err, ErrUnavailable) {
				return under.session, under.err
			}
			// The operation that was opening the session has been cancelled.
		case <-ctx.Done():
			return nil, fmt.Errorf("locks: open session: %w", ctx.Err())
		}
	}
}

// enterOpening returns the session if it has not ended. Otherwise it returns the current attempt to
// open one. If the attempt is new, mine is true, and the caller must carry it out.
func (d *Distributed) enterOpening() (s *session, under *opening, mine bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, nil, false, fmt.Errorf("%w: manager closed", ErrUnavailable)
	case d.current != nil && !d.current.isEnded():
		return d.current, nil, false, nil
	case d.opening != nil:
		return nil, d.opening, false, nil
	}
	d.opening = &opening{done: make(chan struct{})}
	return nil, d.opening, true, nil
}

// finishOpening opens a session and wakes all operations that wait for it.
func (d *Distributed) finishOpening(ctx context.Context, under *opening) {
	under.err = fmt.Errorf("%w: open session", ErrUnavailable) // after a panic
	defer func() {
		d.mu.Lock()
		d.opening = nil
		d.mu.Unlock()
		close(under.done)
	}()
	under.session, under.err = d.newSession(ctx)
}

// newSession opens a session in the store and makes it the node's session.
func (d *Distributed) newSession(ctx context.Context) (*session, error) {
	random := make([]byte, sessionNameBytes)
	if _, err := io.ReadFull(d.random, random); err != nil {
		return nil, fmt.Errorf("%w: name a session: %w", ErrUnavailable, err)
	}
	s := newSession(d.name + "/" + hex.EncodeToString(random))
	began := d.now()
	bounded, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	a := d.announcement()
	opened := Session{Name: s.name, Version: d.version, Address: a.address, Host: a.host, Silence: SilenceMax}
	if err := d.leases.Open(bounded, opened); err != nil {
		return nil, unavailable(ctx, "open session", err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%w: manager closed", ErrUnavailable) // the store's session ends after SessionTTL
	}
	s.expires(SessionTTL-d.now().Sub(began), func() {
		d.safely(func() { d.lose(s, "no heartbeat reached the store") })
	})
	d.current = s
	return s, nil
}

// beats is the state that heartbeats keep between them. Only the heartbeat's worker uses it.
type beats struct {
	slow bool      // the last heartbeat took longer than beatMax
	said time.Time // when a failure was last reported
}

// beat makes one heartbeat. Failures are reported only occasionally, because they come in series.
func (d *Distributed) beat(ctx context.Context) error {
	err := d.renew(ctx)
	now := d.now()
	if err == nil || !d.beats.said.IsZero() && now.Sub(d.beats.said) < beatSayPause {
		return nil
	}
	d.beats.said = now
	return err
}

// renew sends to the store the ids that the session knows, and learns which of them it has lost.
func (d *Distributed) renew(ctx context.Context) error {
	s := d.presentSession()
	if s == nil || s.isEnded() {
		return nil
	}
	most := beatMax
	if d.beats.slow {
		most = callMax
	}
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	began := d.now()
	lost, alive, err := d.leases.Renew(bounded, s.name, s.known(), SessionTTL)
	slow := d.now().Sub(began) >= beatMax
	if err != nil && slow && !d.beats.slow {
		d.heartbeat.Kick() // the next heartbeat may have a working connection
	}
	d.beats.slow = slow
	if err != nil {
		return fmt.Errorf("renew session %s: %w", s.name, err)
	}
	if !alive {
		d.lose(s, "another node ended it")
		return nil
	}
	// The store measures the silence from the time when it received the call, which is later than
	// began.
	s.renewed(SessionTTL - d.now().Sub(began))
	if victims := s.dropLost(lost); len(victims) > 0 {
		d.log.WarnContext(ctx, "other nodes took leases from this node, which had been silent", "session", s.name,
			"operations", len(victims))
		d.tell(s, victims)
	}
	d.releaseInBackground(s) // the release may have to wait; the next heartbeat must not
	return nil
}

// sweepOnce makes sure that an announced node has a session, and ends the sessions of silent nodes.
func (d *Distributed) sweepOnce(ctx context.Context) error {
	return errors.Join(d.keepAnnounced(ctx), d.reap(ctx))
}

// reap ends the sessions of nodes that are silent.
func (d *Distributed) reap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	ended, err := d.leases.Reap(ctx, SessionTTL)
	if err != nil {
		return fmt.Errorf("end silent sessions: %w", err)
	}
	if ended > 0 {
		d.log.InfoContext(ctx, "ended silent sessions", "sessions", ended)
	}
	return nil
}

// lose ends a lost session, unless it has already ended. The next operation opens a new session.
func (d *Distributed) lose(s *session, reason string) {
	victims, first := s.end()
	if !first {
		return
	}
	d.log.Warn("lost the session of this node's locks", "session", s.name, "reason", reason, "operations", len(victims))
	d.observer.SessionLost()
	d.tell(s, victims)
	d.inBackground(func() { d.endSession(s) })
}

// tell ends the holds of victims, which are operations that lost a lease of s.
func (d *Distributed) tell(s *session, victims []*acquisition) {
	for _, op := range victims {
		d.inBackground(func() { op.endHold(s) })
	}
}

// endSession removes a session from the store. If that fails, the session is reaped later.
func (d *Distributed) endSession(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	defer cancel()
	if err := d.leases.End(ctx, s.name); err != nil {
		d.log.Debug("end session", "session", s.name, "error", err)
	}
}

// releaseUnneeded releases unneeded leases. If the call fails, a later call releases them.
func (d *Distributed) releaseUnneeded(s *session) {
	ids := s.takeUnneeded()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	defer cancel()
	// A panic must not keep giveBack, in any goroutine, from releasing the locks of the node's
	// Local.
	err := worker.Safely(ctx, func(ctx context.Context) error { return d.leases.Release(ctx, s.name, ids) })
	if err != nil {
		s.keepUnneeded(ids)
		d.log.Debug("release leases", "session", s.name, "leases", len(ids), "error", err)
		d.tellPanic(err)
	}
}

// releaseInBackground releases unneeded leases without making its caller wait.
func (d *Distributed) releaseInBackground(s *session) {
	if s.hasUnneeded() {
		d.inBackground(func() { d.releaseUnneeded(s) })
	}
}

// inBackground runs f in a goroutine that Close waits for. If f panics, the panic is logged and has
// no other effect.
func (d *Distributed) inBackground(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.background.Go(func() { d.safely(f) })
}

// safely calls f and logs a panic. It is for goroutines in which a panic would end the process.
func (d *Distributed) safely(f func()) {
	d.tellPanic(worker.Safely(context.Background(), func(context.Context) error {
		f()
		return nil
	}))
}

// tellPanic logs err, with its place, if it is a panic.
func (d *Distributed) tellPanic(err error) {
	if panicked, ok := errors.AsType[*worker.PanicError](err); ok {
		d.log.Error("renewing this node's locks panicked", "error", err, "stack", string(panicked.Stack))
	}
}

// Close ends the node's session and all of its holds, but callers must still release the holds. It
// waits for at most five seconds for each call in progress. Later calls of Acquire fail with
// ErrUnavailable. It may be called again.
func (d *Distributed) Close() {
	d.heartbeat.Stop()
	d.sweep.Stop()
	d.mu.Lock()
	s, first := d.current, !d.closed
	d.closed = true
	d.mu.Unlock()
	d.background.Wait()
	if s == nil || !first {
		return
	}
	if victims, live := s.end(); live {
		for _, op := range victims {
			op.endHold(s)
		}
		d.endSession(s)
	}
}
