package main

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"moorage/internal/worker"
)

// processorsMin is the minimum number of threads that run Go code at a time, even on fewer
// processors. Commits wait in system calls until their files are synced. While a goroutine waits
// there, the runtime takes some time to run another goroutine instead. With two processors and two
// threads, the processors are idle for a fifth of the time while requests wait. More than four
// threads make loads more expensive.
const processorsMin = 4

// raiseProcessors raises the number of threads that run Go code at a time to at least
// processorsMin.
func raiseProcessors(environ []string) {
	runtimes := runtime.GOMAXPROCS(0)
	if chosen := processorsFor(environ, runtimes, runtime.NumCPU()); chosen != runtimes {
		runtime.GOMAXPROCS(chosen)
	}
}

// processorsFor returns how many threads should run Go code at a time. runtimes is the runtime's
// own choice on a machine with the given number of processors. The operator's GOMAXPROCS has
// precedence. If runtimes is less than processors, the container has a processor limit. More
// threads would then use up the limit of each period earlier, and all requests would wait for the
// next period.
func processorsFor(environ []string, runtimes, processors int) int {
	if sets(environ, "GOMAXPROCS") || runtimes < processors {
		return runtimes
	}
	return max(runtimes, processorsMin)
}

// sets reports whether a variable has a value in environ that is not empty.
func sets(environ []string, variable string) bool {
	return slices.ContainsFunc(environ, func(each string) bool {
		name, value, _ := strings.Cut(each, "=")
		return name == variable && value != ""
	})
}

const (
	// heapFloorBytes is the size that the heap may reach before a collection, even if little of it
	// is live. A server with a small catalog has 4 MiB of live heap. By Go's own rule it would
	// collect 50 times a second under load, and spend a quarter of its time on collections.
	heapFloorBytes = 64 << 20
	// goPercent is the runtime's default percentage: a collection begins when the heap has twice
	// the size of the live heap.
	goPercent = 100
	// collectPercent is the percentage for heaps larger than heapFloorBytes: a collection begins
	// when the heap has 1.5 times the size of the live heap. By Go's own rule a server with full
	// caches would need 60 MiB more.
	collectPercent = 50
	// Go's smallest heap is 4 MiB times the percentage / 100. collectPercentMax keeps it at
	// heapFloorBytes.
	collectPercentMax = heapFloorBytes / (4 << 20) * 100
)

// holdHeapFloor delays collections until the heap has heapFloorBytes. Larger heaps are collected
// according to collectPercent. It sets the percentage again after each collection. A large unused
// array would have the same effect on a small heap. But it would count against GOMEMLIMIT, and make
// a large heap larger.
//
// The operator's setting has precedence: if environ has GOGC, holdHeapFloor does nothing. The
// runtime obeys GOMEMLIMIT whatever the percentage is.
func holdHeapFloor(environ []string) {
	if sets(environ, "GOGC") {
		return
	}
	collected(goPercent)
}

// collected sets the percentage for the present live heap, and registers itself for the next
// collection. percent is the present percentage.
func collected(percent int) {
	if next := collectPercentFor(readHeap()); next != percent {
		debug.SetGCPercent(next)
		percent = next
	}
	// The runtime frees the object in the next collection, and then calls collected.
	runtime.AddCleanup(new(collection), collected, percent)
}

// collection is an unreachable object. It contains a pointer, because the runtime may keep a small
// object without pointers alive together with others.
type collection struct{ _ *collection }

// heap is the result of one collection, in bytes.
type heap struct {
	live    uint64
	scanned uint64 // stacks and globals, to which the percentage also applies
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64() + samples[2].Value.Uint64()}
}

// collectPercentFor returns the percentage with which the next collection begins when the heap
// reaches heapFloorBytes, or the size that collectPercent gives if that is larger.
func collectPercentFor(h heap) int {
	if h.live >= heapFloorBytes {
		return collectPercent
	}
	percent := (heapFloorBytes - h.live) * 100 / max(1, h.live+h.scanned)
	return int(min(max(percent, collectPercent), collectPercentMax))
}

const (
	// freeingInterval is the mean time between two checks of the memory.
	freeingInterval = 10 * time.Second
	// quietBytes is the most that a nearly idle server allocates between two checks.
	quietBytes = 16 << 20
	// spareBytesMin is the least amount of memory for which a collection, to return it to the
	// system, is worth its time.
	spareBytesMin = 32 << 20
)

// freeing returns memory to the system after a burst of requests. The runtime itself does that
// slowly. It collects a heap without allocations only after two minutes, and keeps a tenth more
// than it needs before the next collection. Calls of the methods must not overlap.
type freeing struct {
	read func() heapUse
	free func() // collects, and returns all free memory to the system
	last uint64 // the allocated bytes at the previous check
}

// heapUse is the memory of the heap, in bytes.
type heapUse struct {
	allocated uint64 // by all allocations since the start
	live      uint64 // live bytes after the last collection
	held      uint64 // by objects, reachable or not, and by free pages that were not returned to the system
}

// newFreeing returns the worker that returns memory to the system.
func newFreeing(logger *slog.Logger) *worker.Worker {
	f := &freeing{read: readHeapUse, free: debug.FreeOSMemory}
	return worker.New(worker.Config{
		Name: "freeing", Run: f.look, Interval: freeingInterval, Jitter: newJitter(), Logger: logger,
	})
}

// look returns spare memory to the system, if the server has allocated little since the previous
// check.
func (f *freeing) look(context.Context) error {
	now := f.read()
	isQuiet := now.allocated-f.last < quietBytes
	f.last = now.allocated
	if isQuiet && now.held >= now.live+spareBytesMin {
		f.free()
	}
	return nil
}

func readHeapUse() heapUse {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	of := func(at int) uint64 { return samples[at].Value.Uint64() }
	return heapUse{allocated: of(0), live: of(1), held: of(2) + of(3)}
}
