package browse

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"moorage"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

const (
	// statsPatience is how long a request waits for a count. statsTimeout bounds the count itself.
	statsPatience = 20 * time.Second
	statsTimeout  = 30 * time.Minute
)

// Stats counts the objects in a warehouse.
type Stats struct {
	Tables, Views, Namespaces int64
	Dropped                   int64 // tables and views that can be restored, or whose files are being purged
	// Rows, Bytes and Files are totals over the tables. Unknown is the number of tables whose
	// metadata or record lacks these numbers; the totals leave them out.
	Rows, Bytes, Files, Unknown int64
	AsOf                        time.Time // when the count began
	Complete                    bool      // false while counting continues
}

// Stats counts the objects in the warehouse called name, or returns an earlier count that is not
// older than maxAge. A count reads all pointers of the store, and a node runs one count at a time.
// If counting takes long, Stats returns the numbers so far, and the count continues. While another
// warehouse is counted, Stats returns an older count, or KindUnavailable if there is none.
func (b *Browse) Stats(ctx context.Context, name string, maxAge time.Duration) (Stats, error) {
	const op = "browse.Stats"
	if err := moorage.ValidateWarehouse(name); err != nil {
		return Stats{}, moorage.Annotate(op, name, err)
	}
	asked := gate.LoadStats.Needs(gate.OfObject, gate.Always)
	path, err := b.directory.PathFor(ctx, b.asker(gate.LoadStats), asked, moorage.Identifier{Warehouse: name})
	if err != nil {
		return Stats{}, moorage.Annotate(op, name, err)
	}
	counted, err := b.counts.statsOf(ctx, name, path.Warehouse.ID, maxAge)
	return counted, moorage.Annotate(op, name, err)
}

// counts holds the last counts of a node. It is safe for concurrent use.
type counts struct {
	ledger *ledger.Ledger
	now    func() time.Time
	flight singleflight.Group
	turn   chan struct{} // a semaphore of one: the running count holds it

	mu   sync.Mutex // guards the fields below; leaf
	last map[registry.ID]*Stats
	// running are counts that are not complete.
	running map[registry.ID]*Stats
}

func newCounts(records *ledger.Ledger, now func() time.Time) *counts {
	return &counts{
		ledger: records, now: now, turn: make(chan struct{}, 1),
		last: make(map[registry.ID]*Stats), running: make(map[registry.ID]*Stats),
	}
}

// kept returns the last count of a warehouse, if that count is not older than maxAge.
func (c *counts) kept(id registry.ID, maxAge time.Duration) (Stats, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[id]
	if last == nil || c.now().Sub(last.AsOf) > maxAge {
		return Stats{}, false
	}
	return *last, true
}

// statsOf returns the counts of a warehouse, and counts if necessary.
func (c *counts) statsOf(ctx context.Context, name string, id registry.ID, maxAge time.Duration) (Stats, error) {
	if last, ok := c.kept(id, maxAge); ok {
		return last, nil
	}
	made := c.flight.DoChan(id.String(), func() (any, error) {
		return c.count(context.WithoutCancel(ctx), name, id) // other requests wait for it too
	})
	patience := time.NewTimer(statsPatience)
	defer patience.Stop()
	select {
	case result := <-made:
		counted, _ := result.Val.(Stats)
		return counted, result.Err
	case <-patience.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		if counted := cmp.Or(c.running[id], c.last[id]); counted != nil {
			return *counted, nil
		}
		return Stats{}, moorage.E("browse.statsOf", name, moorage.KindUnavailable,
			errors.New("another warehouse is being counted; ask again in a minute"))
	case <-ctx.Done():
		return Stats{}, moorage.E("browse.statsOf", name, moorage.KindUnavailable, ctx.Err())
	}
}

// count counts the objects in a warehouse.
func (c *counts) count(ctx context.Context, name string, id registry.ID) (Stats, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	running := &Stats{AsOf: c.now()}
	c.mu.Lock()
	c.running[id] = running
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, id)
	}()
	add := func(record registry.Record) (bool, error) {
		pointer, err := registry.DecodePart[registry.Pointer](record)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil { // moorage doctor shows records that cannot be read
			running.add(record.State, pointer, name, id)
		}
		return true, ctx.Err()
	}
	if err := c.ledger.Scan(ctx, registry.TablePointer, "", "", add); err != nil {
		return Stats{}, err
	}
	namespaces := int64(0)
	err := c.ledger.ScanKeys(ctx, registry.TableNamespace, id.String()+"/", "", registry.ListLimitMax,
		func(registry.Record) (bool, error) {
			namespaces++
			return true, nil
		})
	if err != nil {
		return Stats{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	running.Namespaces, running.Complete = namespaces, true
	c.last[id] = running
	return *running, nil
}

// add counts a pointer, if it is in the warehouse.
func (s *Stats) add(state registry.State, pointer registry.Pointer, name string, id registry.ID) {
	switch {
	case state.IsDropped() && pointer.WarehouseID == id:
		s.Dropped++
		return
	case state != registry.StateLive || pointer.Warehouse != name:
		return
	case pointer.View:
		s.Views++
		return
	}
	s.Tables++
	summary := pointer.LastIn(state).Summary
	if summary == nil || summary.Rows < 0 || summary.Bytes < 0 || summary.Files < 0 {
		s.Unknown++
		return
	}
	s.Rows, s.Bytes, s.Files = s.Rows+summary.Rows, s.Bytes+summary.Bytes, s.Files+summary.Files
}
