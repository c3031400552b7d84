// Package catalogkit holds code shared by the tests of package catalog and its sub-packages. It
// provides a catalog over stores in memory, with a clock that the test moves.
//
// New makes a Fixture: a catalog with the warehouse "w" and the namespace "ns". Its methods do what
// most tests need. NewSecured makes a catalog with access control. NewVendingFixture and
// NewRemoteFixture add a warehouse, on a storage that issues credentials, or on a remote storage.
// Tamper changes records behind the catalog's back.
//
// Some files and stores stop, count or hang. They wrap the fixture's own; functions passed to New
// do the wrapping. If a test of another package needs a special fixture, that fixture belongs in
// the other package.
package catalogkit
