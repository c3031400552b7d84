// Package catalogtest runs tests of iceberg-go's REST client against the HTTP handler over a real
// catalog. They are iceberg-go's own catalog conformance tests, and tests of views, which the
// conformance tests lack. The package has only tests.
package catalogtest
