package retention_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// More than one page of unreadable outcomes does not keep the sweep from the next page.
func TestSweepGoesOnBehindUnreadablePage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var writes []registry.Write
	for i := range ledger.ScanPage {
		writes = append(writes, registry.Put(registry.IdempotencyKey(registry.Hash{0: byte(i >> 8), 1: byte(i)}), registry.StateNone, []byte("{")))
	}
	for part := range slices.Chunk(writes, 500) {
		f.write(part...)
	}
	last := registry.IdempotencyKey(registry.Hash{0: 255})
	f.put(last, registry.StateNone, registry.Idempotency{Created: f.clock.Now().Add(-2 * time.Hour), Life: time.Hour})
	if err := f.RunOnce(f.ctx, retention.Keys); err == nil || !strings.Contains(err.Error(), writes[0].Key.String()) {
		t.Errorf("the sweep says nothing of the first: %v", err)
	}
	records, err := f.store.Get(f.ctx, writes[0].Key, last)
	if err != nil || !records[0].Exists() || records[1].Exists() {
		t.Errorf("left are %v (%v)", records, err)
	}
}

// keyed returns the write of an outcome that is new now.
func (f *fixture) keyed(id string) registry.Write {
	f.t.Helper()
	key := ledger.Key{
		Record:  registry.IdempotencyKey(sha256.Sum256([]byte(id))),
		Request: registry.Idempotency{Created: f.clock.Now(), Life: keyLife},
	}
	_, write, err := key.Put(registry.Outcome{})
	must(f.t, err)
	if write.Life != keyLife {
		f.t.Fatalf("the write lives for %s, the outcome for %s", write.Life, keyLife)
	}
	return write
}

// outcomes returns the remaining outcomes.
func (f *fixture) outcomes() (found []registry.Record) {
	f.t.Helper()
	must(f.t, registrytest.Ledger(f.store).Scan(f.ctx, registry.TableIdempotency, "", "", func(r registry.Record) (bool, error) {
		found = append(found, r)
		return true, nil
	}))
	return found
}

// datedStore is a store that finds expired outcomes itself, except some of them.
type datedStore struct {
	registry.Store
	dates   map[registry.Key]time.Time
	undated map[registry.Key]bool
	decoded int
}

func (s *datedStore) Expired(ctx context.Context, before time.Time, limit int) (found []registry.Record, err error) {
	records, err := s.Store.ListKeys(ctx, registry.TableIdempotency, "", "", registry.ListLimitMax)
	for _, record := range records {
		if at, ok := s.dates[record.Key]; ok && !s.undated[record.Key] && at.Before(before) && len(found) < limit {
			found = append(found, record)
		}
	}
	return found, err
}

func (s *datedStore) Undated(ctx context.Context, after string, limit int) (found []registry.Record, err error) {
	records, err := s.Store.List(ctx, registry.TableIdempotency, "", after, registry.ListLimitMax)
	for _, record := range records {
		if s.undated[record.Key] && len(found) < limit {
			found = append(found, record)
		}
	}
	s.decoded += len(found)
	return found, err
}

// If the store finds expired outcomes itself, the sweep reads only the outcomes whose time the
// store does not know.
func TestSweepOfDatedKeys(t *testing.T) {
	t.Parallel()
	dated := &datedStore{dates: map[registry.Key]time.Time{}, undated: map[registry.Key]bool{}}
	f := newFixture(t, func(c *retention.Config) {
		dated.Store = c.Store
		c.Store = dated
	})
	const count = ledger.ScanPage + 100
	for n := range count {
		write := f.keyed(fmt.Sprint(n))
		dated.dates[write.Key], dated.undated[write.Key] = f.clock.Now().Add(write.Life), n%100 == 0
		f.write(write)
	}
	must(t, f.RunOnce(f.ctx, retention.Keys))
	if got := len(f.outcomes()); got != count || dated.decoded != count/100 {
		t.Errorf("%d outcomes are left, %d were decoded", got, dated.decoded)
	}
	f.clock.Advance(keyLife + time.Second)
	must(t, f.RunOnce(f.ctx, retention.Keys))
	if got := len(f.outcomes()); got != count/100 {
		t.Errorf("%d outcomes are left, want the %d without a time", got, count/100)
	}
	f.clock.Advance(keyLife / 2)
	must(t, f.RunOnce(f.ctx, retention.Keys))
	if got := len(f.outcomes()); got != 0 || dated.decoded > 2*count/100 {
		t.Errorf("%d outcomes are left, %d were decoded", got, dated.decoded)
	}
}

// An outcome was written while the clock was a year ahead. From the moment when that is found, it
// is kept for the usual lifetime.
func TestSweepOfKeysOfTheFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.clock.Advance(365 * 24 * time.Hour)
	f.write(f.keyed("ahead"))
	f.clock.Advance(-365 * 24 * time.Hour)
	must(t, f.RunOnce(f.ctx, retention.Keys))
	f.clock.Advance(keyLife)
	for range 2 {
		must(t, f.RunOnce(f.ctx, retention.Keys))
	}
	if got := len(f.outcomes()); got != 1 {
		t.Errorf("%d outcomes are left that may be asked for", got)
	}
	f.clock.Advance(2 * keyLife)
	for range 2 {
		must(t, f.RunOnce(f.ctx, retention.Keys))
	}
	if got := len(f.outcomes()); got != 0 {
		t.Errorf("%d outcomes are left later", got)
	}
}

// decodingStore counts the outcomes that lists return.
type decodingStore struct {
	registry.Store
	lists int
	read  int
}

func (s *decodingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	records, err := s.Store.List(ctx, table, prefix, after, limit)
	if table == registry.TableIdempotency {
		s.lists++
		s.read += len(records)
	}
	return records, err
}

// Keys come at a steady rate. Each outcome is read about three times before it is deleted, and none
// is kept for twice its lifetime.
func TestSweepReadsOutcomesSeldom(t *testing.T) {
	t.Parallel()
	const rounds, perRound, readsMax = 300, 40, 4
	decoding := new(decodingStore)
	f := newFixture(t, func(c *retention.Config) {
		decoding.Store = c.Store
		c.Store = decoding
	})
	read, most := 0, 0
	for round := range rounds {
		var batch registry.Batch
		for n := range perRound {
			batch.Writes = append(batch.Writes, f.keyed(fmt.Sprint(round, "/", n)))
		}
		_, err := f.store.Apply(f.ctx, batch)
		must(t, err)
		decoding.read = 0
		must(t, f.RunOnce(f.ctx, retention.Keys))
		read += decoding.read
		f.clock.Advance(time.Minute)
		most = max(most, len(f.outcomes()))
	}
	lifetime := int(keyLife / time.Minute)
	if read > readsMax*rounds*perRound || most > 2*lifetime*perRound {
		t.Errorf("%d outcomes were read for %d that came, and %d were there at once", read, rounds*perRound, most)
	}
}

// Expired keys do not pile up, however many come. A round continues as long as it finds expired
// keys. If it finds none, it reads a bounded part.
func TestSweepOfKeysKeepsUp(t *testing.T) {
	t.Parallel()
	const total = (retention.ScanPages + 3) * ledger.ScanPage
	store := new(decodingStore)
	f := newFixture(t, func(c *retention.Config) { store.Store, c.Store = c.Store, store })
	var batch registry.Batch
	for n := range total {
		if batch.Writes = append(batch.Writes, f.keyed(fmt.Sprint(n))); len(batch.Writes) == ledger.ScanPage {
			_, err := f.store.Apply(f.ctx, batch)
			must(t, err)
			batch.Writes = nil
		}
	}
	store.lists = 0
	must(t, f.RunOnce(f.ctx, retention.Keys))
	if took := store.lists; took != retention.ScanPages {
		t.Errorf("a round with nothing to do took %d calls, want %d", took, retention.ScanPages)
	}
	f.clock.Advance(time.Hour)
	must(t, f.RunOnce(f.ctx, retention.Keys)) // to the end of the pass begun in the last round
	must(t, f.RunOnce(f.ctx, retention.Keys))
	if left := len(f.outcomes()); left > 0 {
		t.Errorf("%d outcomes are left", left)
	}
}
