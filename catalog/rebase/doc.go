// Package rebase moves appends on top of snapshots that were committed after the appends' clients
// read the table. Normally, if an append is refused because the head of the branch has moved, its
// client repeats it for the new head. The server does this for the client if the table and the
// request consent: see Choice.
//
// An append is moved only if three things hold:
//
//   - Table, request and warehouse consent (choice.go).
//   - It only appends files, and the metadata document permits it on the new head
//     (metadata/rebase.go).
//   - Its manifests have the same effect on the new head. The manifest lists and manifests must
//     prove that (rules.go).
//
// rules.go decides which manifests the new list has, and rebase.go writes that list. The snapshot
// of the moved append names it. Every other append is refused, as it would be without this package,
// and nothing is written for it.
//
// All files that are read lie within the locations that the table has claimed. The sizes of files
// are bounded. Reading a file takes room in the memory for metadata. Files that were read are
// cached in memory, and the cache has a bound in bytes.
//
// # What it must not know
//
// It does not know queues, keys, records or callers. It writes no file: it returns the files that a
// commit writes in addition to its metadata file.
package rebase
