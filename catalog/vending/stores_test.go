package vending_test

import (
	"testing"

	"moorage/testkit/storetest"
)

// stores opens the stores of all tests.
var stores storetest.Stores

func TestMain(m *testing.M) { stores.Main(m) }
