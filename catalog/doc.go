// Package catalog holds the verbs of the service and the order of their steps.
// commit.go is the file to read first.
//
// # What it promises
//
// Nothing but this package moves a pointer, and it does so only through
// registry.Store.Apply: only the store's conditional write makes a commit
// correct. Locks order work and save waste; losing any lock at any moment is
// harmless. Files are written, create-only, before a record names them, and deleted only
// when no record can come to name them. What must be true together (pointer,
// entry, claims, change record, purge task) is written in one Apply.
//
// Every mutation draws a commit id and writes its change record with it. When the
// outcome of an Apply is unknown, that record tells it: if it is there the commit
// happened, if not it is fenced, so that it no longer can.
//
// # Errors
//
// The comment of each verb names the kinds that are particular to it. Any verb may also fail with:
//
//   - KindNoSuchWarehouse;
//   - KindBadRequest for a name that is not valid;
//   - KindUnavailable: nothing was and nothing will be applied;
//   - KindInternal: a record cannot be read;
//   - KindCommitUnknown, if the verb changes something;
//   - KindTooManyRequests, if the verb reads a long metadata file and there is no room for it.
//
// # What it must not know
//
// HTTP, SQL, or the SDK of an object store.
package catalog
