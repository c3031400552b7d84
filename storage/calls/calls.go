// Package calls watches the calls of storages: how each ended, how long it took, and which storages
// fail at the moment.
//
// # What it promises
//
//   - A watched store keeps the contract of the store behind it, with the same optional interfaces.
//   - The log has one line when the storage of a warehouse begins to fail, and one when it ceases,
//     for reads and writes apart: a full disk can be read.
//   - The number of warehouses that an Ended sees is bounded; the rest are Other.
//
// # What it must not know
//
// What is in the files, and how metrics are kept.
package calls

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// The kinds of calls.
const (
	callOpen   = "open" // of the storage itself
	callGet    = "get"
	callPut    = "put"
	callHead   = "head"
	callList   = "list"
	callDelete = "delete"
	callFolder = "folder" // a folder is made or removed
	callProbe  = "probe"
	callVend   = "vend"
	callSign   = "sign"
)

const (
	// WarehousesMax bounds the warehouses that an Ended sees by their names.
	WarehousesMax = 30
	// Other is what an Ended sees for all further warehouses, and for storages of none.
	Other = "(other)"
	// quiet is how long no call may fail before a storage has ceased to fail.
	quiet = 30 * time.Second
	// canceledMin and lateMin are how long a call must have taken for the storage to be at fault,
	// where the caller went away, and where the caller's time was over.
	canceledMin = 10 * time.Second
	lateMin     = time.Second
	// errorBytesMax bounds the error that is kept of a storage.
	errorBytesMax = 500
)

// group are calls that fail for reasons of their own.
type group int

const (
	reads group = iota
	writes
	credentials
	groups
)

// String returns how the log and people call g.
func (g group) String() string { return [...]string{"reads", "writes", "credentials"}[g] }

// Config is what a Watch needs.
type Config struct {
	// Ended is called for each call that has ended. It must not block.
	Ended func(warehouse, call, outcome string, took time.Duration)
	// Logger gets the lines about storages that fail. Default: none.
	Logger *slog.Logger
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// Watch watches the storages of a process. It is safe for concurrent use.
type Watch struct {
	config Config

	mu         sync.Mutex // guards the field below; leaf
	warehouses map[string]*warehouse
}

// New returns a Watch.
func New(config Config) *Watch {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Watch{config: config, warehouses: make(map[string]*warehouse)}
}

// warehouse is what is known of the storage of a warehouse.
type warehouse struct {
	watch  *Watch
	name   string // "": of none, so nobody is told that it fails
	label  string
	spells [groups]spell
}

// of returns what is known of a warehouse. One pointer stands for each, so stores that are one
// still compare equal.
func (w *Watch) of(name string) *warehouse {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.warehouses[name]
	if !ok {
		found = &warehouse{watch: w, name: name, label: name}
		if name == "" || len(w.warehouses) >= WarehousesMax {
			found.label = Other
		}
		w.warehouses[name] = found
	}
	return found
}

// Opened notes how an attempt that began at that time to open the storage of a warehouse ended.
func (w *Watch) Opened(warehouse string, began time.Time, err error) {
	w.of(warehouse).ended(context.Background(), callOpen, w.config.Now().Sub(began), err)
}

// Fails reports whether the storage of a warehouse fails at the moment.
func (w *Watch) Fails(warehouse string) bool { return len(w.of(warehouse).failures()) > 0 }

// Failure says that calls of a storage fail.
type Failure struct {
	Warehouse string
	// Label is what Config.Ended gets for the warehouse.
	Label string
	// Calls says which ones fail: reads, writes or credentials.
	Calls string
	// Since and Last are when the first and the last of them failed.
	Since, Last time.Time
	// Error is why the last one failed, in one line.
	Error string
}

// Failures returns what fails at the moment, in the order of the warehouses' names. It logs what
// has ceased to fail.
func (w *Watch) Failures() (failures []Failure) {
	w.mu.Lock()
	known := slices.Collect(maps.Values(w.warehouses))
	w.mu.Unlock()
	slices.SortFunc(known, func(a, b *warehouse) int { return cmp.Compare(a.name, b.name) })
	for _, each := range known {
		failures = append(failures, each.failures()...)
	}
	return failures
}

// FailuresOf is Failures of one warehouse.
func (w *Watch) FailuresOf(warehouse string) []Failure { return w.of(warehouse).failures() }
