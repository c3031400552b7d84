// Package locktest helps tests with locks and leases. MemoryLeases is the reference model of
// leases. LeasesAround counts calls of leases and can interfere with them. Recorder records the
// locks that an operation takes.
package locktest
