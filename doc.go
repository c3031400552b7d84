// Package moorage holds the words that every other package of the catalog uses:
// what things are called (Namespace, Identifier) and how operations fail (Error, Kind).
//
// It promises nothing about storage, HTTP or Iceberg's metadata, and it imports
// nothing but the standard library. All of its types are values and are safe for
// concurrent use.
package moorage
