// Package catalogtest runs iceberg-go's own catalog conformance tests, and tests of views that those lack, through its REST
// client, against the HTTP handler over a real catalog. It holds tests only.
package catalogtest
