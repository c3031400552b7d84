// Package s3 keeps files as objects of S3, or of a server with the same protocol: Amazon's, MinIO,
// Ceph, SeaweedFS, R2 and others.
//
// # What it promises
//
// Create makes an object that did not exist. It reports success only if the server has stored the
// object. It sends "If-None-Match: *" and an id drawn for the call. The server keeps the id with
// the object:
//
//	200            it exists. Every such server returns a version; if the answer has none,
//	               Create checks whether the object exists
//	409            a concurrent write of the same name: tried again
//	412            the name is taken. Create reads the object's id. If it is the id of this
//	               call, an earlier try succeeded and its answer was lost. Otherwise Create
//	               returns ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries are used up or the
//	               context ends. Whether the object exists is then unknown, as storage.Store
//	               specifies for every error except ErrExists
//
// So if this package or a proxy repeats a request, Create does not mistake its own object for
// another writer's file. It never mistakes another writer's file for its own, even if both have the
// same bytes.
//
// Every write has a checksum of its body, which the server checks. It is CRC32C if Probe has found
// that the server refuses a wrong CRC32C. Otherwise it is SHA-256, or Content-MD5 if the server
// refuses SHA-256. Bulk deletes have one of Amazon's checksum headers, or Content-MD5 if the server
// requires that. If the server supports neither, objects are deleted one by one. Each read is
// checked against the object's length and the server's checksum. After a broken connection, reading
// resumes at the same offset.
//
// # Servers without conditional writes
//
// Some servers ignore If-None-Match and overwrite the object. Probe detects them by writing a test
// object twice, and logs a warning. The first Create in a bucket runs the same test if Probe was
// not called. Other servers refuse the header with status 501, which any write detects. On both
// kinds of servers, Create first checks whether the name is taken. This check does not protect two
// concurrent writers from each other. But the catalog never uses a name twice, because each name
// has 122 random bits.
//
// # Names
//
// The key of an object is the path of its location without the first slash, byte for byte, without
// decoding. s3a:// and s3n:// mean s3://.
//
// # What it needs
//
// It needs the permissions s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket. Without
// s3:ListBucket, S3 answers 403 instead of 404. A read must see every write that was answered
// before the read began, as it does on all servers above.
//
// # Credentials for engines
//
// Vend assumes a role with a session policy that allows access to the locations of one table. In
// the policy, each location ends in a slash, and the wildcards of Amazon's policy language are
// escaped. The policy does not allow writers to change the catalog's metadata files. If no policy
// can express the scope exactly, Vend returns storage.ErrUnscopable.
//
// Servers interpret policies differently, so ProbeVending also tries the credentials where they
// must fail. It has found two such differences:
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
// Sign is for servers that cannot issue credentials. It signs one request of an engine with the
// store's own key. Sign accepts only calls and headers from a fixed list. All objects in the
// request must be within the table. For any other request, Sign returns storage.ErrNotSigned. Sign
// decodes the path once, escapes it again as the server does, and signs the result. So a server
// that reads the path differently refuses the request.
//
// A signature protects only the parts of a request that the server checks. So a probe replays each
// kind of signed request with one part changed. If the server accepts the changed request, Sign
// does not sign that kind:
//
//	MinIO      of February 2026 accepts headers that were added after signing, among them
//	           X-Amz-Copy-Source, with which the server's key would copy anything to anywhere. Writes
//	           are not signed for it, so it cannot offer signatures
//	SeaweedFS  4.48 does not compare the body with the signed hash. Bulk deletes are not
//	           signed for it
//
// In the URL of a signed request, the bucket must be where this package's own requests have it: in
// the path or in the host.
//
// # What it must not know
//
// It does not know the contents of files.
package s3
