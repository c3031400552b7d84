// Package rebase puts appends on top of snapshots that came since their clients looked. A client
// whose append is refused because the head of the branch moved sends it again for the new head. The
// server does here what that client would do, where somebody asked for it: see Choice.
//
// An append is moved only if it is a plain one, and if the manifest lists and manifests show that
// it means the same on the new head (rules.go). It then gets a manifest list of its own, and its
// snapshot names that. Every other append is refused as if there were no such package: nothing is
// written for it.
//
// All that is read lies within the locations that the table has claimed. Sizes are bounded, and
// what is read takes room for metadata. What is read once is kept in memory, bounded by its bytes.
//
// # What it must not know
//
// It knows nothing of queues, keys, records, and of who asks. It writes no file: it returns those
// that a commit writes beside its metadata file.
package rebase
