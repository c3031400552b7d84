// Package racetest sizes tests by whether their binary has the race detector.
//
// The suite runs twice. With the race detector it looks for unguarded memory, for which a sample of
// each enumeration is enough. Without it, it enumerates every call over the store in memory. Over
// the other stores a sample is drawn there too, and -every enumerates everything everywhere.
package racetest

import "flag"

var every = flag.Bool("every", false, "let each call over every store meet each fault, not a sample; an hour")

// Every reports whether the whole of each enumeration was asked for.
func Every() bool { return *every }

// Stores in which calls meet faults, with how far apart the calls are.
const (
	memoryStride = 5 // with the race detector; 1 without
	pebbleStride = 7
)

// Stride returns how far apart the calls of an enumeration are that meet a fault: 1 lets each one.
// store is "memory", "pebble" or "postgres"; drawn is the result for PostgreSQL, where each call
// takes long, and depends on how many calls there are. Callers draw the first call by a seed that
// they print.
func Stride(store string, drawn int) int {
	switch {
	case *every:
		return 1
	case store == "postgres":
		return drawn
	case store == "pebble":
		return pebbleStride
	case On:
		return memoryStride
	}
	return 1
}
