package pebble

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage"
	"moorage/registry"
)

var changesFlag = flag.Int("changes", 1_000_000, "how many changes the large store of BenchmarkApplyToLarge holds")

const (
	// loadedTableChanges is the number of changes in each file that the tests load into the engine:
	// about 100 MB, like files in the last level.
	loadedTableChanges = 400_000
	// flatMax is the maximum ratio of the costs of a commit over the large store and over a small
	// one.
	flatMax = 1.3
)

// loadedID returns the ID of change n of count changes. The IDs are evenly distributed among all
// IDs, like random ones, and ascending.
func loadedID(n, count int) registry.ID {
	var id registry.ID
	binary.BigEndian.PutUint64(id[:], uint64(n)*(^uint64(0)/uint64(count)))
	random := rand.New(rand.NewPCG(uint64(n), 1))
	binary.BigEndian.PutUint64(id[8:], random.Uint64()|1)
	return id
}

// drawnID returns a random ID that differs from the IDs of the loaded changes.
func drawnID(random *rand.Rand) registry.ID {
	var id registry.ID
	binary.BigEndian.PutUint64(id[:], random.Uint64())
	binary.BigEndian.PutUint64(id[8:], random.Uint64()&^1)
	return id
}

// commitChange returns the change of a commit to one table.
func commitChange(id registry.ID) *registry.Change {
	return &registry.Change{
		ID: id, Operation: "commit", Principal: "anonymous", Time: time.Unix(1_700_000_000, 0).UTC(),
		Ident: moorage.Identifier{Warehouse: "default", Namespace: moorage.Namespace{"sales"}, Name: "orders"},
		Items: []registry.Item{{
			Kind: registry.ItemTable, ID: id,
			MetadataLocation: fmt.Sprintf("file:///data/default/sales/orders/metadata/00012-%s.metadata.json", id),
		}},
	}
}

// loadChanges creates a store in dir with count changes in the last level of its engine, like a
// store that has grown over time.
func loadChanges(tb testing.TB, dir string, count int) {
	tb.Helper()
	s, err := open(dir, Options{}, asItIs)
	if err != nil {
		tb.Fatal(err)
	}
	options := s.engineOptions(nil, asItIs)
	options.EnsureDefaults()
	last := binary.BigEndian.AppendUint64(nil, uint64(count))
	if err := s.db.Set(positionKey(), last, engine.Sync); err != nil {
		tb.Fatal(err)
	}
	for from := 0; from < count; from += loadedTableChanges {
		to := min(from+loadedTableChanges, count)
		ingest(tb, s, options, func(set func(key, stored []byte)) {
			for n := from; n < to; n++ {
				set(appendPlaceKey(nil, registry.Position(n+1)), []byte(registry.ChangeKey(loadedID(n, count)).ID))
			}
		})
		ingest(tb, s, options, func(set func(key, stored []byte)) {
			for n := from; n < to; n++ {
				write, etag := loadedChange(tb, loadedID(n, count))
				stored := appendRecord(nil, write, etag)
				setPosition(stored, registry.Position(n+1))
				set(appendRecordKey(nil, write.Key), stored)
			}
		})
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// loadedChange returns the record of a change of one table.
func loadedChange(tb testing.TB, id registry.ID) (registry.Write, registry.ETag) {
	tb.Helper()
	change := commitChange(id)
	change.Versions = []registry.Version{{Key: registry.PointerKey(id), Old: registry.ETag(id), New: registry.ETag(id)}}
	value, err := change.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return registry.Put(registry.ChangeKey(id), registry.StateNone, value), registry.ETag(id)
}

// ingest loads a file into the engine. write must set its records, in the order of their keys.
func ingest(tb testing.TB, s *instance, options *engine.Options, write func(set func(key, stored []byte))) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "table.sst")
	file, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		tb.Fatal(err)
	}
	writer := sstable.NewWriter(objstorageprovider.NewFileWritable(file), options.MakeWriterOptions(len(options.Levels)-1, s.db.TableFormat()))
	write(func(key, stored []byte) {
		if err := writer.Set(key, stored); err != nil {
			tb.Fatal(err)
		}
	})
	if err := writer.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := s.db.Ingest(tb.Context(), []string{path}); err != nil {
		tb.Fatal(err)
	}
}

// tableReads returns a file system that counts the reads of the engine's tables.
func tableReads() (vfs.FS, *atomic.Int64) {
	var reads atomic.Int64
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
			reads.Add(1)
		}
		return nil
	})), &reads
}

// TestCommitsReadNoOldChanges: the check that a commit's change and key are new does not read the
// files with older ones, even if these do not fit into memory.
func TestCommitsReadNoOldChanges(t *testing.T) {
	t.Parallel()
	const (
		loaded   = 50_000  // takes some 18 MB
		memTable = 1 << 20 // the engine deducts it from the cache
		cache    = memTable + 2<<20
		commits  = 500
		// A filter has one wrong answer in a hundred, and the engine reads a few blocks for each.
		readsMax = commits / 5
	)
	dir := filepath.Join(t.TempDir(), "store")
	loadChanges(t, dir, loaded)
	fs, reads := tableReads()
	s, err := open(dir, Options{FS: fs, CacheBytes: cache}, func(options *engine.Options) { options.MemTableSize = memTable })
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	random := rand.New(rand.NewPCG(1, 2))
	commit := func() {
		key := registry.Key{Table: registry.TableIdempotency, ID: drawnID(random).String()}
		_, err := s.Apply(t.Context(), registry.Batch{
			Conditions: []registry.Condition{registry.Absent(key)},
			Writes:     []registry.Write{registry.Put(key, registry.StateNone, nil)},
			Change:     commitChange(drawnID(random)),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	commit() // loads the parts of each file that the engine keeps
	before := reads.Load()
	for range commits {
		commit()
	}
	if read := reads.Load() - before; read > readsMax {
		t.Errorf("%d commits to a store of %d changes read its files %d times, want at most %d", commits, loaded, read, readsMax)
	}
	refusesLoaded(t, s, loaded)
}

// refusesLoaded fails the test unless existing changes are refused when they are written again.
func refusesLoaded(t *testing.T, s *instance, loaded int) {
	t.Helper()
	for n := 0; n < loaded; n += loaded / 100 {
		_, err := s.Apply(t.Context(), registry.Batch{Change: commitChange(loadedID(n, loaded))})
		if _, failed := registry.FailedCondition(err); !failed {
			t.Errorf("change %d was made twice: %v", n, err)
		}
	}
}

// applies makes count commits to tables with some clients, and returns the mean time of one.
func applies(tb testing.TB, s *instance, random *rand.Rand, clients, count int) time.Duration {
	tb.Helper()
	var done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for client := range clients {
		key, seed := registry.PointerKey(registry.ID{0: 1, 15: byte(client)}), random.Uint64()
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 3))
			records, err := s.Get(tb.Context(), key)
			if err != nil {
				tb.Error(err)
				return
			}
			was, required := records[0], registry.Absent(key)
			for done.Add(1) <= int64(count) {
				// Like a commit with a key, which also has a new outcome.
				outcome := registry.Key{Table: registry.TableIdempotency, ID: drawnID(random).String()}
				if was.Exists() {
					required = registry.ETagIs(key, was.ETag)
				}
				etags, err := s.Apply(tb.Context(), registry.Batch{
					Conditions: []registry.Condition{registry.Absent(outcome), required},
					Writes: []registry.Write{
						registry.Put(outcome, registry.StateNone, make([]byte, 100)),
						registry.Put(key, registry.StateLive, make([]byte, 400)).Over(was),
					},
					Change: commitChange(drawnID(random)),
				})
				if err != nil {
					tb.Error(err)
					return
				}
				was = registry.Record{Key: key, ETag: etags[1], State: registry.StateLive, Value: make([]byte, 400)}
			}
		})
	}
	group.Wait()
	return time.Since(began) / time.Duration(count)
}

// BenchmarkApplyToLarge compares commits over a store with many changes (-changes) with commits
// over a small one, alternately. It fails if they cost more than flatMax times as much.
// TestCommitsReadNoOldChanges is its short form.
func BenchmarkApplyToLarge(b *testing.B) {
	const (
		small   = 10_000
		clients = 64
		commits = 20_000 // per round
	)
	stores := make([]*instance, 2)
	reads := make([]*atomic.Int64, 2)
	for i, count := range []int{small, *changesFlag} {
		dir := filepath.Join(b.TempDir(), "store")
		loadChanges(b, dir, count)
		fs, counter := tableReads()
		s, err := open(dir, Options{FS: fs}, asItIs)
		if err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		}()
		stores[i], reads[i] = s, counter
	}
	random := rand.New(rand.NewPCG(4, 5))
	var times [2][]time.Duration
	for b.Loop() {
		for i, s := range stores {
			times[i] = append(times[i], applies(b, s, random, clients, commits))
		}
	}
	for i, name := range []string{"small", "large"} {
		b.ReportMetric(float64(median(times[i]).Nanoseconds())/1000, "us/commit-"+name)
		b.ReportMetric(float64(reads[i].Load())/float64(len(times[i])*commits), "reads/commit-"+name)
	}
	ratio := float64(median(times[1])) / float64(median(times[0]))
	b.ReportMetric(ratio, "ratio")
	if ratio > flatMax {
		b.Errorf("a commit costs %.2f times as much over %d changes, want at most %.1f: %v", ratio, *changesFlag, flatMax, times)
	}
}

// median returns the median of times.
func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
