package monitor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/policies"
	"moorage/registry"
)

const (
	// pageMax is how many changes are read at a time.
	pageMax = 1000
	// applyMax is how many tables one Apply makes due. Each takes a condition and a few writes.
	applyMax = 400
	// saveEvents and savePause are after how many changes, and after how long, the position is
	// written if no table was made due.
	saveEvents = 1000
	savePause  = 5 * time.Second
	// claim is the name of the claim of the node that follows, and claimLife how long it holds
	// without a renewal. Each renewal is a write.
	claim     = "maintenance/monitor"
	claimLife = 2 * time.Minute
	// pollPause is the mean pause between two looks for changes.
	pollPause = 2 * time.Second
	// caresMax bounds the cares and the properties that are in memory.
	caresMax = 200_000
	// walksPause is how often it looks for walks that others have begun.
	walksPause = 10 * time.Second
	// walkRate is how many documents walks read a second.
	walkRate = 200
	// readPatience is how long an answer of a storage is waited for. All tables wait for that of
	// one. After that no document of the warehouse is read for silentFor.
	readPatience = 10 * time.Second
	silentFor    = 5 * time.Minute
)

// Tables is what the monitor needs of the catalog. *catalog.Tables is one.
type Tables interface {
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
}

// Config is what a Monitor is made of. Fields without a default are required.
type Config struct {
	ledger.Deps
	Tables   Tables
	Policies *policies.Policies
	// MadeDue is called after a table was made due at once. Default: nothing.
	MadeDue func()
	// Interval is the mean pause between two looks for changes. Default 2 s.
	Interval time.Duration
	// Retention is how long changes are kept, at least. A monitor that is too far behind looks at
	// all tables before changes are lost. Default: it does not look how far behind it is.
	Retention time.Duration
	// WalkRate is how many documents a walk reads a second. Default 200; negative: no bound.
	WalkRate int
}

// Stats is what a Monitor has done since the process began.
type Stats struct {
	Changes  int64         // that were read
	Applies  int64         // that were made
	MadeDue  int64         // tables
	Walked   int64         // tables
	Missed   int64         // tables that a look at random found, and the log had not made due
	Walking  int           // scopes that are walked over now
	Lag      time.Duration // age of the last change that was read, while there are more
	IsLeader bool
}

// Monitor follows the changes of one store. It is safe for concurrent use.
type Monitor struct {
	config Config
	ledger *ledger.Ledger
	claims *ledger.Claimer
	log    *slog.Logger
	loop   *worker.Worker
	kicks  chan struct{} // holds one kick that was not heeded yet
	// jitter and shadow, when tables are looked at at random next, belong to the goroutine that has
	// the claim.
	jitter *rand.Rand
	shadow time.Time

	mu    sync.Mutex // guards stats; leaf
	stats Stats
}

// New returns a monitor that is not started. It fails if the source of random bits does.
func New(config Config) (*Monitor, error) {
	if config.Ledger == nil || config.Tables == nil || config.Policies == nil {
		panic("monitor: Deps, Tables and Policies are required")
	}
	if config.MadeDue == nil {
		config.MadeDue = func() {}
	}
	config.Interval, config.WalkRate = cmp.Or(config.Interval, pollPause), cmp.Or(config.WalkRate, walkRate)
	jitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	pauses, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	m := &Monitor{
		config: config, ledger: config.Ledger, claims: config.Claimer(), log: config.Logger,
		kicks: make(chan struct{}, 1), jitter: jitter,
	}
	m.loop = worker.New(worker.Config{
		Name: "maintenance monitor", Run: m.follow, Interval: config.Interval, Jitter: pauses, Logger: config.Logger,
	})
	return m, nil
}

// Start starts the loop. It may be called again after Stop.
func (m *Monitor) Start() {
	m.loop.Start()
	m.loop.Kick()
}

// Stop ends the loop and waits for it. It may be called again.
func (m *Monitor) Stop() { m.loop.Stop() }

// Kick has the loop look for changes now. It never blocks.
func (m *Monitor) Kick() {
	m.loop.Kick()
	select {
	case m.kicks <- struct{}{}:
	default:
	}
}

// Stats returns what the monitor has done.
func (m *Monitor) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

func (m *Monitor) count(do func(*Stats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do(&m.stats)
}

// follow takes the claim and follows for as long as it has that.
func (m *Monitor) follow(ctx context.Context) error {
	return m.claimed(ctx, func(ctx context.Context, f *following) error {
		for {
			more, err := f.step(ctx)
			if err != nil || !m.config.Policies.Current().Asks() {
				return err
			}
			if more {
				continue
			}
			pause := time.NewTimer(m.config.Interval/2 + time.Duration(m.jitter.Int64N(int64(m.config.Interval))))
			select {
			case <-ctx.Done():
				pause.Stop()
				return nil
			case <-m.kicks:
				pause.Stop()
			case <-pause.C:
			}
		}
	})
}

// RunOnce follows until there is no change that it has not read, and no walk is left. It does
// nothing if no policy asks for maintenance, or another node follows. Walks read documents as fast
// as they can.
func (m *Monitor) RunOnce(ctx context.Context) error {
	return m.claimed(ctx, func(ctx context.Context, f *following) error {
		f.hurries = true
		for {
			more, err := f.step(ctx)
			if err != nil {
				return err
			}
			if !more {
				return f.save(ctx)
			}
		}
	})
}

func (m *Monitor) claimed(ctx context.Context, do func(ctx context.Context, f *following) error) error {
	if !m.config.Policies.Current().Asks() {
		return nil
	}
	err := m.claims.Claim(ctx, claim, claimLife, func(ctx context.Context) error {
		m.count(func(s *Stats) { s.IsLeader = true })
		defer m.count(func(s *Stats) { s.IsLeader, s.Walking, s.Lag = false, 0, 0 })
		f, err := newFollowing(ctx, m)
		if err != nil {
			return err
		}
		err = do(ctx, f)
		if errors.Is(context.Cause(ctx), ledger.ErrClaimLost) {
			return nil
		}
		return err
	})
	if errors.Is(err, ledger.ErrClaimed) || errors.Is(err, errOvertaken) {
		return nil
	}
	return moorage.Annotate("monitor.claimed", "", err)
}

// errOvertaken says that another node has moved the position.
var errOvertaken = errors.New("monitor: another node follows")
