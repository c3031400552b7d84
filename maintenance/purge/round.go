package purge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// round works on every due purge that is not assigned to another node. It runs several purges at
// once, each as far as possible. It returns when it has tried all of them. A purge that was given
// up is due at the first search of this process, and after that every BlockedPause. While purges
// run, round searches again at each Interval, also for purges that failed earlier in this round. So
// a purge that takes hours or hangs does not delay others.
func (w *Worker) round(ctx context.Context) error {
	r := &round{
		Worker: w, ended: make(chan *due), running: make(map[registry.ID]*due), ofWarehouse: make(map[string]int),
	}
	return r.run(ctx)
}

// round is one run of a Worker. Only the goroutine of run uses its fields. Each running purge has
// its own goroutine, and two running purges never have the same task.
type round struct {
	*Worker
	due         []*due
	running     map[registry.ID]*due
	ofWarehouse map[string]int // number of running purges, by warehouse
	ended       chan *due      // receives each purge whose attempt has ended

	states map[registry.ID]registry.State // of the tasks: from the last search, updated when an attempt ends
	tried  map[registry.ID]int            // the value of begins when each task was last begun
	begins int
}

// due is a task that is due.
type due struct {
	task, pointer registry.ID
	warehouse     string

	// The fields below are set when the attempt has ended.
	left      registry.Record // the task after the attempt, zero if it is gone
	failed    error           // why the purge did not finish, which its task has too
	elsewhere bool            // the task is assigned to another node, so its state is unknown
	err       error           // an error of the store or the context, not of the purge
}

func (r *round) run(ctx context.Context) error {
	err := r.look(ctx)
	timer := time.NewTimer(r.config.Interval)
	defer timer.Stop()
	for {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			r.due = nil // running purges continue to their end
		}
		r.begin(ctx)
		if len(r.running) == 0 {
			return err
		}
		select {
		case d := <-r.ended:
			r.end(d)
			err = cmp.Or(err, d.err)
		case <-timer.C:
			if err == nil {
				err = r.look(ctx)
			}
			timer.Reset(r.config.Interval)
		}
	}
}

// begin begins as many purges as may run at once.
func (r *round) begin(ctx context.Context) {
	r.due = slices.DeleteFunc(r.due, func(d *due) bool {
		if len(r.running) == atOnce || r.ofWarehouse[d.warehouse] == ofWarehouse {
			return false
		}
		r.begins++
		r.tried[d.task], r.running[d.task] = r.begins, d
		r.ofWarehouse[d.warehouse]++
		go func() { // run waits for it
			d.err = worker.Safely(ctx, func(ctx context.Context) error { return r.try(ctx, d) })
			r.ended <- d
		}()
		return true
	})
}

// end records that an attempt has ended.
func (r *round) end(d *due) {
	delete(r.running, d.task)
	if r.ofWarehouse[d.warehouse]--; r.ofWarehouse[d.warehouse] == 0 {
		delete(r.ofWarehouse, d.warehouse)
	}
	if _, there := r.states[d.task]; !there || d.elsewhere || d.err != nil {
		return
	}
	if d.left.Exists() {
		r.states[d.task] = d.left.State
	} else {
		delete(r.states, d.task)
	}
	r.noteFound(r.states, r.foundUnreadable())
}

// look reads all tasks. The due tasks that are not running begin next, least recently tried first.
// Unreadable tasks are skipped.
func (r *round) look(ctx context.Context) error {
	tryBlocked := r.blockedTried.IsZero() || r.now().Sub(r.blockedTried) >= BlockedPause
	if tryBlocked {
		r.blockedTried = r.now()
	}
	waiting := make(map[registry.ID]bool) // due tasks of the last search that have not begun yet
	for _, d := range r.due {
		waiting[d.task] = true
	}
	assigned, err := r.assigner.AssignedElsewhere(ctx, taskPrefix, r.config.Life)
	if err != nil {
		return ledger.StoreError("purge.look", err)
	}
	storeNow, err := r.ledger.Time(ctx)
	if err != nil {
		return err
	}
	doubt, err := r.config.Doubt(ctx)
	if err != nil {
		return err
	}
	if err := r.beginWaiting(ctx, storeNow, doubt); err != nil {
		return err
	}
	states, unreadable := make(map[registry.ID]registry.State), make(map[registry.Key]bool)
	var found []*due
	err = r.ledger.Scan(ctx, registry.TableTask, "", "", func(record registry.Record) (bool, error) {
		task, err := registry.DecodeTask(record)
		switch {
		case err != nil:
			blocker, failed := r.blocksTransaction(ctx, record.Key)
			if failed == nil && !blocker { // recovery logs an unreadable blocker of a transaction
				r.logUnreadable(ctx, record, err)
				unreadable[record.Key] = true
			}
			return true, failed
		case task.Kind != registry.TaskPurge:
			_, err := r.transactions.DropBlocker(ctx, record, task.ID)
			return true, ledger.StepError("purge.look", err)
		}
		states[task.ID] = record.State
		if moved, ahead := task.AsOf(storeNow); ahead {
			if task = moved; r.rewrite(ctx, record, moved) != nil {
				return true, nil // another node rewrote the task, or the next search will
			}
		}
		mayTry := doubt == "" && (record.State != registry.StateBlocked ||
			(tryBlocked || waiting[task.ID]) && task.Begun < registry.BegunMax)
		if mayTry && !storeNow.Before(task.NotBefore) && r.running[task.ID] == nil && !assigned[assignmentOf(task.ID)] {
			found = append(found, &due{task: task.ID, pointer: task.Pointer})
		}
		return true, nil
	})
	if err == nil {
		err = r.findWarehouses(ctx, found)
	}
	if err != nil {
		return err
	}
	r.sort(found, states)
	r.noteFound(states, unreadable)
	return nil
}

// rewrite replaces the record of a task.
func (r *round) rewrite(ctx context.Context, record registry.Record, task registry.Task) error {
	writes, err := ledger.Encode(ledger.Put(record.Key, record.State, task))
	if err != nil {
		return err
	}
	_, err = r.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: writes,
	})
	return err
}

// sort replaces r.due with found, ordered so that the least recently tried come first.
func (r *round) sort(found []*due, states map[registry.ID]registry.State) {
	tried := make(map[registry.ID]int)
	for id := range states {
		if begin, ok := r.tried[id]; ok {
			tried[id] = begin
		}
	}
	slices.SortStableFunc(found, func(a, b *due) int { return cmp.Compare(tried[a.task], tried[b.task]) })
	r.due, r.states, r.tried = found, states, tried
}

// assignmentOf returns the name of the assignment of a purge.
func assignmentOf(task registry.ID) string { return taskPrefix + task.String() }

// findWarehouses sets the warehouse of each purge in found, from the record of its table.
func (r *round) findWarehouses(ctx context.Context, found []*due) error {
	for some := range slices.Chunk(found, ledger.ScanPage) {
		var keys []registry.Key
		for _, d := range some {
			keys = append(keys, registry.PointerKey(d.pointer))
		}
		records, err := r.ledger.Get(ctx, keys...)
		if err != nil {
			return err
		}
		for i, record := range records {
			// If the record is unreadable, the attempt reports that.
			if pointer, err := registry.Decode[registry.Pointer](record); err == nil {
				some[i].warehouse = pointer.Warehouse
			}
		}
	}
	return nil
}

// logUnreadable logs an unreadable task, unless the last search did so.
func (r *round) logUnreadable(ctx context.Context, record registry.Record, cause error) {
	if !r.foundUnreadable()[record.Key] {
		r.log.ErrorContext(ctx, "the record of a task cannot be read; it is left alone until an operator looks; "+
			"see moorage doctor forget",
			"task", record.Key.ID, "key", record.Key.String(), "state", record.State, "error", cause)
	}
}

// try takes the assignment of a purge, makes one attempt, and records the new state of the task.
// Its error is an error of the store or ctx, not of the purge. A purge that hangs loses its
// assignment, so that another node, which may reach the storage, takes over.
func (r *round) try(ctx context.Context, d *due) (err error) {
	ctx, span := r.config.Tracer.Work(ctx, "purge")
	span.On(moorage.Identifier{Warehouse: d.warehouse})
	defer func() { span.End(cmp.Or(err, d.failed)) }()
	watched, dog := watch(ctx, r.config.Stall)
	defer dog.stop()
	err = r.assigner.Assign(watched, assignmentOf(d.task), r.config.Life, func(watched context.Context) error {
		return r.attempt(ctx, watched, d, dog)
	})
	if d.elsewhere = errors.Is(err, ledger.ErrAssigned) || errors.Is(err, ledger.ErrAssignmentLost); d.elsewhere {
		return nil
	}
	return err
}
