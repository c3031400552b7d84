// Package manifests reads manifest lists and manifests, and writes manifest lists. It has two
// readers because they have two uses:
//
//   - EachListed and Manifest.Entries stream the names of manifests and files, within limits. Purge
//     and maintenance need only names, from files that may be larger than memory.
//   - Reader.List and Reader.Files read without loss, and NewList writes. The catalog needs them to
//     rebase an append on another snapshot, because the list of the new snapshot has records from
//     two lists. They keep unknown fields, and leave null numbers null.
//
// The input of both is an Avro object container:
//
//	file    = "Obj" 0x01, header (map of bytes), marker (16 bytes), block...
//	block   = records (long), bytes of payload (long), payload, marker
//	payload = the records one behind the other, packed by the codec that the header names
//
// The streaming reader returns an error for each fault of a file, and ErrTooMuch for a file that
// exceeds a limit. It holds one block of a file at a time. The limits are needed because clients
// write lists and manifests: a few megabytes can unpack to any number of names.
//
// The reader without loss promises:
//
//   - Any bytes may be passed to it. For bytes that are not such a file it returns ErrDamaged. It
//     never panics.
//   - The caller and FileBytesMax limit its memory. For a file that unpacks to more it returns
//     ErrTooLarge, whatever sizes the blocks declare.
//   - Fields are identified by their field-id, never by name or position.
//   - Null stays null: values are not inherited from a list or a snapshot.
//   - A record that is carried over unchanged keeps its bytes, including fields that this package
//     does not know. If the schema of the new list differs, each value moves to the field with the
//     same id. If there is no such field, NewList returns ErrForeign.
//   - The same input gives the same bytes. Even the marker is not random: it comes from one of the
//     input lists.
//   - Lists share memory. The lists of a table's snapshots differ by only a few records. So List
//     accepts the parent's list as a model, and NewList accepts entries of other lists. A list
//     costs only the memory of records that it does not share.
//
// A file that was truncated between two blocks is a valid shorter file. A list contains the length
// of each manifest, so Files detects a truncated manifest. A truncated list must be detected by the
// storage.
//
// The package is pure: bytes in, bytes out. It does not know about storages or tables. It makes no
// decisions: the catalog decides whether an append may be rebased.
//
// Source: Avro specification 1.11, object container files; table specification, manifests and
// manifest lists.
package manifests
