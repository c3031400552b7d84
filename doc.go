// Package moorage holds the terms that every other package of the catalog uses: names (Namespace,
// Identifier), callers (Caller) and failures (Error, Kind).
//
// It promises nothing about storage, HTTP or Iceberg's metadata, and it imports only the standard
// library. All of its types are values and are safe for concurrent use.
package moorage
