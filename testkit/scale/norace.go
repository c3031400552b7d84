//go:build !race

package scale

// On is true if the test binary has the race detector.
const On = false

// Factor is the divisor for workloads, because the race detector makes them slower.
const Factor = 1

// MemoryFactor is the factor for memory limits, because the race detector needs more memory.
const MemoryFactor = 1
