//go:build !race

package scale

// On reports whether the test binary has the race detector.
const On = false

// Factor is the divisor for workloads with the race detector, which makes them slower.
const Factor = 1

// MemoryFactor is the factor for the memory limit of a process with the race detector.
const MemoryFactor = 1
