package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/maintenance/schedule"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// callerMax is how many pieces of work a caller can have at a time.
	callerMax = 16
	// againFirst is the time until failed work is due again; it doubles.
	againFirst = time.Minute
	// errorBytesMax bounds the stored text of a failure.
	errorBytesMax = 1000

	pollFirst, pollMax = 100 * time.Millisecond, 2 * time.Second
)

// Outcomes of work, as runs spell them.
const (
	OutcomeDone    = jobs.OutcomeDone
	OutcomeNothing = jobs.OutcomeNothing
	OutcomeFailed  = "failed"
	// OutcomeReleased is the outcome of work that its program did not do: it is due again at once.
	OutcomeReleased = "released"
	outcomeLost     = "lost" // its lease ended
)

// kinds are the kinds that programs outside the server do.
var kinds = map[string]policy.Type{string(policy.Compact): policy.Compaction}

// Tables finds tables for the server. *catalog.Tables implements it.
type Tables interface {
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
}

// FindTable returns the pointer of a table, if the caller may take a lease on it.
type FindTable func(ctx context.Context, caller moorage.Caller, ident moorage.Identifier) (registry.ID, string, error)

// Config configures Work. Fields without a default are required.
type Config struct {
	Ledger *ledger.Ledger
	Leases *leases.Leases
	Tables Tables
	Find   FindTable
	// Rules returns the rules of a table, by its policies and its properties. Unless fresh is true,
	// the policies may be some time old. If it is true, unchanged fails if a policy has changed
	// since. unchanged is empty if the table's warehouse is gone.
	Rules func(ctx context.Context, table registry.Pointer, document *metadata.Document, fresh bool) (
		rules policy.Rules, unchanged []registry.Condition, err error)
	Logger *slog.Logger // by default nothing is logged
}

// Work hands out work. It is safe for concurrent use.
type Work struct {
	config Config
	places places
}

// New returns the work of a store.
func New(config Config) *Work {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Work{config: config}
}

// Request is a request for work.
type Request struct {
	Kinds  []string
	Holder string        // the program's own name
	TTL    time.Duration // of the lease; zero means leases.TTLDefault
	Wait   time.Duration // how long to wait until something is due; at most leases.WaitMax
}

// Claimed is a piece of work.
type Claimed struct {
	Job       registry.ID
	Kind      string
	Lease     leases.Granted
	Table     moorage.Identifier
	TableUUID string
	Rule      policy.Rule
}

// Claim hands out due work, the earliest of a part of the tables first. found is false if nothing
// was due during the wait. Claim skips tables whose records or documents cannot be read. If it
// finds nothing else, it logs the reason.
//
// Errors: KindBadRequest; KindTooManyRequests if the caller has callerMax pieces; KindUnavailable;
// KindCommitUnknown: the work may have been handed out, and is due again when its lease ends.
func (w *Work) Claim(ctx context.Context, caller moorage.Caller, request Request) (
	claimed Claimed, found bool, err error) {
	const op = "work.Claim"
	if err := request.check(); err != nil {
		return claimed, false, err
	}
	began, err := w.config.Ledger.Time(ctx)
	if err != nil {
		return claimed, false, moorage.Annotate(op, "", err)
	}
	for pause := pollFirst; ; pause = min(2*pause, pollMax) {
		now, err := w.config.Ledger.Time(ctx)
		if err != nil {
			return claimed, false, moorage.Annotate(op, "", err)
		}
		var over passed
		if claimed, over, found, err = w.tryClaim(ctx, caller, request, now); err != nil || found {
			return claimed, found, moorage.Annotate(op, "", err)
		}
		if now.Add(pause).Sub(began) > request.Wait || !worker.Sleep(ctx, pause) {
			if over.tables > 0 {
				w.config.Logger.WarnContext(ctx, "maintenance: work was not handed out, for tables cannot be read",
					"tables", over.tables, "last", over.last, "error", over.why)
			}
			return claimed, false, nil
		}
	}
}

func (r Request) check() error {
	if len(r.Kinds) == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "No kinds of work are named: compaction")
	}
	for _, kind := range r.Kinds {
		if _, known := kinds[kind]; !known {
			return moorage.Errorf(moorage.KindBadRequest, "Programs cannot claim work of the kind %q: compaction",
				moorage.Cut(kind, 50))
		}
	}
	if r.Holder == "" || len(r.Holder) > leases.HolderBytesMax {
		return moorage.Errorf(moorage.KindBadRequest, "Invalid holder: 1 to %d bytes are needed", leases.HolderBytesMax)
	}
	if r.TTL != 0 && (r.TTL < leases.TTLMin || r.TTL > leases.TTLMax) {
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid time to live %s: %s to %s are allowed", r.TTL, leases.TTLMin, leases.TTLMax)
	}
	if r.Wait < 0 || r.Wait > leases.WaitMax {
		return moorage.Errorf(moorage.KindBadRequest, "Invalid wait %s: 0 to %s are allowed", r.Wait, leases.WaitMax)
	}
	return nil
}

// tryClaim searches once.
func (w *Work) tryClaim(ctx context.Context, caller moorage.Caller, request Request, now time.Time) (
	claimed Claimed, over passed, found bool, err error) {
	own, over, err := w.takeStock(ctx, caller, now)
	if err != nil {
		return claimed, over, false, err
	}
	if own >= callerMax {
		return claimed, over, false, moorage.Errorf(moorage.KindTooManyRequests,
			"%d pieces of work are in your hands, at most %d can be", own, callerMax)
	}
	look := &search{Work: w, caller: caller, request: request, now: now, passed: over}
	claimed, found, err = look.run(ctx)
	return claimed, look.passed, found, err
}

// handOut creates the job and the lease of claimed, and changes the care. It returns false if a
// record changed meanwhile, or if another lease conflicts.
func (w *Work) handOut(ctx context.Context, caller moorage.Caller, request Request, care schedule.Care,
	asked registry.JobCare, claimed *Claimed, now time.Time) (bool, error) {
	id, err := w.config.Ledger.NewID()
	if err != nil {
		return false, err
	}
	granted, planned, err := w.config.Leases.PlanTake(ctx, caller, leases.Request{
		Pointer: care.Pointer, Scope: "job:" + claimed.Kind, Holder: request.Holder, TTL: request.TTL, Job: id,
	})
	if _, held := errors.AsType[*leases.HeldError](err); held {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	asked.Due = time.Time{}
	change, err := care.Move(care.Value.With(asked))
	if err != nil {
		return false, err
	}
	key := registry.JobKey(care.Pointer, claimed.Kind)
	job := registry.Job{
		ID: id, Kind: claimed.Kind, Pointer: care.Pointer, UUID: claimed.TableUUID, Rule: asked.Rule,
		Caller:  caller.Name,
		Created: now, Since: now, Touched: now, Lease: granted.Token, Holder: request.Holder, Tries: asked.Tries,
	}
	writes, err := ledger.Encode(ledger.Put(key, registry.StateClaimed, job))
	if err != nil {
		return false, err
	}
	change.Conditions = append(change.Conditions, registry.Absent(key), planned.Condition,
		registry.StateIs(registry.PointerKey(care.Pointer), registry.StateLive))
	change.Writes = append(append(change.Writes, writes...), planned.Write)
	claimed.Job, claimed.Lease = id, granted
	return w.apply(ctx, "work.handOut", change)
}

// apply applies a change. It returns false if a record has changed meanwhile.
func (w *Work) apply(ctx context.Context, op string, change schedule.Change) (bool, error) {
	_, err := w.config.Ledger.Step(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, ledger.StepError(op, err)
}

// takeStock returns how many pieces of work a caller has. It takes back the work of all callers
// whose lease has ended, except on tables whose care cannot be read.
func (w *Work) takeStock(ctx context.Context, caller moorage.Caller, now time.Time) (
	own int, over passed, err error) {
	err = w.config.Ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateClaimed {
			return true, nil
		}
		job, err := ledger.Decode[registry.Job](record)
		if err != nil {
			return true, nil // moorage check reports it to an operator
		}
		leased, err := w.config.Ledger.Get(ctx, registry.LeaseKey(job.Pointer))
		if err != nil {
			return false, err
		}
		if isLeased(leased[0], job, now) {
			if job.Caller == caller.Name {
				own++
			}
			return true, nil
		}
		_, err = w.end(ctx, claimedJob{record, job}, schedule.Change{Conditions: []registry.Condition{as(leased[0])}},
			Ended{Outcome: outcomeLost, Error: fmt.Sprintf("the lease of %s has ended", job.Holder)}, now)
		if _, unread := errors.AsType[*unreadError](err); unread {
			over.add(job.Pointer.String(), err)
			return true, nil
		}
		return err == nil, err
	})
	return own, over, err
}

// unreadError means that the care of a table cannot be read.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// isLeased reports whether the lease of a job is live.
func isLeased(record registry.Record, job registry.Job, now time.Time) bool {
	if !record.Exists() {
		return false
	}
	lease, err := ledger.Decode[registry.Lease](record)
	if err != nil {
		return true
	}
	hold, live := lease.Hold(job.Lease, now)
	return live && hold.Job == job.ID
}

// as returns the condition that a record is unchanged.
func as(record registry.Record) registry.Condition {
	if record.Exists() {
		return ledger.Unchanged(record)
	}
	return registry.Absent(record.Key)
}
