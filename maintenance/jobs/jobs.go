package jobs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// The kinds of jobs, as spelled in records.
const (
	KindSnapshots = "snapshots"
	KindOrphans   = "orphans"
)

const (
	// batchMax is the number of files deleted between two checks for commits.
	batchMax = 1000
	// listMax is the number of files in one list of a job. A whole list is in memory.
	listMax = 20_000
	// progressEvery is the number of batches between two writes of the progress.
	progressEvery = 10
	// runsMax is the number of runs kept for a table.
	runsMax = 50
	// jobLife is the lifetime of a node's claim on a job after the last renewal.
	jobLife = time.Minute
	// lookEvery is the mean time between two searches for jobs.
	lookEvery = 15 * time.Second
	// jobPrefix begins the names of the assignments of jobs.
	jobPrefix = "job/"
)

// Tables is the part of the catalog that jobs need. *catalog.Tables implements it.
type Tables interface {
	Maintain(ctx context.Context, pointer registry.ID, edit catalog.MaintenanceEdit) (*catalog.Version, bool, error)
	TrimFormer(ctx context.Context, pointer registry.ID, kept time.Duration,
		allows func(ctx context.Context, present *catalog.Version) error) (catalog.Former, error)
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
	Find(ctx context.Context, ident moorage.Identifier) (registry.ID, error)
	WarehouseLocation(ctx context.Context, warehouse string) (string, storage.Store, error)
	WithDropped(ctx context.Context, pointer registry.Pointer, state registry.State,
		do func(*catalog.Version) error) error
	Unregistered(ctx context.Context, warehouse, location string) (*metadata.Document, error)
	// Waiting reports whether commits of a table wait for their turn on this node.
	Waiting(pointer registry.ID) bool
}

// Config configures Jobs. Fields without a default are required.
type Config struct {
	ledger.Deps
	// Tables must act as the caller system:expire.
	Tables Tables
	// Doubt explains why the store's clock cannot be trusted. It returns "" if the clock can be
	// trusted. While the clock is in doubt, nothing is deleted. By default the clock is trusted.
	Doubt func(ctx context.Context) (string, error)
	// Budget bounds the load of jobs on storages. By default there is no bound.
	Budget *Budget
	// Patience is the longest wait for an answer from a storage. Default AnswerMax.
	Patience time.Duration
	// FormerKept is the time for which metadata files stay after they left a table's log. It equals
	// the retention of change records, because change records refer to the files. By default the
	// files stay for ever.
	FormerKept time.Duration
	// Ended, if not nil, is called with the run of a job after the job has ended.
	Ended func(run registry.Run)
	// Interval is the mean pause between two searches for jobs. Default 15 s.
	Interval time.Duration
}

// Jobs carries out the jobs of a store. It is safe for concurrent use.
type Jobs struct {
	tables   Tables
	store    registry.Store
	ledger   *ledger.Ledger
	assigner *ledger.Assigner
	owner    registry.ID
	log      *slog.Logger
	doubt    func(ctx context.Context) (string, error)
	budget   *Budget
	former   time.Duration // Config.FormerKept
	ended    func(run registry.Run)
	now      func() time.Time
	stats    counters
	busy     busy
	tracer   *trace.Tracer
	// A search for leftovers holds looking while it runs. Another search fails at once instead of
	// waiting.
	looking sync.Mutex

	interval time.Duration
	// Only one loop uses each random source.
	jitters     []*rand.Rand // one for each lane, in the order of lanes
	sweepJitter *rand.Rand
}

// New returns the jobs of a store. It fails if the source of random bits fails.
func New(config Config) (*Jobs, error) {
	if config.Ledger == nil || config.Tables == nil {
		panic("jobs: Deps and Tables are required")
	}
	if config.Doubt == nil {
		config.Doubt = func(context.Context) (string, error) { return "", nil }
	}
	if config.Budget == nil {
		config.Budget = NewBudget(Rates{}, config.Now)
	}
	if config.Ended == nil {
		config.Ended = func(registry.Run) {}
	}
	jitters := make([]*rand.Rand, len(lanes))
	var err error
	for i := range lanes {
		if jitters[i], err = ledger.NewJitter(config.Random); err != nil {
			return nil, err
		}
	}
	sweepJitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	return &Jobs{
		tables: &patientTables{config.Tables, cmp.Or(config.Patience, AnswerMax)},
		store:  config.Store, ledger: config.Ledger, now: config.Now,
		assigner: config.Assigner(), owner: config.Owner,
		log: config.Logger, doubt: config.Doubt, budget: config.Budget, ended: config.Ended,
		former: config.FormerKept, tracer: config.Tracer,
		interval: cmp.Or(config.Interval, lookEvery), jitters: jitters, sweepJitter: sweepJitter,
	}, nil
}

// Outcomes of jobs, as spelled in runs.
const (
	OutcomeDone      = "done"
	OutcomeNothing   = "nothing"
	OutcomeCancelled = "cancelled"
	OutcomeCalledOff = "called off" // the table is gone, or no longer allows the job
)

// ErrBusy means that the table already has a job of this kind, or that a record in a condition has
// changed. Nothing was changed.
var ErrBusy = errors.New("jobs: there is such a job, or a rule has changed")

// HeldError explains why no file of a table may be deleted.
type HeldError struct{ Why string }

// Error returns the text of the error.
func (e *HeldError) Error() string { return "nothing is deleted: " + e.Why }

// held explains why no file of a table may be deleted. It returns "" if files may be deleted.
func held(document *metadata.Document) (why string) {
	if !document.Collects() {
		return metadata.PropCollects + " is not true"
	}
	if value, _ := document.Property("moorage.maintenance.hold"); strings.EqualFold(strings.TrimSpace(value), "true") {
		return "moorage.maintenance.hold is true"
	}
	if document.HasEncryption() {
		return "the table is encrypted, so its manifests cannot be read here"
	}
	return ""
}

// believeClock returns KindUnavailable while the store's clock is in doubt, because the ages of
// files are then unknown.
func (j *Jobs) believeClock(ctx context.Context) error {
	why, err := j.doubt(ctx)
	if err == nil && why != "" {
		err = moorage.Errorf(moorage.KindUnavailable, "Nothing is deleted while the clock is in doubt. %s", why)
	}
	return err
}

// job is a job as read from the store.
type job struct {
	record registry.Record
	value  registry.Job
	// quarantinedBy is the operator that blocks the job with the next put. It is empty if a failure
	// blocks the job.
	quarantinedBy string
}

// read reads the job at key. It returns nil if there is no job.
func (j *Jobs) read(ctx context.Context, key registry.Key) (*job, error) {
	records, err := j.ledger.Get(ctx, key)
	if err != nil || !records[0].Exists() {
		return nil, err
	}
	value, err := ledger.Decode[registry.Job](records[0])
	if err != nil {
		return nil, err
	}
	return &job{record: records[0], value: value}, nil
}

// clearFailures clears the failures of a job that made progress, so that a later failure begins a
// new row.
func (at *job) clearFailures() {
	at.value.Tries, at.value.Laters, at.value.LaterSince = 0, 0, time.Time{}
	at.value.RestsUntil, at.value.LastError, at.value.Begun = time.Time{}, "", 0
}

// errMoved means that another process has changed the record of a job.
var errMoved = errors.New("jobs: the job is in other hands")

// put writes the record of a job. It returns errMoved if another process has changed the record,
// and KindInternal for a move that is not in Moves.
func (j *Jobs) put(ctx context.Context, at *job, state registry.State) error {
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return err
	}
	if err := checkMove(at.record.State, state); err != nil {
		return err
	}
	value := at.value
	value.Touched, value.Node = now, j.owner
	if state != at.record.State {
		value.Since = now
	}
	writes, err := ledger.Encode(ledger.Put(at.record.Key, state, value))
	if err != nil {
		return err
	}
	blocking, err := blockerOf(at, value, state, now)
	if err != nil {
		return err
	}
	writes = append(writes, blocking...)
	etags, err := j.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(at.record)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return errMoved
	}
	if err != nil {
		return ledger.StepError("jobs.put", err)
	}
	at.value = value
	at.record = registry.Record{Key: at.record.Key, ETag: etags[0], State: state, Value: writes[0].Value}
	return nil
}

// end replaces the record of a job with a run.
func (j *Jobs) end(ctx context.Context, at *job, outcome, why string) error {
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return err
	}
	writes, err := EndWrites(ctx, j.ledger, at.value, outcome, why, now)
	if err != nil {
		return err
	}
	if at.record.State == registry.StateBlocked {
		writes = append(writes, registry.Delete(registry.DueBlockedKey(at.value.Pointer, at.value.Kind)))
	}
	_, err = j.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(at.record)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return errMoved
	}
	if err != nil {
		return ledger.StepError("jobs.end", err)
	}
	run := runOf(at.value, outcome, why, now).value
	j.ended(run)
	j.log.InfoContext(ctx, "maintenance job ended", "job", at.value.ID, "kind", at.value.Kind,
		"pointer", at.value.Pointer, "outcome", outcome, "snapshots", at.value.Totals.Snapshots,
		"files", at.value.Totals.Files, "bytes", at.value.Totals.Bytes, "took", run.Ended.Sub(run.Began), "why", why)
	return nil
}

// EndWrites returns the writes that end a job at time now. They replace its record with a run, and
// delete the oldest runs of the table.
func EndWrites(ctx context.Context, l *ledger.Ledger, job registry.Job, outcome, why string, now time.Time) (
	[]registry.Write, error) {
	run := runOf(job, outcome, why, now)
	key := registry.RunKey(run.pointer, now, run.value.Job)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, run.value))
	if err != nil {
		return nil, err
	}
	trimmed, err := surplusRuns(ctx, l, run.pointer)
	return append(append(writes, registry.Delete(registry.JobKey(job.Pointer, job.Kind))), trimmed...), err
}

// runRecord is a run of a table.
type runRecord struct {
	pointer registry.ID
	value   registry.Run
}

func runOf(value registry.Job, outcome, why string, now time.Time) runRecord {
	return runRecord{value.Pointer, registry.Run{
		Job: value.ID, Kind: value.Kind, Outcome: outcome, Rule: value.Rule, Caller: value.Caller, Holder: value.Holder,
		Commit: value.Commit, Reach: value.Reach, Began: value.Created, Ended: now, Error: moorage.Cut(why, 1000),
		Totals: value.Totals,
	}}
}

// surplusRuns returns writes that delete the oldest runs of a table. With the run that the caller
// adds, runsMax runs remain.
func surplusRuns(ctx context.Context, l *ledger.Ledger, pointer registry.ID) (writes []registry.Write, err error) {
	runs, err := l.List(ctx, registry.TableRun, registry.RunPrefix(pointer), "", 2*runsMax)
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		if i >= runsMax-1 {
			writes = append(writes, registry.Delete(run.Key))
		}
	}
	return writes, nil
}
