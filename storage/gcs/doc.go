// Package gcs keeps files as objects of Google Cloud Storage. It uses the JSON API without Google's
// client library. That library would enlarge the binary by more than 12 MB, and this package needs
// only six kinds of requests.
//
// # What it promises
//
// Create makes an object that did not exist, and reports success only if the server has it. The
// request requires generation 0, which means no object, and has an id drawn for the call. The
// server keeps the id with the object:
//
//	200            it exists
//	412            the name is taken. A look at the object shows by whom: with the id of
//	               this call, an earlier try succeeded and its answer was lost; else ErrExists
//	408, 429, 5xx, cut
//	               tried again, with growing pauses, until the tries or the context end. Then
//	               it may exist or not, as the port specifies for every error except ErrExists
//
// So Create never takes its own repeated request for another writer's file. It also never takes
// another writer's file for its own, even if both have the same bytes.
//
// Every write has the CRC32C of its body, which the server checks. A read is checked against its
// length and against the server's CRC32C of the object. After a broken connection, reading resumes
// at the same offset of the same generation. Content is read as it is stored, even if the object is
// marked as compressed.
//
// # Bounds
//
// A connection attempt is abandoned after five seconds, and a try after ten seconds without any
// data; see Options.StallTimeout. Only HTTP/1.1 is used. With HTTP/2 a connection that hangs would
// hold up all requests, even those that began later.
//
// # Names
//
// The name of an object is the path of its location without the first slash, byte for byte, without
// decoding.
//
// # Where tokens go
//
// A request has a token that gives access to everything its account may read, for up to an hour. So
// tokens are sent only to Google's hosts, and to hosts in the settings of the process. The options
// of a warehouse cannot name another host, unless they disable tokens.
//
// # What it needs
//
// It needs the permissions storage.objects.create, get, delete and list, which are in the role
// Storage Object User. Without list the server answers 403 instead of 404.
//
// # Credentials for engines
//
// Vend exchanges a token for one with a credential access boundary, which has a condition for each
// location of the table. A condition contains the prefix of the object names below the location,
// with the slash at its end, and the same prefix of listings. A token expires no later than the one
// from which it was made. Only the IAM credentials API issues tokens of any lifetime, so lifetimes
// other than an hour need OptionImpersonate. Writers of a table have a second rule. It allows
// writes except to the catalog's own files, whose names end in .metadata.json.
//
// # What it must not know
//
// It does not know the contents of the files.
package gcs
