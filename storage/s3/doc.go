// Package s3 keeps files as objects of S3, or of a server that speaks its protocol: Amazon's,
// MinIO, Ceph, SeaweedFS, R2 and others.
//
// # What it promises
//
// Create makes an object that was not there, and says so only if the server has it. It
// sends "If-None-Match: *" and an id that it draws for the call, which the server keeps with the object:
//
//	200            it is there; if the answer names no version of it, which no such server leaves out, a look at the object
//	               tells whether it is
//	409            somebody writes the same name at this moment: tried again
//	412            the name is taken. A look at the object tells by whom: with the id of
//	               this call, it is an earlier try whose answer was lost, and Create has done it; else ErrExists
//	429, 5xx, cut  tried again, with growing pauses, until the tries or the context end. Then it may be
//	               there or not, as the port says of every error but ErrExists
//
// So a repeated request is never taken for somebody else's file, be it repeated here or by a
// proxy on the way, and somebody else's file is never taken for one's own, were it equal to the last byte.
//
// What is written carries its SHA-256, which the server checks; what is read is checked against
// its length and against whichever checksum the server has for it. Reading goes on
// behind a cut connection where it was.
//
// # Servers without conditional writes
//
// Some servers ignore the header and overwrite. Probe, which the first Create of a bucket calls if nobody did, tells
// them apart by writing an object of its own twice, and logs a warning. Those that refuse the header (501) are found out by
// any write. On such a server Create looks first whether the
// name is taken, which does not help against two writers at one moment. What does then is that
// the catalog never uses a name twice: it draws 122 random bits for each.
//
// # Names
//
// The key of an object is the path of its location without the first slash, byte for byte. Nothing is
// decoded. s3a:// and s3n:// mean s3://.
//
// # What it needs
//
// The permissions s3:GetObject, s3:PutObject, s3:DeleteObject, and s3:ListBucket, without
// which S3 answers 403 where it would have said 404. Reads that see every write that was answered before, as all servers
// above have them.
//
// # What it must not know
//
// What is in the files.
package s3
