package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage/registry"
)

// Sizes of the power loss test. They are large enough to rotate the log and to flush, and small
// enough to reopen the store after each change of the file system.
const (
	powerWriters    = 4
	powerSteps      = 12
	powerValueBytes = 700
)

// witness records the steps that were acknowledged to a writer or seen by a reader. It is safe for
// concurrent use.
type witness struct {
	// mu guards the fields below; leaf.
	mu      sync.Mutex
	steps   [powerWriters]int            // per writer, the highest step known to have happened
	changes map[registry.Position]string // the operation seen at each position
}

func (w *witness) saw(writer, step int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[writer] = max(w.steps[writer], step)
}

func (w *witness) sawChange(c registry.PositionedChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[c.Position] = c.Change.Operation
}

// copy returns a copy of the present w.
func (w *witness) copy() *witness {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := make(map[registry.Position]string)
	for position, operation := range w.changes {
		changes[position] = operation
	}
	return &witness{steps: w.steps, changes: changes}
}

// powerBatch returns a step of a writer: two records with the step's number, and its change.
func powerBatch(writer, step int) registry.Batch {
	batch := testPut(fmt.Sprintf("%d/a", writer), fmt.Sprintf("%0*d", powerValueBytes, step))
	batch.Writes = append(batch.Writes, registry.Put(testKey(fmt.Sprintf("%d/b", writer)), registry.StateOwner, []byte(strconv.Itoa(step))))
	batch.Change = testChange(writer<<8 | step)
	batch.Change.Operation = fmt.Sprintf("%d/%d", writer, step)
	return batch
}

// powerStep returns the writer and the step of a record of powerBatch.
func powerStep(r registry.Record) (writer, step int, err error) {
	number, _, _ := strings.Cut(r.Key.ID, "/")
	writer, err1 := strconv.Atoi(number)
	step, err2 := strconv.Atoi(string(r.Value))
	return writer, step, errors.Join(err1, err2)
}

// observe reads everything in all three ways, and records the result in w.
func (w *witness) observe(t *testing.T, s *instance) error {
	listed, err := s.List(t.Context(), registry.TableLocation, "", "", 2*powerWriters)
	if err != nil {
		return err
	}
	got, err := s.Get(t.Context(), testKey("0/a"), testKey("1/b"))
	if err != nil {
		return err
	}
	for _, r := range append(listed, got...) {
		if !r.Exists() {
			continue
		}
		writer, step, err := powerStep(r)
		if err != nil {
			return err
		}
		w.saw(writer, step)
	}
	changes, err := s.Changes(t.Context(), 0, registry.ListLimitMax)
	if err != nil {
		return err
	}
	for _, c := range changes {
		w.sawChange(c)
	}
	return nil
}

// check opens the store after a power cut. It returns an error unless the store has everything in
// w, and no partial batch.
func (w *witness) check(ctx context.Context, fs vfs.FS) error {
	s, err := open(testDir, Options{FS: fs}, smallTables)
	if err != nil {
		return err
	}
	after := &witness{changes: make(map[registry.Position]string)}
	err = errors.Join(after.read(ctx, s), s.Close())
	if err != nil {
		return err
	}
	for writer, step := range w.steps {
		if after.steps[writer] < step {
			return fmt.Errorf("writer %d is at step %d, but step %d was known", writer, after.steps[writer], step)
		}
	}
	for position, operation := range w.changes {
		if after.changes[position] != operation {
			return fmt.Errorf("position %d holds %q, but %q was seen there", position, after.changes[position], operation)
		}
	}
	return nil
}

// read fills w from an idle store, and checks that the parts of the store agree.
func (w *witness) read(ctx context.Context, s *instance) error {
	records, err := s.List(ctx, registry.TableLocation, "", "", registry.ListLimitMax)
	if err != nil {
		return err
	}
	for i, r := range records {
		writer, step, err := powerStep(r)
		if err != nil {
			return err
		}
		if i%2 == 1 && step != w.steps[writer] {
			return fmt.Errorf("writer %d: one record is of step %d, the other of step %d", writer, w.steps[writer], step)
		}
		w.steps[writer] = step
	}
	changes, err := s.Changes(ctx, 0, registry.ListLimitMax)
	if err != nil {
		return err
	}
	var steps [powerWriters]int
	for _, c := range changes {
		w.changes[c.Position] = c.Change.Operation
		var writer, step int
		if _, err := fmt.Sscanf(c.Change.Operation, "%d/%d", &writer, &step); err != nil {
			return err
		}
		if step != steps[writer]+1 {
			return fmt.Errorf("writer %d: the change of step %d follows that of step %d", writer, step, steps[writer])
		}
		steps[writer] = step
	}
	if steps != w.steps {
		return fmt.Errorf("records are at steps %v, changes at %v", w.steps, steps)
	}
	return nil
}

// TestPowerLoss cuts the power before each change of the file system, while writers and readers
// run. Everything that was acknowledged or seen before the cut exists after it. For each cut, a
// random part of the unsynced data survives.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashableMem()
	w := &witness{changes: make(map[registry.Position]string)}
	var cutting sync.Mutex // guards random and cuts, and serialises the checks of cuts
	cuts := 0
	s, err := open(testDir, Options{FS: hooked(fs, func(op errorfs.Op) error {
		cutting.Lock()
		defer cutting.Unlock()
		known := w.copy()
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[random.IntN(3)], RNG: random})
		if err := known.check(t.Context(), left); err != nil {
			t.Errorf("power cut %d, before call %d of %s: %v", cuts, op.Kind, op.Path, err)
		}
		cuts++
		return nil
	})}, smallTables)
	if err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	var done atomic.Bool
	for i := range powerWriters {
		writers.Go(func() {
			for step := 1; step <= powerSteps; step++ {
				if _, err := s.Apply(t.Context(), powerBatch(i, step)); err != nil {
					t.Errorf("apply: %v", err)
					return
				}
				w.saw(i, step)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				if err := w.observe(t, s); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	closeStore(t, s)
	if err := w.check(t.Context(), fs); err != nil {
		t.Errorf("after the store was closed: %v", err)
	}
	if least := powerWriters * powerSteps; cuts < least {
		t.Errorf("the power was cut %d times, want at least %d", cuts, least)
	}
	t.Logf("%d power cuts", cuts)
}

// testSeed returns the seed of random choices. It comes from MOORAGE_SEED, if that is set.
func testSeed(t *testing.T) uint64 {
	seed := uint64(1)
	if text := os.Getenv("MOORAGE_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("MOORAGE_SEED=%s: %v", text, err)
		}
		seed = given
	}
	t.Logf("MOORAGE_SEED=%d", seed)
	return seed
}
