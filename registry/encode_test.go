package registry_test

import (
	"testing"
	"time"

	"moorage/registry"
)

// A year that RFC 3339 cannot represent is refused.
func TestEncodeRefusesTimesWithoutAForm(t *testing.T) {
	t.Parallel()
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, value := range []registry.Value{registry.Pointer{Since: never}, registry.Pointer{ReplayableUntil: never}, registry.Change{Time: never}, registry.Task{Created: never}} {
		if encoded, err := registry.Encode(value); err == nil {
			t.Errorf("%T was encoded as %s", value, encoded)
		}
	}
}
