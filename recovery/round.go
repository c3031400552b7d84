package recovery

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
	"moorage/txlog"
)

// Bounds of a round.
const (
	// warehousesAtOnce is the maximum number of warehouses with a turn at once in a round. Turns
	// that have taken longer than turnMax do not count.
	warehousesAtOnce = 8
	// turnMax is the time in which a turn may begin further attempts after its first one. It is
	// less than attemptTimeout, so an attempt that times out is the last of its turn. A turn that
	// lasts longer than turnMax is over time, and rounds do not wait for it.
	turnMax = 10 * time.Second
	// turnsMax is the maximum number of turns that have not ended, including turns that are over
	// time or given up. Each turn that hangs has a goroutine, and may hold a thread.
	turnsMax = 64
	// givenUpMax is the maximum number of turns of one warehouse that were given up and have not
	// ended. Each warehouse may have one such turn. More are allowed only while given-up turns take
	// less than half of turnsMax, so that the rest is left for other warehouses.
	givenUpMax = 4
	// After its context has ended, a round waits up to stopGrace for turns that may hang.
	stopGrace = 5 * time.Second
)

// outcome is the result of a round for a transaction that was due.
type outcome uint8

const (
	waiting outcome = iota // it was not tried in the round
	ended                  // all work is done
	failed                 // a later round must try it again
	blocked                // an operator must act
)

// due is a transaction that a round must end.
type due struct {
	id        registry.ID
	warehouse string
	tries     *tries
	became    outcome
}

// survey is the result of one read of the log.
type survey struct {
	unfinished int                  // number of transactions
	blocked    int                  // number of transactions that are given up or unreadable
	due        []*due               // least recently tried first, without warehouses whose turn is in progress
	all        map[registry.ID]bool // the due transactions of warehouses that may have a turn
}

// turn is the turn of one warehouse. A goroutine tries the warehouse's due transactions, one after
// another.
type turn struct {
	warehouse string
	due       []*due
	round     int64 // the round in which the turn began

	// Recovery.mu guards the fields below.
	overTime bool        // the turn has lasted longer than turnMax
	givenUp  bool        // its attempt hangs, so the transaction has a blocker
	trying   txlog.Entry // transaction of the current attempt
	since    time.Time   // when that attempt began; zero between two attempts
	err      error       // the error of the turn, set when it has ended
}

// round reads the whole log once and tries the due transactions. It reports whether some of them
// need another try. Turns that are over time continue during later rounds. Those rounds try no
// other transactions of the same warehouses.
func (r *Recovery) round(ctx context.Context) (again bool, err error) {
	r.rounds++
	for _, turn := range r.takeEnded() {
		err = cmp.Or(err, turn.err)
	}
	if err != nil {
		return false, err
	}
	found, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	if err := r.giveUpHanging(ctx); err != nil {
		return false, err
	}
	var counts [blocked + 1]int
	taken, err := r.takeTurns(ctx, turns(found.due))
	for _, turn := range taken {
		for _, d := range turn.due {
			if found.all[d.id] { // otherwise the transaction ended before this read of the log
				counts[d.became]++
			}
		}
	}
	counts[waiting] = len(found.all) - counts[ended] - counts[failed] - counts[blocked]
	r.count(func(s *Stats) {
		s.Unfinished, s.Blocked = found.unfinished-counts[ended], found.blocked+counts[blocked]
	})
	return counts[waiting]+counts[failed] > 0 || len(r.underWay) > 0, err
}

// mayTake reports whether a warehouse without a turn in progress may begin one. If a turn was given
// up, other transactions of its warehouse may still be tried, up to a limit. A storage that works
// again may answer all calls except the one that hangs.
func (r *Recovery) mayTake(warehouse string) bool {
	mine, all := r.givenUp[warehouse], r.givenUpTurns()
	return all < turnsMax && (mine == 0 || mine < givenUpMax && all < turnsMax/2)
}

// givenUpTurns returns the number of turns that were given up and have not ended.
func (r *Recovery) givenUpTurns() (n int) {
	for _, of := range r.givenUp {
		n += of
	}
	return n
}

// takeTurns runs turns, at most as many at once as allowed. It waits until each has ended or is
// over time. It returns the turns that have ended, including turns of earlier rounds. It also
// returns the first error of a turn.
func (r *Recovery) takeTurns(ctx context.Context, turns []*turn) (ended []*turn, err error) {
	for {
		inTime := r.inTime()
		for ; len(turns) > 0 && ctx.Err() == nil && inTime < warehousesAtOnce && r.hasRoom(); inTime++ {
			r.begin(ctx, turns[0])
			turns = turns[1:]
		}
		if inTime == 0 {
			return ended, cmp.Or(err, ctx.Err())
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.awaitAll()
		}
		for _, turn := range r.takeEnded() {
			ended = append(ended, turn)
			err = cmp.Or(err, turn.err)
		}
		if ctx.Err() != nil {
			return ended, cmp.Or(err, ctx.Err())
		}
	}
}

// hasRoom reports whether another turn may begin.
func (r *Recovery) hasRoom() bool { return len(r.underWay)+r.givenUpTurns() < turnsMax }

// inTime returns the number of turns that are in progress and not over time.
func (r *Recovery) inTime() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, turn := range r.underWay {
		if !turn.overTime {
			n++
		}
	}
	return n
}

// begin begins a turn.
func (r *Recovery) begin(ctx context.Context, t *turn) {
	t.round = r.rounds
	r.underWay[t.warehouse] = t
	timer := time.AfterFunc(turnMax, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		t.overTime = true
		r.wakeUp()
	})
	go func() { // rounds wait for this goroutine until its turn is over time
		err := worker.Safely(ctx, func(ctx context.Context) error { return r.take(ctx, t) })
		timer.Stop()
		if ctx.Err() != nil { // the round that began the turn reports that; a later round must not
			err = nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		t.err = err
		r.ended = append(r.ended, t)
		r.wakeUp()
	}()
}

// wakeUp makes the waiting round check its turns.
func (r *Recovery) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeEnded returns the turns that have ended since its last call. It leaves out turns that were
// given up.
func (r *Recovery) takeEnded() (ended []*turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, turn := range r.ended {
		if turn.givenUp {
			if r.givenUp[turn.warehouse]--; r.givenUp[turn.warehouse] == 0 {
				delete(r.givenUp, turn.warehouse)
			}
			continue
		}
		delete(r.underWay, turn.warehouse)
		ended = append(ended, turn)
	}
	r.ended = nil
	return ended
}

// awaitAll waits, for a limited time, until all turns have ended, except the abandoned ones. The
// contexts of the turns have already ended.
func (r *Recovery) awaitAll() {
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	for {
		r.mu.Lock()
		left := len(r.underWay)
		for _, turn := range r.ended {
			if !turn.givenUp {
				left--
			}
		}
		r.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-r.wake:
		case <-timer.C:
			return
		}
	}
}

// giveUpHanging gives up turns whose attempt has not ended within patience, although the attempt's
// context has ended. It also gives up the transactions of these attempts.
func (r *Recovery) giveUpHanging(ctx context.Context) error {
	for warehouse, turn := range r.underWay {
		r.mu.Lock()
		e, since := turn.trying, turn.since
		r.mu.Unlock()
		if since.IsZero() || r.config.Now().Sub(since) < patience {
			continue
		}
		if err := r.giveUp(ctx, e, 1, errHangs); err != nil {
			return err
		}
		r.mu.Lock()
		if turn.givenUp = turn.since.Equal(since) && turn.trying.ID == e.ID; turn.givenUp { // it still hangs
			delete(r.underWay, warehouse)
			delete(r.tries, e.ID)
			r.givenUp[warehouse]++
		}
		r.mu.Unlock()
	}
	return nil
}

// errHangs is the reason for giving up a transaction whose attempt does not end.
var errHangs = errors.New("an attempt to end it does not return: its storage hangs")

// look reads the whole log, reports unreadable records, and forgets the tries of transactions that
// are no longer due.
func (r *Recovery) look(ctx context.Context) (survey, error) {
	found := survey{all: make(map[registry.ID]bool)}
	now := r.config.Now()
	known, unreadable := make(map[registry.ID]*tries), make(map[registry.ID]bool)
	for after := (registry.ID{}); ; {
		entries, err := r.transactions.Unfinished(ctx, after, ledger.ScanPage)
		if err != nil {
			return survey{}, err
		}
		blockers, err := r.blockers(ctx, entries)
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
			case e.IsDue(now, r.config.AbandonedBefore) && (r.underWay[e.Warehouse] != nil || r.mayTake(e.Warehouse)):
				known[e.ID] = cmp.Or(r.tries[e.ID], new(tries))
				found.all[e.ID] = true
				if r.underWay[e.Warehouse] == nil {
					found.due = append(found.due, &due{id: e.ID, warehouse: e.Warehouse, tries: known[e.ID]})
				}
			}
		}
		if len(entries) < ledger.ScanPage {
			break
		}
		after = entries[len(entries)-1].ID
	}
	r.tries, r.unreadable = known, unreadable
	slices.SortStableFunc(found.due, func(a, b *due) int { return cmp.Compare(a.tries.round, b.tries.round) })
	return found, nil
}

// tellUnreadable logs once that a record cannot be read.
func (r *Recovery) tellUnreadable(ctx context.Context, e txlog.Entry) {
	if !r.unreadable[e.ID] {
		r.log.ErrorContext(ctx, "the record of a transaction cannot be read, and recovery leaves it alone; "+
			"see moorage doctor forget",
			"commit", e.ID, "key", registry.TransactionKey(e.ID).String(), "state", e.State, "error", e.Unreadable)
	}
}

// turns returns one turn for each warehouse with a transaction in all, in the order of their first
// transactions.
func turns(all []*due) []*turn {
	var turns []*turn
	of := make(map[string]*turn)
	for _, d := range all {
		if of[d.warehouse] == nil {
			of[d.warehouse] = &turn{warehouse: d.warehouse}
			turns = append(turns, of[d.warehouse])
		}
		of[d.warehouse].due = append(of[d.warehouse].due, d)
	}
	return turns
}

// take tries the transactions of a turn, one after another, until turnMax is over. An error means
// that ctx has ended, or that the store failed.
func (r *Recovery) take(ctx context.Context, t *turn) error {
	begins, cancel := context.WithTimeout(ctx, turnMax)
	defer cancel()
	for _, d := range t.due {
		if begins.Err() != nil {
			return ctx.Err()
		}
		var err error
		if d.became, err = r.try(ctx, t, d); err != nil {
			return err
		}
	}
	return nil
}

// try makes one attempt to end a transaction, and gives the transaction up after too many failures.
// Errors: as for take.
func (r *Recovery) try(ctx context.Context, t *turn, d *due) (outcome, error) {
	e, found, err := r.transactions.Get(ctx, d.id)
	switch {
	case err != nil:
		return failed, err
	case !found:
		return ended, nil // its coordinator or another node ended it
	case e.Unreadable != nil:
		return failed, nil // it may have ended, as the next read of the log will show
	}
	if !r.noteTrying(t, e, r.config.Now()) {
		return failed, nil
	}
	if d.tries.round = t.round; d.tries.first.IsZero() {
		d.tries.first = r.config.Now()
	}
	ctx, span := r.config.Tracer.Work(ctx, "recovery.transaction")
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	span.On(moorage.Identifier{Warehouse: e.Warehouse})
	cause := worker.Safely(attempt, func(ctx context.Context) error { return r.finishTransaction(ctx, e) })
	span.End(cause)
	cancel()
	isMine := r.noteTrying(t, txlog.Entry{}, time.Time{})
	if ctx.Err() != nil {
		return failed, ctx.Err()
	}
	r.count(func(s *Stats) { s.Attempts++ })
	switch {
	case cause == nil:
		r.count(func(s *Stats) { s.Recovered++ })
		r.log.InfoContext(ctx, "transaction recovered", "commit", e.ID, "warehouse", e.Warehouse, "was", e.State,
			"began", e.Began)
		return ended, nil
	case errors.Is(cause, ErrBusy) || !isMine:
		return failed, nil
	}
	return r.failed(ctx, e, d.tries, cause)
}

// noteTrying records which transaction turn t is trying, and since when. It reports whether t may
// continue. If t was given up, another turn may already work on the same transactions and their
// tries.
func (r *Recovery) noteTrying(t *turn, e txlog.Entry, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.trying, t.since = e, since
	return !t.givenUp
}

// failed counts a failed attempt, and gives up the transaction after too many.
func (r *Recovery) failed(ctx context.Context, e txlog.Entry, t *tries, cause error) (outcome, error) {
	t.failures++
	r.count(func(s *Stats) { s.Failures++ })
	if t.failures == 1 {
		log := r.log
		if panicked, ok := errors.AsType[*worker.PanicError](cause); ok {
			log = log.With("stack", string(panicked.Stack))
		}
		log.WarnContext(ctx, "recovery of a transaction failed; it will try again", "commit", e.ID, "warehouse",
			e.Warehouse, "error", moorage.OneLine(cause.Error()))
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

func (r *Recovery) giveUp(ctx context.Context, e txlog.Entry, attempts int, cause error) error {
	given, err := r.block(ctx, e.ID, registry.Task{
		ID: e.ID, Kind: registry.TaskRecovery, Created: r.config.Now(), Attempts: attempts,
		LastError: moorage.OneLine(cause.Error()),
	})
	if given {
		r.log.ErrorContext(ctx, "recovery gave a transaction up; see moorage doctor",
			"commit", e.ID, "warehouse", e.Warehouse, "attempts", attempts, "error", moorage.OneLine(cause.Error()))
	}
	return err
}

// block writes the blocker of a transaction. It writes nothing if the transaction or the blocker
// changes in the meantime. It replaces an existing blocker.
func (r *Recovery) block(ctx context.Context, id registry.ID, task registry.Task) (bool, error) {
	key := registry.TaskKey(id)
	records, err := r.ledger.Get(ctx, registry.TransactionKey(id), key)
	if err != nil || !records[0].Exists() {
		return false, err
	}
	unchanged := registry.Absent(key)
	if before := records[1]; before.Exists() {
		unchanged = registry.ETagIs(key, before.ETag)
		if replaced, err := registry.Decode[registry.Task](before); err == nil { // otherwise it is unreadable
			task.Unknown = replaced.Unknown
		}
	}
	value, err := registry.Encode(task)
	if err != nil {
		return false, err
	}
	_, err = r.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(registry.TransactionKey(id), records[0].ETag), unchanged},
		Writes:     []registry.Write{registry.Put(key, registry.StateBlocked, value)},
	})
	if _, failed := registry.FailedCondition(err); failed {
		return false, nil
	}
	return err == nil, err
}
