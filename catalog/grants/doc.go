// Package grants manages access: principals and their API keys, roles, and the grants on objects.
// It also explains decisions, and provides the data with which package identity authenticates
// callers.
//
// # What it promises
//
// Each change is one Apply through package catalog/commit. The Apply increments the epoch, which
// numbers the versions of the policy. The privileges of the caller are checked against the policy
// of the previous epoch. If the policy changes before the Apply, the change is checked and planned
// again. So the caller had the privileges for the change at the moment of its Apply.
//
// Package catalog/gate makes all access decisions. This package writes the records of the policy
// that the gate reads.
//
// # What it must not know
//
// It knows no tokens. It knows the hashes of API keys, but not their secrets. It knows nothing
// about HTTP or metadata files: Config.IsDefiner reads the one property of a view that it needs.
package grants
