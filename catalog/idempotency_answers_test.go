package catalog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/registry"
)

// keyedCommit sends a commit of one property with the key called id.
func (f *fixture) keyedCommit(c *instance, id string, request catalog.CommitRequest) (*catalog.Table, error) {
	f.t.Helper()
	key := keyOf(id)
	key.ID = id
	outcome, err := c.once(f.ctx, key, func(ctx context.Context, c catalog.Verbs) (reply, error) {
		table, err := c.Commit(ctx, ident("t"), request)
		return reply{Table: table}, err
	})
	return outcome.Table, err
}

// An attempt that waited for its locks, lost its race or was fenced tries again. It still stores
// its outcome.
func TestKeyIsCarried(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		operation gate.Verb
		run       func(ctx context.Context, c catalog.Verbs) (reply, error)
		disturb   func(f *fixture, losing *losingStore, hook *hook) (end func())
		others    int // changes of the same operation that others make
	}{
		"waited for locks": {gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
			return reply{Table: table}, err
		}, func(f *fixture, _ *losingStore, _ *hook) func() {
			hold, err := f.config.Locks.Acquire(f.ctx, locks.Request{Writes: []locks.Path{locks.NamespacePath(testWarehouse, moorage.Namespace{"ns"})}}, locks.Options{})
			must(f.t, err)
			timer := time.AfterFunc(10*time.Millisecond, hold.Release)
			return func() { timer.Stop() }
		}, 0},
		"lost its race": {gate.Commit, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, "mine", "yes"))
			return reply{Table: table}, err
		}, func(f *fixture, losing *losingStore, hook *hook) func() {
			node := f.other(losing.Store)
			hook.once(func() {
				_, err := node.Commit(f.ctx, ident("t"), setProperty(f.t, "other", "yes"))
				must(f.t, err)
			})
			return func() {}
		}, 1},
		"was fenced": {gate.Rename, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.RenameTable(ctx, ident("t"), ident("new"))
		}, func(_ *fixture, losing *losingStore, _ *hook) func() {
			losing.lose(gate.Rename, true, nil)
			return func() {}
		}, 0},
		"lost its answer": {gate.DropTable, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			return reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{})
		}, func(_ *fixture, losing *losingStore, _ *hook) func() {
			losing.lose(gate.DropTable, false, nil)
			return func() {}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook, losing := &hook{}, new(losingStore)
			f := newFixture(t, hook.onCreate, func(c *catalog.Config) {
				losing.Store = c.Store
				c.Store = losing
			})
			f.create("t")
			before := f.count(row.operation)
			end := row.disturb(f, losing, hook)
			defer end()
			first := answerText(f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) { return row.run(ctx, c) }))
			node := f.other(losing.Store)
			again := answerText(node.once(f.ctx, keyOf("a"), func(ctx context.Context, node catalog.Verbs) (reply, error) { return row.run(ctx, node) }))
			if again != first {
				t.Errorf("answered\n%s\nand then\n%s", first, again)
			}
			if got := f.count(row.operation) - before - row.others; got != 1 || len(f.outcomes()) != 1 {
				t.Errorf("it happened %d times, %d outcomes are stored", got, len(f.outcomes()))
			}
			f.wantClean()
		})
	}
}

// A key costs a commit no call of the store. An attempt that repeats it costs as much as a commit
// and some reads: a look whether its file is in use, the outcome and the warehouse.
func TestRoundTripsOfKeys(t *testing.T) {
	t.Parallel()
	var store *countingStore
	f := newFixture(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	f.create("t")
	_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "0"))
	must(t, err)
	took := func(do func()) int64 {
		before := store.calls.Load()
		do()
		return store.calls.Load() - before
	}
	without := took(func() {
		_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "1"))
		must(t, err)
	})
	with := took(func() {
		_, err := f.keyedCommit(f.instance, "1", setProperty(t, "a", "2"))
		must(t, err)
	})
	if with != without {
		t.Errorf("a commit takes %d calls of the store with a key and %d without", with, without)
	}
	again := took(func() {
		_, err := f.keyedCommit(f.instance, "1", setProperty(t, "a", "2"))
		must(t, err)
	})
	if again > without+4 {
		t.Errorf("a repeated commit takes %d calls of the store, want %d at most", again, without+4)
	}
}

// A repeated request is answered with its version of the table as it was. That holds after others
// followed it, after a rename, and after a drop with a purge, which waits for the key. Where the
// file of that version is gone, the answer is the last version there is.
func TestVersionsAreAnsweredAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	first, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	must(t, err)
	wantAgain := func(when, location string) {
		t.Helper()
		for _, c := range []*instance{f.instance, f.other(f.store)} {
			table, err := f.keyedCommit(c, "1", setProperty(t, "n", "1"))
			if err != nil || table.MetadataLocation != location {
				t.Errorf("%s: answered %v, %v; want %s", when, table, err, location)
			}
		}
	}
	second, err := f.Commit(f.ctx, ident("t"), setProperty(t, "n", "2"))
	must(t, err)
	wantAgain("after another commit", first.MetadataLocation)
	must(t, f.RenameTable(f.ctx, ident("t"), ident("u")))
	wantAgain("after a rename", first.MetadataLocation)
	f.create("t")
	wantAgain("after another table has the name", first.MetadataLocation)
	must(t, f.files.Delete(f.ctx, first.MetadataLocation))
	wantAgain("after its file was deleted", second.MetadataLocation)
	must(t, f.DropTable(f.ctx, ident("u"), catalog.DropOptions{Purge: true}))
	must(t, f.purgeAll(f.ctx))
	wantAgain("after it was dropped", second.MetadataLocation)
	f.clock.Advance(f.keyLife() - time.Second)
	must(t, f.purgeAll(f.ctx))
	wantAgain("at the end of its time", second.MetadataLocation)
	f.clock.Advance(time.Second)
	must(t, f.purgeAll(f.ctx))
	if left := f.present([]string{second.MetadataLocation}); len(left) > 0 {
		t.Errorf("%v is there when it may be purged", left)
	}
	_, err = f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	wantKind(t, err, moorage.KindNoSuchTable)
	f.wantClean()
}

// A repeated request whose version was trimmed from the log is answered with the present version,
// however often the log is trimmed.
func TestTrimmedVersionsAreAnsweredAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	_, err := f.keyedCommit(f.instance, "1", commitRequest(t, `[]`, trimming))
	must(t, err)
	for i := range 3 {
		table, err := f.Commit(f.ctx, ident("t"), setProperty(t, "n", fmt.Sprint(i)))
		must(t, err)
		again, err := f.keyedCommit(f.other(f.store), "1", commitRequest(t, `[]`, trimming))
		if err != nil || i > 1 && again.MetadataLocation != table.MetadataLocation {
			t.Errorf("after %d more commits: %v, %v", i+1, again, err)
		}
	}
	f.wantClean()
}

// A node may not see the files of a table that is there. It never answers that a commit which
// happened has failed: clients delete what they wrote for a commit that failed.
func TestAnsweredVersionWithoutFiles(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(f *fixture){
		"live":              func(*fixture) {},
		"renamed":           func(f *fixture) { must(t, f.RenameTable(f.ctx, ident("t"), ident("u"))) },
		"dropped":           func(f *fixture) { must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{})) },
		"waiting for purge": func(f *fixture) { must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			table, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
			must(t, err)
			then(f)
			must(t, f.files.Delete(f.ctx, table.MetadataLocation))
			_, err = f.keyedCommit(f.other(f.store), "1", setProperty(t, "n", "1"))
			wantKind(t, err, moorage.KindCommitUnknown)
		})
	}
}

// Nothing is left of a table whose purge has begun. Only a commit that changed nothing lets the
// purge begin while its key is kept.
func TestAnsweredVersionOfPurgedTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	table, err := f.keyedCommit(f.instance, "1", catalog.CommitRequest{})
	must(t, err)
	f.dropPurged("t", registry.StatePurging)
	must(t, f.files.Delete(f.ctx, table.MetadataLocation))
	_, err = f.keyedCommit(f.other(f.store), "1", catalog.CommitRequest{})
	wantKind(t, err, moorage.KindNoSuchTable)
}

// A purge waits only for tables with a version that may have to be answered again, and for no
// longer than needed. The drop itself answers no version.
func TestPurgeWaitsForKeys(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		keyed func(f *fixture) // on the table t
		waits bool
	}{
		"no key": {func(f *fixture) {
			_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "n", "1"))
			must(t, err)
		}, false},
		"a commit": {func(f *fixture) {
			_, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
			must(t, err)
		}, true},
		"a commit, then one without a key": {func(f *fixture) {
			_, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
			must(t, err)
			_, err = f.Commit(f.ctx, ident("t"), setProperty(t, "n", "2"))
			must(t, err)
		}, true},
		"a transaction, which answers nothing": {func(f *fixture) {
			f.create("u")
			_, err := f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
				return reply{}, c.CommitTransaction(ctx, testWarehouse, []catalog.TableChange{on("t", setProperty(t, "n", "1")), on("u", setProperty(t, "n", "1"))})
			})
			must(t, err)
		}, false},
		"a rename, which answers nothing": {func(f *fixture) {
			_, err := f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
				return reply{}, c.RenameTable(ctx, ident("t"), ident("u"))
			})
			must(t, err)
			must(t, f.RenameTable(f.ctx, ident("u"), ident("t")))
		}, false},
		"long ago": {func(f *fixture) {
			_, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
			must(t, err)
			f.clock.Advance(f.keyLife())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			location := f.create("t").MetadataLocation
			row.keyed(f)
			key := keyOf("drop")
			key.ID = "drop"
			_, err := f.once(f.ctx, key, func(ctx context.Context, c catalog.Verbs) (reply, error) {
				return reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{Purge: true})
			})
			must(t, err)
			must(t, f.purgeAll(f.ctx))
			if waits := len(f.present([]string{location})) > 0; waits != row.waits {
				t.Errorf("the purge waits: %t, want %t", waits, row.waits)
			}
			f.wantClean()
			f.clock.Advance(f.keyLife())
			must(t, f.purgeAll(f.ctx))
			if left, err := f.store.List(f.ctx, registry.TableTask, "", "", 1); err != nil || len(left) > 0 || len(f.present([]string{location})) > 0 {
				t.Errorf("the purge has not happened: %v, %v", left, err)
			}
			f.wantClean()
		})
	}
}

// A table that comes back takes its purge with it, also while that waits.
func TestWaitingPurgeIsCalledOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	table, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	must(t, err)
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	must(t, f.purgeAll(f.ctx))
	_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.clock.Advance(time.Hour)
	must(t, f.purgeAll(f.ctx))
	f.wantProperty("t", "n", "1")
	f.wantClean()
}
