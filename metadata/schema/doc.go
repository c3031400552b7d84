// Package schema holds the parts of a table that say what its data look like: schemas, partition
// specs and sort orders, with the types, transforms and defaults in them.
//
// # What it promises
//
// A part keeps the bytes that it was read from. What it writes are these bytes with some places
// patched: ids, and spellings that not every reader knows. Parse, ParseSpec and ParseSortOrder
// accept what a document may hold that was written elsewhere. The Check methods refuse what must
// not be added to a document. Where the texts of errors are known to clients they are those of the
// Java reference. Everything is immutable, and safe for concurrent use, except where its comment
// says otherwise.
//
// # What it must not know
//
// Documents and commits. It is the one package that reads types, transforms and literals through
// iceberg-go.
package schema
