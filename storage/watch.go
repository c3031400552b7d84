package storage

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
	callOpen   = "open" // opening the storage itself
	callGet    = "get"
	callPut    = "put"
	callHead   = "head"
	callList   = "list"
	callDelete = "delete"
	callFolder = "folder" // creating or removing a folder
	callProbe  = "probe"
	callVend   = "vend"
	callSign   = "sign"
)

const (
	// WatchedMax is the maximum number of warehouses that are passed to Ended by name.
	WatchedMax = 30
	// OtherWarehouse is passed to Ended for all further warehouses, and for storages without a
	// warehouse.
	OtherWarehouse = "(other)"
	// quietMin is the time without a failing call after which a storage counts as working again.
	quietMin = 30 * time.Second
	// An unanswered call counts as a fault of the storage only if it took some time: canceledMin if
	// the caller went away, and lateMin if the caller's deadline passed.
	canceledMin = 10 * time.Second
	lateMin     = time.Second
	// errorBytesMax is the maximum length of the error text that is kept for a storage.
	errorBytesMax = 500
)

// callGroup is a group of calls that fail for separate reasons.
type callGroup int

const (
	callReads callGroup = iota
	callWrites
	callCredentials
	callGroups
)

// String returns the name of g in the log.
func (g callGroup) String() string { return [...]string{"reads", "writes", "credentials"}[g] }

// WatchConfig configures a Watch.
type WatchConfig struct {
	// Ended is called after each call, with its context. It must not block.
	Ended func(ctx context.Context, warehouse, call, outcome string, took time.Duration)
	// Logger receives the lines about failing storages. By default they are not logged.
	Logger *slog.Logger
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// Watch observes the calls of a process to its storages: how each call ended, how long it took, and
// which storages are failing. It does not know the contents of files, or how metrics are kept.
//
//   - A watched store has the same contract and the same optional interfaces as the store that it
//     wraps.
//   - The log has one line when the storage of a warehouse begins to fail, and one when it stops
//     failing. Reads and writes have separate lines, because a full disk refuses writes but can
//     still be read.
//   - The number of warehouses passed to Ended is limited; the rest are passed as OtherWarehouse.
//
// It is safe for concurrent use.
type Watch struct {
	config WatchConfig

	mu         sync.Mutex // guards the field below; innermost lock
	warehouses map[string]*watchedWarehouse
}

// NewWatch returns a Watch.
func NewWatch(config WatchConfig) *Watch {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Watch{config: config, warehouses: make(map[string]*watchedWarehouse)}
}

// watchedWarehouse is the state of the storage of a warehouse.
type watchedWarehouse struct {
	watch  *Watch
	name   string // "" for storages without a warehouse, whose failures are not logged
	label  string
	spells [callGroups]spell
}

// stateOf returns the state of a warehouse. It returns the same pointer for each call, so that all
// wrappers of one store compare equal.
func (w *Watch) stateOf(name string) *watchedWarehouse {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.warehouses[name]
	if !ok {
		found = &watchedWarehouse{watch: w, name: name, label: name}
		if name == "" || len(w.warehouses) >= WatchedMax {
			found.label = OtherWarehouse
		}
		w.warehouses[name] = found
	}
	return found
}

// Opened records the result of an attempt to open the storage of a warehouse. began is when the
// attempt began.
func (w *Watch) Opened(warehouse string, began time.Time, err error) {
	w.stateOf(warehouse).record(context.Background(), callOpen, w.config.Now().Sub(began), err)
}

// Fails reports whether the storage of a warehouse is failing.
func (w *Watch) Fails(warehouse string) bool { return len(w.stateOf(warehouse).failures()) > 0 }

// Failure describes failing calls of a storage.
type Failure struct {
	Warehouse string
	// Label is the name of the warehouse in calls of WatchConfig.Ended.
	Label string
	// Calls is the group that fails: reads, writes or credentials.
	Calls string
	// Since and Last are the times of the first and the last failure.
	Since, Last time.Time
	// Error is the error of the last failure, in one line.
	Error string
}

// Failures returns the present failures, ordered by warehouse name. It also logs which storages
// work again.
func (w *Watch) Failures() (failures []Failure) {
	w.mu.Lock()
	known := slices.Collect(maps.Values(w.warehouses))
	w.mu.Unlock()
	slices.SortFunc(known, func(a, b *watchedWarehouse) int { return cmp.Compare(a.name, b.name) })
	for _, each := range known {
		failures = append(failures, each.failures()...)
	}
	return failures
}

// FailuresOf is like Failures, for one warehouse.
func (w *Watch) FailuresOf(warehouse string) []Failure { return w.stateOf(warehouse).failures() }
