// Package claims decides who may live where: it plans what one Apply must require and write so that
// a table or view may have a location.
//
// No live table or view lives at, above or beneath the location of another one. One record stands
// for one location, and says "owner" or "below". The claim of a location makes its record "owner",
// and makes the record of each folder above it "below", or requires the version that says so:
//
//	file:///lake          below
//	file:///lake/ns       below
//	file:///lake/ns/t     owner: pointer of t
//
// Two claims, one within the other, meet on one record, which cannot be both. A claim that only a
// dropped table holds may pass to another one.
//
// # Tombstones
//
// A table or view that gives up a location leaves a tombstone there (registry.Tombstone), because
// it may have left files, or may live on in another catalog. A new claim at, above or below a
// tombstone asks Claimant.MayResettle. The table with the tombstone's uuid takes its own location
// back without that. A tombstone after a purge that left nothing ends with the last credential. An
// operator clears any other one.
//
// A tombstone is a record of its own, beside that of the location. Two rules let every claim meet
// it on the records that the claim reads and requires anyhow:
//
//   - Only the Apply that takes a location from its owner writes a tombstone. It writes a new
//     version of the location's record too: it ends the claim, or passes it on.
//   - While a tombstone stands, its location and the folders above it have a record, owner or
//     below. A claim that ends becomes below. The sweep of folders leaves folders with tombstones
//     alone.
//
// So a claim at the location of a tombstone, or beneath it, cannot miss the tombstone. It read that
// location's record, or that there is none, no later than the tombstone, and its Apply requires
// that version. A later tombstone comes with another version. Where there is no record there is no
// tombstone, neither there nor beneath. So the claim of a new location reads and scans nothing
// more.
//
// A claim above a tombstone meets the record of its own location, in state below. What is beneath
// is a range, so the claim marks that record and looks after that (emptied). The look sees the
// owner of a location beneath, or that owner has ended before, and the look sees its tombstone.
//
// Operators only take tombstones away. A claim that read one which is gone by now asked for too
// much, and does no harm.
//
// # What it must not know
//
// It applies nothing but the end of a dropped pointer (End), and the begin of its purge
// (BeginPurge). It knows nothing of names, documents or files.
package claims

import "moorage/ledger"

// Claims plans claims. It is safe for concurrent use.
type Claims struct {
	ledger  *ledger.Ledger
	folders *folders
}

// New returns a Claims over the records of l.
func New(l *ledger.Ledger) *Claims { return &Claims{l, newFolders()} }
