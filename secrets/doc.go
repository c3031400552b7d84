// Package secrets seals what warehouses need to reach their storages, so that the store of the
// catalog, its backups and its logs hold nothing that can be used.
//
// # What it promises
//
// A sealed value opens only with a key that is not in the store, and only for the Owner that it was
// sealed for. A value that was moved to another record, another warehouse or another store does not
// open. One that was changed in a single bit does not open either.
//
// There is no default key. Without a key file nothing can be sealed, and nobody can forget to
// change one.
//
// # The key file
//
// It is a Tink keyset in JSON, which the tools of Tink can read as well:
//
//	primary    the key that Seal uses
//	keys       AES-256-GCM keys, each with an id of 32 bits; all of them open
//
// A sealed value begins with the byte 1 and the four bytes of its key's id, and the rest is nonce,
// ciphertext and tag. So a record says which key it needs.
//
// Rotate adds a key and makes it the primary one. Old values still open, and Rewrap seals them with
// the new key. When no record and no backup names the old key any more, Forget removes it.
//
// # Other sources of keys
//
// Packages vault, awskms and gcpkms seal with keys that never leave a service. The first byte of a
// sealed value says what sealed it (Form). A Succession moves values from one source to another.
//
// # What it must not know
//
// What is sealed, and where records are.
package secrets
