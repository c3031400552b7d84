// Package vending gives engines access to the files of tables, so that engines need no storage keys
// of their own. An engine gets credentials that reach the files of one table for a while, or
// signatures for its requests to the storage. These two kinds of access are called delegations.
// vending.go decides whether a caller gets one, for which locations, and whether the caller may
// write. Each warehouse has a list of the delegations that it offers (delegation.go). Each storage
// decides how long its credentials last, in its vend.go.
//
// Credentials are cached, and the rate at which a warehouse requests credentials from its storage
// is bounded (credentials.go). The client of a staged table gets access to the location that the
// server chose, although no record reserves it yet (staged.go). After a drop, engines still hold
// credentials for a while. The table's location stays reserved until these have expired
// (reachable.go).
//
// The tables behind a definer view are read with the privileges of the view's owner (definer.go).
//
// # What it must not know
//
// It does not know how a commit works. It changes no record.
package vending
