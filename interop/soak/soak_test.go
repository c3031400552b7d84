package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	soakFlag = flag.Duration("soak", 30*time.Second, "how long the nodes work at least")
	onlyFlag = flag.String("only", "", "numbers of the faults to inject, with commas between; empty: all of them, and some in a short run")
	seedFlag = flag.Uint64("seed", 0, "seed of everything that is random; 0: a new one each time")
)

const (
	// calm is the time without faults, before the first one and after the last. It lasts longer, up
	// to calmMax, if some node did not answer in time for a sample.
	calm    = 5 * time.Second
	calmMax = time.Minute
	// cycleMin is the shortest time from one round of all faults to the next in a long run. Each
	// third of an hour has two rounds. cycleMin must not divide the 20 minutes for which changes
	// are kept: otherwise chance would decide whether the changes of two or of three rounds exist
	// at once.
	cycleMin = 8 * time.Minute
	// faultsDrawn is the number of faults that a run shorter than cycleMin draws.
	faultsDrawn = 9
	// sampleEvery is the time between two samples in a short run, and sampleEveryLong in a long
	// one.
	sampleEvery     = time.Second
	sampleEveryLong = 10 * time.Second
)

// fault is a disturbance that the nodes must survive.
type fault struct {
	number string // as listed by the test
	name   string
	// inject causes the fault, checks the conditions that must hold during it, and ends it. later,
	// if not nil, waits for the conditions that must hold soon after.
	inject func(context.Context, *world) (later func(context.Context) error, err error)
}

// faults returns the faults to inject: the ones that -only names, in its order, or all of them in
// random order. A short run gets only some of them.
func faults(random *rand.Rand) (named []fault) {
	if *onlyFlag == "" {
		named = allFaults()
		random.Shuffle(len(named), func(i, j int) { named[i], named[j] = named[j], named[i] })
		if *soakFlag < cycleMin {
			named = named[:faultsDrawn]
		}
		return named
	}
	for _, number := range strings.Split(*onlyFlag, ",") {
		for _, f := range allFaults() {
			if f.number == number {
				named = append(named, f)
			}
		}
	}
	return named
}

func allFaults() []fault {
	return []fault{
		{"1", "changes that wait for a place in great number", changesThatWait},
		{"2", "the synchronous standby stands still", standbyPaused},
		{"3", "the database warns in every statement", warnings},
		{"4", "the storage of a warehouse hangs", storageHangs},
		{"5", "connections that trickle their bodies", slowBodies},
		{"6", "namespaces with large properties", largeNamespaces},
		{"7", "long compressed metadata on a storage that stands still", slowLongMetadata},
		{"8", "a warehouse made elsewhere while its purge is pending", warehouseElsewhere},
		{"9", "a node whose clock was a year ahead", clockAhead},
		{"10", "records with members of a later version", laterMembers},
		{"11", "many purges at once", manyPurges},
		{"12", "the embedded store is killed", singleKilled},
		{"13", "many checks at once", manyChecks},
		{"takeover-kill", "a node is killed under load", nodeKilled},
		{"takeover-pause", "a node stands still for 10 s", nodePaused},
	}
}

// TestSoak runs all nodes under load and injects faults.
func TestSoak(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	w := newWorld(t, seed)
	l := &load{world: w, seed: seed, tally: &tally{}}
	watched := &watch{world: w, began: time.Now()}
	every := sampleEvery
	if *soakFlag >= flatFrom {
		every = sampleEveryLong
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { l.run(t.Context(), t, done) })
	group.Go(func() { l.workOnSingle(t.Context(), done) })
	stopped := make(chan struct{})
	sampled := make(chan error, 1)
	go func() { sampled <- watched.run(t.Context(), every, stopped) }()

	random := rand.New(rand.NewPCG(seed, 2))
	deck := faults(random)
	injected, begin, end := disturb(t, w, watched, deck, random)

	duration := time.Since(watched.began)
	close(done)
	group.Wait()
	close(stopped)
	report(t, <-sampled)
	judge(t, l.tally, watched, duration, begin, end)
	w.stop(t)
	listFaults(t, deck, injected)
}

// disturb injects the faults of the deck, round after round, with a calm before the first and after
// the last. It returns the number of injections of each fault, and the samples of the two calms.
func disturb(t *testing.T, w *world, watched *watch, deck []fault, random *rand.Rand) (injected map[string]int, begin, end []sample) {
	t.Helper()
	injected = map[string]int{}
	begin = watched.rest(t.Context())
	for round := 0; round == 0 || time.Since(watched.began) < *soakFlag-calm; round++ {
		began := time.Now()
		if round > 0 && *onlyFlag == "" {
			random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		injectAll(t, w, watched, deck, injected)
		rest := min(cycleMin-time.Since(began), *soakFlag-calm-time.Since(watched.began))
		_ = pause(t.Context(), rest)
	}
	return injected, begin, watched.rest(t.Context())
}

// injectAll injects each fault of the deck once, in order.
func injectAll(t *testing.T, w *world, watched *watch, deck []fault, injected map[string]int) {
	t.Helper()
	var after sync.WaitGroup
	for _, f := range deck {
		from := time.Since(watched.began)
		later, err := f.inject(t.Context(), w)
		w.closeIdle()
		t.Logf("%7.1f s to %7.1f s: fault %s: %s", from.Seconds(), time.Since(watched.began).Seconds(), f.number, f.name)
		if err != nil {
			t.Errorf("fault %s, %s: %v", f.number, f.name, err)
			continue
		}
		injected[f.number]++
		if later != nil {
			after.Go(func() {
				if err := later(t.Context()); err != nil {
					t.Errorf("after fault %s, %s: %v", f.number, f.name, err)
				}
			})
		}
	}
	after.Wait()
	w.closeIdle()
}

// judge fails the test for problems that the load saw, and for series that are not flat.
// begin and end are the samples of the calms.
func judge(t *testing.T, seen *tally, watched *watch, duration time.Duration, begin, end []sample) {
	t.Helper()
	t.Logf("%d changes acknowledged, %d refused, %d unknown; %d reads",
		seen.acknowledged.Load(), seen.refused.Load(), seen.unknown.Load(), seen.reads.Load())
	for _, problem := range seen.problems {
		t.Error(problem)
	}
	if seen.acknowledged.Load() == 0 || seen.reads.Load() == 0 {
		t.Error("the load did nothing")
	}
	var table, problems []string
	if *soakFlag >= flatFrom {
		table, problems = judgeFlat(watched.between(0, duration), duration)
	} else {
		table, problems = judgeEnd(watched.between(0, duration), begin, end)
	}
	t.Log("\n" + strings.Join(table, "\n"))
	for _, problem := range problems {
		t.Error(problem)
	}
}

// listFaults prints the number of injections of each fault, and fails the test for a fault without
// any.
func listFaults(t *testing.T, deck []fault, injected map[string]int) {
	t.Helper()
	var lines []string
	for _, f := range deck {
		lines = append(lines, fmt.Sprintf("fault %-16s %d times: %s", f.number, injected[f.number], f.name))
		if injected[f.number] == 0 {
			t.Errorf("fault %s was not injected: %s", f.number, f.name)
		}
	}
	t.Log("\n" + strings.Join(lines, "\n"))
}

// TestFaultsAreNumbered checks that each fault has a unique number, and that 1 to 13 all exist.
func TestFaultsAreNumbered(t *testing.T) {
	t.Parallel()
	var numbers []string
	for _, f := range allFaults() {
		if slices.Contains(numbers, f.number) {
			t.Errorf("two faults have the number %s", f.number)
		}
		numbers = append(numbers, f.number)
	}
	for n := 1; n <= 13; n++ {
		if !slices.Contains(numbers, fmt.Sprint(n)) {
			t.Errorf("there is no fault %d", n)
		}
	}
}
