package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"moorage/registry"
)

// Errors of Assign, for errors.Is.
var (
	// ErrAssigned means that another owner has the assignment, or that this process already does
	// the work. Assign did not call do.
	ErrAssigned = errors.New("ledger: the work is assigned")
	// ErrAssignmentLost is the cause of the end of the work's context if the owner did not renew
	// the assignment in time, or if another owner has it.
	ErrAssignmentLost = errors.New("ledger: the assignment was lost")
)

const (
	// LifeMin is the minimum life of an assignment. With a shorter life, a renewal would have no
	// time for a slow answer of the store.
	LifeMin = time.Second
	// An owner renews its assignment renewalsInLife times in one life, so that one renewal may
	// fail.
	renewalsInLife = 3
	// An owner retries a failed renewal retriesInLife times in one life.
	retriesInLife = 12
	// An assignment may end at most livesAhead lives from now. One with a later end was written
	// while the store's clock was ahead, and counts as ended.
	livesAhead = 2
	// releaseTimeout bounds the release of an assignment. An assignment that is not released
	// expires.
	releaseTimeout = 5 * time.Second
	// assignmentsPage is the number of assignments that AssignedElsewhere reads at a time. Usually
	// there are a few for each node.
	assignmentsPage = 1000
)

// Assigner takes assignments for one process. It is safe for concurrent use.
type Assigner struct {
	store registry.Store
	owner registry.ID
	now   func() time.Time // measures the time since the last renewal of an assignment

	mu   sync.Mutex      // guards the field below; no lock is taken under it
	held map[string]bool // the pieces of work in progress in this process
}

// NewAssigner returns an Assigner over store. Each process must draw a random owner when it starts.
// Two processes with the same owner take each other's assignments.
func NewAssigner(store registry.Store, owner registry.ID) *Assigner {
	return &Assigner{store: store, owner: owner, now: time.Now, held: make(map[string]bool)}
}

// Assign takes the assignment on a piece of work, calls do, and releases the assignment when do
// returns. While do runs, a goroutine renews the assignment. That goroutine has ended when Assign
// returns.
//
// work is the ID of the assignment's key. It consists of a name and a subject: "purge/" and the id
// of a task, for example. life, at least LifeMin, is how long the assignment lasts without a
// renewal. After that time another owner may take it. All assignments of one work should have the
// same life.
//
// The context of do ends, with the cause ErrAssignmentLost, before another owner can have the
// assignment. Assign returns the error of do. If it did not call do, it returns ErrAssigned or an
// error of the store or of ctx.
func (c *Assigner) Assign(ctx context.Context, work string, life time.Duration,
	do func(ctx context.Context) error) error {
	if !c.enter(work) {
		return fmt.Errorf("%w: this process does %s", ErrAssigned, work)
	}
	defer c.leave(work)
	h := &holding{Assigner: c, key: registry.AssignmentKey(work), life: max(life, LifeMin)}
	began := c.now()
	if err := h.take(ctx); err != nil {
		return err
	}
	held, lose := context.WithCancelCause(ctx)
	h.lose = func() { lose(ErrAssignmentLost) }
	h.end = time.AfterFunc(h.left(began), h.lose)
	renewing, stop := context.WithCancel(held)
	var renewer sync.WaitGroup
	renewer.Go(func() { h.renewUntil(renewing, began) })
	defer func() {
		stop()
		renewer.Wait()
		h.end.Stop()
		lose(context.Canceled)
		h.release(ctx)
	}()
	return do(held)
}

// AssignedElsewhere returns the pieces of work with prefix that are assigned to other owners. life
// is the life of these assignments, as in Assign. AssignedElsewhere removes expired assignments,
// which are left behind by dead owners.
func (c *Assigner) AssignedElsewhere(ctx context.Context, prefix string, life time.Duration) (map[string]bool, error) {
	assigned := make(map[string]bool)
	for after := ""; ; {
		page, err := c.store.List(ctx, registry.TableAssignment, prefix, after, assignmentsPage)
		if err != nil || len(page) == 0 {
			return assigned, err
		}
		err = c.sort(ctx, page, max(life, LifeMin), assigned)
		if err != nil || registry.IsLastPage(page, assignmentsPage) {
			return assigned, err
		}
		after = page[len(page)-1].Key.ID
	}
}

// sort adds the work of other owners in records to assigned, and removes expired assignments.
func (c *Assigner) sort(ctx context.Context, records []registry.Record, life time.Duration,
	assigned map[string]bool) error {
	now, err := c.store.Time(ctx)
	if err != nil {
		return err
	}
	for _, record := range records {
		assignment := decodeAssignment(record)
		if !isOver(assignment, now, life) {
			if assignment.Owner != c.owner {
				assigned[record.Key.ID] = true
			}
			continue
		}
		err := remove(ctx, c.store, record)
		if _, failed := registry.FailedCondition(err); err != nil && !failed {
			return err
		}
	}
	return nil
}

// enter records that this process does the work. It returns false if the process is already doing
// the work.
func (c *Assigner) enter(work string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[work] {
		return false
	}
	c.held[work] = true
	return true
}

func (c *Assigner) leave(work string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, work)
}

// holding is one assignment of this process. Only the renewing goroutine uses record. After that
// goroutine has ended, only Assign uses it.
type holding struct {
	*Assigner
	key    registry.Key
	life   time.Duration
	record registry.Record // as last read or written by this process
	lose   func()          // ends the context of the work
	end    *time.Timer     // calls lose when the assignment was not renewed in time
}

// left returns the rest of a life that began at the time began of this process's clock. That time
// is no later than the read of the store's clock for that life.
func (h *holding) left(began time.Time) time.Duration { return h.life - h.now().Sub(began) }

// take acquires the assignment for this process, or returns ErrAssigned if another owner has it.
func (h *holding) take(ctx context.Context) error {
	record, assignment, err := h.read(ctx)
	if err != nil {
		return err
	}
	now, err := h.store.Time(ctx)
	if err != nil {
		return err
	}
	// If this process owns the assignment without holding it, the answer of an earlier write was
	// lost.
	if record.Exists() && assignment.Owner != h.owner && !isOver(assignment, now, h.life) {
		return fmt.Errorf("%w: %s belongs to %s until %s", ErrAssigned, h.key, assignment.Owner,
			assignment.Until.UTC().Format(time.RFC3339))
	}
	err = h.write(ctx, record, assignment, now)
	if _, failed := registry.FailedCondition(err); failed {
		return fmt.Errorf("%w: another owner was faster: %w", ErrAssigned, err)
	}
	return err
}

// isOver reports whether another owner may take assignment at now, a time of the store's clock. An
// unreadable assignment decodes as the zero Assignment, and is over. Otherwise its work would never
// be done. If its owner is alive, the owner's next renewal fails with ErrAssignmentLost.
func isOver(assignment registry.Assignment, now time.Time, life time.Duration) bool {
	return !assignment.Until.After(now) || assignment.Until.Sub(now) > livesAhead*life
}

// read returns the current assignment. It returns the zero Assignment if there is none or if the
// record cannot be read.
func (h *holding) read(ctx context.Context) (registry.Record, registry.Assignment, error) {
	records, err := h.store.Get(ctx, h.key)
	if err != nil {
		return registry.Record{}, registry.Assignment{}, err
	}
	return records[0], decodeAssignment(records[0]), nil
}

// decodeAssignment returns the assignment in record, or the zero Assignment if it cannot be read.
func decodeAssignment(record registry.Record) registry.Assignment {
	assignment, err := registry.Decode[registry.Assignment](record)
	if err != nil {
		return registry.Assignment{}
	}
	return assignment
}

// write replaces record, which contains assignment, with an assignment of this process that ends
// one life after now.
func (h *holding) write(ctx context.Context, record registry.Record, assignment registry.Assignment,
	now time.Time) error {
	assignment.Owner, assignment.Until = h.owner, now.Add(h.life)
	value, err := registry.Encode(assignment)
	if err != nil {
		return err
	}
	condition := registry.Absent(h.key)
	if record.Exists() {
		condition = registry.ETagIs(h.key, record.ETag)
	}
	etags, err := h.store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{condition},
		Writes:     []registry.Write{registry.Put(h.key, registry.StateNone, value)},
	})
	if err == nil {
		h.record = registry.Record{Key: h.key, ETag: etags[0], Value: value}
	}
	return err
}

// renewUntil renews the assignment until ctx ends. The current life began at the time began.
func (h *holding) renewUntil(ctx context.Context, began time.Time) {
	next := time.NewTimer(h.left(began) / renewalsInLife)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		began = h.now()
		switch err := h.renew(ctx); {
		case err == nil:
			h.end.Reset(h.left(began))
			next.Reset(h.left(began) / renewalsInLife)
		case errors.Is(err, ErrAssignmentLost):
			h.lose()
			return
		default:
			next.Reset(h.life / retriesInLife)
		}
	}
}

// renew extends the assignment by another life, or returns ErrAssignmentLost if this process no
// longer has it.
func (h *holding) renew(ctx context.Context) error {
	now, err := h.store.Time(ctx)
	if err != nil {
		return err
	}
	assignment, err := registry.Decode[registry.Assignment](h.record)
	if err != nil {
		return err
	}
	err = h.write(ctx, h.record, assignment, now)
	if _, failed := registry.FailedCondition(err); !failed {
		return err
	}
	// A renewal whose answer was lost may have succeeded.
	record, assignment, err := h.read(ctx)
	if err != nil {
		return err
	}
	if assignment.Owner != h.owner {
		return ErrAssignmentLost
	}
	h.record = record
	return h.write(ctx, record, assignment, now)
}

// release removes the assignment if this process still has it. If that fails, the assignment
// expires.
func (h *holding) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, failed := registry.FailedCondition(remove(ctx, h.store, h.record)); !failed {
		return
	}
	record, assignment, err := h.read(ctx)
	if err == nil && assignment.Owner == h.owner {
		_ = remove(ctx, h.store, record) // if that fails, the assignment expires
	}
}

// remove deletes an assignment unless it has changed since it was read.
func remove(ctx context.Context, store registry.Store, record registry.Record) error {
	_, err := store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(record.Key, record.ETag)},
		Writes:     []registry.Write{registry.Delete(record.Key)},
	})
	return err
}
