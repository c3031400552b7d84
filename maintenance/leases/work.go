package leases

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
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// callerMax is the maximum number of assignments of a caller at a time.
	callerMax = 16
	// againFirst is the time until failed work is due again. It doubles with each further failure.
	againFirst = time.Minute
	// errorBytesMax is the maximum length of the stored text of a failure.
	errorBytesMax = 1000

	workPollFirst, workPollMax = 100 * time.Millisecond, 2 * time.Second
)

// Outcomes of work, as spelled in runs.
const (
	OutcomeDone    = jobs.OutcomeDone
	OutcomeNothing = jobs.OutcomeNothing
	OutcomeFailed  = "failed"
	// OutcomeReleased is the outcome if the program gave the work back. The work is due again at
	// once.
	OutcomeReleased = "released"
	outcomeLost     = "lost" // the lease of the work ended
)

// assignable holds the kinds of work that programs outside the server do.
var assignable = map[string]policy.Type{string(policy.Compact): policy.Compaction}

// Tables finds tables for the server. *catalog.Tables implements it.
type Tables interface {
	TableByID(ctx context.Context, pointer registry.ID) (*catalog.Version, registry.Pointer, error)
}

// FindTable returns the pointer of a table, if the caller may take a lease on it.
type FindTable func(ctx context.Context, caller moorage.Caller, ident moorage.Identifier) (registry.ID, string, error)

// WorkConfig configures Work. Fields without a default are required.
type WorkConfig struct {
	Ledger *ledger.Ledger
	Leases *Leases
	Tables Tables
	Find   FindTable
	// Rules returns the rules of a table, from its policies and its properties. Unless fresh is
	// true, the policies may be out of date. If fresh is true, the conditions in unchanged fail
	// once a policy has changed. unchanged is empty if the table's warehouse is gone.
	Rules func(ctx context.Context, table registry.Pointer, document *metadata.Document, fresh bool) (
		rules policy.Rules, unchanged []registry.Condition, err error)
	Logger *slog.Logger // by default nothing is logged
}

// Work assigns due work. It is safe for concurrent use.
type Work struct {
	config WorkConfig
	places places
}

// NewWork returns the work of a store.
func NewWork(config WorkConfig) *Work {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Work{config: config}
}

// WorkRequest is a request for an assignment.
type WorkRequest struct {
	Kinds  []string
	Holder string        // the name that the program gives itself
	TTL    time.Duration // time-to-live of the lease; zero means leases.TTLDefault
	Wait   time.Duration // how long to wait until work is due; at most leases.WaitMax
}

// Assignment is a piece of work that was assigned to one program.
type Assignment struct {
	Job       registry.ID
	Kind      string
	Lease     Granted
	Table     moorage.Identifier
	TableUUID string
	Rule      policy.Rule
}

// Assign assigns due work to the caller. It searches the due index part by part, and takes the
// earliest work of each part first. found is false if nothing was due during the wait. Assign skips
// tables whose records or documents cannot be read. If it finds no other work, it logs why they
// were skipped.
//
// Errors: KindBadRequest; KindTooManyRequests if the caller has callerMax assignments;
// KindUnavailable; KindCommitUnknown. After KindCommitUnknown the work may be assigned, and is due
// again when its lease ends.
func (w *Work) Assign(ctx context.Context, caller moorage.Caller, request WorkRequest) (
	assigned Assignment, found bool, err error) {
	const op = "leases.Assign"
	if err := request.check(); err != nil {
		return assigned, false, err
	}
	began, err := w.config.Ledger.Time(ctx)
	if err != nil {
		return assigned, false, moorage.Annotate(op, "", err)
	}
	for pause := workPollFirst; ; pause = min(2*pause, workPollMax) {
		now, err := w.config.Ledger.Time(ctx)
		if err != nil {
			return assigned, false, moorage.Annotate(op, "", err)
		}
		var over skippedTables
		if assigned, over, found, err = w.tryAssign(ctx, caller, request, now); err != nil || found {
			return assigned, found, moorage.Annotate(op, "", err)
		}
		if now.Add(pause).Sub(began) > request.Wait || !worker.Sleep(ctx, pause) {
			if over.tables > 0 {
				w.config.Logger.WarnContext(ctx, "maintenance: no work was assigned, for tables cannot be read",
					"tables", over.tables, "last", over.last, "error", over.why)
			}
			return assigned, false, nil
		}
	}
}

func (r WorkRequest) check() error {
	if len(r.Kinds) == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "No kinds of work are named: compaction")
	}
	for _, kind := range r.Kinds {
		if _, known := assignable[kind]; !known {
			return moorage.Errorf(moorage.KindBadRequest, "The server does not assign work of the kind %q: compaction",
				moorage.Cut(kind, 50))
		}
	}
	if r.Holder == "" || len(r.Holder) > HolderBytesMax {
		return moorage.Errorf(moorage.KindBadRequest, "Invalid holder: 1 to %d bytes are needed", HolderBytesMax)
	}
	if r.TTL != 0 && (r.TTL < TTLMin || r.TTL > TTLMax) {
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid time to live %s: %s to %s are allowed", r.TTL, TTLMin, TTLMax)
	}
	if r.Wait < 0 || r.Wait > WaitMax {
		return moorage.Errorf(moorage.KindBadRequest, "Invalid wait %s: 0 to %s are allowed", r.Wait, WaitMax)
	}
	return nil
}

// tryAssign searches once.
func (w *Work) tryAssign(ctx context.Context, caller moorage.Caller, request WorkRequest, now time.Time) (
	assigned Assignment, over skippedTables, found bool, err error) {
	own, over, err := w.takeStock(ctx, caller, now)
	if err != nil {
		return assigned, over, false, err
	}
	if own >= callerMax {
		return assigned, over, false, moorage.Errorf(moorage.KindTooManyRequests,
			"%d assignments are yours, at most %d can be", own, callerMax)
	}
	look := &search{Work: w, caller: caller, request: request, now: now, skipped: over}
	assigned, found, err = look.run(ctx)
	return assigned, look.skipped, found, err
}

// handOut creates the job and the lease of assigned, and changes the schedule. It returns false if
// a record has changed in the meantime, such as that of the pauses, or if another lease conflicts.
func (s *search) handOut(ctx context.Context, schedule due.Schedule, asked registry.KindSchedule,
	assigned *Assignment, pauses registry.Record) (bool, error) {
	id, err := s.config.Ledger.NewID()
	if err != nil {
		return false, err
	}
	granted, planned, err := s.config.Leases.PlanTake(ctx, s.caller, Request{
		Pointer: schedule.Pointer, Scope: "job:" + assigned.Kind, Holder: s.request.Holder, TTL: s.request.TTL, Job: id,
	})
	if _, held := errors.AsType[*HeldError](err); held {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	asked.Due = time.Time{}
	change, err := schedule.Move(schedule.Value.With(asked))
	if err != nil {
		return false, err
	}
	key := registry.JobKey(schedule.Pointer, assigned.Kind)
	job := registry.Job{
		ID: id, Kind: assigned.Kind, Pointer: schedule.Pointer, UUID: assigned.TableUUID, Rule: asked.Rule,
		Caller:  s.caller.Name,
		Created: s.now, Since: s.now, Touched: s.now, Lease: granted.Token, Holder: s.request.Holder,
		Tries: asked.Tries,
	}
	writes, err := ledger.Encode(ledger.Put(key, registry.StateAssigned, job))
	if err != nil {
		return false, err
	}
	unpaused, err := jobs.RequirePauses(ctx, s.config.Ledger, pauses)
	if errors.Is(err, jobs.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	change.Conditions = append(change.Conditions, registry.Absent(key), planned.Condition, unpaused,
		registry.StateIs(registry.PointerKey(schedule.Pointer), registry.StateLive))
	change.Writes = append(append(change.Writes, writes...), planned.Write)
	assigned.Job, assigned.Lease = id, granted
	return s.apply(ctx, "leases.handOut", change)
}

// apply applies a change. It returns false if a record has changed in the meantime.
func (w *Work) apply(ctx context.Context, op string, change due.Change) (bool, error) {
	_, err := w.config.Ledger.Step(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, ledger.StepError(op, err)
}

// takeStock returns how many assignments a caller has. It also takes back all callers' work whose
// lease has ended. It cannot take back work on a table whose schedule cannot be read.
func (w *Work) takeStock(ctx context.Context, caller moorage.Caller, now time.Time) (
	own int, over skippedTables, err error) {
	err = w.config.Ledger.Scan(ctx, registry.TableJob, "", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateAssigned {
			return true, nil
		}
		job, err := ledger.Decode[registry.Job](record)
		if err != nil {
			return true, nil // moorage doctor --deep reports it to an operator
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
		change := due.Change{Conditions: []registry.Condition{ledger.AsRead(leased[0], registry.LeaseKey(job.Pointer))}}
		_, err = w.end(ctx, assignedJob{record, job}, change,
			AssignmentResult{Outcome: outcomeLost, Error: fmt.Sprintf("the lease of %s has ended", job.Holder)}, now)
		if _, unread := errors.AsType[*unreadError](err); unread {
			over.add(job.Pointer.String(), err)
			return true, nil
		}
		return err == nil, err
	})
	return own, over, err
}

// unreadError means that the schedule of a table cannot be read.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// isLeased reports whether a job's lease is still held.
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
