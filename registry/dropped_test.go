package registry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// TestDroppedKeys: the keys of a name are together, the latest drop first, and a namespace has
// those of the namespaces below it.
func TestDroppedKeys(t *testing.T) {
	t.Parallel()
	deep := moorage.Namespace(slices.Repeat([]string{strings.Repeat("x", 200)}, 20))
	for _, ns := range []moorage.Namespace{{"a"}, {"a", "b"}, deep} {
		early := registry.DroppedKey(someID, ns, "t", someTime, otherID)
		late := registry.DroppedKey(someID, ns, "t", someTime.Add(time.Nanosecond), otherID)
		prefix := registry.DroppedNamePrefix(someID, ns, "t")
		if !strings.HasPrefix(early.ID, prefix) || !strings.HasPrefix(late.ID, prefix) || late.ID >= early.ID {
			t.Errorf("the keys of a name are %q and %q, with the prefix %q", early.ID, late.ID, prefix)
		}
		if len(early.ID) > registry.KeyBytesMax || !strings.HasPrefix(early.ID, registry.DroppedPrefix(someID, nil)) {
			t.Errorf("a key has %d bytes: %q", len(early.ID), early.ID)
		}
		if other := registry.DroppedKey(someID, ns, "t2", someTime, otherID); strings.HasPrefix(other.ID, prefix) {
			t.Errorf("%q is a key of another name", other.ID)
		}
	}
	inner := registry.DroppedKey(someID, moorage.Namespace{"a", "b"}, "t", someTime, otherID)
	if !strings.HasPrefix(inner.ID, registry.DroppedPrefix(someID, moorage.Namespace{"a"})) ||
		strings.HasPrefix(inner.ID, registry.DroppedPrefix(someID, moorage.Namespace{"b"})) {
		t.Errorf("%q is not below its namespace alone", inner.ID)
	}
}
