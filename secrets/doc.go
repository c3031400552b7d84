// Package secrets seals (encrypts) the server's credentials for the storages of warehouses. So the
// catalog's store, its backups and its logs hold no usable credential.
//
// # What it promises
//
// A sealed value can be opened (decrypted) only with a key that is not in the store, and only for
// its original Owner. A value that was moved to another record, warehouse or store does not open,
// nor does a value with a single changed bit.
//
// There is no default key that an operator could forget to change. Without a key, nothing can be
// sealed.
//
// # The key file
//
// The key file is a Tink keyset in JSON, which Tink's tools can read too:
//
//	primary    the key that Seal uses
//	keys       AES-256-GCM keys, each with an id of 32 bits; a value sealed with any of them opens
//
// A value sealed with a key file begins with the byte 1 and the four bytes of its key's id. The
// rest is nonce, ciphertext and tag. So each record names the key that it needs.
//
// Rotate adds a key and makes it the primary one. Old values still open, and Rewrap seals them with
// the new key. When no record or backup refers to the old key any more, an administrator may delete
// it with one of Tink's tools.
//
// # Other sources of keys
//
// Package keyservice seals with keys that never leave a service. The first byte of a
// sealed value is its Form, which names the source. A Succession moves values from one source to
// another.
//
// # What it must not know
//
// It does not know the meaning of the plain values, or where records are.
package secrets
