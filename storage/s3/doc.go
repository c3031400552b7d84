// Package s3 keeps files as objects of S3, or of a server with the same protocol: Amazon's, MinIO,
// Ceph, SeaweedFS, R2 and others.
//
// # What it promises
//
// Create makes an object that did not exist, and reports success only if the server has it. It
// sends "If-None-Match: *" and an id drawn for the call. The server keeps the id with the object:
//
//	200            it exists; if the answer has no version, which every such server
//	               returns, a look at the object shows whether it does
//	409            a concurrent write of the same name: tried again
//	412            the name is taken. A look at the object shows by whom: with the id of
//	               this call, an earlier try succeeded and its answer was lost; else ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries or the context end. Then
//	               it may exist or not, as the port specifies for every error except ErrExists
//
// So Create never takes a repeated request for another writer's file, whether this package repeats
// it or a proxy on the way. It never takes another writer's file for its own, even if both have the
// same bytes.
//
// Every write has a checksum of its body, which the server checks. It is CRC32C if Probe has seen
// that the server refuses a wrong one, Content-MD5 if the server refuses SHA-256, else SHA-256.
// Bulk deletes have a checksum of Amazon's, or Content-MD5 if the server requires that. If the
// server supports neither, objects are deleted one by one. A read is checked against its length and
// against the server's checksum of the object. After a broken connection, reading resumes at the
// same offset.
//
// # Servers without conditional writes
//
// Some servers ignore the header and overwrite. Probe detects them by writing a test object twice,
// and logs a warning. The first Create of a bucket calls Probe if necessary. Any write detects
// servers that refuse the header (501). On both kinds of servers Create first checks whether the
// name is taken, which does not help against two concurrent writers. There the catalog's names
// help: it never uses a name twice, because it draws 122 random bits for each.
//
// # Names
//
// The key of an object is the path of its location without the first slash, byte for byte, without
// decoding. s3a:// and s3n:// mean s3://.
//
// # What it needs
//
// It needs the permissions s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket. Without
// the last, S3 answers 403 instead of 404. Reads must see every write that was answered before, as
// they do on all servers above.
//
// # Credentials for engines
//
// Vend assumes a role with a session policy that allows the locations of one table. The policy ends
// each location in a slash, escapes the wildcards of Amazon's language, and keeps writers from the
// catalog's metadata files. If no policy can express the scope exactly, Vend returns
// storage.ErrUnscopable.
//
// Servers interpret policies in their own ways, so ProbeVending tries the credentials where they
// must fail. It found two such ways:
//
//	MinIO      of February 2026 cleans the names in a bulk delete after it has checked the
//	           policy, so t/../u/x passes as one of t's and deletes one of u's. Policies for
//	           servers other than Amazon's therefore deny all names with "..", "." and two
//	           slashes in a row
//	SeaweedFS  4.48 ignores upper and lower case when it compares the names in a policy, so
//	           credentials for tab reach TAB. No policy prevents that: the probe refuses the server
//
// # Signatures for engines
//
// Sign signs one request of an engine with the store's own key, on servers without credentials. It
// signs only the calls of one list, whose objects are all within the table, with the headers of
// another list. Everything else is storage.ErrNotSigned. Sign decodes the path once, escapes it
// again as the server does, and signs the result. So a server that reads the path differently
// refuses it.
//
// A signature protects only what the server checks. So a probe replays each kind of signed request
// with one part changed. If the server accepts the change, that kind is not signed:
//
//	MinIO      of February 2026 accepts headers that were added after signing, among them
//	           X-Amz-Copy-Source, with which the server's key would copy anything to anywhere. Writes
//	           are not signed for it, so it cannot offer signatures
//	SeaweedFS  4.48 does not compare the body with the signed hash. Bulk deletes are not
//	           signed for it
//
// The bucket has one place in an address, the same as in the server's own requests.
//
// # What it must not know
//
// It does not know the contents of the files.
package s3
