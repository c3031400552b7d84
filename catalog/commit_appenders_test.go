package catalog_test

import (
	"slices"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
	"moorage/testkit/scale"
)

// appender is a client that appends to one table.
type appender struct {
	client *histories.Client

	acknowledged, refused []int64 // snapshots
}

// attempt appends to the version in known, and returns the answer.
func (a *appender) attempt(known histories.Answer) histories.Answer {
	call := a.client.AppendTo(known, 0, 0)
	answer := a.client.Do(call)
	switch {
	case answer.Err == nil:
		a.acknowledged = append(a.acknowledged, call.Snapshot)
	case !answer.Unknown():
		a.refused = append(a.refused, call.Snapshot)
	}
	return answer
}

// newAppenders creates the table "t0" of the first group, and n appenders.
func newAppenders(t *testing.T, system *historySystem, n int, seed uint64) []*appender {
	t.Helper()
	if _, err := system.clean.CreateTable(t.Context(), groupIdent(0, 0), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}); err != nil {
		t.Fatal(err)
	}
	appenders := make([]*appender, n)
	for i := range appenders {
		appenders[i] = &appender{client: system.newClient(t.Context(), i, seed, histories.Habits{}, &histories.Recorder{})}
	}
	return appenders
}

// wantChain fails the test unless the chain of snapshots, from the table's head to its first,
// contains every acknowledged append exactly once. The table must contain no refused append.
func wantChain(t *testing.T, system *historySystem, appenders []*appender) {
	t.Helper()
	table, err := system.clean.LoadTable(t.Context(), groupIdent(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	got := snapshotChain(t, table.Document)
	var want []int64
	for _, a := range appenders {
		want = append(want, a.acknowledged...)
		for _, id := range a.refused {
			if table.Document.HasSnapshot(id) {
				t.Errorf("the append of snapshot %d was refused, and is there", id)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the chain holds %d snapshots, %d were acknowledged; got %v, want %v", len(got), len(want), got, want)
	}
}

// snapshotChain returns the snapshots from the head of main to the first.
func snapshotChain(t testing.TB, document *metadata.Document) []int64 {
	t.Helper()
	parents := map[int64]int64{}
	for snapshot := range document.Snapshots() {
		if _, twice := parents[snapshot.ID]; twice {
			t.Errorf("snapshot %d is there twice", snapshot.ID)
		}
		parents[snapshot.ID] = 0
		if snapshot.HasParent {
			parents[snapshot.ID] = snapshot.ParentID
		}
	}
	var chain []int64
	for id := histories.Head(document); id != 0 && len(chain) <= len(parents); id = parents[id] {
		chain = append(chain, id)
	}
	return chain
}

// Several writers append. A writer that loses a race loads the table and tries again. No
// acknowledged append is lost.
func TestAppendersLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, appends = 32, 10 / scale.Factor
	tests := []struct {
		name string
		make func(*testing.T, *lockedRandom) *historySystem
	}{
		{"one node", memorySystem(localLocks, 1)},
		{"two nodes without locks", memorySystem(catalogkit.NoLocks, 2)},
		{"lost and late answers", faultySystem},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			seed := catalogkit.NewSeed(t)
			system := tt.make(t, newLockedRandom(seed))
			appenders := newAppenders(t, system, writers, seed)
			var group sync.WaitGroup
			for _, a := range appenders {
				group.Go(func() {
					for len(a.acknowledged) < appends {
						if known := a.client.Do(a.client.Call(histories.Load, 0, 0)); known.Err == nil {
							a.attempt(known)
						}
					}
				})
			}
			group.Wait()
			if system.disturb != nil {
				if err := system.disturb(t.Context()); err != nil {
					t.Error(err)
				}
			}
			wantChain(t, system, appenders)
			catalogkit.WantClean(t, system.clean)
		})
	}
}

// Several appends to one version run at the same time, without retries. Exactly one succeeds,
// because its parent is still the head. On one node, the others are refused before anything is
// written.
func TestAppendersWithoutRetry(t *testing.T) {
	t.Parallel()
	const writers, rounds = 32, 40 / scale.Factor
	for _, nodes := range []int{1, 2} {
		t.Run(map[int]string{1: "one node", 2: "two nodes"}[nodes], func(t *testing.T) {
			t.Parallel()
			seed := catalogkit.NewSeed(t)
			system := memorySystem(localLocks, nodes)(t, newLockedRandom(seed))
			appenders := newAppenders(t, system, writers, seed)
			for round := range rounds {
				known, err := system.nodes[0].LoadTable(t.Context(), groupIdent(0, 0))
				if err != nil {
					t.Fatal(err)
				}
				files := len(system.files.all())
				done := attemptAtOnce(t, appenders, histories.Found(known.MetadataLocation, known.Document))
				if done != 1 {
					t.Errorf("round %d: %d of %d appends to one version succeeded, want 1", round, done, writers)
				}
				if written := len(system.files.all()) - files; nodes == 1 && written != 1 {
					t.Errorf("round %d: %d files were written, want 1", round, written)
				}
			}
			wantChain(t, system, appenders)
			catalogkit.WantClean(t, system.clean)
		})
	}
}

// attemptAtOnce makes all appenders append to the same version, and returns how many succeeded. The
// others must be refused with a conflict.
func attemptAtOnce(t *testing.T, appenders []*appender, known histories.Answer) (done int) {
	t.Helper()
	answers := make([]histories.Answer, len(appenders))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, a := range appenders {
		group.Go(func() {
			<-start
			answers[i] = a.attempt(known)
		})
	}
	close(start)
	group.Wait()
	for _, answer := range answers {
		if answer.Err == nil {
			done++
		} else {
			catalogkit.WantKind(t, answer.Err, moorage.KindCommitFailed)
		}
	}
	return done
}
