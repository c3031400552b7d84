// Package awskms seals secrets with a key of AWS Key Management Service; the key never leaves the
// service.
//
// # What it promises
//
// A sealed value opens only with that key, and only for the Owner that it was sealed for: the owner
// is the encryption context of the value. The log of the account (CloudTrail) has every use of the
// key, with the owner.
//
// A sealed value is the byte 3, then the ciphertext of the service. The ciphertext names its key
// and the key's material, which the service replaces when it rotates the key. Values of older
// material still open. Rewrap seals them with the present one.
//
// # What it needs
//
// The permissions kms:Encrypt, kms:Decrypt and kms:DescribeKey on the key, and the credentials that
// the AWS SDKs find for the process. It does not rotate the key: the key's administrator does.
//
// # Rejected
//
// Tink's client and the SDK's client cover all operations of the service, but this package needs
// only three requests. It signs them with the signer that storage/s3 already needs.
//
// A data key for each secret, sealed by the service, would allow secrets of more than 4,096 bytes.
// No such secret is in use: the longest is the key of a Google service account, with 2,400. The
// price would be a second cipher, and a log with the names of keys instead of secrets.
//
// # What it must not know
//
// It must not know the meaning of the plain values, or where records are. It keeps no value.
package awskms
