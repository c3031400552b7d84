// Package s3 keeps files as objects of S3, or of a server that speaks its protocol: Amazon's,
// MinIO, Ceph, SeaweedFS, R2 and others.
//
// # What it promises
//
// Create makes an object that was not there, and reports success only if the server has it. It
// sends "If-None-Match: *" and an id that it draws for the call. The server keeps the id with the
// object:
//
//	200            it is there; if the answer names no version of it, which no such server
//	               leaves out, a look at the object reports whether it is
//	409            somebody writes the same name at this moment: tried again
//	412            the name is taken. A look at the object shows by whom: with the id of
//	               this call, an earlier try succeeded and its answer was lost; else ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries or the context end. Then
//	               it may be there or not, as the port says of every error except ErrExists
//
// So Create never takes a repeated request for somebody else's file, whether this package repeats
// it or a proxy on the way. It never takes somebody else's file for its own, even if both are equal
// to the last byte.
//
// Every write carries a checksum of its body, which the server checks: CRC32C where Probe has seen
// that the server refuses a wrong one, Content-MD5 where it refuses SHA-256, else SHA-256. Bulk
// deletes have a checksum of Amazon's, or Content-MD5 where the server wants that; where it knows
// none, objects are deleted one by one. A read is checked against its length and against the
// checksum that the server has for the object. After a cut connection, reading goes on where it
// was.
//
// # Servers without conditional writes
//
// Some servers ignore the header and overwrite. Probe finds them by writing an object of its own
// twice, and logs a warning. The first Create of a bucket calls Probe if nobody did. Servers that
// refuse the header (501) are found by any write. On both kinds Create first looks whether the name
// is taken, which does not help against two writers at one moment. There the catalog's names help:
// it never uses a name twice, because it draws 122 random bits for each.
//
// # Names
//
// The key of an object is the path of its location without the first slash, byte for byte. Nothing
// is decoded. s3a:// and s3n:// mean s3://.
//
// # What it needs
//
// The permissions s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket. Without the last,
// S3 answers 403 where it would have said 404. Reads must see every write that was answered before;
// all servers above do that.
//
// # Credentials for engines
//
// Vend assumes a role with a session policy that allows the locations of one table. The policy ends
// each location in a slash, spells patterns of Amazon's language as characters, and keeps writers
// from the catalog's metadata files. What a policy cannot say exactly is storage.ErrUnscopable.
//
// Servers read policies in their own ways, so ProbeVending tries the credentials where they must
// fail. Two such ways were found by it:
//
//	MinIO      of February 2026 cleans the names in a bulk delete after it has looked at the
//	           policy, so t/../u/x passes as one of t's and deletes one of u's. Policies for
//	           servers other than Amazon's therefore deny all names with "..", "." and two
//	           slashes in a row
//	SeaweedFS  4.48 compares the names in a policy without regard to upper and lower case, so
//	           credentials for tab reach TAB. No policy mends that: the probe refuses the server
//
// # Signatures for engines
//
// Sign signs one request of an engine with the store's own key, on servers without credentials.
// It signs the calls of one list, whose objects are all within the table, with the headers of
// another list. Everything else is storage.ErrNotSigned. The path is signed as the server spells it
// after decoding it once, so a server that reads it otherwise refuses it.
//
// A signature is worth what the server looks at. So a probe replays each kind of signed request
// with one part changed, and what the server lets through is not signed:
//
//	MinIO      of February 2026 takes headers that were added after signing, among them
//	           X-Amz-Copy-Source, with which the server's key would copy anything to anywhere. Writes
//	           are not signed for it, so it cannot offer signatures
//	SeaweedFS  4.48 does not compare the body with the hash that was signed. Bulk deletes are not
//	           signed for it
//
// The bucket has one place in an address, that of the server's own requests.
//
// # What it must not know
//
// What is in the files.
package s3
