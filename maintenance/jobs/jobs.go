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
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// The kinds of jobs, as records spell them.
const (
	KindSnapshots = "snapshots"
	KindOrphans   = "orphans"
)

const (
	// batchMax is how many files are deleted between two looks at what was committed.
	batchMax = 1000
	// listMax is how many files one list of a job has. A list is in memory as a whole.
	listMax = 20_000
	// progressEvery is after how many batches the record says how far the job is.
	progressEvery = 10
	// runsMax is how many runs are kept of a table.
	runsMax = 50
	// claimLife is how long other nodes leave a job alone after they last heard of its node.
	claimLife = time.Minute
	// lookEvery is the mean pause between two looks for jobs.
	lookEvery = 15 * time.Second
	// claimPrefix begins the names of the claims on jobs.
	claimPrefix = "job/"
)

// Tables is what jobs need of the catalog. *catalog.Tables is one.
type Tables interface {
	Tend(ctx context.Context, pointer registry.ID, tending catalog.Tending) (*catalog.Version, bool, error)
	TrimFormer(ctx context.Context, pointer registry.ID, kept time.Duration) (catalog.Former, error)
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
	Find(ctx context.Context, ident moorage.Identifier) (registry.ID, error)
	WarehouseLocation(ctx context.Context, warehouse string) (string, storage.Store, error)
	WithDropped(ctx context.Context, pointer registry.Pointer, state registry.State,
		do func(*catalog.Version) error) error
	Unregistered(ctx context.Context, warehouse, location string) (*metadata.Document, error)
	// Waiting reports whether commits of a table wait on this node for their turn.
	Waiting(pointer registry.ID) bool
}

// Config is what Jobs is made from. Fields without a default are required.
type Config struct {
	ledger.Deps
	// Tables are those of the caller system:expire.
	Tables Tables
	// Doubt returns why the clock of the store cannot be believed; empty if it can. Until then
	// nothing is deleted. Default: it can.
	Doubt func(ctx context.Context) (string, error)
	// Budget bounds what jobs ask of storages. Default: no bound.
	Budget *Budget
	// Patience is how long an answer of a storage is waited for. Default AnswerMax.
	Patience time.Duration
	// FormerKept is for how long metadata files stay after they left the log of a table: as long as
	// change records, which name them. Default: for ever.
	FormerKept time.Duration
	// Ended is called after a job has ended, with its run. Default: nothing.
	Ended func(run registry.Run)
	// Interval is the mean pause between two looks for jobs. Default 15 s.
	Interval time.Duration
}

// Jobs carries out the jobs of a store. It is safe for concurrent use.
type Jobs struct {
	tables Tables
	store  registry.Store
	ledger *ledger.Ledger
	claims *ledger.Claimer
	owner  registry.ID
	log    *slog.Logger
	doubt  func(ctx context.Context) (string, error)
	budget *Budget
	former time.Duration // Config.FormerKept
	ended  func(run registry.Run)
	now    func() time.Time
	stats  counters
	busy   busy
	// looking is held by the one look for leftovers that is under way. Others do not wait for it.
	looking sync.Mutex

	interval time.Duration
	// Each is used by one loop.
	jitters     []*rand.Rand // in the order of lanes
	sweepJitter *rand.Rand
	lookMax     time.Duration // checkMax, unless a test shortens it
}

// New returns the jobs of a store. It fails if the source of random bits does.
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
		lookMax: checkMax, tables: &patientTables{config.Tables, cmp.Or(config.Patience, AnswerMax)},
		store: config.Store, ledger: config.Ledger, now: config.Now,
		claims: config.Claimer(), owner: config.Owner,
		log: config.Logger, doubt: config.Doubt, budget: config.Budget, ended: config.Ended,
		former:   config.FormerKept,
		interval: cmp.Or(config.Interval, lookEvery), jitters: jitters, sweepJitter: sweepJitter,
	}, nil
}

// The outcomes of jobs, as runs spell them.
const (
	OutcomeDone      = "done"
	OutcomeNothing   = "nothing"
	OutcomeCancelled = "cancelled"
	OutcomeCalledOff = "called off" // the table is gone, or does not allow it any more
)

// ErrBusy says that there is a job of the kind on the table, or that a record beside it changed.
// Nothing was changed.
var ErrBusy = errors.New("jobs: there is such a job, or a rule has changed")

// HeldError says why nothing may be deleted of a table.
type HeldError struct{ Why string }

// Error returns the text of the error.
func (e *HeldError) Error() string { return "nothing is deleted: " + e.Why }

// held returns why nothing may be deleted of a table; empty: it may.
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

// believeClock returns KindUnavailable while the store's clock is in doubt: no age can be told.
func (j *Jobs) believeClock(ctx context.Context) error {
	why, err := j.doubt(ctx)
	if err == nil && why != "" {
		err = moorage.Errorf(moorage.KindUnavailable, "Nothing is deleted while the clock is in doubt. %s", why)
	}
	return err
}

// job is a job under way, as of one read.
type job struct {
	record registry.Record
	value  registry.Job
	// quarantinedBy is who blocks the job with the next put; empty: it has failed.
	quarantinedBy string
}

// read reads the job at key; nil if there is none.
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

// came notes that a job has come further: failures before that are not in a row with those to come.
func (at *job) came() {
	at.value.Tries, at.value.Laters, at.value.LaterSince = 0, 0, time.Time{}
	at.value.RestsUntil, at.value.LastError, at.value.Begun = time.Time{}, "", 0
}

// errMoved says that somebody else has changed the record of a job.
var errMoved = errors.New("jobs: the job is in other hands")

// put writes the record of a job, unless somebody else has changed it: errMoved.
func (j *Jobs) put(ctx context.Context, at *job, state registry.State) error {
	now, err := j.ledger.Time(ctx)
	if err != nil {
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

// end removes the record of a job, and writes a run in its place.
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

// EndWrites returns the writes by which a job ends at now: its record goes, a run comes in its
// place, and the oldest runs of the table go.
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

// surplusRuns returns the deletions of the oldest runs of a table, beyond runsMax with one more.
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
