// Package catalogtest runs iceberg-go's own catalog conformance tests, through its REST client,
// against the HTTP handler over a real catalog. It holds tests only.
package catalogtest
