// Package claims assigns locations to tables and views. It plans the conditions and writes with
// which an Apply gives a location to a table or view.
//
// No live table or view lives at, above or below the location of another one. A location has at
// most one record, in state "owner" or "below". A claim sets the record of its location to "owner".
// It sets the record of each folder above that location to "below". If the record already has that
// state, the claim only requires that it is unchanged. The records after a claim of
// file:///lake/ns/t:
//
//	file:///lake          below
//	file:///lake/ns       below
//	file:///lake/ns/t     owner: pointer of t
//
// If one claim lies within another, both need the record of the outer location, which cannot have
// both states. A dropped table's claim may pass to another table. It may not pass while the dropped
// table's files wait for a purge, or while engines may still hold credentials for them.
//
// Package catalog chooses the default location of a new table (create.go). claims.go decides
// whether the table may have that location.
//
// # Tombstones
//
// A table or view that gives up a location leaves a tombstone there (registry.Tombstone). The table
// may have left files there, or may live on in another catalog. A new claim at, above or below a
// tombstone calls Claimant.MayResettle. A table with the uuid in the tombstone takes its location
// back without that call. A tombstone of a purge that left no files disappears when the last
// credential for the location ends. Any other tombstone stays until an operator clears it.
//
// A tombstone is not part of the record of its location. A claim reads and requires the records of
// locations in any case. Two rules ensure that these records prevent the claim from missing a
// tombstone:
//
//   - Only the Apply that takes a location from its owner writes a tombstone. That Apply also
//     writes a new version of the location's record, which ends the claim or passes it to another
//     table.
//   - While a tombstone exists, its location and each folder above it have a record in state owner
//     or below. When a claim ends, the record of its location changes to state below. The sweep of
//     folders keeps the records of folders with tombstones.
//
// So a claim at or below the location of a tombstone cannot miss the tombstone. The claim reads
// that location's record, or finds it missing, no later than it reads the tombstone. Its Apply
// requires that version of the record, and a tombstone that is written later changes the version. A
// location without a record has no tombstone, and neither has any location below it. So the claim
// of a new location needs no further reads and no scan.
//
// A claim of a folder above a tombstone finds the record of that folder in state below. The
// locations below the folder are a range of keys, and no condition can cover a range. So the claim
// marks the folder's record, and then scans the range (emptied). The scan sees each owner of a
// location in the range. If an owner ended before the scan, the scan sees its tombstone.
//
// Operators can remove a tombstone, but cannot write one. If an operator removes a tombstone after
// a claim has read it, the claim has only checked more than necessary.
//
// # What it must not know
//
// It does not know names, documents or files. It plans changes for others to apply, with two
// exceptions: End removes a dropped pointer, and BeginPurge begins its purge.
package claims

import "moorage/ledger"

// Claims plans claims. It is safe for concurrent use.
type Claims struct {
	ledger  *ledger.Ledger
	folders *folders
}

// New returns a Claims over the records of l.
func New(l *ledger.Ledger) *Claims { return &Claims{l, newFolders()} }
