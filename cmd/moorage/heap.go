package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
)

const (
	// heapFloorBytes is how large the heap may grow before a collection, however little of it is
	// live. A server with a small catalog has 4 MiB of live heap. By Go's own rule it would collect
	// 50 times a second under load, and spend a quarter of its time on that.
	heapFloorBytes = 64 << 20
	// goPercent is what the runtime begins with: it collects when the heap is twice what was live.
	goPercent = 100
	// collectPercent is the rule beyond the floor: collect when the heap is half as much again as
	// what was live. By Go's own rule a server with full caches would need 60 MiB more.
	collectPercent = 50
	// collectPercentMax keeps Go's smallest heap, which is 4 MiB times the percent, at the floor.
	collectPercentMax = heapFloorBytes / (4 << 20) * 100
)

// holdHeapFloor lets the collector wait until the heap has heapFloorBytes, and collects a larger
// heap by collectPercent. After each collection it sets the percent again. An array that nobody
// touches would do the same for a small heap, but would count against GOMEMLIMIT, and make a large
// heap larger.
//
// What the operator says wins: with GOGC in environ nothing is set, and the limit of GOMEMLIMIT is
// kept by the runtime whatever the percent is.
func holdHeapFloor(environ []string) {
	chosen := func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") }
	if slices.ContainsFunc(environ, chosen) {
		return
	}
	collected(goPercent)
}

// collected sets the percent for the heap that is live now, and asks to be called again after the
// next collection. percent is the one that is set.
func collected(percent int) {
	if next := collectPercentFor(readHeap()); next != percent {
		debug.SetGCPercent(next)
		percent = next
	}
	// The runtime frees the object in the next collection, and calls back then.
	runtime.AddCleanup(new(collection), collected, percent)
}

// collection is an object that nobody holds. It has a pointer, because the runtime may keep small
// objects without one together with others that live.
type collection struct{ _ *collection }

// heap is what one collection found, in bytes.
type heap struct {
	live    uint64
	scanned uint64 // stacks and globals, to which the percent applies as well
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64() + samples[2].Value.Uint64()}
}

// collectPercentFor returns the percent with which the next collection begins at heapFloorBytes, or
// by collectPercent if that is later.
func collectPercentFor(h heap) int {
	if h.live >= heapFloorBytes {
		return collectPercent
	}
	percent := (heapFloorBytes - h.live) * 100 / max(1, h.live+h.scanned)
	return int(min(max(percent, collectPercent), collectPercentMax))
}
