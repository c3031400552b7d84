// Package gcpkms seals secrets with a key of Google's Cloud Key Management Service, which never
// leaves it.
//
// # What it promises
//
// A sealed value opens only with that key, and only for the Owner that it was sealed for: the owner
// is the additional authenticated data of the value. All that is sent and answered carries
// CRC32C checksums, which both sides compare. A sealed value is
//
//	4  length of the key's name (2 bytes, most significant first)  name  ciphertext
//
// The name is that of the key, without its version. The service does not say that a value has
// another key, so the name does. The ciphertext names the version. Values of older versions open
// while those are enabled. Rewrap seals them with the primary one.
//
// # What it needs
//
// The role roles/cloudkms.cryptoKeyEncrypterDecrypter on the key, and the credentials that Google's
// clients find for the process. It makes no version of the key: that is for who administers it.
//
// # Rejected
//
// Tink's client, which brings all of Google's API client and its gRPC. This package needs two
// requests.
//
// # What it must not know
//
// What is sealed, and where records are. It keeps no value.
package gcpkms
