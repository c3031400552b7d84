// Package gcpkms seals secrets with a key of Google's Cloud Key Management Service; the key never
// leaves the service.
//
// # What it promises
//
// A sealed value opens only with that key, and only for the Owner that it was sealed for: the owner
// is the additional authenticated data of the value. Requests and responses carry CRC32C checksums,
// which both sides compare. A sealed value is
//
//	4  length of the key's name (2 bytes, most significant first)  name  ciphertext
//
// The name of the key does not include its version. The name is needed because the service does not
// report that another key sealed a value. The ciphertext names the version. Values of older
// versions open while their versions are enabled. Rewrap seals them with the primary one.
//
// # What it needs
//
// The role roles/cloudkms.cryptoKeyEncrypterDecrypter on the key, and the credentials that Google's
// clients find for the process. It creates no version of the key: the key's administrator does.
//
// # Rejected
//
// Tink's client needs all of Google's API client and its gRPC, but this package needs only two
// requests.
//
// # What it must not know
//
// It must not know the meaning of the plain values, or where records are. It keeps no value.
package gcpkms
