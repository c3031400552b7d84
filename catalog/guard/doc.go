// Package guard says who may do what. It decides by the policy of the store: principals, roles and
// grants, which package access holds in memory as a snapshot.
//
// # How policy is followed
//
// Each Apply that changes policy counts the record registry.EpochKey on. So all changes have one
// order, and a snapshot that has the number of the record has all of them. A Guard never decides by
// an older snapshot than a number that this process has seen:
//
//	store of one process   Watch hears each Apply of the process that may have counted on, before
//	                       its caller does. Requests read nothing more.
//	store of many          a request reads the epoch in the same call of the store as what it is
//	                       about (Key, Saw).
//
// If the snapshot is behind, one request reads the records that registry.RecentKey names, or all,
// and the others wait for it. If that fails nobody is let in: KindUnavailable. So a change of
// policy that was answered holds for every request that begins afterwards, on every node.
//
// # What a decision stands on
//
// Decide is asked after an object was found, with the ids of what leads to it. It is asked again
// whenever the records are read again. A name is not looked at between a decision and its effect.
//
// An object that the caller does not see is answered as if it did not exist, byte for byte. In a
// warehouse that the caller does not see, everything is answered as if that did not exist.
//
// # The way to what somebody made
//
// Owners who made a thing are in no policy: its record names them. So that they see the namespaces
// and the warehouse above it, whatever is granted to them, each create says so in a small record
// for its maker and each container (Way). It is looked at only when something would be hidden.
//
// # What it must not know
//
// It knows no names of objects that it was not given, no files, no HTTP and no tokens. It writes
// nothing: what Way returns belongs into the Apply of others.
package guard
