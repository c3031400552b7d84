// Package rest is the HTTP face of the catalog: the Iceberg REST operations, the
// health and metrics routes beside them, and nothing that decides about tables or views. A
// handler decodes the request, makes one call of package catalog, encodes the answer
// and returns an error or nil.
//
// # What it promises
//
// Routes stand in routes.go and nowhere else; what GET /v1/config advertises is derived from
// them. Status and exception type of a failure stand in errors.go and nowhere
// else, and every answer that is not a success carries {"error":{…}}, also
// for panics and for paths that do not exist; only what net/http refuses before it calls
// the handler does not. Names are decoded once, from
// the escaped path (params.go). Every body, page and depth is bounded.
//
// A load is answered from the bytes that the document keeps: nothing is parsed and
// nothing is encoded again, and the compressed form is made once for each version of
// a table or view (load.go, deflate.go).
//
// # What it must not know
//
// Stores, locks, storage, or what the metadata of a table or view means.
package rest
