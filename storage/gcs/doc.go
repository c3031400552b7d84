// Package gcs keeps files as objects of Google Cloud Storage. It speaks the JSON API, without a
// client library of Google's: the one for Go would make the binary larger by more than 12 MB, and
// six kinds of requests are all that this package needs.
//
// # What it promises
//
// Create makes an object that was not there, and reports success only if the server has it. The
// request asks for generation 0, which is that of no object, and carries an id that is drawn for
// the call. The server keeps the id with the object:
//
//	200            it is there
//	412            the name is taken. A look at the object shows by whom: with the id of
//	               this call, an earlier try succeeded and its answer was lost; else ErrExists
//	408, 429, 5xx, cut
//	               tried again, with growing pauses, until the tries or the context end. Then
//	               it may be there or not, as the port says of every error except ErrExists
//
// So Create never takes a repeated request for somebody else's file, and never somebody else's file
// for its own, even if both are equal to the last byte.
//
// Every write carries the CRC32C of its body, which the server checks. A read is checked against
// its length and against the CRC32C that the server has for the object. After a cut connection,
// reading goes on where it was, in the same generation. Content is read as it is stored, also where
// the object says that it is compressed.
//
// # Bounds
//
// A connection is given up after five seconds, and a try after ten in which no byte moves; see
// Options.StallTimeout. Only HTTP/1.1 is spoken. With HTTP/2 a connection on which nothing moves
// would hold up all requests, also those of callers that have begun later.
//
// # Names
//
// The name of an object is the path of its location without the first slash, byte for byte. Nothing
// is decoded.
//
// # Where tokens go
//
// A request carries a token that opens everything its account may read, for as long as an hour. So
// tokens are sent to Google's hosts only, and to those that the settings of the process name. The
// options of a warehouse cannot name another host, unless they say that no token is used.
//
// # What it needs
//
// The permissions storage.objects.create, get, delete and list: the role Storage Object User has
// them. Without list the server answers 403 where it would have said 404.
//
// # Credentials for engines
//
// Vend exchanges a token for one with a credential access boundary, which holds a condition for
// each location of the table. A condition spells the names of the objects below the location, with
// the slash at its end, and the prefix of listings likewise. A token cannot outlive the one that it
// was made from. Only the IAM credentials API makes tokens of any length, so lengths other than an
// hour need OptionImpersonate. Writers of a table have a second rule, which lets write what is none
// of the catalog's own files: names that end in .metadata.json.
//
// # What it must not know
//
// What is in the files.
package gcs
