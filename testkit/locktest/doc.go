// Package locktest supports tests of locks and leases. MemoryLeases is the reference model of
// leases. LeasesAround counts the calls of a locks.Leases, and can delay or refuse them. Recorder
// records the locks that an operation takes.
package locktest
