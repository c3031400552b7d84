// Package metadata holds Iceberg table and view metadata documents, and the rules by which a
// commit's requirements are checked and its updates applied to them.
//
// # What it promises
//
// A Document is an immutable value over the JSON that it was read from. Bytes that an update does
// not touch stay unchanged: unknown members, the order of members, 64-bit integers, defaults such
// as 0.0. An update is a splice; the document is never parsed into structs and written back.
//
// A Document has an index of the positions in it. A commit copies the bytes once and derives the
// new index from the old one. So it costs a copy of memory, regardless of the number of snapshots.
//
// Every document that Parse, Create, Build or Apply return can be loaded. It is strict JSON and
// passes the checks of the Java reference for loading. Documents with a key twice in one object,
// with lone surrogates, or nested more than 500 deep are refused, because readers disagree about
// them. For requests, jsontext.Checked is the proof of such a check.
//
// Errors are *moorage.Error. KindCommitFailed means that the commit may succeed after a refresh.
// Every other kind means that it never will. Texts that clients recognise are the same as in the
// Java reference.
//
// chain.go decides which requests may share a version. rebase.go decides whether a late append may
// be put on top of a newer head, as far as the document shows it.
//
// Everything exported is safe for concurrent use.
//
// # What it must not know
//
// It must not know files, clocks, randomness, contexts, HTTP, or where documents are stored: it is
// a library of pure functions. Env provides the current time and the source of UUIDs.
package metadata
