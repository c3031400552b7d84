// Package gate refuses the requests of callers that lack a privilege. It has the table of verbs,
// which are the requests that a caller can send to the catalog, and the Guard, which evaluates the
// table. The Guard decides by the policy in the store: principals, roles and grants. Package access
// holds the policy in memory as a snapshot, and works out the privileges of a caller from it.
//
// Each verb has one row in the table. The row in verbs.go has the verb's kind of object, its locks,
// its operations in the HTTP APIs, and whether it takes an idempotency key. asks.go has the
// privileges that the verb needs. Every request of a caller goes through Pass, which authorizes the
// caller (decide.go). A verb that a job of the server uses goes through Pass too: the Guard admits
// the job without a privilege. What a job writes to the store without a verb does not go through
// Pass.
//
// # How a guard follows the policy
//
// Each Apply that changes the policy increments the epoch, a number in the record
// registry.EpochKey. So all changes have one order, and a snapshot of epoch n contains exactly the
// first n changes. A Guard never uses a snapshot of an earlier epoch than the latest that this
// process has seen. How the process sees an epoch depends on the store:
//
//	store of one process   Watch processes each Apply that changed or may have changed the
//	                       policy before its caller continues. Requests read nothing more.
//	store of many          a request reads the epoch in the same call of the store as its own
//	                       records (Key, Observe).
//
// If the snapshot is outdated, one request reads the changed records, which registry.RecentKey
// lists, or the whole policy. The other requests wait for it. If the read fails, all requests are
// refused with KindUnavailable. So a confirmed change of policy applies to every request that
// begins afterwards, on every node.
//
// # The basis of a decision
//
// A verb calls Decide after it has found its object, with the ids of the object and its containers.
// If it reads the records again, it calls Decide again. Names are not resolved again between a
// decision and its effect.
//
// A request for a hidden object gets the same answer as for an object that does not exist, byte for
// byte. In a warehouse that the caller does not see, every request gets the answer for a missing
// warehouse.
//
// # The path to owned objects
//
// The policy does not contain owners: the record of each object names its owner. Owners must see
// the namespaces and the warehouse above their object, whatever their grants. So each create writes
// a small record for the object's maker and each container of the object (MakerRecords). The guard
// reads these records only if something would be hidden otherwise.
//
// # What it must not know
//
// It knows no files and no tokens. It knows only the names of objects that it is given. Of HTTP it
// knows only the names of operations. It writes nothing: the caller adds the result of MakerRecords
// to its own Apply.
package gate
