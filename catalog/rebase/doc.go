// Package rebase puts appends on top of snapshots that were committed after their clients read the
// table. A client whose append is refused because the head of the branch moved normally sends it
// again for the new head. The server does this for the client if the table and the request consent:
// see Choice.
//
// An append is moved only if three things hold:
//
//   - Table, request and warehouse consent (choice.go).
//   - It is a plain append, and the document admits it on the new head (metadata/rebase.go).
//   - Its manifests have the same effect on the new head, which the manifest lists and manifests
//     must show (rules.go).
//
// It then gets a manifest list of its own, which its snapshot names. Every other append is refused
// as without this package, and nothing is written for it.
//
// All files that are read lie within the locations that the table has claimed. Sizes are bounded,
// and files that are read count against the memory for metadata. Files that were read are cached in
// memory, bounded by their bytes.
//
// # What it must not know
//
// It does not know queues, keys, records or callers. It writes no file: it returns the files that a
// commit writes in addition to its metadata file.
package rebase
