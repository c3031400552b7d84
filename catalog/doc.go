// Package catalog holds the verbs of the service: what a caller can do to warehouses, namespaces,
// tables and views, and ask about them. Each verb that changes something is a plan, which package
// catalog/commit carries out; read that first. Each verb that reads goes through the one door of
// package catalog/directory.
//
// # What it promises
//
// A verb says what is read and what is to become of it. The half that plans is a pure function of
// the half that reads (planCreation, planDrop, planRename and so on), and its tests are tables. No
// verb writes a record or a file itself. Both halves may be called again on newer records, until
// nothing changed between the read and the Apply.
//
// Package catalog/verb has the table of all verbs: what each locks, whether it takes an idempotency
// key, and which operations of the HTTP faces it is.
//
// # Errors
//
// The comment of each verb names the kinds that are particular to it. Any verb may also fail with:
//
//   - KindForbidden: the gate does not let the caller do that;
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
