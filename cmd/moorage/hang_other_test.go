//go:build !linux

package main

// hangFolders does nothing: the tests that need it run only on Linux.
func hangFolders() {}

// mountSmallDisk does nothing: the test that needs it runs only on Linux.
func mountSmallDisk() {}
