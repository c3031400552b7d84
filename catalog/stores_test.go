package catalog_test

import (
	"testing"

	"moorage/testkit/storetest"
)

// stores are those of all tests of this package.
var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }
