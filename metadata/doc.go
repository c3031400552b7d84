// Package metadata holds Iceberg table and view metadata documents, and the rules by which a
// commit's requirements are checked and its updates applied to them.
//
// # What it promises
//
// A Document is an immutable value over the JSON that it was read from. Bytes that an update does
// not touch survive as they are: unknown members, the order of members, 64-bit integers, defaults
// such as 0.0. Nothing is parsed into structs and written back; an update is a splice.
//
// A Document knows where everything in it lies. A commit copies the bytes once and derives the new
// index from the old one. So it costs a copy of memory, regardless of the number of snapshots.
//
// Every document that Parse, Create, Build or Apply return can be loaded. It passes the checks of
// the Java reference when it reads a document, and is strict JSON. Documents with a key twice in
// one object, with lone surrogates, or nested more than 500 deep are refused, because readers
// disagree about them. For requests, jsontext.Checked is the proof of such a check.
//
// Errors are *moorage.Error. KindCommitFailed means that the commit may succeed after a refresh,
// every other kind means that it never will. Where the texts are known to clients they are those of
// the Java reference.
//
// Everything exported is safe for concurrent use.
//
// # What it must not know
//
// Files, clocks, randomness, contexts, HTTP, and where documents are kept: it is a library of pure
// functions. The current time and the source of UUIDs come with Env.
package metadata
