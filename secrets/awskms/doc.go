// Package awskms seals secrets with a key of AWS Key Management Service, which never leaves it.
//
// # What it promises
//
// A sealed value opens only with that key, and only for the Owner that it was sealed for: the owner
// is the encryption context of the value. Every use of the key is in the log of the account
// (CloudTrail), with the owner.
//
// A sealed value is the byte 3, then the ciphertext of the service. That names its key and the
// key's material, which the service replaces when it rotates the key. Values of older material
// open. Rewrap seals them with the present one.
//
// # What it needs
//
// The permissions kms:Encrypt, kms:Decrypt and kms:DescribeKey on the key, and the credentials that
// the AWS SDKs find for the process. It does not rotate the key: that is for who administers it.
//
// # Rejected
//
// Tink's client, and the SDK's. Both are made for all operations of the service, and this package
// needs three requests. It signs them with the signer that storage/s3 brings.
//
// A data key for each secret, which the service seals in its place. It would take secrets of more
// than 4,096 bytes, which nobody has: the longest in use is the key of a Google service account,
// with 2,400. The price would be a second cipher, and a log that names keys in place of secrets.
//
// # What it must not know
//
// What is sealed, and where records are. It keeps no value.
package awskms
