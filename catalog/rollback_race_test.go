package catalog_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storetest"
)

var rollbacksFlag = flag.Duration("rollbacks", 0, "for how long rollbacks and commits race, in each of 18 cases; 0: two cases, for seconds")

// lingeringDeletes is a storage whose deletions begin late.
type lingeringDeletes struct {
	storage.Store
	yields int // how often it yields to other goroutines
}

func (f *lingeringDeletes) Delete(ctx context.Context, locations ...string) error {
	for range f.yields {
		runtime.Gosched()
	}
	return f.Store.Delete(ctx, locations...)
}

// TestRollbacksRaceWithTrims rolls a table back with registers over it, to files at the edge of its
// metadata log. At the same time, commits on two nodes delete the files that leave the log. Other
// registers use files that were just written; such files are deleted if their commits lose. After
// each round, the file named by the table must exist.
func TestRollbacksRaceWithTrims(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) (registry.Store, registry.Store){
		"memory": func(*testing.T) (registry.Store, registry.Store) { return nil, nil },
		"pebble": func(t *testing.T) (registry.Store, registry.Store) {
			store := storetest.OpenPebble(t, newLockedRandom(2))
			return store, store
		},
		"postgres": func(t *testing.T) (registry.Store, registry.Store) {
			dsn, random := stores.NewDatabase(t), newLockedRandom(2)
			return storetest.OpenNode(t, dsn, random), storetest.OpenNode(t, dsn, random)
		},
	}
	for name, open := range stores {
		for _, versions := range []int{1, 3, 20} {
			for _, yields := range []int{0, 2000} {
				t.Run(fmt.Sprintf("%s/%d/%d", name, versions, yields), func(t *testing.T) {
					t.Parallel()
					lasting := *rollbacksFlag
					if lasting == 0 {
						if lasting = 2500 * time.Millisecond; name != "memory" || versions == 20 || yields == 0 {
							return // make rollbacks runs the rest
						}
					}
					store, beside := open(t)
					raceRollbacks(t, store, beside, versions, yields, lasting)
				})
			}
		}
	}
}

// For a minute, a file that a commit is about to delete cannot be registered. After that it can, if
// it still exists.
func TestRegisterOfAFileAboutToBeDeleted(t *testing.T) {
	t.Parallel()
	var deletes catalogkit.Hook
	f := catalogkit.New(t, deletes.OnDelete)
	f.Create("t")
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming))
	must(t, err)
	edge := f.MetadataFiles("t", 1)[0]
	f.Clock.Advance(4 * time.Minute) // it is no longer fresh
	register := func() error {
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: edge, Overwrite: true})
		return err
	}
	f.MetadataFiles("t", 1)
	var during error
	deletes.Once(func() { during = register() })
	f.MetadataFiles("t", 1) // this deletes edge
	catalogkit.WantKind(t, during, moorage.KindUnavailable)
	if left := f.Present([]string{edge, f.PointerOf("t").MetadataLocation}); len(left) != 1 {
		t.Errorf("%q are left", left)
	}
	catalogkit.WantKind(t, register(), moorage.KindNotFound)
	// A file that could not be deleted can be registered a minute later.
	last, err := f.LoadTable(f.Ctx, ident("t"))
	must(t, err)
	edge = last.MetadataLocation
	f.Clock.Advance(4 * time.Minute)
	f.MetadataFiles("t", 1)
	must(t, f.Files.Delete(f.Ctx, edge))
	f.MetadataFiles("t", 1) // this finds nothing to delete
	must(t, f.Files.Create(f.Ctx, edge, last.Document.Raw()))
	catalogkit.WantKind(t, register(), moorage.KindUnavailable)
	f.Clock.Advance(time.Minute)
	must(t, register())
	f.MetadataFiles("t", 2)
	if trims := f.PointerOf("t").Trims; len(trims) != 1 {
		t.Errorf("the pointer announces %+v, want the files of its last commit", trims)
	}
}

// A file that a commit is about to delete cannot be registered after an unregister either. Nor can
// it be registered over the table after that was restored from another file.
func TestRegisterOfAFileAboutToBeDeletedAfterUnregister(t *testing.T) {
	t.Parallel()
	var deletes catalogkit.Hook
	f := catalogkit.New(t, deletes.OnDelete)
	f.Create("t")
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, trimming))
	must(t, err)
	edge := f.MetadataFiles("t", 1)[0]
	f.MetadataFiles("t", 1)
	f.Clock.Advance(4 * time.Minute) // they are no longer fresh
	register := func(file string, overwrite bool) error {
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: file, Overwrite: overwrite})
		return err
	}
	deletes.Once(func() { // the deletion of edge
		last, err := f.UnregisterTable(f.Ctx, ident("t"))
		must(t, err)
		catalogkit.WantKind(t, register(edge, false), moorage.KindUnavailable)
		must(t, register(last.MetadataLocation, false))
		catalogkit.WantKind(t, register(edge, true), moorage.KindUnavailable)
		_, err = f.UnregisterTable(f.Ctx, ident("t"))
		must(t, err)
		catalogkit.WantKind(t, register(edge, false), moorage.KindUnavailable)
		must(t, register(last.MetadataLocation, false))
	})
	f.MetadataFiles("t", 1)
	catalogkit.WantKind(t, register(edge, true), moorage.KindNotFound)
	f.WantClean()
}

// A file younger than two minutes can be registered at once if the table names it or has it in its
// log. The same holds for the last version of an unregistered table.
func TestRegisterOfAFreshFile(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	first := f.Create("t").MetadataLocation
	second := f.MetadataFiles("t", 1)[0]
	register := func(file string, overwrite bool) error {
		_, err := f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: file, Overwrite: overwrite})
		return err
	}
	for _, file := range []string{second, second, first} {
		_, err := f.UnregisterTable(f.Ctx, ident("t"))
		must(t, err)
		must(t, register(file, false))
	}
	catalogkit.WantKind(t, register(second, true), moorage.KindUnavailable) // because no record shows that a commit published it
	f.Clock.Advance(2 * time.Minute)
	must(t, register(second, true))
	must(t, register(first, true))
}

// raceRollbacks runs rounds for the duration lasting. In each round, two nodes commit to a table
// while other clients roll it back. If store is nil, both nodes use one store in memory.
func raceRollbacks(t *testing.T, store, beside registry.Store, versions, yields int, lasting time.Duration) {
	f := catalogkit.New(t, func(c *catalog.Config) {
		if store != nil {
			c.Store = store
		}
		catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store { return &lingeringDeletes{inner, yields} })
	})
	config := f.Config
	if beside != nil {
		config.Store = beside
	}
	second, err := catalogkit.NewInstance(config)
	must(t, err)
	nodes := []*catalogkit.Instance{f.Instance, second}
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var rounds, rolledBack, refused, broken, lost atomic.Int64
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("t%d", n/50)
		if n%50 == 0 {
			f.Create(name)
			_, err := f.Commit(f.Ctx, ident(name), catalogkit.CommitRequest(t, `[]`, fmt.Sprintf(`[{"action":"set-properties","updates":{`+
				`"write.metadata.delete-after-commit.enabled":"true","write.metadata.previous-versions-max":"%d"}}]`, versions)))
			must(t, err)
			f.MetadataFiles(name, versions+1)
		}
		present, err := f.LoadTable(f.Ctx, ident(name))
		must(t, err)
		log := present.Document.MetadataLog()
		if len(log) == 0 { // a rollback to the first file
			f.MetadataFiles(name, versions+1)
			continue
		}
		f.Clock.Advance(4 * time.Minute) // the existing files are no longer fresh
		folder := present.Document.Location() + "/metadata"
		before := listed(f, folder)
		racers, commits := sync.WaitGroup{}, sync.WaitGroup{}
		commits.Add(3)
		ended := make(chan struct{})
		go func() { commits.Wait(); close(ended) }()
		racers.Go(func() { lost.Add(registerFresh(f, name, folder, before, ended)) })
		for i, node := range nodes {
			for range 1 + i {
				racers.Go(func() {
					defer commits.Done()
					_, err := node.Commit(f.Ctx, ident(name), catalogkit.SetProperty(t, "n", fmt.Sprint(n)))
					wantOneOf(t, err, moorage.KindCommitFailed, moorage.KindUnavailable, moorage.KindNotFound)
				})
			}
			racers.Go(func() {
				edge := log[min(i, len(log)-1)].MetadataLocation
				_, err := node.RegisterTable(f.Ctx, ident(name), catalog.RegisterRequest{MetadataLocation: edge, Overwrite: true})
				wantOneOf(t, err, moorage.KindCommitFailed, moorage.KindUnavailable, moorage.KindNotFound)
				switch moorage.KindOf(err) {
				case moorage.KindUnavailable:
					refused.Add(1)
				case moorage.KindNotFound:
				default:
					rolledBack.Add(1)
				}
			})
		}
		racers.Wait()
		rounds.Add(1)
		location := f.PointerOf(name).MetadataLocation
		if _, err := f.Files.Stat(f.Ctx, location); err != nil {
			broken.Add(1)
			t.Errorf("round %d: %s is without its file: %v", n, name, err)
			if broken.Load() > 3 {
				break
			}
			n += 50 - n%50 - 1
		}
	}
	t.Logf("%d rounds, %d rollbacks, %d refused for now, %d registers of fresh files, %d tables broken",
		rounds.Load(), rolledBack.Load(), refused.Load(), lost.Load(), broken.Load())
}

// listed returns the files in a folder.
func listed(f *catalogkit.Fixture, folder string) map[string]bool {
	f.T.Helper()
	files := make(map[string]bool)
	for after := ""; ; {
		page, err := f.Files.(storage.Lister).List(f.Ctx, folder, after, 1000)
		if err != nil {
			f.T.Error(err)
			return files
		}
		for _, file := range page.Files {
			files[file.Location] = true
		}
		if after = page.Next; after == "" {
			return files
		}
	}
}

// registerFresh registers files over the table called name until the commits have ended. It uses
// each file in folder that is not in before, and returns the number of attempts.
func registerFresh(f *catalogkit.Fixture, name, folder string, before map[string]bool, ended chan struct{}) (tried int64) {
	for {
		for file := range listed(f, folder) {
			if before[file] {
				continue
			}
			before[file] = true
			tried++
			_, err := f.RegisterTable(f.Ctx, ident(name), catalog.RegisterRequest{MetadataLocation: file, Overwrite: true})
			wantOneOf(f.T, err, moorage.KindCommitFailed, moorage.KindUnavailable, moorage.KindNotFound)
		}
		select {
		case <-ended:
			return tried
		default:
			runtime.Gosched()
		}
	}
}

// wantOneOf fails the test unless err is nil or has one of these kinds.
func wantOneOf(t testing.TB, err error, kinds ...moorage.Kind) {
	t.Helper()
	for _, kind := range kinds {
		if err == nil || moorage.KindOf(err) == kind {
			return
		}
	}
	t.Errorf("%v (%s)", err, moorage.KindOf(err))
}
