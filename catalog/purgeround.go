package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/registry"
)

// Bounds of a round of purges.
const (
	// purgesAtOnce is how many purges run side by side, and purgesOfWarehouse how many of them are of one warehouse: a storage that
	// hangs then holds up its own warehouse only, and two that do so nobody else.
	purgesAtOnce      = 6
	purgesOfWarehouse = 2
	// blockedPause is how long a purge that was given up rests before it is tried again, once: whoever
	// mends its storage need not tell.
	blockedPause = time.Hour
)

const (
	// purgeClaims begins the names of the claims on purges.
	purgeClaims = "purge/"
	// purgeClaimLife is how long other nodes leave a purge alone whose node was not heard of: long enough that a node which is
	// busy keeps its purges, short beside a purge that is worth claiming.
	purgeClaimLife = time.Minute
)

// purgeClaim returns the name of the claim on a purge.
func purgeClaim(task registry.ID) string { return purgeClaims + task.String() }

// newOwner returns what this process is called in its claims. Where nobody else uses the store it is always the same: then the
// claims of a process that died are its own.
func newOwner(config Config) (registry.ID, error) {
	if config.AbortPending {
		return registry.ID{15: 1}, nil
	}
	return registry.NewID(config.Random)
}

// purgeAll works on every purge task that there is and that no other node has claimed, several side by side, each as far as it goes, and
// returns when all that are due were tried; one that was given up is due only in the first look of this process and then every blockedPause. As long as some run it looks
// again now and then for what is due, what has failed before included, so that one which takes hours, or hangs, holds up no other. A
// task that cannot be read is left alone, and keeps nobody from the others.
func (c *Catalog) purgeAll(ctx context.Context) error {
	r := &purgeRound{Catalog: c, ended: make(chan *duePurge), running: make(map[registry.ID]*duePurge), ofWarehouse: make(map[string]int)}
	return r.run(ctx)
}

// purgeRound is one call of purgeAll. Its fields belong to the goroutine of that; each purge that runs has one of its own, and no two runs are of
// the same task.
type purgeRound struct {
	*Catalog
	due         []*duePurge
	running     map[registry.ID]*duePurge
	ofWarehouse map[string]int // how many run
	ended       chan *duePurge // who runs says so here

	states map[registry.ID]registry.State // of the tasks that there are, as of the last look and what has ended since
	tried  map[registry.ID]int            // when those were begun last, counted in begins
	begins int
}

// duePurge is a task that is to be worked on.
type duePurge struct {
	task, pointer registry.ID
	warehouse     string

	// What became of it, once it has ended.
	left      registry.Record // the task, zero if it is gone
	elsewhere bool            // another node has claimed it; nothing is known of the task
	err       error           // of the store or the context, not of the purge
}

func (r *purgeRound) run(ctx context.Context) error {
	err := r.look(ctx)
	timer := time.NewTimer(r.purgeLook)
	defer timer.Stop()
	for {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			r.due = nil // those that run come to their end
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
			timer.Reset(r.purgeLook)
		}
	}
}

// begin begins as many purges as may run.
func (r *purgeRound) begin(ctx context.Context) {
	r.due = slices.DeleteFunc(r.due, func(d *duePurge) bool {
		if len(r.running) == purgesAtOnce || r.ofWarehouse[d.warehouse] == purgesOfWarehouse {
			return false
		}
		r.begins++
		r.tried[d.task], r.running[d.task] = r.begins, d
		r.ofWarehouse[d.warehouse]++
		go func() { // run waits for it
			d.err = worker.Safely(ctx, func(ctx context.Context) error { return r.tryPurge(ctx, d) })
			r.ended <- d
		}()
		return true
	})
}

// end notes that a purge has ended.
func (r *purgeRound) end(d *duePurge) {
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
	r.purges.left(r.states)
}

// look reads all tasks. What is due then and does not run is begun next, those first that were not tried in this round, or not for long.
func (r *purgeRound) look(ctx context.Context) error {
	now := r.now()
	last := r.blockedTried.Load()
	tryBlocked := last == nil || now.Sub(*last) >= blockedPause
	if tryBlocked {
		r.blockedTried.Store(&now)
	}
	waiting := make(map[registry.ID]bool) // since the last look: of those that were given up, it was their turn
	for _, d := range r.due {
		waiting[d.task] = true
	}
	states, unreadable := make(map[registry.ID]registry.State), make(map[registry.Key]bool)
	var due []*duePurge
	claimed, err := r.claimedPurges(ctx)
	if err != nil {
		return err
	}
	storeNow, err := r.ledger.Time(ctx)
	if err != nil {
		return err
	}
	err = r.ledger.Scan(ctx, registry.TableTask, "", "", func(record registry.Record) (bool, error) {
		task, err := readTask(record)
		switch {
		case err != nil:
			blocker, failed := r.blocksTransaction(ctx, record.Key)
			if failed == nil && !blocker { // else the recovery tells of the transaction
				r.tellUnreadable(ctx, record, err)
				unreadable[record.Key] = true
			}
			return true, failed
		case task.Kind != registry.TaskPurge:
			_, err := r.dropEnded(ctx, record, task.ID)
			return true, err
		}
		states[task.ID] = record.State
		mayTry := record.State != registry.StateBlocked || tryBlocked || waiting[task.ID]
		if mayTry && !storeNow.Before(task.NotBefore) && r.running[task.ID] == nil && !claimed[purgeClaim(task.ID)] {
			due = append(due, &duePurge{task: task.ID, pointer: task.Pointer})
		}
		return true, nil
	})
	if err == nil {
		err = r.findWarehouses(ctx, due)
	}
	if err != nil {
		return err
	}
	tried := make(map[registry.ID]int)
	for id := range states {
		if begin, ok := r.tried[id]; ok {
			tried[id] = begin
		}
	}
	slices.SortStableFunc(due, func(a, b *duePurge) int { return cmp.Compare(tried[a.task], tried[b.task]) })
	r.due, r.states, r.tried = due, states, tried
	r.purges.looked(states, unreadable)
	return nil
}

// claimedPurges returns the claims that other nodes have on purges.
func (c *Catalog) claimedPurges(ctx context.Context) (map[string]bool, error) {
	claimed, err := c.claims.Claimed(ctx, purgeClaims, c.purgeLife)
	if err != nil {
		return nil, ledger.StoreError("catalog.claimedPurges", err)
	}
	return claimed, nil
}

// findWarehouses reads which warehouses the tables of due are of.
func (r *purgeRound) findWarehouses(ctx context.Context, due []*duePurge) error {
	for some := range slices.Chunk(due, ledger.ScanPage) {
		var keys []registry.Key
		for _, d := range some {
			keys = append(keys, registry.PointerKey(d.pointer))
		}
		records, err := r.ledger.Get(ctx, keys...)
		if err != nil {
			return err
		}
		for i, record := range records {
			if pointer, err := registry.Decode[registry.Pointer](record); err == nil { // else the purge says what is wrong
				some[i].warehouse = pointer.Warehouse
			}
		}
	}
	return nil
}

// tellUnreadable logs that a task cannot be read, unless that is known.
func (c *Catalog) tellUnreadable(ctx context.Context, record registry.Record, cause error) {
	if !c.purges.toldOf(record.Key) {
		c.log.ErrorContext(ctx, "the record of a task cannot be read; it is left alone until an operator looks, and has it removed with moorage recover abort",
			"task", record.Key.ID, "key", record.Key.String(), "state", record.State, "error", cause)
	}
}

// tryPurge claims a purge and makes one attempt, and notes what is left of the task. An error is about the store or ctx, not about the
// purge. One that hangs is not claimed any more, so that another node, which may reach the storage, takes over.
func (c *Catalog) tryPurge(ctx context.Context, d *duePurge) error {
	watched, dog := watch(ctx, c.purgeStall)
	defer dog.stop()
	err := c.claims.Claim(watched, purgeClaim(d.task), c.purgeLife, func(watched context.Context) error {
		return c.attemptPurge(ctx, watched, d, dog)
	})
	if d.elsewhere = errors.Is(err, ledger.ErrClaimed) || errors.Is(err, ledger.ErrClaimLost); d.elsewhere {
		return nil
	}
	return err
}

// attemptPurge makes one attempt under watched, which ends when nothing gets done or the claim is lost, and notes under ctx what became
// of it.
func (c *Catalog) attemptPurge(ctx, watched context.Context, d *duePurge, dog *watchdog) error {
	var work purging
	cause := worker.Safely(watched, func(ctx context.Context) (err error) {
		if work, err = c.beginPurge(ctx, d); err == nil {
			err = c.purge(ctx, work, dog)
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case cause == nil, errors.Is(cause, errTaskGone):
		return nil
	case errors.Is(context.Cause(watched), ledger.ErrClaimLost):
		c.log.WarnContext(ctx, "purge was left to other nodes: its claim could not be renewed in time", "task", d.task, "pointer", d.pointer)
		return ledger.ErrClaimLost
	case !work.record.Exists():
		return cause // the store's
	}
	log := c.log
	if panicked, ok := errors.AsType[*worker.PanicError](cause); ok {
		log = log.With("stack", string(panicked.Stack))
	}
	if errors.Is(context.Cause(watched), errStalled) {
		cause = fmt.Errorf("%w: %w", errStalled, cause)
	}
	c.purges.failed()
	log.WarnContext(ctx, "purge did not finish", "task", d.task, "pointer", d.pointer, "error", moorage.OneLine(cause.Error()))
	d.left = work.record
	var err error
	d.left.State, err = c.noteFailure(ctx, work.record, work.task, cause)
	return ledger.IgnoreRetry(err) // another node noted one
}
