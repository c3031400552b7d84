// Package rest implements the operations of the Iceberg REST specification. It makes no decisions
// about tables or views. A handler decodes the request, makes one call to package catalog, encodes
// the answer, and returns an error or nil. Package internal/web provides the server around the
// handlers.
//
// # What it promises
//
// All routes are in routes.go. The endpoints that GET /v1/config advertises are derived from them.
// Names are decoded once, from the escaped path (params.go).
//
// A load is answered with the bytes of the stored document, which the server neither parses nor
// encodes. The server compresses each version of a table or view once (load.go, deflate.go).
//
// # What it must not know
//
// The package must not use stores, locks, storage, or the content of the metadata of tables and
// views.
package rest
