// Package clouds serves the double of Google Cloud Storage that guards its files (gcstest.Cloud) to
// suites in other languages. With -serve its test prints what a server and its clients need, as a
// line of JSON, and goes on until its standard input ends. lib/harness/google.py reads that line.
//
//	go test ./interop/clouds -serve
package clouds
