// Package access decides what a caller may do. It is pure: values go in, a decision comes out. It
// does no I/O, takes no context and reads no clock.
//
// # How to use it
//
// A Snapshot holds every principal, role and grant of a store. New builds one of all records, and
// With makes the next one of the records that changed. A Snapshot never changes, so readers need no
// lock. A request takes the newest one, and decides by that one alone:
//
//	who := snapshot.Who(access.Caller{Name: "corp:ann", Roles: []string{"corp/analysts"}})
//	decision := who.Decide(path, access.Alter|access.Locate)
//
// The path begins with the object and goes up to its warehouse. The server is above every path, so
// no path names it, and the empty path is the server itself. A question about several objects, such
// as a rename, is several decisions.
//
// The outcome is one of three. Allow lets the caller do it. Forbid means that the caller sees the
// object and lacks Decision.Missing. Hidden means that the caller must get the answer for an object
// that does not exist. That object is Decision.HiddenAt, the outermost one that the caller does not
// see.
//
// # Rules
//
//   - A grant on an object holds for everything below it. Privileges imply others (Implied).
//   - The owner of an object has every privilege that can be granted on it or below it. An object
//     belongs to the owner in its grants record, else to its creator.
//   - A managed warehouse or namespace takes Manage, and the right to hand objects over, from the
//     owners of the objects in it.
//   - A grant never denies anything: grants only add.
//   - Admin sees every name and grants anywhere, but reads no data: it implies no other privilege.
//   - A caller that acts through an engine (Caller.Acting) has no privilege from grants on the
//     server.
//   - Behind a view with definer's rights, the privileges of the view's owner count (through.go).
//
// # What it must not know
//
// It knows no store, no verb and no HTTP. Package catalog finds the path of an object and turns a
// decision into an answer.
package access
