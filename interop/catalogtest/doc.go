// Package catalogtest runs tests of iceberg-go's REST client against the HTTP handler over a real
// catalog. These are iceberg-go's own catalog conformance tests, and tests of views, which the
// conformance tests do not cover. The package contains only tests.
package catalogtest
