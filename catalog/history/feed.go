package history

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Bounds of one request.
const (
	// EventsMax is the maximum number of events that a request can ask for. A page may have more,
	// because the events of one change are never split.
	EventsMax = 1000
	// WaitMax is the maximum time that a request waits for an event.
	WaitMax = time.Minute
	// One request reads at most readsMax changes, and reads for at most readTime. Reading 10,000
	// changes takes some 150 ms.
	readsMax = 10_000
	readTime = 2 * time.Second
	// WithinMax bounds, and is the default of, Query.Within.
	WithinMax = readTime
	// chunkMax is how many changes are read at once.
	chunkMax = 500
	// timeSlack is the assumed maximum difference between the clocks of two nodes. A search by time
	// begins that much earlier.
	timeSlack = time.Minute
)

// Config holds the parts of a Feed. Guard and Logger may be nil.
type Config struct {
	Ledger    *ledger.Ledger
	Store     registry.Store // for reading changes
	Directory *directory.Directory
	// Guard authorizes callers. If it is nil, every caller sees everything.
	Guard *gate.Guard
	// Files returns the metadata files named in the present document of a table: first the present
	// file, then the files of its metadata log, newest first. For a view it returns none.
	Files func(ctx context.Context, found *directory.Found) ([]File, error)
	// UndropWindow is how long after a drop without a purge a table can be restored.
	UndropWindow time.Duration
	Now          func() time.Time
	Logger       *slog.Logger
}

// Feed serves the feed of a store, and the histories of its objects. It is safe for concurrent use.
type Feed struct {
	config   Config
	follower *follower

	mu    sync.Mutex        // guards the fields below; leaf; never held during calls
	store registry.ID       // the ID of the store; zero until it has been read
	seen  registry.Position // the last position that was read
}

// New returns a feed. Close ends it.
func New(config Config) *Feed {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Feed{config: config, follower: newFollower(config)}
}

// Close ends all waits, and stops reading on their behalf.
func (f *Feed) Close() { f.follower.close() }

// Wake makes waiting requests look for changes at once. The process calls it after each change that
// it makes.
func (f *Feed) Wake() { f.follower.poke() }

// Query is a request for a page of events. At most one of After, Tail and From is set.
type Query struct {
	// After is a position, First or End. The default is First.
	After string
	// Tail is the number of last events that are asked for, from 1 to EventsMax.
	Tail int
	// Within is how long a request with Tail reads further back than is needed if it sees every
	// event. Default WithinMax. There are fewer events if it ends the request.
	Within time.Duration
	// From asks for the events since a time.
	From time.Time
	// Limit is the number of events after which the page ends. Default 100.
	Limit int
	// Wait is how long to wait for an event if there is none, up to WaitMax. Closing Stopping ends
	// the wait early.
	Wait     time.Duration
	Stopping <-chan struct{}
	Filter   Filter
}

// Page is a page of events, in the order of their changes.
type Page struct {
	Events []Event
	// Next is the position where the next page continues. It is behind all changes read for the
	// page, including those left out by the filter.
	Next string
	// First is the position before the first retained change.
	First string
	// AtEnd is true if there was no change after Next.
	AtEnd bool
}

// Read returns a page of the events that the caller may see.
//
// Errors: KindBadRequest for an invalid query; KindGone if the position is of another store, beyond
// the end, or before deleted changes; KindTooManyRequests if too many requests wait;
// KindNotAuthorized; KindUnavailable; the error of ctx.
func (f *Feed) Read(ctx context.Context, caller moorage.Caller, q Query) (Page, error) {
	const op = "history.Read"
	if err := q.Filter.check(); err != nil {
		return Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = 100
	}
	q.Limit = min(q.Limit, EventsMax)
	began := f.config.Now()
	r := &reading{Feed: f, query: q, caller: caller}
	err := r.begin(ctx)
	if err == nil && q.Tail == 0 {
		err = r.page(ctx, r.deadline())
	}
	for err == nil && len(r.found) == 0 && r.atEnd {
		left := min(q.Wait, WaitMax) - f.config.Now().Sub(began)
		if left <= 0 {
			break
		}
		var ended bool
		if ended, err = f.follower.await(ctx, r.at, left, q.Stopping); ended {
			break
		}
		r.waited = true
		err = r.page(ctx, r.deadline())
	}
	if _, ok := errors.AsType[*moorage.Error](err); err != nil && !ok {
		err = ledger.StoreError(op, err)
	}
	if err != nil {
		return Page{}, moorage.Annotate(op, "", err)
	}
	return r.answer(), nil
}

// reading is the state of one request.
type reading struct {
	*Feed
	query  Query
	caller moorage.Caller

	id      registry.ID
	horizon registry.Horizon
	at      registry.Position // all changes up to here have been read
	from    registry.Position // where the page began
	until   registry.Position // the last change that is read; zero for all
	found   []Event
	atEnd   bool
	waited  bool // then the end known to the follower is recent enough
}

// begin finds the position at which the request begins.
func (r *reading) begin(ctx context.Context) (err error) {
	if r.id, err = r.storeID(ctx); err != nil {
		return err
	}
	if r.horizon, err = registry.ReadHorizon(ctx, r.config.Store); err != nil {
		return err
	}
	switch q := r.query; {
	case q.Tail > 0:
		return r.beginTail(ctx)
	case !q.From.IsZero():
		r.query.Filter.Since = q.From
		r.at, err = r.positionAt(ctx, q.From.Add(-timeSlack))
		return err
	case q.After == "" || q.After == First:
		r.at = r.horizon.Position
		return nil
	case q.After == End:
		r.at, err = registry.Head(ctx, r.config.Store, r.horizon.Position)
		return err
	}
	position, isOurs, err := parse(r.id, r.query.After)
	if err != nil {
		return err
	}
	if !isOurs {
		return r.gone(ctx, "The position %s is of another store, such as the one that this store is a copy of",
			r.query.After)
	}
	r.at = position
	return nil
}

// storeID returns the id of the store.
func (f *Feed) storeID(ctx context.Context) (registry.ID, error) {
	f.mu.Lock()
	id := f.store
	f.mu.Unlock()
	if !id.IsZero() {
		return id, nil
	}
	id, err := f.config.Ledger.StoreID(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store = id
	return id, err
}

// gone returns the error for a position from which reading cannot continue. why is the reason.
func (r *reading) gone(ctx context.Context, why string, args ...any) error {
	head, err := registry.Head(ctx, r.config.Store, r.horizon.Position)
	if err != nil {
		return err
	}
	return moorage.Errorf(moorage.KindGone, why+". List what you follow again, then go on with after=%s",
		append(args, format(r.id, head))...)
}

// deadline returns the time at which a reading that begins now must end.
func (f *Feed) deadline() time.Time { return f.config.Now().Add(readTime) }

// page reads changes after r.at. It stops when it has enough events, or when it reaches a bound,
// the deadline or the end. If the next changes have been deleted, it begins again after them,
// unless the caller asked for events after a position.
func (r *reading) page(ctx context.Context, deadline time.Time) error {
	viewer, err := r.viewer(ctx, r.caller, r.query.Filter)
	if err != nil {
		return err
	}
	r.from = r.at
	for left := readsMax; left > 0 && len(r.found) < r.query.Limit && r.config.Now().Before(deadline); {
		changes, err := r.upTo(ctx, min(chunkMax, left))
		if errors.Is(err, registry.ErrForgotten) {
			if err = r.forgotten(ctx); err == nil {
				r.found, r.at, r.from = nil, r.horizon.Position, r.horizon.Position
				continue
			}
		}
		if err != nil {
			return err
		}
		if r.atEnd = len(changes) == 0; r.atEnd {
			break
		}
		left -= len(changes)
		isFull, err := r.take(ctx, viewer, changes)
		if err != nil || isFull {
			return err
		}
	}
	if r.atEnd && r.at == r.from {
		return r.checkEnd(ctx)
	}
	return nil
}

// upTo returns at most limit changes after r.at, without those after r.until.
func (r *reading) upTo(ctx context.Context, limit int) ([]placed, error) {
	if r.until == 0 {
		return r.changes(ctx, limit)
	}
	if r.at >= r.until {
		return nil, nil
	}
	changes, err := r.changes(ctx, int(min(registry.Position(limit), r.until-r.at)))
	for i, each := range changes {
		if each.position > r.until {
			return changes[:i], err
		}
	}
	return changes, err
}

// changes returns at most limit changes after r.at. They come from memory while the follower has
// them.
func (r *reading) changes(ctx context.Context, limit int) ([]placed, error) {
	changes, known := r.follower.changesAfter(r.at, limit)
	if !known || len(changes) == 0 && !r.waited {
		read, err := registry.Follow(ctx, r.config.Store, r.at, limit)
		if err != nil {
			return nil, err
		}
		changes = placedOf(read)
	}
	if len(changes) > 0 {
		r.notice(changes[len(changes)-1].position)
	}
	return changes, nil
}

func (f *Feed) notice(position registry.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = max(f.seen, position)
}

// take adds the events of changes that were read, and advances r.at. isFull is true if the page is
// full before the last of the changes.
func (r *reading) take(ctx context.Context, viewer *viewer, changes []placed) (isFull bool, err error) {
	selected := make([][]Event, len(changes))
	for i, each := range changes {
		for _, event := range each.events {
			if r.query.Filter.selects(event) {
				selected[i] = append(selected[i], event)
			}
		}
	}
	if err := viewer.prepare(ctx, selected); err != nil {
		return false, err
	}
	for i, each := range changes {
		if len(r.found) >= r.query.Limit || r.at != r.from && viewer.isFull(selected[i]) {
			return true, nil
		}
		shown, err := viewer.show(ctx, selected[i])
		if err != nil {
			return false, err
		}
		for _, event := range shown {
			event.Position, event.Count = format(r.id, each.position), len(shown)
			r.found = append(r.found, event)
		}
		r.at = each.position
	}
	return false, nil
}

// forgotten reads the horizon. It returns the error for a position before deleted changes, or nil
// if the caller did not ask for events after a position.
func (r *reading) forgotten(ctx context.Context) (err error) {
	r.horizon, err = registry.ReadHorizon(ctx, r.config.Store)
	if err != nil || r.query.After == "" || r.query.After == First {
		return err
	}
	at := format(r.id, r.horizon.Position)
	return moorage.Errorf(moorage.KindGone,
		"Changes up to %s are deleted. List what you follow again, then go on with after=%s", at, at)
}

// checkEnd returns KindGone if the position of the request is beyond the end of the changes.
func (r *reading) checkEnd(ctx context.Context) error {
	r.mu.Lock()
	seen := r.seen
	r.mu.Unlock()
	if r.at <= max(seen, r.horizon.Position) {
		return nil
	}
	head, err := registry.Head(ctx, r.config.Store, r.horizon.Position)
	if err != nil {
		return err
	}
	r.notice(head)
	if r.at <= head {
		return nil
	}
	return r.gone(ctx, "The position %s is beyond the last change", format(r.id, r.at))
}

// beginTail reads the last events: the last changes, and then earlier ones by steps that double,
// until there are enough events, or Query.Within or readsMax ends that.
func (r *reading) beginTail(ctx context.Context) error {
	head, err := registry.Head(ctx, r.config.Store, r.horizon.Position)
	if err != nil {
		return err
	}
	before := func(position, step registry.Position) registry.Position {
		return max(position, r.horizon.Position+step) - step
	}
	tail, deadline := min(r.query.Tail, EventsMax), r.config.Now().Add(cmp.Or(r.query.Within, WithinMax))
	r.query.Limit = EventsMax
	step := registry.Position(2 * tail)
	begin := before(head, step)
	last, isWhole, err := r.readTo(ctx, begin, 0, r.deadline())
	if err == nil && !isWhole {
		err = moorage.Errorf(moorage.KindUnavailable,
			"The last events could not be read within %s. Try again, or ask for the events since a time", readTime)
	}
	if err != nil {
		return err
	}
	end := r.at
	for len(last) < tail && begin > r.horizon.Position && head-begin < readsMax {
		until := begin
		step *= 2
		begin = before(until, step)
		earlier, isWhole, err := r.readTo(ctx, begin, until, deadline)
		if err != nil {
			return err
		}
		if !isWhole {
			break
		}
		last = append(earlier, last...)
	}
	r.at, r.atEnd, r.until, r.query.Limit = end, true, 0, tail
	r.found = newest(last, tail)
	return nil
}

// readTo returns the events of the changes after begin, up to and including until, or up to the end
// if until is zero. It reads page by page. isWhole is false if the deadline came first.
func (r *reading) readTo(ctx context.Context, begin, until registry.Position, deadline time.Time) (
	events []Event, isWhole bool, err error) {
	r.at, r.until, r.atEnd = begin, until, false
	for !r.atEnd && (until == 0 || r.at < until) {
		if !r.config.Now().Before(deadline) {
			return nil, false, nil
		}
		from := r.at
		r.found = nil
		if err := r.page(ctx, deadline); err != nil {
			return nil, false, err
		}
		if r.from > from {
			events = nil // there would be a gap after them
		}
		events = newest(append(events, r.found...), r.query.Tail)
	}
	return events, true, nil
}

// newest returns the last events, at least as many as tail if there are so many. It does not split
// a change.
func newest(events []Event, tail int) []Event {
	cut := max(0, len(events)-tail)
	for cut > 0 && events[cut-1].Position == events[cut].Position {
		cut--
	}
	return events[cut:]
}

// positionAt returns a position before the first change since a time. The times come from the
// clocks of the nodes, so their order is only roughly that of the changes.
func (r *reading) positionAt(ctx context.Context, at time.Time) (registry.Position, error) {
	low := r.horizon.Position
	high, err := registry.Head(ctx, r.config.Store, low)
	for err == nil && low < high {
		middle := low + (high-low)/2
		var found []registry.PositionedChange
		found, err = r.config.Store.Changes(ctx, middle, 1)
		if err == nil && len(found) > 0 && found[0].Position <= high && found[0].Unreadable == nil &&
			found[0].Change.Time.Before(at) {
			low = found[0].Position
		} else {
			high = middle
		}
	}
	return low, err
}

// answer returns the page that was read.
func (r *reading) answer() Page {
	return Page{
		Events: r.found, Next: format(r.id, r.at), First: format(r.id, r.horizon.Position), AtEnd: r.atEnd,
	}
}
