// Package schema implements the parts of a table's metadata that describe the form of its data:
// schemas, partition specs and sort orders, with the types, transforms and defaults in them.
//
// # What it promises
//
// A part keeps the bytes from which it was read. When a part is written, only its ids change, and
// spellings that some readers do not know. Parse, ParseSpec and ParseSortOrder accept parts of
// documents that another catalog wrote. The Check methods refuse parts that must not be added to a
// document. Error texts that clients recognise are the same as in the Java reference. Everything is
// immutable, and safe for concurrent use, unless its comment states otherwise.
//
// # What it must not know
//
// It does not know about documents and commits. It is the only package that reads types, transforms
// and literals through iceberg-go.
package schema
