// Package registry is the port to the store that says which metadata file is
// the current one of every table. It owns the keys, the records and their
// encoding, and the contract of Store; its sub-packages memory, pebble and
// postgres keep the contract, and registrytest checks that they do.
//
// # What a store promises
//
// A store is a map from Key to Record. Every write gives the record a new
// ETag: 128 random bits, never used twice, also not after a record was deleted
// and made again. The only way to write is Apply: a batch of writes that
// becomes visible and durable at one moment if every one of the batch's
// conditions holds, and that changes nothing otherwise.
//
// Durable before visible: no Get, List, Changes or condition ever sees a write
// that a power cut could still take back.
//
// Changes is the order in which batches that carry a Change became visible. In
// it each key's changes stand in the order of its versions, and a batch that
// saw another one stands after it.
//
// # What a store must not know
//
// A store sees keys, ETags, states and bytes. It never decodes a value, except
// through Seal, which adds a batch's Change to its writes.
package registry
