package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
)

// write is the fate of the write of one file.
type write struct {
	after time.Duration // when it reaches the storage
	fails bool          // the file is written, and the caller gets an error
	away  bool          // the file is not written, and the caller gets an error
}

// slowWrites is a queue of fates for the next writes, in the order in which they begin. Further
// writes take no time.
type slowWrites struct {
	mu    sync.Mutex // guards the fields; a leaf
	next  []write
	begun int
}

func (s *slowWrites) plan(next ...write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.begun = next, 0
}

func (s *slowWrites) begin() (w write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun < len(s.next) {
		w = s.next[s.begun]
	}
	s.begun++
	return w
}

func (s *slowWrites) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// farFiles is a storage behind a network.
type farFiles struct {
	storage.Store
	slow *slowWrites
}

func (*farFiles) Probe(context.Context) error     { return nil }
func (*farFiles) ClientConfig() map[string]string { return nil }

func (f *farFiles) Create(ctx context.Context, location string, body []byte) error {
	w := f.slow.begin()
	select {
	case <-time.After(w.after):
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.away {
		return errors.New("away")
	}
	if err := f.Store.Create(ctx, location, body); err != nil || !w.fails {
		return err
	}
	return errors.New("no answer")
}

// inHedgedBubble runs body with a fixture that hedges its writes and has the table "t".
func inHedgedBubble(t *testing.T, body func(f *catalogkit.Fixture, slow *slowWrites, files *catalogkit.FileCount), change ...func(*catalog.Config)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, files := &slowWrites{}, &catalogkit.FileCount{There: map[string]bool{}}
		f := catalogkit.New(t, append(change, func(config *catalog.Config) {
			config.HedgeWrites = true
			catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store {
				return &farFiles{&catalogkit.CountedFiles{Store: inner, Count: files}, slow}
			})
		})...)
		f.Create("t")
		body(f, slow, files)
		f.Documents().Close()
		f.WantClean()
	})
}

// locations returns the existing files, in byte order.
func locations(c *catalogkit.FileCount) []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var there []string
	for location := range c.There {
		there = append(there, location)
	}
	slices.Sort(there)
	return there
}

// namedFiles returns the metadata files named by the table "t", in byte order.
func namedFiles(n *catalogkit.Instance, ctx context.Context, t testing.TB) []string {
	t.Helper()
	table, err := n.LoadTable(ctx, ident("t"))
	must(t, err)
	named := []string{table.MetadataLocation}
	for _, entry := range table.Document.MetadataLog() {
		named = append(named, entry.MetadataLocation)
	}
	slices.Sort(named)
	return named
}

// A write that takes unusually long is repeated under another name. The commit is answered as soon
// as one of the two files is written, and uses that file. The other file is deleted after its write
// has ended, even if the write fails. In the end, exactly the files named by the table exist.
func TestHedge(t *testing.T) {
	const usual, long, longer = 10 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second
	const hedged = 150 * time.Millisecond // when the second write begins
	for _, tt := range []struct {
		name   string
		writes []write
		begun  int
		took   time.Duration
		fails  bool
	}{
		{"as usual", []write{{after: usual}}, 1, usual, false},
		{"second is faster", []write{{after: longer}, {after: usual}}, 2, hedged + usual, false},
		{"first is faster", []write{{after: long}, {after: longer}}, 2, long, false},
		{"first fails at once", []write{{after: usual, away: true}}, 1, usual, true},
		{"first fails late", []write{{after: long, away: true}, {after: long}}, 2, hedged + long, false},
		{"first is lost late", []write{{after: long, fails: true}, {after: long}}, 2, hedged + long, false},
		{"second fails", []write{{after: long}, {after: usual, away: true}}, 2, long, false},
		{"second is lost", []write{{after: long}, {after: usual, fails: true}}, 2, long, false},
		{"loser is lost", []write{{after: longer, fails: true}, {after: usual}}, 2, hedged + usual, false},
		{"both fail", []write{{after: long, away: true}, {after: usual, away: true}}, 2, long, true},
		{"both are lost", []write{{after: long, fails: true}, {after: usual, fails: true}}, 2, long, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, files *catalogkit.FileCount) {
				slow.plan(tt.writes...)
				began := time.Now()
				table, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "yes"))
				if took := time.Since(began); (err != nil) != tt.fails || took != tt.took {
					f.T.Errorf("answered %v after %v; want an error: %t, after %v", err, took, tt.fails, tt.took)
				}
				if got := slow.count(); got != tt.begun {
					f.T.Errorf("%d writes, want %d", got, tt.begun)
				}
				if err == nil && table.MetadataLocation != f.Load("t").MetadataLocation {
					f.T.Error("the answer is not the version that the table has")
				}
				time.Sleep(longer)
				synctest.Wait()
				if got, want := locations(files), namedFiles(f.Instance, f.Ctx, f.T); !slices.Equal(got, want) {
					f.T.Errorf("files %q, want %q", got, want)
				}
			})
		})
	}
}

// Nothing is deleted before the overtaken write has ended.
func TestHedgeDeletesLate(t *testing.T) {
	var deletes catalogkit.Hook
	inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, _ *catalogkit.FileCount) {
		slow.plan(write{after: time.Second}, write{after: time.Millisecond})
		began := time.Now()
		var deleted time.Duration
		deletes.Once(func() { deleted = time.Since(began) })
		if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "yes")); err != nil {
			f.T.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if deleted != time.Second {
			f.T.Errorf("deleted after %v, want %v", deleted, time.Second)
		}
	}, deletes.OnDelete)
}

// Two writes of a commit that loses the compare-and-set leave no file.
func TestHedgeOfALostCommit(t *testing.T) {
	var applies catalogkit.Hook
	inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, files *catalogkit.FileCount) {
		other, err := catalogkit.NewInstance(f.Config)
		must(f.T, err)
		slow.plan(write{after: time.Second}, write{after: time.Millisecond})
		applies.Once(func() {
			if _, err := other.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "other", "yes")); err != nil {
				f.T.Error(err)
			}
		})
		if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "yes")); err != nil {
			f.T.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := locations(files), namedFiles(f.Instance, f.Ctx, f.T); !slices.Equal(got, want) || len(got) != 3 {
			f.T.Errorf("files %q, want %q", got, want)
		}
	}, func(config *catalog.Config) { config.Store = &hookedApplies{config.Store, &applies} })
}

// hookedApplies calls a hook before an Apply that follows another Apply.
type hookedApplies struct {
	registry.Store
	hook *catalogkit.Hook
}

func (s *hookedApplies) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.hook.Run()
	return s.Store.Apply(ctx, batch)
}

// The usual duration is learned from the latest writes: a commit waits three times their median.
func TestHedgeLearnsWhatIsUsual(t *testing.T) {
	const usual = 100 * time.Millisecond
	inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, _ *catalogkit.FileCount) {
		for i, after := range append(slices.Repeat([]time.Duration{usual}, 5), 3*usual-1, 3*usual+1) {
			slow.plan(write{after: after})
			if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", fmt.Sprint(i))); err != nil {
				f.T.Fatal(err)
			}
			want := 1
			if after > 3*usual {
				want = 2
			}
			if got := slow.count(); got != want {
				f.T.Errorf("commit %d: a write of %v was written %d times, want %d", i, after, got, want)
			}
		}
	}, func(config *catalog.Config) { config.Now = time.Now })
}

// At most 16 writes are repeated at a time, so the load on an overloaded storage does not double.
func TestHedgesAreBounded(t *testing.T) {
	inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, _ *catalogkit.FileCount) {
		const tables = 20
		for i := range tables {
			f.Create(fmt.Sprint("t", i))
		}
		slow.plan(slices.Repeat([]write{{after: time.Second}}, 2*tables)...)
		var group sync.WaitGroup
		for i := range tables {
			group.Go(func() {
				if _, err := f.Commit(f.Ctx, ident(fmt.Sprint("t", i)), catalogkit.SetProperty(f.T, "p", "yes")); err != nil {
					f.T.Error(err)
				}
			})
		}
		group.Wait()
		if got := slow.count(); got != tables+16 {
			f.T.Errorf("%d writes, want %d", got, tables+16)
		}
	})
}

// Close cancels an overtaken write. After Close, no write is repeated.
func TestHedgeStops(t *testing.T) {
	inHedgedBubble(t, func(f *catalogkit.Fixture, slow *slowWrites, files *catalogkit.FileCount) {
		slow.plan(write{after: time.Hour}, write{})
		if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "1")); err != nil {
			f.T.Fatal(err)
		}
		began := time.Now()
		f.Documents().Close()
		if took := time.Since(began); took != 0 {
			f.T.Errorf("Close took %v", took)
		}
		slow.plan(write{after: time.Second})
		if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "p", "2")); err != nil {
			f.T.Fatal(err)
		}
		if got := slow.count(); got != 1 {
			f.T.Errorf("%d writes after Close, want 1", got)
		}
		if got, want := locations(files), namedFiles(f.Instance, f.Ctx, f.T); !slices.Equal(got, want) {
			f.T.Errorf("files %q, want %q", got, want)
		}
	})
}

// For k = 0, 1, 2 …: a commit repeats its write, and a fault hits the k-th port call of the commit
// or of the work after its answer. Afterwards, each file named by the table exists. An unnamed file
// may be left only if there was a fault.
func TestHedgeCrashEveryCall(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]registrytest.Action{
		"fail": registrytest.Fail, "lose": registrytest.Lose, "die": registrytest.Die, "die after": registrytest.DieAfter,
	} {
		for _, first := range []time.Duration{time.Second, 200 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/first after %v", name, first), func(t *testing.T) {
				t.Parallel()
				for k := 0; !hedgedCrash(t, k, action, first); k++ {
					if k > 100 {
						t.Fatal("the run does not end")
					}
				}
			})
		}
	}
}

// hedgedCrash applies action to call k of a commit. The commit's first write takes the duration
// first, and its second write 100 ms. It reports whether there was no such call.
func hedgedCrash(t *testing.T, k int, action registrytest.Action, first time.Duration) (survived bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		plan, slow, files := &faults{}, &slowWrites{}, &catalogkit.FileCount{There: map[string]bool{}}
		var rawStore registry.Store
		var rawStorage func(storage.Place) (storage.Store, error)
		f := catalogkit.New(t, func(config *catalog.Config) {
			rawStore = memoryregistry.NewWithClock(newLockedRandom(1), config.Now)
			rawStorage = config.OpenStorage
			config.Store, config.HedgeWrites = registrytest.Faulty(rawStore, plan.plan), true
			catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store {
				return &farFiles{storagetest.Faulty(&catalogkit.CountedFiles{Store: inner, Count: files}, plan.storagePlan), slow}
			})
		})
		f.Create("t")
		catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
		slow.plan(write{after: first}, write{after: 100 * time.Millisecond})
		plan.arm(k, action)
		_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
		time.Sleep(first)
		f.Documents().Close()
		plan.disarm()
		survived = plan.hit == ""
		config := f.Config
		config.Store, config.OpenStorage = rawStore, rawStorage
		node, newErr := catalogkit.NewInstance(config)
		must(t, newErr)
		at := fmt.Sprintf("call %d (%s): answered %v", k, plan.hit, err)
		there, named := locations(files), namedFiles(node, t.Context(), t)
		for _, location := range named {
			if !slices.Contains(there, location) {
				t.Errorf("%s: %s is named, and not there", at, location)
			}
		}
		if survived && (err != nil || !slices.Equal(there, named)) {
			t.Errorf("%s without a fault: files %q, want %q", at, there, named)
		}
		if definite := err == nil || !plan.dead && moorage.KindOf(err) != moorage.KindCommitUnknown; definite &&
			(len(named) == 2) != (err == nil) {
			t.Errorf("%s, and the table names %q", at, named)
		}
		(&catalogkit.Fixture{Instance: node, T: t, Ctx: t.Context(), Clock: f.Clock, Store: rawStore}).WantClean()
	})
	return survived || t.Failed()
}
