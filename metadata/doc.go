// Package metadata has Iceberg's metadata documents of tables and views. It checks the requirements
// of a commit against a document, and applies the updates of the commit to it.
//
// # What it promises
//
// A Document is an immutable value over the JSON that it was read from. Bytes that an update does
// not touch stay unchanged: unknown members, the order of members, 64-bit integers, defaults such
// as 0.0. An update replaces parts of the text (a splice). The package never parses a document into
// structs and writes it back.
//
// A Document has an index of the positions in its text. A commit copies the bytes once and derives
// the new index from the old one. So a commit costs one copy of memory, and its other costs do not
// depend on the number of snapshots.
//
// Engines can load every document that Parse, Create, Build or Apply returns. It is strict JSON and
// passes the checks with which the Java reference implementation ("the reference") loads documents.
// Documents with a key twice in one object, with lone surrogates, or nested more than 500 deep are
// refused, because readers disagree about them. The content of requests has the type
// jsontext.Checked, which shows that it was checked in the same way.
//
// Errors are *moorage.Error. KindCommitFailed means that the commit may succeed after a refresh.
// Every other kind means that it never will. Error texts that clients recognise are the same as in
// the Java reference.
//
// chain.go decides which requests may share a version. rebase.go decides whether the document
// allows that a late append is rebased: put on top of a newer head than its client saw.
//
// Everything exported is safe for concurrent use.
//
// # What it must not know
//
// It must not know files, clocks, randomness, contexts, HTTP, or where documents are stored: it is
// a library of pure functions. Env provides the current time and the source of UUIDs.
package metadata
