// Package archtest holds the rules of this repository that a test can check. They say which package
// may import which, what no code may call, and how long files and functions may grow. Everything
// exported must have a comment, prose must be plain, and documents must name only what exists.
//
// It has no code outside its tests. The rules stand in tables at the top of their files, each with
// its reason. An exception stands in exceptions_test.go, with its reason, and one that is no longer
// needed fails.
//
// Most rules parse, and look at one package at a time. Those that must know what a method belongs
// to ask typesOf, which checks types across packages.
package archtest
