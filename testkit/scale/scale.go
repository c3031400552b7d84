// Package scale decides the size of tests, which depends on whether their binary has the race
// detector. It also measures the memory that work needs.
//
// The suite runs twice. With the race detector, it finds data races; a sample of each enumeration
// is enough for that. Without the detector it enumerates every call over the store in memory, and a
// sample of the calls over the other stores. With -every, both runs enumerate everything.
package scale

import "flag"

var every = flag.Bool("every", false, "let each call over every store meet each fault, not a sample; an hour")

// Every reports whether -every requires complete enumerations.
func Every() bool { return *every }

// The distances between calls with faults, by store. Over Pebble and PostgreSQL, each of the two
// runs of the suite draws its own sample.
const (
	memoryStride   = 10 // with the race detector; 1 without
	pebbleStride   = 14
	postgresFactor = 2
)

// Stride returns the distance between the calls of an enumeration with faults: 1 means every call.
// store is "memory", "pebble" or "postgres". For PostgreSQL, where each call is slow, the result is
// postgresFactor times drawn, which the caller computes from the number of calls. Callers draw the
// first call with a seed that they print.
func Stride(store string, drawn int) int {
	switch {
	case *every:
		return 1
	case store == "postgres":
		return postgresFactor * drawn
	case store == "pebble":
		return pebbleStride
	case On:
		return memoryStride
	}
	return 1
}
