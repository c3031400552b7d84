// Package rest has the operations of the Iceberg REST specification, and nothing that decides about
// tables or views. A handler decodes the request, makes one call of package catalog, encodes the
// answer and returns an error or nil. Package internal/web has the server around the handlers.
//
// # What it promises
//
// Routes stand in routes.go and nowhere else. What GET /v1/config advertises is derived from them.
// Names are decoded once, from the escaped path (params.go).
//
// A load is answered from the bytes that the document keeps: the server parses and encodes nothing.
// It makes the compressed form once for each version of a table or view (load.go, deflate.go).
//
// # What it must not know
//
// Stores, locks, storage, or what the metadata of a table or view means.
package rest
