// Package archtest holds the rules of this repository that a test can check: which package
// may import which, that everything exported is documented, what no code may call,
// how long files and functions may grow, and that the documents name only what exists.
//
// It has no code outside its tests. The rules stand in tables at the top of their files, with the
// reason of each; an exception stands in exceptions_test.go, with its reason, and one that is
// no longer needed fails.
package archtest
