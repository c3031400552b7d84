// Package catalogkit has what the tests of package catalog and of the packages below it share: a
// catalog over stores in memory, with the time in the test's hand.
//
// New makes a Fixture: a catalog with the warehouse "w" and the namespace "ns", and its methods do
// what most tests do. NewSecured makes a catalog in which access is on. NewVendingFixture and
// NewRemoteFixture have a further warehouse on a storage that gives access to engines, or that is
// remote. Tamper changes records behind the catalog's back.
//
// Files and stores that stop, count or hang wrap a fixture's own; functions that New takes put
// them there. A test of another package that needs a fixture of its own kind keeps that fixture.
package catalogkit
