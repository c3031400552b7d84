// Package registry is the port to the store that records the current metadata file of every table.
// It owns the keys, the records and their encoding, and the contract of Store. The sub-packages
// memory, pebble and postgres implement the contract, and registrytest tests it.
//
// # What a store promises
//
// A store is a map from Key to Record. Every write gives the record a new ETag: 128 random bits. An
// ETag is never used twice, even if a record is deleted and then created again. Apply is the only
// way to write. Its batch becomes visible and durable at one moment if all of the batch's
// conditions hold. Otherwise it changes nothing.
//
// Writes are durable before they are visible: no Get, List, Changes or condition ever sees a write
// that a power cut could still undo.
//
// Changes returns the changes of batches in the order in which the batches became visible. In this
// order, the changes of a key are in the order of its versions, and a batch comes after every batch
// whose writes it saw.
//
// # What a store must not know
//
// A store sees keys, ETags, states and bytes. It never decodes a value, except
// through Seal, which adds a batch's Change to its writes.
package registry
