// Package manifests reads manifest lists and manifests as their writers left them, and writes
// manifest lists. It is there for the catalog when it puts an append on top of another snapshot:
// the list of the new snapshot has records of two lists. Package manifest, which names the files of
// a table to be purged, reads through iceberg-go instead. That reader drops what it does not know
// and fills in numbers that are null, so it cannot serve here.
//
// What it reads is an Avro object container:
//
//	file    = "Obj" 0x01, header (map of bytes), marker (16 bytes), block...
//	block   = records (long), bytes of payload (long), payload, marker
//	payload = the records one behind the other, packed by the codec that the header names
//
// It promises:
//
//   - Any bytes may be read. What is no such file is ErrDamaged. Nothing panics.
//   - Memory is bounded by the caller, and by FileBytesMax. A file that unpacks to more is
//     ErrTooLarge, whatever its blocks say of themselves.
//   - Fields are known by their field-id, never by name or position.
//   - Null stays null. Nothing is inherited from a list or a snapshot.
//   - A record that is carried over unchanged keeps its bytes, with all fields that this package
//     does not know. Where the schema of the new list differs, each value moves to the field of its
//     id; a value that has no place there is ErrForeign.
//   - The same input gives the same bytes. Even the marker comes from the list that is followed.
//
// A file that was cut between two blocks is a valid shorter file. A manifest's length is in its
// list, so Entry.Files finds that. For a list, the storage has to report it.
//
// The package is pure: bytes in, bytes out. It knows no storage and no table, and it decides
// nothing: whether an append may be moved is for the catalog to say.
//
// Source: Avro specification 1.11, object container files; table specification, manifests and
// manifest lists.
package manifests
