// Package claims assigns locations to tables and views. It plans the conditions and writes of an
// Apply that gives a table or view a location.
//
// No live table or view lives at, above or below the location of another one. Each location has one
// record, in state "owner" or "below". A claim sets the record of its location to "owner". It sets
// the record of each folder above to "below", or requires that the record is unchanged in that
// state:
//
//	file:///lake          below
//	file:///lake/ns       below
//	file:///lake/ns/t     owner: pointer of t
//
// Two claims, one within the other, meet on one record, which cannot have both states. The claim of
// a dropped table may pass to another table, unless its files wait for a purge, or engines may
// still hold credentials for them.
//
// Package catalog chooses the default location of a new table (create.go); claims.go decides
// whether the table may have it.
//
// # Tombstones
//
// A table or view that gives up a location leaves a tombstone there (registry.Tombstone). It may
// have left files, or may live on in another catalog. A new claim at, above or below a tombstone
// calls Claimant.MayResettle. The table with the tombstone's uuid takes its own location back
// without that call. If a purge left no files, its tombstone ends with the last credential for the
// location. An operator clears any other tombstone.
//
// A tombstone is a separate record from the record of its location. Two rules ensure that every
// claim meets it on records that the claim reads and requires anyway:
//
//   - Only the Apply that takes a location from its owner writes a tombstone. It also writes a new
//     version of the location's record: it ends the claim, or passes it to another table.
//   - While a tombstone exists, its location and the folders above it have a record, owner or
//     below. A claim that ends becomes below. The sweep of folders keeps folders with tombstones.
//
// So a claim at or below the location of a tombstone cannot miss the tombstone. The claim reads
// that location's record, or its absence, no later than it reads the tombstone. Its Apply requires
// that version of the record, and a later tombstone comes with another version. A location without
// a record has no tombstone, and neither has any location below it. So the claim of a new location
// needs no further reads and no scan.
//
// A claim of a folder above a tombstone finds the record of that folder in state below. The
// locations below the folder are a range, and no condition covers a range. So the claim marks the
// folder's record, and then scans the range (emptied). The scan sees each owner of a location in
// the range. If an owner ended before the scan, the scan sees its tombstone.
//
// Operators only remove tombstones. A claim that read a tombstone before its removal has checked
// more than necessary, which is harmless.
//
// # What it must not know
//
// It applies two changes itself: the end of a dropped pointer (End), and the start of its purge
// (BeginPurge). It does not know names, documents or files.
package claims

import "moorage/ledger"

// Claims plans claims. It is safe for concurrent use.
type Claims struct {
	ledger  *ledger.Ledger
	folders *folders
}

// New returns a Claims over the records of l.
func New(l *ledger.Ledger) *Claims { return &Claims{l, newFolders()} }
