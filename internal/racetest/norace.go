//go:build !race

package racetest

// On reports whether the test binary has the race detector.
const On = false

// Factor is by how much workloads are smaller with the race detector, which makes them slower.
const Factor = 1

// MemoryFactor is by how much more memory a process may take that has the race detector.
const MemoryFactor = 1
