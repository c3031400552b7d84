// Package registrytest is the contract of registry.Store as tests, and a store that fails on
// purpose.
//
// Run checks any store against the contract: each sentence of it names a sub-test. RunDurable adds
// what must be true of a store that is opened again. Faulty wraps a store for the tests of its
// users: it fails, loses or delays chosen calls. So a test can enumerate every point at which an
// operation may be cut off.
//
// Random choices come from a seed, which is printed when a test fails and can be given in the
// environment variable MOORAGE_SEED.
package registrytest
