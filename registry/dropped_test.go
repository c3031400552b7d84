package registry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// TestDroppedKeys: the keys of one name are adjacent, latest drop first. The prefix of a namespace
// covers the namespaces below it.
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

// TestDroppedAt: the time of a drop is found, whatever nodes of this version or of 0.1.0 wrote
// afterwards. A node of 0.1.0 does not know the member Dropped, and leaves it unchanged.
func TestDroppedAt(t *testing.T) {
	t.Parallel()
	drop, later := someTime, someTime.Add(time.Hour)
	for name, tt := range map[string]struct {
		state          registry.State
		dropped, since time.Time
		want           time.Time
	}{
		"dropped":                           {registry.StateDropped, drop, drop, drop},
		"dropped by 0.1.0":                  {registry.StateDropped, time.Time{}, drop, drop},
		"restored and dropped by 0.1.0":     {registry.StateDropped, drop, later, later},
		"dropped when the clock was ahead":  {registry.StateDropped, later, drop, later},
		"its purge has begun":               {registry.StatePurging, drop, later, drop},
		"dropped and its purge begun by it": {registry.StatePurging, time.Time{}, later, later},
	} {
		pointer := registry.Pointer{ID: someID, Dropped: tt.dropped, Since: tt.since}
		if got := pointer.DroppedAt(tt.state); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		key := registry.DroppedKey(registry.ID{}, nil, "", tt.want, someID)
		if got := pointer.DroppedKey(tt.state); got != key {
			t.Errorf("%s: the key is %q, want %q", name, got, key)
		}
		if got := pointer.AsDropped(tt.state, registry.Change{}).At; !got.Equal(tt.want) {
			t.Errorf("%s: the record has the time %s, want %s", name, got, tt.want)
		}
	}
}
