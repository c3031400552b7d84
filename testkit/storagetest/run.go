// Package storagetest holds the suite that every storage.Store must pass, and a wrapper that
// injects faults.
//
// The package does not know any particular store.
package storagetest

import (
	"testing"

	"moorage/storage"
)

// Open returns a store for one test, and root, the location of an empty folder that the store may
// use. Every location that is neither at nor below root must be outside of the store. Stores of
// different tests share nothing.
type Open func(t *testing.T) (store storage.Store, root string)

// Run tests the contract of storage.Store with the stores returned by open.
func Run(t *testing.T, open Open) {
	t.Helper()
	run(t, open, []check[storage.Store]{
		{"CreateThenRead", testCreateThenRead},
		{"CreateOnly", testCreateOnly},
		{"CreateRace", testCreateRace},
		{"CreateInOneNewFolder", testCreateInOneNewFolder},
		{"CreateLeavesTheBody", testCreateLeavesTheBody},
		{"Bodies", testBodies},
		{"ReadRange", testReadRange},
		{"Names", testNames},
		{"Spellings", testSpellings},
		{"Missing", testMissing},
		{"FolderIsNoFile", testFolderIsNoFile},
		{"Delete", testDelete},
		{"DeleteGoesOn", testDeleteGoesOn},
		{"OpenSurvivesDelete", testOpenSurvivesDelete},
		{"Outside", testOutside},
		{"Malformed", testMalformed},
		{"Cancelled", testCancelled},
	})
}

// RunBatcher tests the contract of storage.Batcher with the stores returned by open, which must
// implement it.
func RunBatcher(t *testing.T, open Open) {
	t.Helper()
	run(t, open, []check[batchStore]{
		{"CreateAll", testCreateAll},
		{"CreateAllAnswersEach", testCreateAllAnswersEach},
		{"CreateAllRace", testCreateAllRace},
		{"CreateAllCancelled", testCreateAllCancelled},
	})
}

// RunFolders tests the contract of storage.Folders with the stores returned by open, which must
// implement it.
func RunFolders(t *testing.T, open Open) {
	t.Helper()
	run(t, open, []check[folderStore]{
		{"MakeFolder", testMakeFolder},
		{"RemoveEmptyFolder", testRemoveEmptyFolder},
		{"RemoveWhileCreating", testRemoveWhileCreating},
	})
}

// RunLocal tests the contract of storage.Local with the stores returned by open, which must
// implement it. A search for a file below the stores' roots must be cheap.
func RunLocal(t *testing.T, open Open) {
	t.Helper()
	run(t, open, []check[localStore]{
		{"MayBeGone", testMayBeGone},
	})
}

type localStore interface {
	storage.Store
	storage.Local
}

type batchStore interface {
	storage.Store
	storage.Batcher
}

type folderStore interface {
	storage.Store
	storage.Folders
}

// check is one test of the suite.
type check[S any] struct {
	name string
	run  func(t *testing.T, store S, root string)
}

func run[S any](t *testing.T, open Open, checks []check[S]) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			opened, root := open(t)
			store, ok := opened.(S)
			if !ok {
				t.Fatalf("%T lacks methods of the port", opened)
			}
			c.run(t, store, root)
		})
	}
}
