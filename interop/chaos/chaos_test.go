package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	durationFlag = flag.Duration("duration", 18*time.Second, "how long engines write")
	enginesFlag  = flag.String("engines", "iceberg-go,iceberg-go",
		"two of iceberg-go, pyiceberg, spark, trino, duckdb and flink, which write and read")
	seedFlag = flag.Uint64("seed", 0, "seed of everything that is random; 0: a new one each time")
)

// orderSpan bounds the wait until only live files are left. settleMax bounds the number of changes
// until a writer knows its table's content.
const (
	orderSpan = 90 * time.Second
	settleMax = 20
)

// TestChaos has two engines write while maintenance deletes files as early as possible and nodes
// are killed.
func TestChaos(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 23))
	w := newWorld(t)
	w.startEngines(strings.Split(*enginesFlag, ","))
	w.makeTables([]string{"own0", "own1", "shared0", "shared1"})
	judge := newJudge(w)
	planted, err := judge.plant(t.Context())
	must(t, err)
	writers := []*writer{
		newWriter(w, 0, "own0", false, rand.New(rand.NewPCG(random.Uint64(), 0))),
		newWriter(w, 1, "own1", false, rand.New(rand.NewPCG(random.Uint64(), 0))),
	}
	for i := range int64(4) {
		name := fmt.Sprint("shared", i%2)
		writers = append(writers, newWriter(w, 2+i, name, true, rand.New(rand.NewPCG(random.Uint64(), 0))))
	}
	must(t, w.warmUp(t.Context(), len(writers)))
	w.chaos(random, judge, writers)
	if t.Failed() {
		return
	}
	for _, writer := range writers {
		if err := writer.settle(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := judge.awaitOrder(t.Context(), w.orphanAge+orderSpan); err != nil {
		t.Error(err)
	}
	report(t, w, judge, writers, planted)
	w.stop()
}

// chaos runs everything at once for the duration, or until a check fails.
func (w *world) chaos(random *rand.Rand, j *judge, writers []*writer) {
	ctx, end := context.WithTimeout(w.t.Context(), *durationFlag)
	defer end()
	var all sync.WaitGroup
	begin := func(do func(ctx context.Context) error) {
		all.Go(func() {
			if err := do(ctx); err != nil {
				w.t.Error(err)
				end()
			}
		})
	}
	killer := rand.New(rand.NewPCG(random.Uint64(), 0))
	begin(func(ctx context.Context) error { return w.disturb(ctx, killer) })
	begin(func(ctx context.Context) error { w.steer(ctx); return nil })
	begin(j.run)
	for _, e := range w.engines {
		if e, ok := e.(*remote); ok {
			begin(e.watch)
		}
	}
	for _, writer := range writers {
		begin(writer.run)
	}
	all.Wait()
}

// settle writes once more, so that no change is pending, and checks all refs that the writer knows.
func (w *writer) settle(ctx context.Context) error {
	for try := range settleMax {
		if w.model.isCrowded() {
			if err := w.rest(ctx, w.engines[try%2]); err != nil {
				return err
			}
		}
		w.append(ctx, w.engines[try%2])
		if !w.model.unsettled {
			break
		}
	}
	if w.model.unsettled {
		return fmt.Errorf("writer %d cannot write any more: %w", w.id, w.lastFailure)
	}
	for _, e := range w.engines {
		for _, ref := range append(w.names(), "") {
			if err := w.compare(ctx, e, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// report prints the counts of what happened. It fails the test if too little happened to prove
// anything.
func report(t *testing.T, w *world, j *judge, writers []*writer, planted int) {
	t.Helper()
	done, failed, reads := map[string]int{}, map[string]int{}, 0
	for _, writer := range writers {
		for what, n := range writer.done {
			done[what] += n
		}
		for what, n := range writer.failed {
			failed[what] += n
			done[what] += 0 // includes changes that were never acknowledged
		}
		reads += writer.reads
		t.Logf("writer %d of %s: the longest change took %s; the last failure: %v", writer.id, writer.table,
			writer.longest.Round(time.Millisecond), writer.lastFailure)
	}
	for _, what := range slices.Sorted(maps.Keys(done)) {
		t.Logf("%-40s %5d acknowledged, %4d not", what, done[what], failed[what])
	}
	var kills int64
	for _, n := range w.nodes {
		kills += n.kills.Load()
	}
	jobs, files := j.counts()
	t.Logf("%d reads were right; %d looks at %d live files; %d kills; of the jobs %v deleted %d files", reads, j.looks,
		j.files, kills, jobs, files)
	if kills == 0 || reads < 2*len(writers) || j.looks < 2*len(j.tables) || files <= int64(planted) || jobs["snapshots done"] == 0 ||
		jobs["orphans done"] == 0 {
		t.Error("that shows nothing")
	}
}
