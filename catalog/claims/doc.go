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
// Two claims, one within the other, meet on one record, which cannot be both. A claim
// that only a dropped table holds may pass to another one.
//
// # What it must not know
//
// It applies nothing but the end of a dropped pointer (End). It knows nothing of names, documents
// or files.
package claims

import "moorage/ledger"

// Claims plans claims. It is safe for concurrent use.
type Claims struct {
	ledger  *ledger.Ledger
	folders *folders
}

// New returns a Claims over the records of l.
func New(l *ledger.Ledger) *Claims { return &Claims{l, newFolders()} }
