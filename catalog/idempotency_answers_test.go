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
	"moorage/testkit/catalogkit"
)

// keyedCommit sends a commit of one property with the key called id.
func keyedCommit(f *catalogkit.Fixture, c *catalogkit.Instance, id string, request catalog.CommitRequest) (*catalog.Table, error) {
	f.T.Helper()
	key := catalogkit.KeyOf(id)
	key.ID = id
	outcome, err := c.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		table, err := c.Commit(ctx, ident("t"), request)
		return catalogkit.Reply{Table: table}, err
	})
	return outcome.Table, err
}

// An attempt that waited for its locks, lost a race or was fenced tries again. It still stores its
// outcome.
func TestKeyIsCarried(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		operation gate.Verb
		run       func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)
		disturb   func(f *catalogkit.Fixture, losing *losingStore, hook *catalogkit.Hook) (end func())
		others    int // changes of the same operation by other requests
	}{
		"waited for locks": {gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return catalogkit.Reply{Table: table}, err
		}, func(f *catalogkit.Fixture, _ *losingStore, _ *catalogkit.Hook) func() {
			hold, err := f.Config.Locks.Acquire(f.Ctx, locks.Request{Writes: []locks.Path{locks.NamespacePath(catalogkit.Warehouse, moorage.Namespace{"ns"})}}, locks.Options{})
			must(f.T, err)
			timer := time.AfterFunc(10*time.Millisecond, hold.Release)
			return func() { timer.Stop() }
		}, 0},
		"lost its race": {gate.Commit, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
			return catalogkit.Reply{Table: table}, err
		}, func(f *catalogkit.Fixture, losing *losingStore, hook *catalogkit.Hook) func() {
			node := f.Other(losing.Store)
			hook.Once(func() {
				_, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "other", "yes"))
				must(f.T, err)
			})
			return func() {}
		}, 1},
		"was fenced": {gate.Rename, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.RenameTable(ctx, ident("t"), ident("new"))
		}, func(_ *catalogkit.Fixture, losing *losingStore, _ *catalogkit.Hook) func() {
			losing.lose(gate.Rename, true, nil)
			return func() {}
		}, 0},
		"lost its answer": {gate.DropTable, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{})
		}, func(_ *catalogkit.Fixture, losing *losingStore, _ *catalogkit.Hook) func() {
			losing.lose(gate.DropTable, false, nil)
			return func() {}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook, losing := &catalogkit.Hook{}, new(losingStore)
			f := catalogkit.New(t, hook.OnCreate, func(c *catalog.Config) {
				losing.Store = c.Store
				c.Store = losing
			})
			f.Create("t")
			before := count(f, row.operation)
			end := row.disturb(f, losing, hook)
			defer end()
			first := catalogkit.AnswerText(f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return row.run(ctx, c) }))
			node := f.Other(losing.Store)
			again := catalogkit.AnswerText(node.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) { return row.run(ctx, node) }))
			if again != first {
				t.Errorf("answered\n%s\nand then\n%s", first, again)
			}
			if got := count(f, row.operation) - before - row.others; got != 1 || len(outcomes(f)) != 1 {
				t.Errorf("it happened %d times, %d outcomes are stored", got, len(outcomes(f)))
			}
			f.WantClean()
		})
	}
}

// A key adds no call of the store to a commit. A repeated attempt makes the calls of a commit and
// some reads: of the outcome, of the warehouse, and to check whether its file is in use.
func TestRoundTripsOfKeys(t *testing.T) {
	t.Parallel()
	var store *countingStore
	f := catalogkit.New(t, func(c *catalog.Config) {
		store = &countingStore{Store: c.Store}
		c.Store = store
	})
	f.Create("t")
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "0"))
	must(t, err)
	took := func(do func()) int64 {
		before := store.calls.Load()
		do()
		return store.calls.Load() - before
	}
	without := took(func() {
		_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "1"))
		must(t, err)
	})
	with := took(func() {
		_, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "a", "2"))
		must(t, err)
	})
	if with != without {
		t.Errorf("a commit takes %d calls of the store with a key and %d without", with, without)
	}
	again := took(func() {
		_, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "a", "2"))
		must(t, err)
	})
	if again > without+4 {
		t.Errorf("a repeated commit takes %d calls of the store, want %d at most", again, without+4)
	}
}

// A repeated request is answered with the table's version after that request. This holds after
// later commits, after a rename, and after a drop with a purge, because the purge waits for the
// key. If the file of that version is gone, the answer is the last version that exists.
func TestVersionsAreAnsweredAgain(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	first, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	must(t, err)
	wantAgain := func(when, location string) {
		t.Helper()
		for _, c := range []*catalogkit.Instance{f.Instance, f.Other(f.Store)} {
			table, err := keyedCommit(f, c, "1", catalogkit.SetProperty(t, "n", "1"))
			if err != nil || table.MetadataLocation != location {
				t.Errorf("%s: answered %v, %v; want %s", when, table, err, location)
			}
		}
	}
	second, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", "2"))
	must(t, err)
	wantAgain("after another commit", first.MetadataLocation)
	must(t, f.RenameTable(f.Ctx, ident("t"), ident("u")))
	wantAgain("after a rename", first.MetadataLocation)
	f.Create("t")
	wantAgain("after another table has the name", first.MetadataLocation)
	must(t, f.Files.Delete(f.Ctx, first.MetadataLocation))
	wantAgain("after its file was deleted", second.MetadataLocation)
	must(t, f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{Purge: true}))
	must(t, f.PurgeAll(f.Ctx))
	wantAgain("after it was dropped", second.MetadataLocation)
	f.Clock.Advance(f.KeyLife() - time.Second)
	must(t, f.PurgeAll(f.Ctx))
	wantAgain("at the end of its time", second.MetadataLocation)
	f.Clock.Advance(time.Second)
	must(t, f.PurgeAll(f.Ctx))
	if left := f.Present([]string{second.MetadataLocation}); len(left) > 0 {
		t.Errorf("%v is there when it may be purged", left)
	}
	_, err = keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	f.WantClean()
}

// A repeated request whose version was trimmed from the log is answered with the present version,
// however often the log is trimmed.
func TestTrimmedVersionsAreAnsweredAgain(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	_, err := keyedCommit(f, f.Instance, "1", catalogkit.CommitRequest(t, `[]`, trimming))
	must(t, err)
	for i := range 3 {
		table, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", fmt.Sprint(i)))
		must(t, err)
		again, err := keyedCommit(f, f.Other(f.Store), "1", catalogkit.CommitRequest(t, `[]`, trimming))
		if err != nil || i > 1 && again.MetadataLocation != table.MetadataLocation {
			t.Errorf("after %d more commits: %v, %v", i+1, again, err)
		}
	}
	f.WantClean()
}

// A node may be unable to see the files of an existing table. Even then, it never answers that a
// successful commit has failed, because clients delete the files of a failed commit.
func TestAnsweredVersionWithoutFiles(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(f *catalogkit.Fixture){
		"live":              func(*catalogkit.Fixture) {},
		"renamed":           func(f *catalogkit.Fixture) { must(t, f.RenameTable(f.Ctx, ident("t"), ident("u"))) },
		"dropped":           func(f *catalogkit.Fixture) { must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})) },
		"waiting for purge": func(f *catalogkit.Fixture) { must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("t")
			table, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
			must(t, err)
			then(f)
			must(t, f.Files.Delete(f.Ctx, table.MetadataLocation))
			_, err = keyedCommit(f, f.Other(f.Store), "1", catalogkit.SetProperty(t, "n", "1"))
			catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
		})
	}
}

// Nothing is left of a table whose purge has begun. Only a commit that changed nothing lets the
// purge begin while its key is kept.
func TestAnsweredVersionOfPurgedTable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	table, err := keyedCommit(f, f.Instance, "1", catalog.CommitRequest{})
	must(t, err)
	dropPurged(f, "t", registry.StatePurging)
	must(t, f.Files.Delete(f.Ctx, table.MetadataLocation))
	_, err = keyedCommit(f, f.Other(f.Store), "1", catalog.CommitRequest{})
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
}

// A purge waits only if a version of the table may have to be returned again, and no longer than
// needed. The answer to the drop itself contains no version.
func TestPurgeWaitsForKeys(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		keyed func(f *catalogkit.Fixture) // on the table t
		waits bool
	}{
		"no key": {func(f *catalogkit.Fixture) {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", "1"))
			must(t, err)
		}, false},
		"a commit": {func(f *catalogkit.Fixture) {
			_, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
			must(t, err)
		}, true},
		"a commit, then one without a key": {func(f *catalogkit.Fixture) {
			_, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
			must(t, err)
			_, err = f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", "2"))
			must(t, err)
		}, true},
		"a transaction, which answers nothing": {func(f *catalogkit.Fixture) {
			f.Create("u")
			_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
				return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("t", catalogkit.SetProperty(t, "n", "1")), catalogkit.On("u", catalogkit.SetProperty(t, "n", "1"))})
			})
			must(t, err)
		}, false},
		"a rename, which answers nothing": {func(f *catalogkit.Fixture) {
			_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
				return catalogkit.Reply{}, c.RenameTable(ctx, ident("t"), ident("u"))
			})
			must(t, err)
			must(t, f.RenameTable(f.Ctx, ident("u"), ident("t")))
		}, false},
		"long ago": {func(f *catalogkit.Fixture) {
			_, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
			must(t, err)
			f.Clock.Advance(f.KeyLife())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			location := f.Create("t").MetadataLocation
			row.keyed(f)
			key := catalogkit.KeyOf("drop")
			key.ID = "drop"
			_, err := f.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
				return catalogkit.Reply{}, c.DropTable(ctx, ident("t"), catalog.DropOptions{Purge: true})
			})
			must(t, err)
			must(t, f.PurgeAll(f.Ctx))
			if waits := len(f.Present([]string{location})) > 0; waits != row.waits {
				t.Errorf("the purge waits: %t, want %t", waits, row.waits)
			}
			f.WantClean()
			f.Clock.Advance(f.KeyLife())
			must(t, f.PurgeAll(f.Ctx))
			if left, err := f.Store.List(f.Ctx, registry.TableTask, "", "", 1); err != nil || len(left) > 0 || len(f.Present([]string{location})) > 0 {
				t.Errorf("the purge has not happened: %v, %v", left, err)
			}
			f.WantClean()
		})
	}
}

// Restoring a table cancels its purge, even while the purge waits for a key.
func TestWaitingPurgeIsCalledOff(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	table, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	must(t, err)
	must(t, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
	must(t, f.PurgeAll(f.Ctx))
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.Clock.Advance(time.Hour)
	must(t, f.PurgeAll(f.Ctx))
	f.WantProperty("t", "n", "1")
	f.WantClean()
}
