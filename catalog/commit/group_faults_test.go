package commit_test

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
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// panicking is a store that panics after an Apply, once it is armed.
type panicking struct {
	registry.Store

	mu    sync.Mutex // guards armed; a leaf
	armed int        // it panics after this many Applies; 0 if it is not armed
}

func (s *panicking) arm(nth int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = nth
}

func (s *panicking) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := s.Store.Apply(ctx, batch)
	s.mu.Lock()
	panics := s.armed == 1
	s.armed = max(0, s.armed-1)
	s.mu.Unlock()
	if panics {
		panic("behind an Apply")
	}
	return etags, err
}

// caught returns m with panics turned into errors, as the server does.
func caught(m catalogkit.Member) catalogkit.Member {
	return func(ctx context.Context, c catalog.Verbs) (table *catalog.Table, err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				err = fmt.Errorf("panic: %v", panicked)
			}
		}()
		return m(ctx, c)
	}
}

// After a panic behind the Apply of a group, the outcome of its members is unknown. No member may
// be refused, because the Apply has happened.
func TestGroupPanicBehindApply(t *testing.T) {
	var store *panicking
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		branch := catalogkit.CommitRequest(f.T, `[{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":null}]`,
			`[{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1}]`)
		_, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(f.T, f.Load("t"), 1, 0, 1))
		must(f.T, err)
		answers := catalogkit.Together(f, count, func() { store.arm(2) }, // the first is the commit in front
			caught(commitOf(catalogkit.SetProperty(f.T, "a", "1"))), commitOf(branch), commitOf(catalogkit.SetProperty(f.T, "b", "1")))
		if answers[0].Err == nil {
			f.T.Error("the leading commit succeeded")
		}
		for i, a := range answers[1:] {
			if moorage.KindOf(a.Err) != moorage.KindCommitUnknown {
				f.T.Errorf("member %d: answered %v, want that it is unknown", i+1, a.Err)
			}
		}
		if _, there := f.Load("t").Document.Property("b"); !there {
			f.T.Error("the version is not there, so the test shows nothing")
		}
	}, func(config *catalog.Config) {
		store = &panicking{Store: config.Store}
		config.Store = store
	})
}

// hangingFiles is a storage. Once it is armed, its next Create hangs until its context ends.
type hangingFiles struct {
	storage.Store
	hang *hanging
}

type hanging struct {
	mu    sync.Mutex // guards armed; a leaf
	armed bool
}

func (h *hanging) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = true
}

func (f *hangingFiles) Create(ctx context.Context, location string, body []byte) error {
	f.hang.mu.Lock()
	hangs := f.hang.armed
	f.hang.armed = false
	f.hang.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Store.Create(ctx, location, body)
}

// A hanging write of a file delays the members of a group only for one turn, not as long as the
// leading commit waits. No member fails because of it.
func TestGroupHangingWrite(t *testing.T) {
	hang := &hanging{}
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		began := time.Now()
		answers := catalogkit.Together(f, count, hang.arm,
			commitOf(catalogkit.SetProperty(f.T, "a", "1")), commitOf(catalogkit.SetProperty(f.T, "b", "1")), commitOf(catalogkit.SetProperty(f.T, "c", "1")))
		for i, a := range answers {
			if a.Err != nil {
				f.T.Errorf("member %d: %v", i, a.Err)
			}
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			f.T.Errorf("it took %s, want the length of a turn", took)
		}
	}, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return &hangingFiles{inner, hang} })
	})
}

// A repeated request is answered with a version that contains its effect, even if another commit in
// the same group undid the effect.
func TestGroupReplayIsAnsweredItsEffect(t *testing.T) {
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		table := f.Load("t")
		request := catalogkit.AppendSnapshot(f.T, table, 1, 0, 1)
		request.Updates = append(catalogkit.SetProperty(f.T, "mark", "mine").Updates, request.Updates...)
		hold := make(chan struct{})
		count.Hold = hold
		var group sync.WaitGroup
		var repeated *catalog.Table
		for i, m := range []catalogkit.Member{commitOf(request), commitOf(request), commitOf(catalogkit.SetProperty(f.T, "mark", "other"))} {
			group.Go(func() {
				answer, err := m(f.Ctx, f.Instance)
				if err != nil {
					f.T.Error(err)
				}
				if i == 1 {
					repeated = answer
				}
			})
			synctest.Wait()
		}
		close(hold)
		group.Wait()
		if value, _ := repeated.Document.Property("mark"); value != "mine" {
			f.T.Errorf("the repeated request was answered a version whose mark is %q", value)
		}
	})
}

// A client disconnects while another commit carries out its commit. If the group then gives its
// commit back, the commit is dropped.
func TestGroupClientLeavesTaken(t *testing.T) {
	hang := &hanging{}
	leaving, leave := context.WithCancel(t.Context())
	inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
		left := func(_ context.Context, c catalog.Verbs) (*catalog.Table, error) {
			ctx, cancel := context.WithCancel(f.Ctx)
			defer cancel()
			go func() {
				<-leaving.Done()
				cancel()
			}()
			return c.Commit(ctx, ident("t"), catalogkit.SetProperty(f.T, "left", "yes"))
		}
		go func() {
			time.Sleep(time.Second) // the write hangs now
			leave()
		}()
		answers := catalogkit.Together(f, count, hang.arm, commitOf(catalogkit.SetProperty(f.T, "a", "1")), left, commitOf(catalogkit.SetProperty(f.T, "b", "1")))
		if !errors.Is(answers[1].Err, context.Canceled) {
			f.T.Errorf("answered %v", answers[1].Err)
		}
		if _, there := f.Load("t").Document.Property("left"); there {
			f.T.Error("the commit of the client that left is there")
		}
	}, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return &hangingFiles{inner, hang} })
	})
}

// afterRead is a store that calls a hook after a pointer was read, and before the read returns.
type afterRead struct {
	registry.Store

	mu   sync.Mutex // guards then; a leaf
	then func()     // may be nil
}

func (s *afterRead) arm(then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.then = then
}

func (s *afterRead) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := s.Store.Get(ctx, keys...)
	s.mu.Lock()
	then := s.then
	if !slices.ContainsFunc(keys, func(key registry.Key) bool { return key.Table == registry.TablePointer }) {
		then = nil
	}
	if then != nil {
		s.then = nil
	}
	s.mu.Unlock()
	if then != nil {
		then()
	}
	return records, err
}

// A commit arrives after another commit has read the table, and after a node has replaced the
// version that was read. The new commit is neither refused nor answered with the old version. The
// commit that read the table changes nothing, so no Apply shows that its version is old.
func TestGroupOfLateMembers(t *testing.T) {
	for name, alone := range map[string]bool{"behind a commit in its turn": false, "behind one that came to a free table": true} {
		t.Run(name, func(t *testing.T) {
			var store *afterRead
			inBubble(t, func(f *catalogkit.Fixture, count *catalogkit.CallCount) {
				config := f.Config
				config.Store = store.Store
				other, err := catalogkit.NewInstance(config)
				must(f.T, err)
				first := catalogkit.AppendSnapshot(f.T, f.Load("t"), 1, 0, 1)
				late := make([]catalogkit.GroupAnswer, 2)
				var group sync.WaitGroup
				arm := func() {
					store.arm(func() {
						now, err := other.Commit(f.Ctx, ident("t"), first)
						if err != nil {
							f.T.Error(err)
							return
						}
						for i, request := range []catalog.CommitRequest{{}, catalogkit.AppendSnapshot(f.T, now, 2, 1, 2)} {
							group.Go(func() { late[i].Table, late[i].Err = f.Commit(f.Ctx, ident("t"), request) })
							synctest.Wait()
						}
					})
				}
				if empty := commitOf(catalog.CommitRequest{}); alone {
					arm()
					_, err = empty(f.Ctx, f.Instance)
				} else {
					err = catalogkit.Together(f, count, arm, empty)[0].Err
				}
				must(f.T, err)
				group.Wait()
				for i, a := range late {
					if a.Err != nil || !a.Table.Document.HasSnapshot(1) {
						f.T.Errorf("late commit %d: answered %+v, %v", i, a.Table, a.Err)
					}
				}
			}, func(config *catalog.Config) {
				store = &afterRead{Store: config.Store}
				config.Store = store
			})
		})
	}
}
