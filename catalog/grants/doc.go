// Package grants manages access: principals and their API keys, roles, and the grants on objects.
// It also explains decisions, and gives package identity what it needs to authenticate callers.
//
// # What it promises
//
// Each change is one Apply through package catalog/commit, which increments the epoch of the
// policy. It is planned by the policy of the epoch before, and planned again if the policy changed
// in between. So the caller had the privileges for the change at the moment of its Apply.
//
// Package catalog/gate decides. This package asks it, and writes the records that it follows.
//
// # What it must not know
//
// It knows no tokens and no secrets of keys, only their hashes. It knows nothing of HTTP, and no
// metadata files: Config.IsDefiner reads the property of a view that it needs.
package grants
