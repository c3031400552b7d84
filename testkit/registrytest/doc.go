// Package registrytest tests the contract of registry.Store, and has a store that fails on purpose.
//
// Run checks any store against the contract: each sentence of the contract names a sub-test.
// RunDurable adds the contract of a reopened store. Faulty wraps a store for the tests of its
// users: it fails, loses or delays chosen calls. So a test can enumerate every point at which an
// operation may be interrupted. Ledger makes a ledger over a store.
//
// Random choices come from a seed, which is printed when a test fails and can be set in the
// environment variable MOORAGE_SEED.
package registrytest
