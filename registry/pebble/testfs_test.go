package pebble

import (
	"io"
	"path"
	"strings"
	"sync"
	"testing"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage"
	"moorage/registry"
)

// testDir is the directory of the stores in these tests, in file systems in memory.
const testDir = "data/store"

// hooked returns a file system that calls hook before each change of inner, and makes the
// change only if hook returns nil.
func hooked(inner vfs.FS, hook func(op errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		return hook(op)
	}))
}

// isLogSync reports whether op makes the engine's log durable.
func isLogSync(op errorfs.Op) bool {
	return strings.HasSuffix(path.Base(op.Path), ".log") &&
		(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData)
}

// smallTables makes the engine rotate its log, flush and compact after a few writes.
func smallTables(options *engine.Options) {
	options.MemTableSize = 16 << 10
	options.L0CompactionThreshold = 2
	options.LBaseMaxBytes = 32 << 10
}

// openStore opens a store that the test closes.
func openStore(t *testing.T, fs vfs.FS, tune func(*engine.Options)) *instance {
	t.Helper()
	s, err := open(testDir, Options{FS: fs}, tune)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s io.Closer) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func asItIs(*engine.Options) {}

// testKey returns a key of a table whose IDs are free.
func testKey(id string) registry.Key { return registry.LocationKey(id) }

// testPut returns a batch that puts one record.
func testPut(id, value string) registry.Batch {
	return registry.Batch{Writes: []registry.Write{registry.Put(testKey(id), registry.StateOwner, []byte(value))}}
}

// testChange returns a change record that is identified by n.
func testChange(n int) *registry.Change {
	id := registry.ID{0: 0xc0, 14: byte(n >> 8), 15: byte(n)}
	return &registry.Change{ID: id, Operation: "test", Ident: moorage.Identifier{Warehouse: "w"}}
}

// value returns the value of a record, or "" if there is none.
func value(t *testing.T, s registry.Store, id string) string {
	t.Helper()
	records, err := s.Get(t.Context(), testKey(id))
	if err != nil {
		t.Fatal(err)
	}
	return string(records[0].Value)
}

// isManifestSync reports whether op makes the engine's list of its files durable.
func isManifestSync(op errorfs.Op) bool {
	return strings.HasPrefix(path.Base(op.Path), "MANIFEST") &&
		(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData)
}

// gate is a hook that blocks syncs of the log, or of another file, while it is shut.
type gate struct {
	isSync func(op errorfs.Op) bool

	// mu guards the fields below; leaf.
	mu      sync.Mutex
	shut    chan struct{} // nil while open; closed to let waiters through
	syncs   int
	arrived chan struct{} // gets an element for each blocked sync
}

func newGate(isSync func(op errorfs.Op) bool) *gate {
	return &gate{isSync: isSync, arrived: make(chan struct{}, 1000)}
}

func (g *gate) hook(op errorfs.Op) error {
	if !g.isSync(op) {
		return nil
	}
	g.mu.Lock()
	g.syncs++
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		g.arrived <- struct{}{}
		<-shut
	}
	return nil
}

// close blocks all later syncs.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

// open releases the blocked syncs, and stops blocking.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// count returns the number of syncs so far.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
