package commit

import (
	"context"
	"log/slog"

	"moorage"
	"moorage/catalog/documents"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// runLocked takes the locks of the verb, then plans and applies. It repeats both while records
// change between plan and Apply.
func (p *Pipeline) runLocked(ctx context.Context, w *work) (outcome Outcome, err error) {
	var scope Scope
	if w.Look != nil {
		looking, span := trace.Start(ctx, "resolve")
		scope, err = w.Look(looking)
		span.End(err)
		if err != nil {
			return Outcome{}, err
		}
	}
	if err := p.leases.check(ctx, w); err != nil {
		return Outcome{}, err
	}
	if row, found := scope.Verb.Row(); found {
		w.Verb, w.row = scope.Verb, row
	}
	if len(w.row.Locks) > 0 {
		hold, err := p.lock(ctx, w.row, w.row.Locks, scope)
		if err != nil {
			return Outcome{}, err
		}
		defer hold.Release()
		ctx = hold.Context()
	}
	ctx, cancel := moorage.Detached(ctx, RequestTimeout)
	defer cancel()
	err = p.ledger.Retry(ctx, moorage.KindUnavailable, func(number int) (err error) {
		if w.Drains {
			return p.drain(ctx, w, number)
		}
		outcome, err = p.attempt(ctx, w, number, nil)
		return err
	})
	return outcome, err
}

// attempt plans w and applies the plan once. It returns ledger.ErrRetry if a record that the plan
// read has changed before the Apply.
func (p *Pipeline) attempt(ctx context.Context, w *work, number int, container *Container) (Outcome, error) {
	change, err := w.change(ctx, p.ledger, w.On[0])
	if err != nil {
		return Outcome{}, err
	}
	planner := w.Plan
	if len(w.Edits) > 0 {
		planner = w.Edits[0].Create
	}
	planning, span := trace.Start(ctx, "plan")
	plan, err := planner(planning, &Attempt{
		Number: number, Now: p.now(), Change: change, On: w.On[0],
		KeyExpires: w.keyExpires(), Container: container,
	})
	span.End(err)
	if err != nil {
		return Outcome{}, err
	}
	if err := p.carryOut(ctx, w, change, plan); err != nil {
		return Outcome{}, ledger.RetryOnConflict(err)
	}
	return plan.Answer, nil
}

// carryOut writes the file of plan, applies the plan, and deletes the files that are no longer
// needed.
func (p *Pipeline) carryOut(ctx context.Context, w *work, change registry.Change, plan *Plan) error {
	if plan.Folder != "" {
		if err := p.makeFolder(ctx, plan); err != nil {
			return err
		}
	}
	if plan.Empty {
		return nil
	}
	_, lost, err := p.publish(ctx, change, plan, effect{w, plan.Answer})
	if lost {
		p.documents.DeleteLost(ctx, documents.Lost{File: plan.File})
	}
	if plan.Outdated.Version != "" { // even after a failure, because the change may have happened
		p.documents.Forget(plan.Outdated.Pointer, plan.Outdated.Version)
	}
	if err != nil {
		return err
	}
	if kept := plan.Read; kept.Document != nil {
		p.documents.Keep(kept.Pointer, kept.Version, kept.Document)
	}
	if plan.Purges {
		p.kickPurge()
	}
	if told := plan.Told; told.Message != "" {
		p.log.LogAttrs(ctx, slog.LevelInfo, told.Message, append(told.Attrs,
			slog.String("caller", w.Caller.Name), slog.String("request", moorage.RequestID(ctx)))...)
	}
	return nil
}

// publish writes the file of plan, if there is one, then applies the plan, which names the file.
// lost is true if the change did not happen and never will. In that case the caller deletes the
// file. If the change may have happened, the file stays. publish returns the known ETags of
// plan.Writes.
func (p *Pipeline) publish(ctx context.Context, change registry.Change, plan *Plan, effects ...effect) (
	etags []registry.ETag, lost bool, err error) {
	if plan.File.Location != "" {
		writing, span := trace.Start(ctx, "write")
		err := plan.File.Write(writing)
		span.End(err)
		if err != nil {
			return nil, documents.MayRemain(err), err
		}
	}
	return p.applyPlan(ctx, change, plan, effects...)
}

// applyPlan applies a plan whose file is written. It returns the results of publish.
func (p *Pipeline) applyPlan(ctx context.Context, change registry.Change, plan *Plan, effects ...effect) (
	etags []registry.ETag, lost bool, err error) {
	file := plan.File
	change.Items = plan.Items
	etags, err = p.apply(ctx, ledger.Mutation{
		Change: change, Conditions: plan.Conditions, Writes: plan.Writes,
	}, effects...)
	if file.Location == "" {
		return etags, false, err
	}
	if err == nil {
		p.documents.Keep(file.Pointer, file.Location, file.Document)
	}
	return etags, err != nil && moorage.KindOf(err) != moorage.KindCommitUnknown, err
}

// makeFolder creates the folder of a staged table if the storage has folders.
func (p *Pipeline) makeFolder(ctx context.Context, plan *Plan) error {
	version := plan.Answer.Version
	folders, ok := version.Storage.(storage.Folders)
	if !ok {
		return nil
	}
	if err := folders.MakeFolder(ctx, plan.Folder); err != nil {
		return documents.CreateError(plan.Folder, err)
	}
	p.stagedFolder(version.Ident.Warehouse, folders, plan.Folder)
	return nil
}
