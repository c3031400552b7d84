package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

const (
	// offMax is the largest difference between two clocks that does not cause doubt.
	offMax = time.Hour
	// agreeFor is the time for which storages must agree with a clock in doubt.
	agreeFor = 10 * time.Minute
	// askPause is the pause between two requests to the storages for their time. doubtPause is the
	// pause while the clock is in doubt.
	askPause   = 10 * time.Minute
	doubtPause = time.Minute
	// changesPage is the maximum number of changes in one read. The search for the newest change
	// reads at least one page.
	changesPage = 1000
)

// ClockReading is the time of another clock.
type ClockReading struct {
	Source string // such as the location of a warehouse
	Time   time.Time
}

// ClockConfig configures a Clock. Deps and Boot are required.
type ClockConfig struct {
	ledger.Deps
	// Boot returns the time since the machine was started, including sleep.
	Boot func() time.Duration
	// Ask returns the present times of the storages' clocks. A clock has the same Source in every
	// call. Ask omits storages that do not answer. By default there are no storages.
	Ask func(ctx context.Context) []ClockReading
}

// Clock decides whether the store's clock can be trusted for the age of a file. A machine's clock
// may jump, and the clock of a machine that was off may be years ahead. Only other clocks can
// confirm the store's clock. Records cannot, because their times come from the store's clock. Three
// things put the clock in doubt:
//
//   - The clock has jumped by more than an hour, compared with the time since the machine was
//     started. Sleep counts as time since the start. So a machine that was suspended or off causes
//     no doubt.
//   - The clock of a storage differs from the store's clock by more than an hour.
//   - The clock was more than an hour behind the newest change when this process began.
//
// The doubt is a record, so it outlives the process and holds for all nodes. It ends when all
// storages that report a time have agreed with the clock for ten minutes. It also ends when an
// operator removes the record. The process then trusts the clock as it is. A Clock is safe for
// concurrent use.
type Clock struct {
	config ClockConfig
	ledger *ledger.Ledger

	mu       sync.Mutex // guards the fields below; held during requests to the store and the storages
	began    bool
	from     clockMoment              // the moment since which the two clocks are compared
	newest   time.Time                // time of the newest change when this process began; zero once it does not matter
	asked    time.Duration            // when the storages were last asked for the time, by Boot
	off      map[string]time.Duration // how far each storage's clock is ahead of the store's clock
	accepted map[string]time.Duration // the same differences when the clock was last accepted
	agreed   time.Duration            // since when all storages agree, by Boot; negative if one does not
	noted    bool                     // the last check found or wrote the record of a doubt

	last sync.Mutex // guards the field below; no lock is taken under it
	why  string
}

// clockMoment is one moment as shown by two clocks.
type clockMoment struct {
	store time.Time
	boot  time.Duration
}

// NewClock returns the clock of a store.
func NewClock(config ClockConfig) *Clock {
	if config.Ledger == nil || config.Boot == nil {
		panic("jobs: Deps and Boot are required")
	}
	if config.Ask == nil {
		config.Ask = func(context.Context) []ClockReading { return nil }
	}
	return &Clock{config: config, ledger: config.Ledger, agreed: -1}
}

// Doubt explains why the clock cannot be trusted now. It returns "" if the clock can be trusted.
func (c *Clock) Doubt(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why, err := c.judge(ctx)
	if err != nil {
		return "", ledger.StoreError("jobs.Doubt", err)
	}
	c.last.Lock()
	defer c.last.Unlock()
	c.why = why
	return why, nil
}

// Last returns the last result of Doubt. It calls neither the store nor a storage.
func (c *Clock) Last() string {
	c.last.Lock()
	defer c.last.Unlock()
	return c.why
}

// judge implements Doubt. mu must be held.
func (c *Clock) judge(ctx context.Context) (string, error) {
	records, err := c.config.Store.Get(ctx, registry.ClockKey())
	if err != nil {
		return "", err
	}
	now, err := c.config.Store.Time(ctx)
	if err != nil {
		return "", err
	}
	at := clockMoment{now, c.config.Boot()}
	if !c.began {
		if c.newest, err = newestChange(ctx, c.config.Store); err != nil {
			return "", err
		}
		c.from, c.began = at, true
	}
	record := records[0]
	pause := askPause
	if record.Exists() {
		pause = doubtPause
	}
	if c.off == nil || at.boot-c.asked >= pause {
		if at, err = c.askLocked(ctx); err != nil {
			return "", err
		}
	}
	if record.Exists() {
		return c.doubtedLocked(ctx, record, at)
	}
	if c.noted { // an operator or another node ended the doubt
		c.believeLocked(at)
		return "", nil
	}
	why := c.differsLocked(at)
	if why == "" {
		return "", nil
	}
	return c.noteLocked(ctx, why, at.store)
}

// askLocked asks the storages for their times, and returns the moment of the request. mu must be
// held.
func (c *Clock) askLocked(ctx context.Context) (clockMoment, error) {
	before, err := c.config.Store.Time(ctx)
	if err != nil {
		return clockMoment{}, err
	}
	said := c.config.Ask(ctx)
	after, err := c.config.Store.Time(ctx)
	if err != nil {
		return clockMoment{}, err
	}
	at := clockMoment{after, c.config.Boot()}
	c.asked, c.off = at.boot, make(map[string]time.Duration, len(said))
	agree := len(said) > 0
	for _, each := range said {
		off := time.Duration(0)
		switch {
		case each.Time.Before(before):
			off = each.Time.Sub(before)
		case each.Time.After(after):
			off = each.Time.Sub(after)
		}
		c.off[each.Source] = off
		agree = agree && off.Abs() <= offMax
	}
	switch {
	case !agree:
		c.agreed = -1
	case c.agreed < 0:
		c.agreed = at.boot
	}
	return at, nil
}

// doubtedLocked returns the reason for the doubt from record, unless all storages have agreed with
// the clock for long enough. mu must be held.
func (c *Clock) doubtedLocked(ctx context.Context, record registry.Record, at clockMoment) (string, error) {
	if !c.noted {
		c.noted, c.agreed = true, -1 // the storages must answer again before they can end the doubt
	}
	if c.agreed < 0 || at.boot-c.agreed < agreeFor {
		doubt, err := ledger.Decode[registry.ClockDoubt](record)
		if err != nil {
			return "its record cannot be read", nil
		}
		return doubt.Why, nil
	}
	_, err := c.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)},
		Writes:     []registry.Write{registry.Delete(record.Key)},
	})
	if _, failed := registry.FailedCondition(err); err != nil && !failed {
		return "", err
	}
	c.believeLocked(at)
	c.config.Logger.InfoContext(ctx, "the clock is trusted again: storages have agreed with it", "for", agreeFor)
	return "", nil
}

// believeLocked accepts the clock as of the given moment. mu must be held.
func (c *Clock) believeLocked(at clockMoment) {
	c.noted, c.from, c.newest, c.accepted = false, at, time.Time{}, make(map[string]time.Duration)
	for who, off := range c.off {
		if off.Abs() > offMax { // an operator decided that the storage's clock is wrong
			c.accepted[who] = off
		}
	}
}

// differsLocked returns the reason to doubt a trusted clock, or "" if there is none. mu must be
// held.
func (c *Clock) differsLocked(at clockMoment) string {
	jump := at.store.Sub(c.from.store) - (at.boot - c.from.boot)
	if jump.Abs() > offMax {
		return fmt.Sprintf("The store's clock was set %s while this process ran", direction(jump))
	}
	if behind := c.newest.Sub(c.from.store); behind > offMax {
		return fmt.Sprintf("The store's clock is %s behind the newest change", behind.Round(time.Minute))
	}
	for who, off := range c.off {
		if (off - c.accepted[who]).Abs() > offMax {
			return fmt.Sprintf("The clock of the storage of %s is set %s compared with the store's clock", who,
				direction(off))
		}
	}
	return ""
}

func direction(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(time.Minute).String() + " back"
	}
	return d.Round(time.Minute).String() + " ahead"
}

// noteLocked writes the record of a doubt, unless another node was faster. mu must be held.
func (c *Clock) noteLocked(ctx context.Context, why string, now time.Time) (string, error) {
	why += ". Correct the clock, then run: moorage maintain resume server"
	writes, err := ledger.Encode(ledger.Put(registry.ClockKey(), registry.StateNone,
		registry.ClockDoubt{Why: why, Since: now}))
	if err != nil {
		return "", err
	}
	_, err = c.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{registry.Absent(registry.ClockKey())}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); err != nil && !failed {
		return "", err
	}
	c.agreed = -1
	if c.noted = true; err == nil {
		c.config.Logger.WarnContext(ctx, "nothing is deleted until the clock is trusted", "why", why)
	}
	return why, nil
}

// newestChange returns the time of the newest change of a store, as of its change record. It
// returns zero if there is no change.
func newestChange(ctx context.Context, store registry.Store) (newest time.Time, err error) {
	horizon, err := registry.ReadHorizon(ctx, store)
	if err != nil {
		return newest, err
	}
	head, err := registry.Head(ctx, store, horizon.Position)
	if err != nil {
		return newest, err
	}
	for position := max(horizon.Position, head-min(head, changesPage)); ; {
		found, err := store.Changes(ctx, position, changesPage)
		if err != nil {
			return newest, err
		}
		for _, each := range found {
			position = each.Position
			if each.Unreadable == nil {
				newest = each.Change.Time
			}
		}
		if len(found) < changesPage {
			return newest, nil
		}
	}
}
