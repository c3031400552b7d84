// Package gcs keeps files as objects of Google Cloud Storage. It uses the JSON API, but not
// Google's client library. The library would enlarge the binary by more than 12 MB, and this
// package needs only six kinds of requests.
//
// # What it promises
//
// Create makes an object that did not exist. It reports success only if the server has stored the
// object. The request has the condition that the object's generation is 0, which means that there
// is no object. It also has an id drawn for the call, which the server keeps with the object:
//
//	200            it exists
//	412            the name is taken. Create reads the object's id. If it is the id of this
//	               call, an earlier try succeeded and its answer was lost. Otherwise Create
//	               returns ErrExists
//	408, 429, 5xx, cut
//	               tried again, with growing pauses, until the tries are used up or the
//	               context ends. Whether the object exists is then unknown, as storage.Store
//	               specifies for every error except ErrExists
//
// So Create never mistakes the object of its own repeated request for another writer's file. It
// also never mistakes another writer's file for its own, even if both have the same bytes.
//
// Every write has the CRC32C of its body, which the server checks. Each read is checked against the
// object's length and the server's CRC32C. After a broken connection, reading resumes at the same
// offset of the same generation. The content is returned as stored, even if the object's metadata
// say that it is compressed.
//
// # Bounds
//
// A connection attempt is abandoned after five seconds, and a try after ten seconds without any
// data; see Options.StallTimeout. Only HTTP/1.1 is used. With HTTP/2, a connection that hangs would
// delay all requests, even later ones.
//
// # Names
//
// The name of an object is the path of its location without the first slash, byte for byte, without
// decoding.
//
// # Where tokens go
//
// Each request carries a token. For up to an hour, the token gives full access to everything that
// its account may read. So tokens are sent only to Google's hosts, and to hosts in the settings of
// the process. The options of a warehouse cannot name another host, unless they disable tokens.
//
// # What it needs
//
// It needs the permissions storage.objects.create, get, delete and list, which are in the role
// Storage Object User. Without list the server answers 403 instead of 404.
//
// # Credentials for engines
//
// Vend exchanges the account's token for a token with a credential access boundary. The boundary
// has one rule for each location of the table, and each rule has a condition. The condition
// compares the names of objects, and the prefixes of listings, with the location and a slash. The
// narrowed token expires no later than the account's token. Only the IAM credentials API issues
// tokens with a lifetime other than an hour, so such lifetimes need OptionImpersonate. If the
// caller may write, there is a second rule for each location. It allows writes except to the
// catalog's own files, whose names end in .metadata.json.
//
// # What it must not know
//
// It does not know the contents of files.
package gcs
