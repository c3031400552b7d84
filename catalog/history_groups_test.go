package catalog_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
	"moorage/testkit/scale"
)

const (
	// gateBehind is the number of commits that should wait behind the one held at a gate.
	gateBehind = 12
	// gateHold is the maximum time that a gate holds a commit. Only if something hangs does a hold
	// last that long. It is shorter than a turn.
	gateHold = 3 * time.Second
	// gatePause is the time in which the commits that have begun get from their call to the queue.
	gatePause = 30 * time.Millisecond
	// groupHistoryGroups is the number of groups of names that the clients share. It is small, so
	// that commits coincide.
	groupHistoryGroups = 1
)

// turnstile counts the commits in progress at each table on one node. It is safe for concurrent
// use.
type turnstile struct {
	mu      sync.Mutex // guards the fields below; a leaf
	under   map[string]int
	all     int           // the sum of under
	writers int           // the clients of the node that may begin commits
	more    chan struct{} // closed when a commit begins, or when a writer ends
}

func newTurnstile() *turnstile { return &turnstile{under: map[string]int{}, more: make(chan struct{})} }

// enter counts a commit that begins; leave counts its end.
func (g *turnstile) enter(ident moorage.Identifier) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under[ident.String()]++
	g.all++
	g.wakeLocked()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.under[ident.String()]--
		g.all--
	}
}

// join counts a client that will begin commits; leave counts its end.
func (g *turnstile) join() (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writers++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.writers--
		g.wakeLocked()
	}
}

// wakeLocked lets all holds look again. mu must be held.
func (g *turnstile) wakeLocked() {
	close(g.more)
	g.more = make(chan struct{})
}

// isFull reports whether a hold may end: either enough commits have begun behind the carried ones,
// or each writer has a commit in progress. more is closed when that may have changed.
func (g *turnstile) isFull(ident moorage.Identifier, carried int) (full bool, more <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.under[ident.String()] >= carried+gateBehind || g.all >= g.writers, g.more
}

// hold waits until enough commits have begun behind those being carried out, or until each writer
// has begun one, and until they had time to queue. carried is the number of commits being carried
// out.
func (g *turnstile) hold(ident moorage.Identifier, carried int) {
	over := time.After(gateHold)
	for {
		full, more := g.isFull(ident, carried)
		if full {
			<-time.After(gatePause)
			return
		}
		select {
		case <-more:
		case <-over:
			return
		}
	}
}

// gatedStore holds each Apply of commits at a turnstile.
type gatedStore struct {
	registry.Store
	turnstile *turnstile
}

func (s gatedStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if batch.Change != nil && batch.Change.Operation == string(gate.Commit) {
		s.turnstile.hold(batch.Change.Ident, max(1, len(batch.Change.Group)))
	}
	return s.Store.Apply(ctx, batch)
}

// gatedNode is a node whose commits are counted at a turnstile.
type gatedNode struct {
	catalog.Verbs
	turnstile *turnstile
}

func (n gatedNode) Commit(ctx context.Context, ident moorage.Identifier, request catalog.CommitRequest) (*catalog.Table, error) {
	defer n.turnstile.enter(ident)()
	return n.Verbs.Commit(ctx, ident, request)
}

// forceGroups gives each node of system a turnstile, so that commits coincide and share versions.
func forceGroups(t testing.TB, system *historySystem) *historySystem {
	t.Helper()
	for i, node := range system.nodes {
		held, config := newTurnstile(), node.Config
		config.Store = gatedStore{config.Store, held}
		gated, err := catalogkit.NewInstance(config)
		must(t, err)
		system.nodes[i] = gated
		system.gates = append(system.gates, held)
	}
	return system
}

// Like TestHistory, with commits that share versions. It runs on single nodes and on nodes that
// race each other, over stores that lose answers. A version contains the effects of exactly those
// members that were answered with it.
func TestHistoryOfGroups(t *testing.T) {
	t.Parallel()
	size := historySize{writers: 24, commits: 40 / scale.Factor, readers: 2, reads: 60, steady: true, groups: groupHistoryGroups}
	if *longFlag {
		size.commits, size.reads = 10*size.commits, 10*size.reads
	}
	for name, open := range map[string]func(t *testing.T, random *lockedRandom) *historySystem{
		"memory":                             memorySystem(localLocks, 1),
		"memory, two nodes":                  memorySystem(catalogkit.NoLocks, 2),
		"memory, lost and late answers":      faultySystem,
		"memory, outcomes that stay unknown": unansweredSystem,
		"pebble":                             diskSystem,
		"pebble, two nodes, lost and late":   faultyPebbleSystem,
		"postgres":                           postgresSystem(catalogkit.NoLocks, 1),
		"postgres, two nodes":                postgresSystem(catalogkit.NoLocks, 2),
		"postgres, two nodes, lost and late": faultyPostgresSystem,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := catalogkit.NewSeed(t)
			system, size := forceGroups(t, open(t, newLockedRandom(seed))), size
			if len(system.nodes) > 1 { // groups are per node, and split before waiting for a lock
				size.writers += 8
			}
			history := runHistory(t.Context(), system, size, seed)
			must(t, history.Failure)
			t.Log(history.Summary())
			checker, err := histories.NewChecker(system.files.all(), system.faults)
			must(t, err)
			checker.Check(t, history.Events)
			versions, shared := checker.Shared(history.Events)
			t.Logf("%d of %d versions have several authors", shared, versions)
			if shared < versions/groupShareMin {
				t.Errorf("%d of %d versions have several authors: too few to show much", shared, versions)
			}
			catalogkit.WantClean(t, system.clean)
		})
	}
}

// At least one in groupShareMin versions must have several authors.
const groupShareMin = 4

// faultyPebbleSystem is a system of two nodes in one process over a store that loses answers.
func faultyPebbleSystem(t *testing.T, random *lockedRandom) *historySystem {
	store, err := pebble.Open(filepath.Join(t.TempDir(), "store"), pebble.Options{Random: random})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return faultySystemOver(t, store, random)
}
