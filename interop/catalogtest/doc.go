// Package catalogtest runs tests of iceberg-go's REST client against the HTTP handler over a real
// catalog. The tests are iceberg-go's own catalog conformance tests, and tests of views, which
// those lack. The package holds tests only.
package catalogtest
