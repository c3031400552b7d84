// Package archtest checks the rules of this repository that a test can check. They define which
// package may import which, which calls are banned, and how long a file may be. Everything exported
// must have a comment, prose must be plain, and documents must refer only to things that exist.
//
// It has no code outside its tests. The rules are in tables at the top of their files, each with
// its reason. An exception is in exceptions_test.go, with its reason, and an unused exception
// fails.
//
// Most rules parse one package at a time. Rules that need the type of a method use typesOf, which
// checks types across packages.
package archtest
