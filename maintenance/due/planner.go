package due

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/registry"
)

const (
	// shardPrefix begins the names of the assignments of shards. An assignment lasts for shardLife
	// without a renewal. Each renewal is a write.
	shardPrefix = "maintenance/shard/"
	shardLife   = 5 * time.Minute
	// assignPause is the pause between two attempts of a node to take a shard. holdMax is the time
	// for which a node keeps a shard. So nodes that start later get their share.
	assignPause = 30 * time.Second
	holdMax     = 10 * time.Minute
	// roundPause is the mean pause between two rounds over the due index of a shard.
	roundPause = 15 * time.Second
	// duePage is the number of due records in one read.
	duePage = 200
	// An ordinary round begins roundOverlap before the end of the last one, because a due time may
	// also be set in the past. Once per fullPause, a round begins at the start of the index.
	roundOverlap = time.Hour
	fullPause    = 10 * time.Minute
	// restAfter is the time for which a node skips a warehouse after its storage failed. If the
	// storage did not answer, the node skips the warehouse for stallRest, and leaves the shard to
	// other nodes.
	restAfter = time.Minute
	stallRest = 5 * time.Minute
	// slowCheck is the time for which a round waits for a check. After that, the check continues in
	// the background.
	slowCheck = 5 * time.Second
)

// lanes is the number of tables that a node checks at once, by kind. perWarehouse is the maximum of
// these in one warehouse. So if the storage of one warehouse hangs, other warehouses still have
// room. Both maps are constant.
var (
	lanes        = map[policy.Kind]int{policy.Snapshots: 3, policy.Orphans: 2}
	perWarehouse = map[policy.Kind]int{policy.Snapshots: 2, policy.Orphans: 1}
)

// Jobs is the part of jobs.Jobs that the planner needs. *jobs.Jobs implements it.
type Jobs interface {
	Expire(ctx context.Context, pointer registry.ID, s jobs.SnapshotSettings, extra jobs.Extra) (jobs.Began, error)
	FindOrphans(ctx context.Context, pointer registry.ID, s jobs.OrphanSettings, extra jobs.Extra) (jobs.Began, error)
	PlanSnapshots(ctx context.Context, pointer registry.ID, s jobs.SnapshotSettings) (jobs.Plan, error)
	TrimFormer(ctx context.Context, pointer registry.ID, allows func(*catalog.Version) error) (catalog.Former, error)
}

// Tables is the part of the catalog that the package needs. *catalog.Tables implements it.
type Tables interface {
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
	GlanceByID(ctx context.Context, pointer registry.ID) (*catalog.Version, error)
}

// PlannerConfig configures a Planner. Fields without a default are required.
type PlannerConfig struct {
	ledger.Deps
	Jobs     Jobs
	Tables   Tables
	Policies *policy.Policies
	// Began is called after a job has begun. By default it does nothing.
	Began func()
	// Doubt explains why the store's clock cannot be trusted. It returns "" if the clock can be
	// trusted. While the clock is in doubt, no job begins. By default the clock is trusted.
	Doubt func(ctx context.Context) (string, error)
	// Patience is the planner's limit for an answer from a storage. Default jobs.AnswerMax.
	Patience time.Duration
	// Interval is the mean pause between two rounds over a shard. Default 15 s.
	Interval time.Duration
}

// PlannerStats counts the work of a Planner since the process began.
type PlannerStats struct {
	Shards   int              // shards that this node holds
	Checks   map[string]int64 // by outcome
	Began    map[string]int64 // jobs, by kind
	Overdue  time.Duration    // how long the oldest due table has been due, in the last round of each shard
	DueFound map[string]int64 // due records found in the last rounds, by kind; see tally
}

// Planner begins the jobs of one store. It is safe for concurrent use.
type Planner struct {
	config   PlannerConfig
	ledger   *ledger.Ledger
	assigner *ledger.Assigner
	log      *slog.Logger
	loops    []*worker.Worker
	shards   []*shard
	lanes    map[policy.Kind]chan struct{}

	mu     sync.Mutex // guards the fields below; no lock is taken under it
	stats  PlannerStats
	busy   map[warehouseKind]int // tables under a check
	slow   map[warehouseKind]int // number of slow checks in busy
	tables map[registry.ID]*entered
	left   chan struct{}        // closed and replaced when a check ends
	rests  map[string]time.Time // when the node stops skipping each warehouse, by the node's clock
}

// warehouseKind is a kind of work in one warehouse.
type warehouseKind struct {
	warehouse string
	kind      policy.Kind
}

// entered is a check in progress.
type entered struct {
	at     warehouseKind
	isSlow bool
}

// shard is a part of the due index. Its fields belong to the goroutine that holds its assignment.
type shard struct {
	name    string
	kicks   chan struct{} // holds one unhandled kick
	jitter  *rand.Rand
	cleared time.Time // the end of the last round, by the store's clock
	full    time.Time // when a round last began at the start, by the store's clock
	kept    tally     // due records before the start of the next round; nil if unknown
	left    time.Time // when this node left the shard to others, by the node's clock
	// checking counts the checks in progress.
	checking sync.WaitGroup
	stalled  atomic.Bool // a storage did not answer a check

	mu      sync.Mutex // guards the fields below; no lock is taken under it
	overdue time.Duration
	found   map[string]int64 // this map is replaced, never modified
	held    bool
}

// NewPlanner returns a planner that is not started. It fails if the source of random bits does.
func NewPlanner(config PlannerConfig) (*Planner, error) {
	if config.Ledger == nil || config.Jobs == nil || config.Tables == nil || config.Policies == nil {
		panic("due: Deps, Jobs, Tables and Policies are required")
	}
	if config.Began == nil {
		config.Began = func() {}
	}
	if config.Doubt == nil {
		config.Doubt = func(context.Context) (string, error) { return "", nil }
	}
	config.Interval = cmp.Or(config.Interval, roundPause)
	config.Patience = cmp.Or(config.Patience, jobs.AnswerMax)
	p := &Planner{
		config: config, ledger: config.Ledger, assigner: config.Assigner(), log: config.Logger,
		lanes: make(map[policy.Kind]chan struct{}), busy: make(map[warehouseKind]int),
		rests:  make(map[string]time.Time),
		tables: make(map[registry.ID]*entered), slow: make(map[warehouseKind]int), left: make(chan struct{}),
		stats: PlannerStats{Checks: make(map[string]int64), Began: make(map[string]int64)},
	}
	for kind, width := range lanes {
		p.lanes[kind] = make(chan struct{}, width)
	}
	for _, name := range registry.DueShards {
		if err := p.addShard(string(name)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Planner) addShard(name string) error {
	own, err := ledger.NewJitter(p.config.Random)
	if err != nil {
		return err
	}
	pauses, err := ledger.NewJitter(p.config.Random)
	if err != nil {
		return err
	}
	s := &shard{name: name, jitter: own, kicks: make(chan struct{}, 1)}
	p.shards = append(p.shards, s)
	p.loops = append(p.loops, worker.New(worker.Config{
		Name: "maintenance shard " + name, Run: func(ctx context.Context) error { return p.hold(ctx, s) },
		Interval: min(assignPause, 2*p.config.Interval), Jitter: pauses, Logger: p.log,
	}))
	return nil
}

// Start starts the loops. A caller may call it again after Stop.
func (p *Planner) Start() {
	for _, loop := range p.loops {
		loop.Start()
		loop.Kick()
	}
}

// Stop ends the loops and waits for them. A second call does nothing.
func (p *Planner) Stop() {
	var stopping sync.WaitGroup
	for _, loop := range p.loops {
		stopping.Go(loop.Stop)
	}
	stopping.Wait()
}

// Kick makes the node check its shards at once, and try to take others. It never blocks.
func (p *Planner) Kick() {
	for i, loop := range p.loops {
		loop.Kick()
		select {
		case p.shards[i].kicks <- struct{}{}:
		default:
		}
	}
}

// Stats returns the planner's counts.
func (p *Planner) Stats() PlannerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	copied := PlannerStats{
		Checks: make(map[string]int64), Began: make(map[string]int64), DueFound: make(map[string]int64),
	}
	for outcome, n := range p.stats.Checks {
		copied.Checks[outcome] = n
	}
	for kind, n := range p.stats.Began {
		copied.Began[kind] = n
	}
	for _, s := range p.shards {
		s.mu.Lock()
		if s.held {
			copied.Shards++
			for kind, n := range s.found {
				copied.DueFound[kind] += n
			}
			copied.Overdue = max(copied.Overdue, s.overdue)
		}
		s.mu.Unlock()
	}
	return copied
}

// hold takes a shard and works on it for a while.
func (p *Planner) hold(ctx context.Context, s *shard) error {
	if now := p.config.Now(); now.Sub(s.left) < 2*assignPause && !now.Before(s.left) {
		return nil
	}
	return p.assigned(ctx, s, func(ctx context.Context) error {
		began := p.config.Now()
		for p.config.Policies.Current().Asks() && p.config.Now().Sub(began) < holdMax {
			if err := p.round(ctx, s); err != nil {
				return err
			}
			if s.stalled.Swap(false) && !p.config.Alone {
				s.left = p.config.Now() // another node may reach the storage
				return nil
			}
			pause := time.NewTimer(p.config.Interval/2 + time.Duration(s.jitter.Int64N(int64(p.config.Interval))))
			select {
			case <-ctx.Done():
				pause.Stop()
				return nil
			case <-s.kicks:
				pause.Stop()
			case <-pause.C:
			}
		}
		return nil
	})
}

// RunOnce checks all due tables in the shards that no other node holds.
func (p *Planner) RunOnce(ctx context.Context) error {
	var failures []error
	for _, s := range p.shards {
		failures = append(failures, p.assigned(ctx, s, func(ctx context.Context) error { return p.round(ctx, s) }))
	}
	return errors.Join(failures...)
}

func (p *Planner) assigned(ctx context.Context, s *shard, do func(ctx context.Context) error) error {
	if !p.config.Policies.Current().Asks() {
		return nil
	}
	err := p.assigner.Assign(ctx, shardPrefix+s.name, shardLife, func(ctx context.Context) error {
		s.kept = nil // another node may have held the shard
		s.set(true, nil, 0)
		defer s.set(false, nil, 0)
		err := do(ctx)
		s.checking.Wait()
		if errors.Is(context.Cause(ctx), ledger.ErrAssignmentLost) {
			return nil
		}
		return err
	})
	if errors.Is(err, ledger.ErrAssigned) {
		return nil
	}
	return moorage.Annotate("due.assigned", s.name, err)
}

func (s *shard) set(held bool, found map[string]int64, overdue time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.found, s.overdue = held, found, overdue
}

// round checks all due tables of a shard.
func (p *Planner) round(ctx context.Context, s *shard) error {
	now, err := p.ledger.Time(ctx)
	if err != nil {
		return err
	}
	after := registry.DuePrefix(s.name)
	isFull := s.kept == nil || now.Sub(s.full) >= fullPause || now.Before(s.cleared)
	r := &round{
		Planner: p, shard: s, now: now, end: registry.DueID(s.name, now.Add(time.Second)), isFull: isFull,
		next: registry.DueID(s.name, now.Add(-roundOverlap)), found: make(tally), kept: make(tally),
	}
	if !isFull {
		after = registry.DueID(s.name, s.cleared.Add(-roundOverlap))
		r.found.add(s.kept)
		r.kept.add(s.kept)
	}
	for more := true; more; {
		page, err := p.ledger.ListKeys(ctx, registry.TableDue, registry.DuePrefix(s.name), after, duePage)
		if err != nil {
			return err
		}
		if after, more, err = r.page(ctx, page); err != nil {
			return err
		}
	}
	if r.isDoubted {
		return ctx.Err() // the counts of the last round stay
	}
	if err := ctx.Err(); err != nil {
		return err // the round is incomplete
	}
	if s.cleared, s.kept = now, r.kept; isFull {
		s.full = now
	}
	s.set(true, r.found.counts(), r.found.overdue(now))
	return nil
}

// round is one round over the due records of a shard.
type round struct {
	*Planner
	shard  *shard
	now    time.Time // by the store's clock
	end    string    // the ID of a due record; all records before it are due now
	isFull bool      // the round begins at the start
	began  bool
	// isDoubted is true if the clock is in doubt, so that the round checked no table.
	isDoubted bool

	next  string // the ID after which the next round begins, unless it begins at the start
	found tally  // due records
	kept  tally  // the part of found that the next round does not list
}

// page checks the tables of a page of due records. If nothing after the page is due now, more is
// false. Otherwise the next page begins with the first ID greater than after.
func (r *round) page(ctx context.Context, page []registry.Record) (after string, more bool, err error) {
	more = len(page) == duePage
	var others, looked []registry.Key
	for _, record := range page {
		if record.Key.ID >= r.end || ctx.Err() != nil {
			more = false // the rest is due later
			break
		}
		if !r.began {
			r.began = true
			why, err := r.config.Doubt(ctx)
			if r.isDoubted = why != ""; r.isDoubted || err != nil {
				return "", false, err
			}
		}
		after = record.Key.ID
		_, kind, _, err := registry.ParseDue(record.Key)
		switch _, ours := lanes[policy.Kind(kind)]; {
		case ours, err != nil:
			r.found.count(record.Key)
			r.checkTable(ctx, record.Key)
			looked = append(looked, record.Key)
		case r.isFull:
			others = append(others, record.Key)
		default: // only full rounds check that a policy still requires the kind
			r.found.count(record.Key)
			r.keep(record.Key)
		}
	}
	if err := r.keepLeft(ctx, looked); err != nil {
		return "", false, err
	}
	if others, err = r.others(ctx, others); err != nil {
		return "", false, err
	}
	for _, key := range others {
		r.found.count(key)
		r.keep(key)
	}
	return after, more, nil
}

// checkTable checks the table of a due record. A slow check continues in the background.
func (r *round) checkTable(ctx context.Context, key registry.Key) {
	pointer, kind, at, err := registry.ParseDue(key)
	if err != nil {
		r.log.WarnContext(ctx, "maintenance: a due record cannot be read", "record", key.String(), "error", err)
		return
	}
	l := &check{Planner: r.Planner, pointer: pointer, kind: policy.Kind(kind), at: at, key: key}
	ended := make(chan struct{})
	r.shard.checking.Go(func() {
		defer close(ended)
		l.runAndLog(ctx, r.shard)
	})
	slow := time.NewTimer(slowCheck)
	defer slow.Stop()
	select {
	case <-ended:
	case <-slow.C:
		r.markSlow(pointer)
	}
}

// runAndLog runs a check, logs the outcome, and counts it in Stats.
func (l *check) runAndLog(ctx context.Context, s *shard) {
	err := worker.Safely(ctx, l.run)
	if l.outcome != "" {
		l.mu.Lock()
		l.stats.Checks[l.outcome]++
		l.mu.Unlock()
	}
	if errors.Is(err, jobs.ErrStalled) {
		s.stalled.Store(true)
	}
	if err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "maintenance: a table could not be checked", "pointer", l.pointer, "kind", l.kind,
			"error", err)
	}
}

// enter reports whether a check of a table may begin now. Only one check of a table runs at a time.
// If too many checks run in the warehouse, enter waits briefly for one of them to end. If enter
// returns true, the caller must call leave.
func (p *Planner) enter(ctx context.Context, warehouse string, kind policy.Kind, table registry.ID) bool {
	at := warehouseKind{warehouse, kind}
	patience := time.NewTimer(slowCheck)
	defer patience.Stop()
	for {
		p.mu.Lock()
		switch {
		case p.tables[table] != nil || p.slow[at] > 0 || p.config.Now().Before(p.rests[warehouse]):
			p.mu.Unlock()
			return false
		case p.busy[at] < perWarehouse[kind]:
			p.tables[table] = &entered{at: at}
			p.busy[at]++
			p.mu.Unlock()
			return true
		}
		left := p.left
		p.mu.Unlock()
		select {
		case <-left:
		case <-patience.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (p *Planner) leave(table registry.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.tables[table]
	delete(p.tables, table)
	if p.busy[was.at]--; p.busy[was.at] == 0 {
		delete(p.busy, was.at)
	}
	if was.isSlow {
		if p.slow[was.at]--; p.slow[was.at] == 0 {
			delete(p.slow, was.at)
		}
	}
	close(p.left)
	p.left = make(chan struct{})
}

// markSlow marks the running check of a table, if there is one, as slow. No round waits for a slow
// check.
func (p *Planner) markSlow(table registry.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was := p.tables[table]; was != nil && !was.isSlow {
		was.isSlow = true
		p.slow[was.at]++
	}
}

// skipFor makes the node skip a warehouse for a while.
func (p *Planner) skipFor(warehouse string, while time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rests[warehouse] = p.config.Now().Add(while)
}

// tableByID finds a table. It waits for the storage no longer than the configured patience.
func (p *Planner) tableByID(ctx context.Context, pointer registry.ID) (
	version *catalog.Version, table registry.Pointer, err error) {
	err = jobs.CallWithin(ctx, p.config.Patience, func(ctx context.Context) (err error) {
		version, table, err = p.config.Tables.TableByID(ctx, pointer)
		return err
	})
	return version, table, err
}
