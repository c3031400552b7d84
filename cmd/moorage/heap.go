package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
)

const (
	// heapFloorBytes is how large the heap may grow before a collection, even if little of it is
	// live. A server with a small catalog has 4 MiB of live heap. By Go's own rule it would collect
	// 50 times a second under load, and spend a quarter of its time on that.
	heapFloorBytes = 64 << 20
	// goPercent is the runtime's initial value: it collects when the heap is twice the live heap.
	goPercent = 100
	// collectPercent is the rule beyond the floor: collect when the heap is 1.5 times the live
	// heap. By Go's own rule a server with full caches would need 60 MiB more.
	collectPercent = 50
	// collectPercentMax keeps Go's smallest heap, which is 4 MiB times the percentage, at the
	// floor.
	collectPercentMax = heapFloorBytes / (4 << 20) * 100
)

// holdHeapFloor makes the collector wait until the heap has heapFloorBytes, and collect a larger
// heap by collectPercent. It sets the percentage again after each collection. An unused array would
// do the same for a small heap. But it would count against GOMEMLIMIT, and make a large heap
// larger.
//
// The operator's setting wins: with GOGC in environ nothing is set. The runtime keeps the limit of
// GOMEMLIMIT whatever the percentage is.
func holdHeapFloor(environ []string) {
	chosen := func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") }
	if slices.ContainsFunc(environ, chosen) {
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

// collection is an unreachable object. It has a pointer, because the runtime may keep small objects
// without a pointer together with live objects.
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

// collectPercentFor returns the percentage with which the next collection begins at heapFloorBytes,
// or by collectPercent if that is later.
func collectPercentFor(h heap) int {
	if h.live >= heapFloorBytes {
		return collectPercent
	}
	percent := (heapFloorBytes - h.live) * 100 / max(1, h.live+h.scanned)
	return int(min(max(percent, collectPercent), collectPercentMax))
}
