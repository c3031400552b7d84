package catalog_test

import (
	"testing"

	"moorage/testkit/storetest"
)

// stores opens the stores of all tests in this package.
var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }
