package jobs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"moorage/internal/worker"
	"moorage/storage"
)

const (
	// halvedFor is the time for which a storage's rate stays halved after the storage has reported
	// too many requests.
	halvedFor = time.Minute
	// halvingsMax is the maximum number of halvings: a storage keeps at least a sixty-fourth of the
	// full rate.
	halvingsMax = 6
	// halvingPause is the minimum time between two halvings. Requests in progress at the time of a
	// halving get the same answer, and must not cause another halving.
	halvingPause = 5 * time.Second
)

// Rates are the maximum rates of one node, per second. Zero means no bound.
type Rates struct {
	Deletes   int64         // files
	Pages     int64         // of lists of files
	ReadBytes int64         // of manifests and their lists
	Busy      time.Duration // time of one processor spent on decoding manifests
}

// DefaultRates returns the default rates of a server.
func DefaultRates() Rates {
	return Rates{Deletes: 500, Pages: 20, ReadBytes: 32 << 20, Busy: 500 * time.Millisecond}
}

// BudgetStats has the counters of a Budget since its creation.
type BudgetStats struct {
	ReadBytes int64
	Waited    time.Duration // sum over all callers
	Slowed    int64         // halvings
}

// resource is a resource with its own budget.
type resource int

const (
	resourceDeletes resource = iota
	resourcePages
	resourceReadBytes
	resourceBusy // nanoseconds
	resources
)

// Budget bounds the load of one node's maintenance on storages, so that the requests of clients
// come first. It is safe for concurrent use.
//
//   - Deletions, pages of lists, bytes of manifests and processor time each have a maximum rate per
//     second. Unused budget is not saved up.
//   - If a storage reports too many requests, its rate is halved, and halved again if the report
//     recurs. After each minute without such a report, the rate is doubled, up to the full rate.
//   - Waiting calls are served in the order of arrival. A call stops waiting when its context ends.
type Budget struct {
	rates [resources]int64
	now   func() time.Time

	mu    sync.Mutex // guards the fields below; no lock is taken under it
	next  [resources]time.Time
	slow  map[string]*slowedStore // storages, by scheme and authority
	stats BudgetStats
}

// slowedStore is a storage that asked for fewer requests.
type slowedStore struct {
	halvings int
	since    time.Time // when the last halving took effect, or was undone
	next     [resources]time.Time
}

// NewBudget returns a budget with rates. now is the process's clock; nil means time.Now.
func NewBudget(rates Rates, now func() time.Time) *Budget {
	if now == nil {
		now = time.Now
	}
	return &Budget{
		rates: [resources]int64{rates.Deletes, rates.Pages, rates.ReadBytes, int64(rates.Busy)},
		now:   now, slow: make(map[string]*slowedStore),
	}
}

// Delete waits until the given number of files at location may be deleted. It fails only with the
// context's error.
func (b *Budget) Delete(ctx context.Context, location string, files int) error {
	return b.spend(ctx, location, resourceDeletes, int64(files))
}

// List waits until a page of the files at location may be listed. It fails only with the context's
// error.
func (b *Budget) List(ctx context.Context, location string) error {
	return b.spend(ctx, location, resourcePages, 1)
}

// Note records the result of a request to the storage of location. It returns err.
func (b *Budget) Note(location string, err error) error {
	if !errors.Is(err, storage.ErrSlowDown) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	s := b.slowedLocked(storeOf(location), now)
	if s == nil {
		s = &slowedStore{}
		b.slow[storeOf(location)] = s
	}
	if now.Sub(s.since) >= halvingPause || s.halvings == 0 {
		s.halvings, s.since = min(s.halvings+1, halvingsMax), now
		b.stats.Slowed++
	}
	return err
}

// Stats returns the counts of b.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// spend waits until n of a resource may be used at the storage of location.
func (b *Budget) spend(ctx context.Context, location string, r resource, n int64) error {
	b.mu.Lock()
	now := b.now()
	begin := b.reserveLocked(location, r, n, now)
	b.stats.Waited += begin.Sub(now)
	b.mu.Unlock()
	if !begin.After(now) {
		return ctx.Err()
	}
	if !worker.Sleep(ctx, begin.Sub(now)) {
		return ctx.Err()
	}
	return nil
}

// reserveLocked returns when n of a resource may be used, and delays later calls accordingly. mu
// must be held.
func (b *Budget) reserveLocked(location string, r resource, n int64, now time.Time) time.Time {
	rate := b.rates[r]
	if rate == 0 {
		return now
	}
	cost := time.Duration(float64(n) / float64(rate) * float64(time.Second))
	begin := laterOf(now, b.next[r])
	if s := b.slowedLocked(storeOf(location), now); s != nil {
		begin = laterOf(begin, s.next[r])
		s.next[r] = begin.Add(cost << s.halvings)
	}
	b.next[r] = laterOf(now, b.next[r]).Add(cost)
	return begin
}

// slowedLocked returns the storage if its rate is reduced at time now, and nil otherwise. mu must
// be held.
func (b *Budget) slowedLocked(store string, now time.Time) *slowedStore {
	s := b.slow[store]
	for s != nil && now.Sub(s.since) >= halvedFor {
		if s.halvings--; s.halvings <= 0 {
			delete(b.slow, store)
			return nil
		}
		s.since = s.since.Add(halvedFor)
	}
	return s
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// storeOf returns the identity of a storage: the scheme and authority of a location.
func storeOf(location string) string {
	parsed, err := storage.ParseFile(location)
	if err != nil {
		return ""
	}
	return cmp.Or(parsed.Scheme, "file") + "://" + parsed.Authority
}

// budgetReader opens files within a budget.
type budgetReader struct {
	budget *Budget
	files  opener
}

// reader returns an opener of files within the budget of b.
func (b *Budget) reader(files opener) budgetReader { return budgetReader{b, files} }

// Open opens a file once the budget has room for its bytes, and for the time that was spent on
// decoding earlier files. Errors come from the context or from files.
func (r budgetReader) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if err := r.budget.spend(ctx, location, resourceBusy, 0); err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := r.files.Open(ctx, location)
	if err != nil {
		return nil, info, r.budget.Note(location, err)
	}
	if err := r.budget.spend(ctx, location, resourceReadBytes, info.Bytes); err != nil {
		return nil, info, errors.Join(err, body.Close())
	}
	return &measured{ReadCloser: body, budget: r.budget, location: location, opened: r.budget.now()}, info, nil
}

// measured is an open file. The time between two reads counts as decoding time.
type measured struct {
	io.ReadCloser
	budget   *Budget
	location string
	opened   time.Time
	reading  time.Duration
	bytes    int64
}

// Read implements io.Reader.
func (m *measured) Read(into []byte) (int, error) {
	began := m.budget.now()
	n, err := m.ReadCloser.Read(into)
	m.reading += m.budget.now().Sub(began)
	m.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, m.budget.Note(m.location, err)
	}
	return n, err
}

// Close implements io.Closer.
func (m *measured) Close() error {
	b := m.budget
	b.mu.Lock()
	now := b.now()
	b.stats.ReadBytes += m.bytes
	b.reserveLocked(m.location, resourceBusy, int64(now.Sub(m.opened)-m.reading), now)
	b.mu.Unlock()
	return m.ReadCloser.Close()
}
