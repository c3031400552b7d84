package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"moorage/internal/worker"
)

// Times of leases. A node may miss one heartbeat before others take leases from it, and even then
// it loses only the leases that they need. It may miss many heartbeats before its session ends,
// because a slow database is not a reason to lose every lease.
const (
	// SessionTTL is the longest silence of a session before other nodes end it.
	SessionTTL = 15 * time.Second
	// HeartbeatMax is the longest pause between two heartbeats of a node.
	HeartbeatMax = time.Second
	// SweepInterval is the mean pause between a node's checks for silent sessions.
	SweepInterval = 5 * time.Second
	// SilenceMax is the longest silence of a session before other nodes may take leases from it. It
	// is the sum of a pause, a heartbeat that is abandoned after beatMax, and a second for the next
	// heartbeat, which follows at once.
	SilenceMax = HeartbeatMax + beatMax + time.Second

	// beatMax is the timeout of a heartbeat. If the previous heartbeat took longer, the database is
	// slow, and callMax is the timeout. A heartbeat that waits on a dead connection must end early
	// enough for another heartbeat on another connection.
	beatMax = time.Second
	// beatSayPause is the minimum time between two reports of failing heartbeats.
	beatSayPause = 10 * time.Second
	// unstatedSilenceMax is used instead of SilenceMax for the sessions of nodes that do not state
	// their own maximum. These nodes send a heartbeat every 5 s. Blocking operations allow them
	// SessionTTL, as these nodes do themselves.
	unstatedSilenceMax = 6 * time.Second

	pollPauseMin = 5 * time.Millisecond
	pollPauseMax = 200 * time.Millisecond
	// callMax is the timeout of each call to the store. Twice callMax must be less than SessionTTL,
	// after which Renew treats unknown leases as orphans.
	callMax = 5 * time.Second
	// sessionsMax is the maximum number of sessions that may be lost during one Acquire.
	sessionsMax = 10
)

// Distributed is a Manager for one node of a cluster. A Local orders the operations of the node.
// Each operation then takes all its leases from the store in one call. The package comment explains
// why that cannot deadlock. A Distributed must be closed. It is safe for concurrent use.
type Distributed struct {
	leases   Leases
	name     string
	version  string
	random   io.Reader
	now      func() time.Time
	observer Observer
	log      *slog.Logger
	local    *Local

	heartbeat, sweep *worker.Worker
	beats            beats // of the heartbeat
	background       sync.WaitGroup

	jitterMu sync.Mutex // guards the field below; no other lock is taken under it
	jitter   *mathrand.Rand

	mu        sync.Mutex // guards the fields below; comes before session.mu; never held over a call
	current   *session   // nil before the first session
	opening   *opening   // nil while no session is being opened
	announced announcement
	closed    bool
}

// DistributedConfig configures a Distributed. Fields without a default are required.
type DistributedConfig struct {
	Leases Leases
	// Jitter is the source of random pauses. From then on, only the manager may use it, because it
	// is not safe for concurrent use.
	Jitter *mathrand.Rand
	// Name is the first part of the names of this node's sessions, to help humans that inspect the
	// store. Default "node".
	Name string
	// Version is the build that the node runs, recorded with its sessions. It may be empty.
	Version string
	// Random is the source of the rest of a session's name: 16 bytes. Default crypto/rand.
	Random   io.Reader
	Now      func() time.Time // default time.Now; measures pauses and the Observer's times
	Observer Observer         // default: none
	Logger   *slog.Logger     // default: discards
}

// NewDistributed returns a Distributed without locks. It panics if a required field of config is
// missing. Until the first Acquire, only sweeps call the store.
func NewDistributed(config DistributedConfig) *Distributed {
	if config.Leases == nil || config.Jitter == nil {
		panic("locks: Leases and Jitter are required")
	}
	d := &Distributed{
		leases: config.Leases, name: config.Name, version: config.Version, random: config.Random, now: config.Now,
		observer: config.Observer, log: config.Logger,
		jitter: config.Jitter,
	}
	if d.name == "" {
		d.name = "node"
	}
	if d.random == nil {
		d.random = rand.Reader
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.observer == nil {
		d.observer = noObserver{}
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.local = NewLocal(LocalConfig{Now: d.now, Observer: d.observer})
	// A worker pauses for at most one and a half intervals.
	d.heartbeat = d.worker("lock heartbeat", HeartbeatMax*2/3, d.beat)
	d.sweep = d.worker("lock sweep", SweepInterval, d.sweepOnce)
	d.heartbeat.Start()
	d.sweep.Start()
	return d
}

// worker returns a background loop of this node. It does not start the loop.
func (d *Distributed) worker(name string, interval time.Duration, run func(context.Context) error) *worker.Worker {
	return worker.New(worker.Config{
		Name: name, Run: run, Interval: interval, Logger: d.log,
		Jitter: mathrand.New(mathrand.NewPCG(d.jitter.Uint64(), d.jitter.Uint64())),
	})
}

// Stats returns the present state of the node's Local and of the node's leases.
func (d *Distributed) Stats() Stats {
	stats := d.local.Stats()
	if s := d.presentSession(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		stats.Leases = len(s.held)
	}
	return stats
}

// Acquire implements Manager. It first waits for earlier operations of this process. Then it polls
// the store.
func (d *Distributed) Acquire(ctx context.Context, request Request, options Options) (Hold, error) {
	return d.acquire(ctx, request, options, d.take)
}

// takeFunc tries once to take the leases that op lacks. blocked is the first unavailable lock, or
// zero if all were taken. settled, if not nil, is closed when op should try again.
type takeFunc func(ctx context.Context, op *acquisition, ticket int64) (
	blocked Grant, settled <-chan struct{}, err error)

func (d *Distributed) acquire(ctx context.Context, request Request, options Options, take takeFunc) (Hold, error) {
	plan := Plan(request)
	patience := newPatience(options, d.now)
	if err := d.local.acquire(ctx, plan, patience); err != nil {
		patience.reportResult(err)
		return nil, err
	}
	op := newAcquisition(ctx, d, plan)
	var err error
	if options.InProcess || len(plan) == 0 {
		op.complete()
	} else {
		err = d.takeLeases(ctx, op, patience, take)
	}
	patience.reportResult(err)
	if err != nil {
		op.hold.Release()
		return nil, err
	}
	return op.hold, nil
}

// takeLeases takes leases for all of op's plan, or none.
func (d *Distributed) takeLeases(ctx context.Context, op *acquisition, patience *patience, take takeFunc) error {
	for range sessionsMax {
		s, err := d.openSession(ctx)
		if err != nil {
			return err
		}
		op.enter(s)
		if err := d.takeInSession(ctx, op, patience, take); !errors.Is(err, errSessionEnded) {
			return err
		}
	}
	return fmt.Errorf("%w: %d sessions ended during one operation", ErrUnavailable, sessionsMax)
}

// takeInSession tries until op has all its leases. While op waits, it uses no lease.
func (d *Distributed) takeInSession(ctx context.Context, op *acquisition, patience *patience,
	take takeFunc) (err error) {
	nonBlocking := patience.options.NonBlocking
	var ticket int64
	queue := queue{observer: d.observer, now: d.now}
	if !nonBlocking {
		ticket = op.session.drawTicket()
		defer func() {
			queue.endWait(err)
			if err == nil {
				op.session.returnTicket(ticket)
				return
			}
			op.session.withdrawTicket(ticket)
			d.releaseInBackground(op.session)
		}()
	}
	pause := pollPauseMin
	for {
		blocked, settled, err := take(ctx, op, ticket)
		switch {
		case err != nil:
			op.session.detach(op, d.now(), Grant{})
			return err
		case blocked.Path.IsZero() && op.complete():
			return nil
		case blocked.Path.IsZero():
			op.session.detach(op, d.now(), Grant{})
			d.releaseInBackground(op.session)
			continue
		case nonBlocking:
			d.observer.LockConflicted(blocked.Path.Level())
			return &ConflictError{blocked}
		}
		queue.beginWait(blocked)
		if settled != nil {
			err = patience.wait(ctx, settled, nil)
		} else {
			err = d.pause(ctx, patience, pause)
			pause = min(2*pause, pollPauseMax)
		}
		if err != nil {
			return errWait(blocked, err)
		}
	}
}

// pause waits for a random time from longest/2 to longest.
func (d *Distributed) pause(ctx context.Context, patience *patience, longest time.Duration) error {
	d.jitterMu.Lock()
	shortened := time.Duration(d.jitter.Int64N(int64(longest/2) + 1))
	d.jitterMu.Unlock()
	timer := time.NewTimer(longest - shortened)
	defer timer.Stop()
	return patience.wait(ctx, nil, timer.C)
}

// take tries to take all of op's plan.
func (d *Distributed) take(ctx context.Context, op *acquisition, ticket int64) (blocked Grant, settled <-chan struct{},
	err error) {
	blocked, err = d.try(ctx, op, ticket, op.session.wish(op.plan))
	return blocked, nil, err
}

// try requests leases from the store. If no lease is blocked, it records that op has the leases.
func (d *Distributed) try(ctx context.Context, op *acquisition, ticket int64, leases []*lease) (blocked Grant,
	err error) {
	if len(leases) == 0 { // all are shares
		return Grant{}, nil
	}
	asked := make([]Lease, 0, len(leases))
	for _, l := range leases {
		asked = append(asked, Lease{ID: l.id, Path: l.grant.Path.String(), Mode: uint8(l.grant.Mode)})
	}
	silence := SessionTTL
	if ticket == 0 {
		silence = unstatedSilenceMax
	}
	bounded, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	at, alive, err := d.leases.Try(bounded, op.session.name, ticket, asked, silence)
	switch {
	case err != nil:
		// The store may have taken the leases, or may still take them. Leases that cannot be
		// released now end as orphans.
		op.session.discard(leases)
		d.releaseInBackground(op.session)
		return Grant{}, unavailable(ctx, "try leases", err)
	case !alive:
		d.lose(op.session, "another node ended it")
		return Grant{}, errSessionEnded
	case at >= 0:
		op.wants = ticket > 0
		return leases[at].grant, nil
	case !op.session.granted(op, leases):
		return Grant{}, errSessionEnded
	}
	return Grant{}, nil
}

// errSessionEnded means that an operation must start again in another session.
var errSessionEnded = errors.New("locks: session ended")

// unavailable returns the error of a call with a timeout in ctx. The caller did not set that
// timeout, so its expiry must not look like the end of the caller's context.
func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("locks: %s: %w", what, ctx.Err())
	}
	return fmt.Errorf("%w: %s: %v", ErrUnavailable, what, err)
}

// queue reports an operation's waits to an Observer. It belongs to one goroutine.
type queue struct {
	observer Observer
	now      func() time.Time

	blocked Grant // zero while the operation does not wait
	since   time.Time
}

// beginWait records that the operation is waiting for the given lock.
func (q *queue) beginWait(blocked Grant) {
	if q.blocked == blocked {
		return
	}
	q.endWait(nil)
	q.blocked, q.since = blocked, q.now()
	q.observer.LockConflicted(blocked.Path.Level())
}

// endWait records that the operation no longer waits, and why.
func (q *queue) endWait(err error) {
	if q.blocked.Path.IsZero() {
		return
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, ErrTimeout} {
		if errors.Is(err, known) {
			err = known
		}
	}
	q.observer.LockWaited(q.blocked.Path.Level(), q.now().Sub(q.since), err)
	q.blocked = Grant{}
}
