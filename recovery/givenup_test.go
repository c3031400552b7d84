package recovery_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/txlog"
)

// looks is a store that counts reads of the log.
type looks struct {
	registry.Store
	n atomic.Int64
	// If get is set, it is called before each Get.
	get atomic.Pointer[func()]
}

func (l *looks) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	l.n.Add(1)
	return l.Store.List(ctx, table, prefix, after, limit)
}

func (l *looks) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if get := l.get.Load(); get != nil {
		(*get)()
	}
	return l.Store.Get(ctx, keys...)
}

// An attempt that never returns delays the other transactions of its warehouse only until it is
// given up.
func TestRoundGoesOnBehindOneThatWasGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		var all []txlog.Entry
		for range 4 {
			all = append(all, r.begin(t, time.Now().Add(-time.Hour)))
		}
		var hung atomic.Pointer[registry.ID]
		answers := make(chan struct{})
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if hung.CompareAndSwap(nil, &e.ID) {
					<-answers
					return errors.New("the storage was away")
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
		defer cancel()
		if err := node.RunOnce(ctx); err != nil {
			t.Errorf("answered %v", err)
		}
		for _, e := range all {
			_, blocked := blocker(t, store, e)
			if isHung := e.ID == *hung.Load(); blocked != isHung || now(t, r.log, e).Exists() != isHung {
				t.Errorf("hung: %t, given up: %t", isHung, blocked)
			}
		}
		wantStats(t, node, recovery.Stats{Unfinished: 1, Blocked: 1, Attempts: 3, Recovered: 3})
		// Its later result does not count as a failure. An operator retries the transaction.
		if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Delete(registry.TaskKey(*hung.Load()))}}); err != nil {
			t.Fatal(err)
		}
		close(answers)
		synctest.Wait()
		if err := node.RunOnce(t.Context()); err != nil {
			t.Error(err)
		}
		wantStats(t, node, recovery.Stats{Attempts: 5, Recovered: 4})
	})
}

// If the attempts of a warehouse never return, four of them are abandoned, and no further read of
// the log starts another. The other transactions are ended once the attempts return.
func TestRoundLeavesAWarehouseThatNeverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &looks{Store: memory.New(rand.Reader)}
		r := newResolver(store)
		var all []txlog.Entry
		for range 7 {
			all = append(all, r.begin(t, time.Now().Add(-time.Hour)))
		}
		var inside atomic.Int64
		answers := make(chan struct{})
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				inside.Add(1)
				<-answers
				return r.deleteSurplus(ctx, e)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := node.RunOnce(ctx); err != nil {
			t.Errorf("answered %v", err)
		}
		before := store.n.Load()
		if err := node.RunOnce(ctx); err != nil || store.n.Load() != before+1 {
			t.Errorf("%d looks, want one; %v", store.n.Load()-before, err)
		}
		if got := inside.Load(); got != 4 {
			t.Errorf("%d attempts hang, want 4", got)
		}
		wantStats(t, node, recovery.Stats{Unfinished: 7, Blocked: 4})
		close(answers)
		synctest.Wait()
		for _, e := range all { // as an operator would
			if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Delete(registry.TaskKey(e.ID))}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.RunOnce(ctx); err != nil {
			t.Error(err)
		}
		for _, e := range all {
			if now(t, r.log, e).Exists() {
				t.Error("a transaction is not ended when the storage answers")
			}
		}
	})
}

// A transaction whose attempt has ended is not given up, even if later work takes long.
func TestRoundGivesUpWhatHangsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &looks{Store: memory.New(rand.Reader)}
		r := newResolver(store)
		for range 2 {
			r.begin(t, time.Now().Add(-time.Hour))
		}
		r.fails = func(attempt int) error {
			if attempt > 1 {
				return nil
			}
			slow := func() {
				store.get.Store(nil)
				time.Sleep(6 * time.Minute)
			}
			store.get.CompareAndSwap(nil, &slow)
			return errors.New("no answer")
		}
		var logs strings.Builder
		node := r.node(func(c *recovery.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(logs.String(), "gave a transaction up") {
			t.Errorf("it was given up: %s", logs.String())
		}
	})
}
