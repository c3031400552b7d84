package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"moorage/internal/worker"
	"moorage/registry"
)

// Bounds of reads that are joined.
const (
	// statementsMax is the maximum number of statements of Get in progress. Further calls wait and
	// are joined. With a lower limit, one statement answers more calls, but the calls wait longer.
	// With a limit of two, reads cost a seventh more processor time on both sides, at the same
	// rate.
	statementsMax = 1
	// slowStatement is the time after which a statement no longer counts as in progress, so that a
	// hanging statement does not make other calls wait.
	slowStatement = 20 * time.Millisecond
	// joinedKeysMax bounds the keys of a joined statement, and of a call that is joined with
	// others.
	joinedKeysMax = 256
)

// gatherer joins the reads by key of one node. While statementsMax statements are in progress,
// calls wait for one to end. Then all waiting calls, up to joinedKeysMax keys, become one
// statement. So the busier a node is, the more calls each round trip answers. With few clients,
// each call sends its own statement at once.
//
// A statement is sent after the beginning of all calls that it answers, so each call sees
// everything that was committed earlier. The statement reads all keys as of one moment. It is safe
// for concurrent use.
type gatherer struct {
	// read returns the existing records at keys with one statement. Keys may be repeated. It
	// returns the errors of Store.Get.
	read func(ctx context.Context, keys []registry.Key) ([]registry.Record, error)

	mu       sync.Mutex // guards the fields below; no lock is taken under it
	underWay int
	waiting  []*gathered
}

// gathered is a call that waits for a shared statement.
type gathered struct {
	keys []registry.Key
	done chan struct{} // closed when records and err are set

	records []registry.Record
	err     error
}

// get returns the records at keys, in their order, with its own statement or a shared one.
func (g *gatherer) get(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
	if len(keys) > joinedKeysMax {
		return g.readAlone(ctx, keys)
	}
	g.mu.Lock()
	if g.underWay < statementsMax {
		g.underWay++
		g.mu.Unlock()
		defer g.begin()()
		return g.readAlone(ctx, keys)
	}
	call := &gathered{keys: keys, done: make(chan struct{})}
	g.waiting = append(g.waiting, call)
	g.mu.Unlock()
	select {
	case <-call.done:
		return call.records, call.err
	case <-ctx.Done():
		g.leave(call)
		return nil, ctx.Err()
	}
}

// readAlone returns the records at keys, in their order, with its own statement.
func (g *gatherer) readAlone(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
	read, err := g.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[registry.Key]registry.Record, len(read))
	index(found, read)
	return inOrder(keys, found), nil
}

// index adds records to found, by key.
func index(found map[registry.Key]registry.Record, records []registry.Record) {
	for _, record := range records {
		found[record.Key] = record
	}
}

// inOrder returns the records at keys. A missing record is the zero Record.
func inOrder(keys []registry.Key, found map[registry.Key]registry.Record) []registry.Record {
	records := make([]registry.Record, len(keys))
	for i, key := range keys {
		records[i] = found[key]
	}
	return records
}

// leave removes call from the waiting calls, if it still waits.
func (g *gatherer) leave(call *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, call); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
}

// begin begins a statement. The statement counts as in progress until end is called, or until
// slowStatement has passed.
func (g *gatherer) begin() (end func()) {
	next := sync.OnceFunc(g.next)
	slow := time.AfterFunc(slowStatement, next)
	return func() {
		slow.Stop()
		next()
	}
}

// next starts the next statement for the waiting calls.
func (g *gatherer) next() {
	g.mu.Lock()
	calls := g.take()
	if len(calls) == 0 {
		g.underWay--
	}
	g.mu.Unlock()
	if len(calls) > 0 {
		go g.answer(calls)
	}
}

// take returns the first waiting calls, as many as one statement answers. g.mu must be held.
func (g *gatherer) take() []*gathered {
	keys, n := 0, 0
	for n < len(g.waiting) && keys+len(g.waiting[n].keys) <= joinedKeysMax {
		keys += len(g.waiting[n].keys)
		n++
	}
	calls := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return calls
}

// answer reads for all of calls. The context of a single call does not end the read, because other
// calls still wait for it.
func (g *gatherer) answer(calls []*gathered) {
	defer g.begin()()
	var keys []registry.Key
	for _, call := range calls {
		keys = append(keys, call.keys...)
	}
	found := make(map[registry.Key]registry.Record)
	err := worker.Safely(context.Background(), func(ctx context.Context) error {
		read, err := g.read(ctx, keys)
		index(found, read)
		return err
	})
	for _, call := range calls {
		if call.err = err; err == nil {
			call.records = inOrder(call.keys, found)
		}
		close(call.done)
	}
}
