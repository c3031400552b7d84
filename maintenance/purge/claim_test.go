package purge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// sharedFolder is the storage of several nodes. It counts the reads and deletions of all nodes. It
// calls first during the first deletion.
type sharedFolder struct {
	storage.Store
	first func() error

	mu      sync.Mutex // guards the fields below; leaf
	begun   bool       // the first deletion
	opened  map[string]int
	deleted map[string]int
}

func (s *sharedFolder) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	s.mu.Lock()
	s.opened[location]++
	s.mu.Unlock()
	return s.Store.Open(ctx, location)
}

func (s *sharedFolder) Delete(ctx context.Context, locations ...string) error {
	s.mu.Lock()
	first := !s.begun
	s.begun = true
	s.mu.Unlock()
	if first {
		if err := s.first(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for _, location := range locations {
		s.deleted[location]++
	}
	s.mu.Unlock()
	return s.Store.Delete(ctx, locations...)
}

// newSharedPurge returns a catalog in which a table of 51 files waits for its purge. It also
// returns the catalog's storage.
func newSharedPurge(t *testing.T, change ...func(*catalog.Config)) (*dropped, *sharedFolder) {
	t.Helper()
	shared := &sharedFolder{opened: map[string]int{}, deleted: map[string]int{}}
	in := newDropped(t, func(old *purged) {
		var names []string
		for i := range 46 {
			names = append(names, fmt.Sprintf("%d.parquet", i))
		}
		old.snapshot("snap-1.avro", old.manifest("m-1.avro", old.data(names[:20]...)...), old.manifest("m-2.avro", old.data(names[20:]...)...))
		old.log = append(old.log, old.file(purgedTable+"/metadata/00000.metadata.json", []byte("{}")))
	}, append(change, func(c *catalog.Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			shared.Store = store
			return shared, err
		}
	})...)
	clear(shared.opened)
	return in, shared
}

// wantOnce fails the test unless each of the 51 files was deleted exactly once.
func (s *sharedFolder) wantOnce(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	deletions := 0
	for location, times := range s.deleted {
		if deletions += times; times != 1 {
			t.Errorf("%s was deleted %d times", location, times)
		}
	}
	if deletions != 51 {
		t.Errorf("%d deletions of 51 files", deletions)
	}
}

// One of five nodes purges a table. The others search while the purge runs, and read and delete
// nothing.
func TestPurgeIsOfOneNode(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		in, shared := newSharedPurge(t, func(c *catalog.Config) { c.Store = store })
		shared.first = func() error {
			for range 4 {
				must(t, in.other(in.store).purgeAll(in.ctx))
			}
			return nil
		}
		began := time.Now()
		in.purge()
		// If the store takes longer for the release of a claim than the release waits, the claim
		// is left until it ends.
		released := time.Since(began) < claimReleaseTime
		shared.wantOnce(t)
		want := map[string]int{purgedMetadata: 1, purgedTable + "/metadata/00000.metadata.json": 1, purgedTable + "/metadata/m-1.avro": 1, purgedTable + "/metadata/m-2.avro": 1, purgedTable + "/metadata/snap-1.avro": 2}
		if !maps.Equal(shared.opened, want) {
			t.Errorf("files were read so many times: %v, want %v", shared.opened, want)
		}
		for _, claim := range in.list(registry.TableAssignment) {
			if released {
				t.Errorf("a claim is left: %s", claim.Key)
			}
		}
	})
}

// claimReleaseTime is how long a node tries to release a claim.
const claimReleaseTime = 5 * time.Second

// When a node has died, another node continues its purge once the assignment has ended by the
// store's clock. When the purge is done, its assignment is deleted too.
func TestPurgeOfANodeThatDied(t *testing.T) {
	t.Parallel()
	in, shared := newSharedPurge(t)
	died := false
	dying := registrytest.Faulty(in.store, func(int, string) registrytest.Action {
		if died {
			return registrytest.Die
		}
		return registrytest.Pass
	})
	shared.first = func() error {
		died = true
		return errors.New("the process died")
	}
	if err := in.other(dying).purgeAll(in.ctx); !errors.Is(err, registrytest.ErrInjected) {
		t.Errorf("purge: %v, want that the store is gone", err)
	}
	node := in.otherBy(in.store, 24*time.Hour)
	must(t, node.purgeAll(in.ctx))
	in.clock.Advance(purge.AssignmentLife - time.Second)
	must(t, node.purgeAll(in.ctx))
	if len(shared.deleted) > 0 {
		t.Errorf("deleted while another node may have been at it: %v", shared.deleted)
	}
	in.clock.Advance(time.Second)
	other, err := registry.Encode(registry.Assignment{Owner: registry.ID{9}, Until: in.clock.Now()})
	must(t, err)
	in.write(registry.Put(registry.AssignmentKey(purge.AssignmentOf(registry.ID{8})), registry.StateNone, other))
	must(t, node.purgeAll(in.ctx))
	shared.wantOnce(t)
	if claims, err := in.store.List(in.ctx, registry.TableAssignment, "", "", 10); err != nil || len(claims) > 0 {
		t.Errorf("%d claims are left, %v", len(claims), err)
	}
	in.wantClean()
}

// If only one process uses a store, it continues the purges of its predecessor at once.
func TestPurgeAfterARestart(t *testing.T) {
	t.Parallel()
	in, shared := newSharedPurge(t)
	in.config.AbortPending = true
	shared.first = func() error {
		must(t, in.other(in.store).purgeAll(in.ctx))
		return errors.New("the process died")
	}
	must(t, in.other(in.store).purgeAll(in.ctx))
	for location := range shared.deleted {
		if _, err := in.files.Stat(in.ctx, location); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s is left: %v", location, err)
		}
	}
	if len(shared.deleted) != 51 {
		t.Errorf("%d of 51 files were deleted", len(shared.deleted))
	}
	in.wantClean()
}

// A node hangs in a system call that does not end with its context. The node is still alive, but
// another node takes over its purge.
func TestPurgeOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mount := make(chan struct{})
		var first sync.Once
		w := newPurgeWorld(t, map[string]func(context.Context) error{"hung": func(context.Context) error {
			hangs := false
			first.Do(func() { hangs = true })
			if hangs {
				<-mount
			}
			return nil
		}})
		files := w.drop("hung", 1)
		hung, node := w.other(w.store), w.other(w.store)
		var round sync.WaitGroup
		round.Go(func() { must(t, hung.purgeAll(w.ctx)) })
		synctest.Wait()
		began := time.Now()
		for len(w.tasks()) > 0 {
			if time.Since(began) > purge.StallMax+2*purge.AssignmentLife {
				t.Error("nobody took over")
				break
			}
			must(t, node.purgeAll(w.ctx))
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < purge.StallMax {
			t.Errorf("another node took over after %s", took)
		}
		close(mount)
		round.Wait()
		if left := w.present(files); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		w.wantClean()
	})
}

// TestPurgeOfTheFuture: a table is dropped with a purge while the clock is a year ahead. The purge
// has to wait because the outcome of an idempotency key may be requested. It waits no longer than
// the lifetime of an outcome.
func TestPurgeOfTheFuture(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	f := newFixture(t)
	f.clock.Advance(year)
	_, err := f.For(moorage.Anonymous(), &catalog.Key{ID: "k", Warehouse: "w"}, nil).CreateTable(f.ctx, ident("ahead"),
		catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	_, err = f.For(moorage.Anonymous(), &catalog.Key{ID: "l", Warehouse: "w"}, nil).CreateTable(f.ctx, ident("later"),
		catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	must(t, f.DropTable(f.ctx, ident("ahead"), catalog.DropOptions{Purge: true}))
	f.clock.Advance(-year)
	must(t, f.DropTable(f.ctx, ident("later"), catalog.DropOptions{Purge: true}))
	must(t, f.purgeAll(f.ctx))
	if left := len(f.list(registry.TableTask)); left != 2 {
		t.Errorf("%d purges wait at once, want 2: outcomes may be asked for", left)
	}
	f.clock.Advance(2 * time.Hour)
	must(t, f.purgeAll(f.ctx))
	if left := len(f.list(registry.TableTask)); left != 0 {
		t.Errorf("%d purges wait two hours later", left)
	}
}
