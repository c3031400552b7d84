// Package registrytest tests the contract of registry.Store. It also provides a store that fails on
// purpose.
//
// Run checks any store against the contract: each sentence of the contract is the name of a
// sub-test. RunDurable adds the contract of a reopened store. Faulty wraps a store for the tests of
// code that uses stores. It fails, loses or delays chosen calls, so that a test can enumerate every
// point at which an operation may be interrupted. Ledger makes a ledger over a store.
//
// Random choices come from a seed. The seed is printed when a test fails, and can be set in the
// environment variable MOORAGE_SEED.
package registrytest
