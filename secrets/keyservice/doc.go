// Package keyservice seals secrets with keys that never leave a service: Vault and OpenBao (Vault),
// AWS Key Management Service (Amazon) and Google's Cloud Key Management Service (Google). Client
// calls them. It bounds the time and length of each call, and retries transient failures. So a
// server does not hang while its key service is unreachable.
//
// # What it promises
//
// A sealed value opens only with its key, and only for the Owner that it was sealed for. The owner
// is data that the service authenticates: of Vault the associated data, of AWS the encryption
// context, of Google the additional authenticated data. A value begins with a byte for its form:
//
//	2  the text of Vault, "vault:v1:…", which names the version of the key
//	3  the ciphertext of AWS, which names the key and its material
//	4  length of the key's name (2 bytes, most significant first)  name  the ciphertext of Google
//
// Values of older versions or older material still open. Rewrap seals them with the present one. No
// type here rotates a key, or creates a version of one: the key's administrator does.
//
// # What it needs
//
// The key of Vault must take associated data: aes256-gcm96, which is the default, aes128-gcm96 or
// chacha20-poly1305. AWS requires the permissions kms:Encrypt, kms:Decrypt and kms:DescribeKey on
// the key. Google requires the role roles/cloudkms.cryptoKeyEncrypterDecrypter on the key. The
// process has the credentials that the clients of AWS and Google find. The log of an AWS account
// (CloudTrail) has every use of the key, with the owner.
//
// The name of Google's key is part of the value because the service does not report that another
// key sealed a value. Requests and responses of Google carry CRC32C checksums, which both sides
// compare.
//
// # Rejected
//
// The clients of Tink and of the SDKs cover all operations of a service, and one needs gRPC. This
// package needs two or three requests of each. It signs those of AWS with the signer that
// storage/s3 already needs.
//
// A data key for each secret, sealed by the service, would allow secrets of more than 4,096 bytes.
// No such secret is in use: the longest is the key of a Google service account, with 2,400. The
// price would be a second cipher, and a log with the names of keys instead of secrets.
//
// # What it must not know
//
// It must not know the meaning of the plain values, or where records are. It keeps no value, and no
// token of Vault.
package keyservice
