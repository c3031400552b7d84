// Package catalog implements the verbs of the service: the requests of a caller to change or read
// warehouses, namespaces, tables and views. Each verb that changes something is a plan, which
// package catalog/commit carries out; read that first. Each verb that reads resolves its object
// through package catalog/directory.
//
// # What it promises
//
// A verb has two halves: one reads records and one plans their change. The planning half is a pure
// function of the records (planCreation, planDrop, planRename and so on), and its tests are tables.
// No verb writes a record or a file itself. If a record changes between the read and the Apply,
// both halves are called again on newer records.
//
// Package catalog/gate has the table of all verbs: their locks, the privileges that they need,
// whether they take an idempotency key, and their operations in the HTTP APIs. create.go chooses
// the location of a new table.
//
// # Errors
//
// The comment of each verb lists its particular error kinds. Any verb may also fail with:
//
//   - KindForbidden: the caller lacks a privilege;
//   - KindNoSuchWarehouse;
//   - KindBadRequest for an invalid name;
//   - KindUnavailable: nothing was and nothing will be applied;
//   - KindInternal: a record cannot be read;
//   - KindCommitUnknown, if the verb changes something;
//   - KindTooManyRequests, if the verb reads a long metadata file and there is no memory for it.
//
// # What it must not know
//
// HTTP, SQL, or the SDK of an object store.
package catalog
