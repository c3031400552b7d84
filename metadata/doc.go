// Package metadata implements Iceberg's metadata documents of tables and views. It checks the
// requirements of a commit against a document, and applies the commit's updates to the document.
//
// # What it promises
//
// A Document is an immutable value over the JSON that it was read from. Bytes that an update does
// not touch stay unchanged: unknown members, the order of members, 64-bit integers, defaults such
// as 0.0. An update replaces parts of the text (a splice). The package never parses a document into
// structs and writes it back.
//
// A Document has an index of the positions in its text. A commit copies the bytes once and derives
// the new index from the old one. So a commit costs one copy of the bytes, and its other costs do
// not depend on the number of snapshots.
//
// Engines can load every document that Parse, Create, Build or Apply returns. Such a document is
// strict JSON. It also passes the checks of the Java reference implementation when it loads
// documents. Documents with a duplicate key in an object, with lone surrogates, or nested more than
// 500 levels deep are refused, because readers disagree about them. The content of requests has the
// type jsontext.Checked, which shows that it was checked in the same way.
//
// Errors are *moorage.Error. KindCommitFailed means that the commit may succeed after a refresh.
// Any other kind means that it never will. Error texts that clients recognise are the same as in
// the Java reference.
//
// chain.go decides which requests may share a version. rebase.go decides whether the document
// allows a late append to be rebased: to get a newer head as its parent than its client saw.
//
// Everything exported is safe for concurrent use.
//
// # What it must not know
//
// It does not know about files, clocks, randomness, contexts, HTTP, or where documents are stored.
// It is a library of pure functions. Env provides the current time and the source of UUIDs.
package metadata
