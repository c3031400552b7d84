package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"moorage/registry"
)

// Errors of Claim, for errors.Is.
var (
	// ErrClaimed means that another owner has the claim, or that this one already has it. The work
	// was not begun.
	ErrClaimed = errors.New("ledger: the work is claimed")
	// ErrClaimLost is the cause with which the work's context ends when the owner did not renew the
	// claim in time, or when another owner has it.
	ErrClaimLost = errors.New("ledger: the claim was lost")
)

const (
	// LifeMin is the shortest life of a claim. A renewal needs time for a slow answer of the store.
	LifeMin = time.Second
	// renewalsInLife is how often an owner renews its claim in one life, so that it may miss one.
	renewalsInLife = 3
	// retriesInLife is how often in one life an owner retries a failed renewal.
	retriesInLife = 12
	// livesAhead is how many lives ahead a claim may end. A claim that ends later was written when
	// the store's clock was ahead, and has ended.
	livesAhead = 2
	// releaseTimeout bounds the release of a claim. A claim that is not released expires.
	releaseTimeout = 5 * time.Second
	// claimedPage is how many claims Claimed reads at a time. Usually there are a few for each
	// node.
	claimedPage = 1000
)

// Claimer takes claims for one process. It is safe for concurrent use.
type Claimer struct {
	store registry.Store
	owner registry.ID
	now   func() time.Time // measures the time since the last renewal of a claim

	mu   sync.Mutex      // guards the field below; leaf
	held map[string]bool // the works in progress in this process
}

// NewClaimer returns a Claimer over store. Each process must draw its owner when it starts. Two
// processes with the same owner take each other's claims.
func NewClaimer(store registry.Store, owner registry.ID) *Claimer {
	return &Claimer{store: store, owner: owner, now: time.Now, held: make(map[string]bool)}
}

// Claim takes the claim on a piece of work, calls do, and releases the claim when do returns.
// Meanwhile a goroutine renews the claim, and has ended when Claim returns.
//
// work is the ID of the claim's key: a path of the name of the work and its subject, such as
// "purge/" and the id of a task. life is how long the claim holds without a renewal, at least
// LifeMin. After that time another owner may take it. All claims of one work should have the same
// life.
//
// The context of do ends, with the cause ErrClaimLost, before another owner can have the claim.
// Claim returns the error of do. If it did not call do, it returns ErrClaimed or an error of the
// store or of ctx.
func (c *Claimer) Claim(ctx context.Context, work string, life time.Duration,
	do func(ctx context.Context) error) error {
	if !c.enter(work) {
		return fmt.Errorf("%w: this process does %s", ErrClaimed, work)
	}
	defer c.leave(work)
	h := &holding{Claimer: c, key: registry.ClaimKey(work), life: max(life, LifeMin)}
	began := c.now()
	if err := h.take(ctx); err != nil {
		return err
	}
	held, lose := context.WithCancelCause(ctx)
	h.lose = func() { lose(ErrClaimLost) }
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

// Claimed returns the works with prefix that other owners have claimed. life is the life of these
// claims, as in Claim. Claimed removes expired claims, which dead owners leave behind.
func (c *Claimer) Claimed(ctx context.Context, prefix string, life time.Duration) (map[string]bool, error) {
	claimed := make(map[string]bool)
	for after := ""; ; {
		page, err := c.store.List(ctx, registry.TableClaim, prefix, after, claimedPage)
		if err != nil || len(page) == 0 {
			return claimed, err
		}
		err = c.sort(ctx, page, max(life, LifeMin), claimed)
		if err != nil || registry.IsLastPage(page, claimedPage) {
			return claimed, err
		}
		after = page[len(page)-1].Key.ID
	}
}

// sort adds to claimed the works of other owners in records, and removes expired claims.
func (c *Claimer) sort(ctx context.Context, records []registry.Record, life time.Duration,
	claimed map[string]bool) error {
	now, err := c.store.Time(ctx)
	if err != nil {
		return err
	}
	for _, record := range records {
		claim := decodeClaim(record)
		if !isOver(claim, now, life) {
			if claim.Owner != c.owner {
				claimed[record.Key.ID] = true
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

// enter notes that this process does the work, and reports whether it was not doing it already.
func (c *Claimer) enter(work string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[work] {
		return false
	}
	c.held[work] = true
	return true
}

func (c *Claimer) leave(work string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, work)
}

// holding is one claim of this process. Its record belongs to the renewing goroutine, and after
// that goroutine's end to Claim.
type holding struct {
	*Claimer
	key    registry.Key
	life   time.Duration
	record registry.Record // as this process read or wrote it last
	lose   func()          // ends the context of the work
	end    *time.Timer     // calls lose when the claim was not renewed in time
}

// left returns the rest of a life. By this process's clock the life began at began, no later than
// the store's clock was read for it.
func (h *holding) left(began time.Time) time.Duration { return h.life - h.now().Sub(began) }

// take acquires the claim for this process, or returns ErrClaimed if another owner has it.
func (h *holding) take(ctx context.Context) error {
	record, claim, err := h.read(ctx)
	if err != nil {
		return err
	}
	now, err := h.store.Time(ctx)
	if err != nil {
		return err
	}
	// If this process owns a claim that it does not hold, an earlier answer was lost.
	if record.Exists() && claim.Owner != h.owner && !isOver(claim, now, h.life) {
		return fmt.Errorf("%w: %s belongs to %s until %s", ErrClaimed, h.key, claim.Owner,
			claim.Until.UTC().Format(time.RFC3339))
	}
	err = h.write(ctx, record, claim, now)
	if _, failed := registry.FailedCondition(err); failed {
		return fmt.Errorf("%w: another owner was faster: %w", ErrClaimed, err)
	}
	return err
}

// isOver reports whether another owner may take claim at now, a time of the store's clock. An
// unreadable claim decodes as the zero Claim, and is over: otherwise its work would never be done.
// If its owner is alive, its next renewal shows the loss.
func isOver(claim registry.Claim, now time.Time, life time.Duration) bool {
	return !claim.Until.After(now) || claim.Until.Sub(now) > livesAhead*life
}

// read returns the current claim. It returns the zero Claim if there is none or if it cannot be
// read.
func (h *holding) read(ctx context.Context) (registry.Record, registry.Claim, error) {
	records, err := h.store.Get(ctx, h.key)
	if err != nil {
		return registry.Record{}, registry.Claim{}, err
	}
	return records[0], decodeClaim(records[0]), nil
}

// decodeClaim returns the claim in record, or the zero Claim if it cannot be read.
func decodeClaim(record registry.Record) registry.Claim {
	claim, err := registry.Decode[registry.Claim](record)
	if err != nil {
		return registry.Claim{}
	}
	return claim
}

// write replaces record, which holds claim, by a claim of this process that ends a life after now.
func (h *holding) write(ctx context.Context, record registry.Record, claim registry.Claim, now time.Time) error {
	claim.Owner, claim.Until = h.owner, now.Add(h.life)
	value, err := registry.Encode(claim)
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

// renewUntil renews the claim until ctx ends. The current life began at began.
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
		case errors.Is(err, ErrClaimLost):
			h.lose()
			return
		default:
			next.Reset(h.life / retriesInLife)
		}
	}
}

// renew extends the claim by another life, or returns ErrClaimLost if this process no longer has
// it.
func (h *holding) renew(ctx context.Context) error {
	now, err := h.store.Time(ctx)
	if err != nil {
		return err
	}
	claim, err := registry.Decode[registry.Claim](h.record)
	if err != nil {
		return err
	}
	err = h.write(ctx, h.record, claim, now)
	if _, failed := registry.FailedCondition(err); !failed {
		return err
	}
	// A renewal whose answer was lost may have succeeded.
	record, claim, err := h.read(ctx)
	if err != nil {
		return err
	}
	if claim.Owner != h.owner {
		return ErrClaimLost
	}
	h.record = record
	return h.write(ctx, record, claim, now)
}

// release removes the claim if this process still has it. If that fails, the claim expires.
func (h *holding) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, failed := registry.FailedCondition(remove(ctx, h.store, h.record)); !failed {
		return
	}
	record, claim, err := h.read(ctx)
	if err == nil && claim.Owner == h.owner {
		_ = remove(ctx, h.store, record) // otherwise the claim expires
	}
}

// remove deletes a claim unless it has changed since it was read.
func remove(ctx context.Context, store registry.Store, record registry.Record) error {
	_, err := store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(record.Key, record.ETag)},
		Writes:     []registry.Write{registry.Delete(record.Key)},
	})
	return err
}
