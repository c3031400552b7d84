// Package keyservice seals secrets with keys that never leave a service: Vault and OpenBao (Vault),
// AWS Key Management Service (Amazon) and Google's Cloud Key Management Service (Google). A Client
// sends their requests. It limits the time of each call and the size of the answer, and retries
// transient failures. So a server does not hang while its key service is unreachable.
//
// # What it promises
//
// A sealed value opens only with its key, and only for the Owner for which it was sealed. The
// service itself enforces the owner. Vault gets the owner as associated data, AWS as encryption
// context, and Google as additional authenticated data. A value begins with the byte of its
// secrets.Form:
//
//	2  the text of Vault, "vault:v1:…", which names the version of the key
//	3  the ciphertext of AWS, which names the key and its material
//	4  length of the key's name (2 bytes, most significant first)  name  the ciphertext of Google
//
// Values sealed with older versions or older material of a key still open. Rewrap seals them with
// the present version. Only Vault.Turn creates a version of a key. Keys of AWS and Google are
// rotated by the service or by the key's administrator.
//
// # What it needs
//
// The key of Vault must support associated data: aes256-gcm96, which is the default, aes128-gcm96
// or chacha20-poly1305. AWS requires the permissions kms:Encrypt, kms:Decrypt and kms:DescribeKey
// on the key. Google requires the role roles/cloudkms.cryptoKeyEncrypterDecrypter on the key. The
// package finds the credentials for AWS and Google in the environment, as their own clients do.
// CloudTrail, the log of an AWS account, has an entry for each use of the key, with the owner.
//
// A value of Google includes the name of its key, because the service does not report that a value
// was sealed with another key. Requests and responses of Google carry CRC32C checksums, which both
// sides compare.
//
// # Rejected
//
// We rejected the clients of Tink and of the SDKs: they cover all operations of a service, and one
// of them needs gRPC. This package needs only two or three kinds of requests to each service. It
// signs requests to AWS with the signer that storage/s3 already needs.
//
// We also rejected a separate data key for each secret, sealed by the service. This would allow
// secrets of more than 4,096 bytes. No such secret is in use: the longest is the key of a Google
// service account, with 2,400 bytes. The price would be a second cipher. The service's log would
// show data keys instead of secrets.
//
// # What it must not know
//
// It does not know the meaning of the plain values, or where records are. It caches neither values
// nor a token of Vault.
package keyservice
