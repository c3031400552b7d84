// Package secrets seals the credentials of warehouses for their storages. So the catalog's store,
// its backups and its logs hold no usable credential.
//
// # What it promises
//
// A sealed value opens only with a key that is not in the store, and only for the Owner that it was
// sealed for. A value that was moved to another record, warehouse or store does not open. A value
// with a single changed bit does not open either.
//
// There is no default key, so no operator can forget to change it. Without a key file nothing can
// be sealed.
//
// # The key file
//
// The key file is a Tink keyset in JSON, which Tink's tools can read too:
//
//	primary    the key that Seal uses
//	keys       AES-256-GCM keys, each with an id of 32 bits; all of them open
//
// A sealed value begins with the byte 1 and the four bytes of its key's id; the rest is nonce,
// ciphertext and tag. So each record names the key that it needs.
//
// Rotate adds a key and makes it the primary one. Old values still open, and Rewrap seals them with
// the new key. When no record and no backup names the old key any more, an administrator may delete
// it with a tool of Tink.
//
// # Other sources of keys
//
// Package keyservice seals with keys that never leave a service. The first byte of a
// sealed value is its Form, which names the source. A Succession moves values from one source to
// another.
//
// # What it must not know
//
// It must not know the meaning of the plain values, or where records are.
package secrets
