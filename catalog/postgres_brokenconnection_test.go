package catalog_test

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/loopback"
	"moorage/testkit/storetest"
)

// muteStore is a store behind a proxy that loses the answer of one Apply. The proxy lets the Apply
// through and holds the answer back until the database has done its work. Then it breaks the
// connection.
type muteStore struct {
	registry.Store
	proxy  *loopback.Proxy
	direct registry.Store // past the proxy

	mu    sync.Mutex // guards the fields below; a leaf
	left  int        // Applies before the one whose answer is lost; negative if none is
	hit   bool
	cutBy sync.WaitGroup
}

// workTimeout is how long the proxy waits for the database to do its work. An Apply whose condition
// fails leaves no record to wait for.
const workTimeout = 300 * time.Millisecond

func (s *muteStore) arm(k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = k
}

// disarm reports whether an answer was lost.
func (s *muteStore) disarm() (hit bool) {
	s.cutBy.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = -1
	return s.hit
}

// isNext counts an Apply, and reports whether its answer must be lost.
func (s *muteStore) isNext() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left < 0 {
		return false
	}
	s.left--
	s.hit = s.hit || s.left < 0
	return s.left < 0
}

func (s *muteStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change != nil && s.isNext() {
		s.proxy.Mute()
		key := registry.ChangeKey(batch.Change.ID)
		s.cutBy.Go(func() {
			s.await(ctx, key)
			s.proxy.Cut()
			s.proxy.Restore()
		})
	}
	return s.Store.Apply(ctx, batch)
}

// await returns when there is a record at key, or after workTimeout.
func (s *muteStore) await(ctx context.Context, key registry.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if records, err := s.direct.Get(ctx, key); err == nil && records[0].Exists() {
			return
		}
	}
}

// newMuteStore returns a store over a new database.
func newMuteStore(t *testing.T, random *lockedRandom) *muteStore {
	t.Helper()
	dsn := stores.NewDatabase(t)
	target, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	target.Host = proxy.Addr()
	return &muteStore{
		Store: storetest.OpenNode(t, target.String(), random), proxy: proxy, direct: storetest.OpenNode(t, dsn, random), left: -1,
	}
}

// For k = 0, 1, 2 …: the database carries out the k-th Apply of each operation, but the connection
// breaks before its answer arrives. The operation must succeed, its effect must be visible, and its
// files must exist.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			for k := 0; loseOnce(t, n, m.operation, k); k++ {
			}
		})
	}
}

// loseOnce loses the answer of Apply k of the n-th mutation, and reports whether there was such an
// Apply.
func loseOnce(t *testing.T, n int, operation gate.Verb, k int) (hit bool) {
	t.Helper()
	var store *muteStore
	files := &catalogkit.FileCount{There: map[string]bool{}}
	f, unregistered := newCrashFixture(t, operation, func(c *catalog.Config) {
		store = newMuteStore(t, newLockedRandom(uint64(k)))
		c.Store = catalogkit.ClockedStore{Store: store, Now: c.Now}
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			inner, err := open(place)
			return &catalogkit.CountedFiles{Store: inner, Count: files}, err
		}
	})
	m := mutations(t, unregistered)[n]
	store.arm(k)
	_, err := m.run(f.Ctx, f.Instance)
	hit = store.disarm()
	if err != nil {
		t.Fatalf("Apply %d: answered %v of kind %s", k, err, moorage.KindOf(err))
	}
	if !m.happened(f.Ctx, f.Instance) {
		t.Fatalf("Apply %d: acknowledged, and did not happen", k)
	}
	recoverAll(f)
	f.WantClean()
	return hit && !t.Failed()
}
