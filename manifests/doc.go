// Package manifests reads manifest lists and manifests, and writes manifest lists. It has two
// readers because they have two uses:
//
//   - EachListed and Manifest.Entries stream the names of manifests and files, within bounds. Purge
//     and maintenance need names only, of files that may be larger than memory.
//   - ReadList and Entry.Files read without loss, and NewList writes. The catalog needs them to
//     rebase an append on another snapshot: the list of the new snapshot has records of two lists.
//     They neither drop unknown fields nor fill in numbers that are null.
//
// The input of both is an Avro object container:
//
//	file    = "Obj" 0x01, header (map of bytes), marker (16 bytes), block...
//	block   = records (long), bytes of payload (long), payload, marker
//	payload = the records one behind the other, packed by the codec that the header names
//
// The streaming reader turns each fault of a file into an error, and a file that exceeds a bound
// into ErrTooMuch. It holds one block of a file at a time. A client writes lists and manifests as
// it likes: a few megabytes can unpack to any number of names.
//
// The reader without loss promises:
//
//   - Any bytes may be read. Bytes that are not such a file are ErrDamaged. Nothing panics.
//   - Memory is bounded by the caller, and by FileBytesMax. A file that unpacks to more is
//     ErrTooLarge, whatever sizes its blocks declare.
//   - Fields are identified by their field-id, never by name or position.
//   - Null stays null. Nothing is inherited from a list or a snapshot.
//   - A record that is carried over unchanged keeps its bytes, including fields that this package
//     does not know. If the schema of the new list differs, each value moves to the field of its
//     id; a value without such a field is ErrForeign.
//   - The same input gives the same bytes. Even the marker comes from the model list.
//   - Lists share memory. The lists of a table's snapshots differ by a few records, so a list is
//     read like its parent's, and made from the entries of others. It costs its own records.
//
// A file that was truncated between two blocks is a valid shorter file. A manifest's length is in
// its list, so Entry.Files detects the truncation. The truncation of a list must be detected by the
// storage.
//
// The package is pure: bytes in, bytes out. It knows no storage and no table. It makes no
// decisions: the catalog decides whether an append may be rebased.
//
// Source: Avro specification 1.11, object container files; table specification, manifests and
// manifest lists.
package manifests
