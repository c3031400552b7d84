package due

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/policy"
)

const (
	// pageMax is the maximum number of changes in one read.
	pageMax = 1000
	// applyMax is the maximum number of tables that one Apply makes due. Each table needs a
	// condition and a few writes.
	applyMax = 400
	// If no table was made due, the position is written after saveEvents changes, or after
	// savePause.
	saveEvents = 1000
	savePause  = 5 * time.Second
	// monitorName is the name of the assignment of the node that follows the log. The assignment
	// lasts for monitorLife without a renewal. Each renewal is a write.
	monitorName = "maintenance/monitor"
	monitorLife = 2 * time.Minute
	// pollPause is the mean pause between two checks for changes.
	pollPause = 2 * time.Second
	// schedulesMax is the maximum number of schedules in memory, and also of tables' properties.
	schedulesMax = 200_000
	// walksPause is the time between two searches for walks that other nodes have begun.
	walksPause = 10 * time.Second
	// walkRate is the number of documents that walks read per second.
	walkRate = 200
	// readPatience is the limit for an answer from a storage. All tables wait in that time. If no
	// answer comes, the node reads no document of that warehouse for silentFor.
	readPatience = 10 * time.Second
	silentFor    = 5 * time.Minute
)

// MonitorConfig configures a Monitor. Fields without a default are required.
type MonitorConfig struct {
	ledger.Deps
	Tables   Tables
	Policies *policy.Policies
	// MadeDue is called after the monitor has made a table due immediately. By default it does
	// nothing.
	MadeDue func()
	// Interval is the mean pause between two checks for changes. Default 2 s.
	Interval time.Duration
	// Retention is the minimum time for which changes are kept. A monitor that is too far behind
	// checks all tables before changes are lost. By default, the monitor does not check how far
	// behind it is.
	Retention time.Duration
	// WalkRate is the number of documents that a walk reads per second. A page of pointers for
	// which no document must be read counts as one document. Default 200; negative means no bound.
	WalkRate int
}

// MonitorStats counts the work of a Monitor since the process began.
type MonitorStats struct {
	Changes  int64         // changes that were read
	Applies  int64         // successful calls of Apply
	MadeDue  int64         // tables
	Walked   int64         // tables
	Missed   int64         // tables that the log should have made due, and that a random check found
	Walking  int           // scopes with a walk in progress
	Lag      time.Duration // age of the last change that was read; zero if no more are waiting
	IsLeader bool
}

// Monitor follows the changes of one store. It is safe for concurrent use.
type Monitor struct {
	config   MonitorConfig
	ledger   *ledger.Ledger
	assigner *ledger.Assigner
	log      *slog.Logger
	loop     *worker.Worker
	kicks    chan struct{} // holds one unhandled kick
	// Only the goroutine that has the assignment uses jitter and shadow. shadow is the time of the
	// next random check.
	jitter *rand.Rand
	shadow time.Time

	mu    sync.Mutex // guards stats; no lock is taken under it
	stats MonitorStats
}

// NewMonitor returns a monitor that is not started. It fails if the source of random bits fails.
func NewMonitor(config MonitorConfig) (*Monitor, error) {
	if config.Ledger == nil || config.Tables == nil || config.Policies == nil {
		panic("due: Deps, Tables and Policies are required")
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
		config: config, ledger: config.Ledger, assigner: config.Assigner(), log: config.Logger,
		kicks: make(chan struct{}, 1), jitter: jitter,
	}
	m.loop = worker.New(worker.Config{
		Name: "maintenance monitor", Run: m.follow, Interval: config.Interval, Jitter: pauses, Logger: config.Logger,
	})
	return m, nil
}

// Start starts the loop. A caller may call it again after Stop.
func (m *Monitor) Start() {
	m.loop.Start()
	m.loop.Kick()
}

// Stop ends the loop and waits for it. A second call does nothing.
func (m *Monitor) Stop() { m.loop.Stop() }

// Kick makes the loop check for changes now. It never blocks.
func (m *Monitor) Kick() {
	m.loop.Kick()
	select {
	case m.kicks <- struct{}{}:
	default:
	}
}

// Stats returns the monitor's counts.
func (m *Monitor) Stats() MonitorStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

func (m *Monitor) count(do func(*MonitorStats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do(&m.stats)
}

// follow takes the assignment, and follows the log for as long as the node holds it.
func (m *Monitor) follow(ctx context.Context) error {
	return m.assigned(ctx, func(ctx context.Context, f *following) error {
		for {
			more, err := f.step(ctx)
			if err != nil || !m.config.Policies.Current().Asks() {
				return err
			}
			if more {
				continue
			}
			interval := m.config.Interval/2 + time.Duration(m.jitter.Int64N(int64(m.config.Interval)))
			pause := time.NewTimer(f.untilWalk(interval))
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

// RunOnce follows the log until no unread change and no walk is left. It does nothing if no policy
// enables maintenance, or if another node is following the log. Its walks read documents without a
// rate limit.
func (m *Monitor) RunOnce(ctx context.Context) error {
	return m.assigned(ctx, func(ctx context.Context, f *following) error {
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

func (m *Monitor) assigned(ctx context.Context, do func(ctx context.Context, f *following) error) error {
	if !m.config.Policies.Current().Asks() {
		return nil
	}
	err := m.assigner.Assign(ctx, monitorName, monitorLife, func(ctx context.Context) error {
		m.count(func(s *MonitorStats) { s.IsLeader = true })
		defer m.count(func(s *MonitorStats) { s.IsLeader, s.Walking, s.Lag = false, 0, 0 })
		f, err := newFollowing(ctx, m)
		if err != nil {
			return err
		}
		err = do(ctx, f)
		if errors.Is(context.Cause(ctx), ledger.ErrAssignmentLost) {
			return nil
		}
		return err
	})
	if errors.Is(err, ledger.ErrAssigned) || errors.Is(err, errOvertaken) {
		return nil
	}
	return moorage.Annotate("due.assigned", "", err)
}

// errOvertaken means that another node has moved the position.
var errOvertaken = errors.New("due: another node follows")

const (
	// The monitor compares its lag with the retention of changes. Once the lag is warnTenths tenths
	// of the retention, the monitor logs a warning. At walkTenths tenths, it checks all tables
	// instead of reading the log further.
	warnTenths, walkTenths = 5, 8
	// warnPause is the time between two warnings.
	warnPause = time.Hour
)

// fallBehind checks how far behind the monitor is. The monitor calls it after it has read a change
// that was made at the given time, if more changes follow. Changes that are older than the
// retention are deleted. Long before that, fallBehind begins a walk over all tables, which replaces
// the unread changes.
func (f *following) fallBehind(ctx context.Context, made time.Time) error {
	now, retention := f.config.Now(), f.config.Retention
	lag := now.Sub(made)
	if retention <= 0 || lag < retention/10*warnTenths {
		return nil
	}
	if lag >= retention/10*walkTenths {
		f.log.WarnContext(ctx, "maintenance: changes will be deleted before they are read, so all tables are checked",
			"behind", lag, "retention", retention)
		return f.walkAll(ctx, "lag")
	}
	if now.Sub(f.warned) >= warnPause || now.Before(f.warned) {
		f.warned = now
		f.log.WarnContext(ctx, "maintenance is far behind the changes; see moorage_maintenance_lag_seconds",
			"behind", lag, "retention", retention)
	}
	return nil
}
