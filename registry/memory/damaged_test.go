package memory

import (
	"crypto/rand"
	"testing"

	"moorage/registry"
	"moorage/testkit/registrytest"
)

func TestChangesBehindDamage(t *testing.T) {
	t.Parallel()
	store := New(rand.Reader)
	registrytest.ReadsBehindDamage(t, store, func(key registry.Key, value []byte) { store.records[key].Value = value })
}
