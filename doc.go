// Package moorage defines the basic terms used by every other package of the catalog: names
// (Namespace, Identifier), callers (Caller) and failures (Error, Kind).
//
// It promises nothing about storage, HTTP or Iceberg's metadata, and it imports only the standard
// library. All of its types are values and are safe for concurrent use.
package moorage
