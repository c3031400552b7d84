// Package access decides what a caller may do. It is pure: it computes decisions from values. It
// does no I/O, takes no context and reads no clock.
//
// # How to use it
//
// A Snapshot holds every principal, role and grant of a store. New builds a Snapshot from all
// records. With builds the next one from the records that have changed. A Snapshot never changes,
// so readers need no lock. A request uses the newest Snapshot for all its decisions:
//
//	who := snapshot.Who(access.Caller{Name: "corp:ann", Roles: []string{"corp/analysts"}})
//	decision := who.Decide(path, access.Alter|access.Locate)
//
// A path begins with the object and goes up to its warehouse. The server is above every path, so no
// path contains it, and the empty path is the server itself. A request on several objects, such as
// a rename, needs several decisions.
//
// A decision has one of three outcomes. Allow means that the request is allowed. Forbid means that
// the caller sees the object but lacks the privileges in Decision.Missing. Hidden means that the
// caller must get the same answer as if the object did not exist. The answer must name the object
// at Decision.HiddenAt. It is the outermost object that the caller does not see. For lists,
// seen.go decides which children of a container the caller sees.
//
// # Rules
//
//   - A grant on an object also applies to all objects below it. A privilege may imply others
//     (Implied).
//   - The owner of an object has every privilege that can be granted on it or on a kind of object
//     below it. The object's grants record names the owner. If it names none, the creator is the
//     owner.
//   - If a warehouse or namespace is managed, owners of objects in it lack Manage on these objects.
//     They also may not make another grantee the owner.
//   - Grants only add privileges. No grant denies anything.
//   - Admin on the server sees every name and can grant on every object. It does not read data: it
//     implies no other privilege.
//   - For a caller that acts through an engine (Caller.Acting), grants on the server do not count.
//   - Behind a view with definer's rights, the privileges of the view's owner count (through.go).
//
// # What it must not know
//
// It does not know about stores, verbs or HTTP. Package catalog finds the path of an object and
// turns a decision into a response.
package access
