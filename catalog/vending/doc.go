// Package vending gives engines access to the files of tables without a key of their own. An engine
// gets credentials that reach the files of one table for a while, or signatures for its requests to
// the storage (vending.go). A warehouse has the list of these delegations that it offers
// (delegation.go). How long credentials last is decided where they are made: in vend.go of each
// storage.
//
// Credentials are cached, and each warehouse requests a bounded number from its storage
// (credentials.go). The client of a staged table gets access to the location that the server chose,
// although no record reserves it yet (staged.go). After a drop, engines keep access for a while: a
// location stays reserved until that time (reachable.go).
//
// The tables behind a definer view are read with the privileges of the owner of the view
// (definer.go).
//
// # What it must not know
//
// It changes no record, and does not know how a commit works.
package vending
