//go:build race

package catalog_test

// raceFactor makes workloads smaller where the race detector makes them slower.
const raceFactor = 5
