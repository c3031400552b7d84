// Package gate refuses the requests of callers that lack a privilege. It has the table of verbs,
// which are the requests that a caller can send to the catalog, and the Guard, which evaluates the
// table. The Guard decides by the policy in the store: principals, roles and grants. Package access
// holds the policy in memory as a snapshot, and works out the privileges of a caller from it.
//
// Each verb has one row. Its kind of object, its locks, whether it takes an idempotency key, and
// its operations in the HTTP APIs are in verbs.go. The privileges that it needs are in asks.go.
// Every verb of a caller goes through Pass, which authorizes the caller (decide.go). Jobs of the
// server do not go through Pass.
//
// # How policy is followed
//
// Each Apply that changes the policy increments the record registry.EpochKey. So all changes have
// one order, and a snapshot with the number of the record contains all of them. A Guard never uses
// a snapshot that is older than an epoch that this process has seen:
//
//	store of one process   Watch processes each Apply that changed or may have changed the
//	                       policy before its caller continues. Requests read nothing more.
//	store of many          a request reads the epoch in the same call of the store as its own
//	                       records (Key, Observe).
//
// If the snapshot is outdated, one request reads the records that registry.RecentKey names, or all
// of them, and the other requests wait for it. If that fails all requests are refused:
// KindUnavailable. So a confirmed change of policy applies to every request that begins afterwards,
// on every node.
//
// # The basis of a decision
//
// Decide is called after an object was found, with the ids of the object and its containers. It is
// called again whenever the records are read again. Names are not resolved again between a decision
// and its effect.
//
// A hidden object gets the same answer as an object that does not exist, byte for byte. In a
// warehouse that the caller does not see, every request gets the answer for a missing warehouse.
//
// # The path to owned objects
//
// The policy does not contain owners: the record of each object names its owner. Owners must see
// the namespaces and the warehouse above their object, whatever their grants. So each create writes
// a small record for its maker and each container (MakerRecords). The guard reads these records
// only if something would be hidden otherwise.
//
// # What it must not know
//
// It knows no names of objects except those in its input, no files, no tokens, and nothing of HTTP
// except the names of operations. It writes nothing: the caller adds the result of MakerRecords to
// its own Apply.
package gate
