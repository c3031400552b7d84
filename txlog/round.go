package txlog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/internal/worker"
	"moorage/registry"
)

// Bounds of a round.
const (
	// warehousesAtOnce is of how many warehouses a round ends transactions side by side: so many storages may hang before
	// others have to wait for one of them.
	warehousesAtOnce = 8
	// turnMax is how long after its first attempt a warehouse begins further ones in the same round. It is less than
	// attemptTimeout: an attempt that timed out is the last.
	turnMax = 10 * time.Second
)

// outcome is what became of a transaction that was due in a round.
type outcome uint8

const (
	waiting outcome = iota // its turn did not come
	ended                  // nothing is left to do
	failed                 // to be tried again
	blocked                // left to an operator
)

// due is a transaction that a round is to end.
type due struct {
	id        registry.ID
	warehouse string
	tries     *tries
	became    outcome
}

// survey is what one look at the log found.
type survey struct {
	unfinished int    // all
	blocked    int    // those that were given up, or cannot be read
	due        []*due // who was tried least recently first
}

// round looks at the whole log once, tries what is due, and tells whether some of it is to be tried again.
func (r *Recovery) round(ctx context.Context) (again bool, err error) {
	r.rounds++
	found, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(warehousesAtOnce)
	for _, turn := range turns(found.due) {
		group.Go(func() error {
			return worker.Safely(ctx, func(ctx context.Context) error { return r.take(ctx, turn) })
		})
	}
	err = group.Wait()
	var counts [blocked + 1]int
	for _, d := range found.due {
		counts[d.became]++
	}
	r.count(func(s *Stats) {
		s.Unfinished, s.Blocked = found.unfinished-counts[ended], found.blocked+counts[blocked]
	})
	return counts[waiting]+counts[failed] > 0, err
}

// look reads the whole log, tells what cannot be read, and forgets the tries of what is not due any more.
func (r *Recovery) look(ctx context.Context) (survey, error) {
	var found survey
	known, unreadable := make(map[registry.ID]*tries), make(map[registry.ID]bool)
	for after := (registry.ID{}); ; {
		entries, err := r.config.Log.Unfinished(ctx, after, logPage)
		if err != nil {
			return survey{}, err
		}
		blockers, err := r.config.Log.blockers(ctx, entries)
		if err != nil {
			return survey{}, err
		}
		found.unfinished += len(entries)
		for i, e := range entries {
			switch {
			case e.Unreadable != nil:
				r.tellUnreadable(ctx, e)
				unreadable[e.ID] = true
				found.blocked++
			case blockers[i].Exists():
				found.blocked++
			case r.Due(e):
				known[e.ID] = cmp.Or(r.tries[e.ID], new(tries))
				found.due = append(found.due, &due{id: e.ID, warehouse: e.Warehouse, tries: known[e.ID]})
			}
		}
		if len(entries) < logPage {
			break
		}
		after = entries[len(entries)-1].ID
	}
	r.tries, r.unreadable = known, unreadable
	slices.SortStableFunc(found.due, func(a, b *due) int { return cmp.Compare(a.tries.round, b.tries.round) })
	return found, nil
}

// tellUnreadable logs that a record cannot be read, unless that is known.
func (r *Recovery) tellUnreadable(ctx context.Context, e Entry) {
	if !r.unreadable[e.ID] {
		r.log.ErrorContext(ctx, "the record of a transaction cannot be read; recovery leaves it alone until an operator looks, and has it forgotten with moorage recover abort",
			"commit", e.ID, "key", registry.TransactionKey(e.ID).String(), "state", e.State, "error", e.Unreadable)
	}
}

// turns returns the transactions of each warehouse, in the order of all.
func turns(all []*due) [][]*due {
	var turns [][]*due
	at := make(map[string]int)
	for _, d := range all {
		i, known := at[d.warehouse]
		if !known {
			i = len(turns)
			at[d.warehouse], turns = i, append(turns, nil)
		}
		turns[i] = append(turns[i], d)
	}
	return turns
}

// take tries the transactions of one warehouse, one after another, until its time in this round is over. An error means
// that ctx has ended, or that the store failed.
func (r *Recovery) take(ctx context.Context, turn []*due) error {
	begins, cancel := context.WithTimeout(ctx, turnMax)
	defer cancel()
	for _, d := range turn {
		if begins.Err() != nil {
			return ctx.Err()
		}
		var err error
		if d.became, err = r.try(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// try resolves a transaction, and gives it up if that failed too often. Its errors are those of take.
func (r *Recovery) try(ctx context.Context, d *due) (outcome, error) {
	e, found, err := r.config.Log.Get(ctx, d.id)
	switch {
	case err != nil:
		return failed, err
	case !found:
		return ended, nil // by its coordinator or another node
	case e.Unreadable != nil:
		return failed, nil // by now: the next look will tell
	}
	if d.tries.round = r.rounds; d.tries.first.IsZero() {
		d.tries.first = r.config.Now()
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	cause := worker.Safely(attempt, func(ctx context.Context) error { return r.config.Resolve(ctx, e) })
	cancel()
	if ctx.Err() != nil {
		return failed, ctx.Err()
	}
	r.count(func(s *Stats) { s.Attempts++ })
	switch {
	case cause == nil:
		r.count(func(s *Stats) { s.Recovered++ })
		r.log.InfoContext(ctx, "transaction recovered", "commit", e.ID, "warehouse", e.Warehouse, "was", e.State, "began", e.Began)
		return ended, nil
	case errors.Is(cause, ErrBusy):
		return failed, nil
	}
	return r.failed(ctx, e, d.tries, cause)
}

// failed notes that an attempt failed, and gives the transaction up if too many have.
func (r *Recovery) failed(ctx context.Context, e Entry, t *tries, cause error) (outcome, error) {
	t.failures++
	r.count(func(s *Stats) { s.Failures++ })
	if t.failures == 1 {
		log := r.log
		if panicked, ok := errors.AsType[*worker.PanicError](cause); ok {
			log = log.With("stack", string(panicked.Stack))
		}
		log.WarnContext(ctx, "recovery of a transaction failed and is tried again", "commit", e.ID, "warehouse", e.Warehouse, "error", moorage.OneLine(cause.Error()))
	}
	if t.failures < attemptsMax && r.config.Now().Sub(t.first) < patience {
		return failed, nil
	}
	if err := r.giveUp(ctx, e, t.failures, cause); err != nil {
		return failed, err
	}
	*t = tries{}
	return blocked, nil
}

func (r *Recovery) giveUp(ctx context.Context, e Entry, attempts int, cause error) error {
	given, err := r.config.Log.block(ctx, e.ID, registry.Task{
		ID: e.ID, Kind: registry.TaskRecovery, Created: r.config.Now(), Attempts: attempts, LastError: moorage.OneLine(cause.Error()),
	})
	if given {
		r.log.ErrorContext(ctx, "recovery of a transaction is given up until an operator looks; see moorage recover",
			"commit", e.ID, "warehouse", e.Warehouse, "attempts", attempts, "error", moorage.OneLine(cause.Error()))
	}
	return err
}
