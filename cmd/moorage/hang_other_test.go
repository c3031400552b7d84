//go:build !linux

package main

// hangFolders is for Linux only, as are the tests that need it.
func hangFolders() {}

// mountSmallDisk is for Linux only, as is the test that needs it.
func mountSmallDisk() {}
