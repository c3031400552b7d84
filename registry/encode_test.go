package registry_test

import (
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/registrytest"
)

func TestValuesThatEncodeThemselves(t *testing.T) {
	t.Parallel()
	t.Run("pointer", func(t *testing.T) { t.Parallel(); registrytest.EncodesAsJSON[registry.Pointer](t) })
	t.Run("change", func(t *testing.T) { t.Parallel(); registrytest.EncodesAsJSON[registry.Change](t) })
}

// A year that RFC 3339 cannot write is refused, as package encoding/json does.
func TestEncodeRefusesTimesWithoutAForm(t *testing.T) {
	t.Parallel()
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, value := range []any{registry.Pointer{Since: never}, registry.Pointer{ReplayableUntil: never}, registry.Change{Time: never}, registry.Task{Created: never}} {
		if encoded, err := registry.Encode(value); err == nil {
			t.Errorf("%T was encoded as %s", value, encoded)
		}
	}
}
