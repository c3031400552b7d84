package registry_test

import (
	"testing"
	"time"

	"moorage/registry"
)

// A key of a drop contains the pointer and the time of the drop. No other key can be mistaken for
// one.
func TestWindowKey(t *testing.T) {
	t.Parallel()
	id, dropped := registry.ID{0: 0xa1}, time.Unix(0x6943a1f0, 5)
	key := registry.WindowKey(id, dropped)
	if gotID, at, err := registry.ParseWindow(key); err != nil || gotID != id || !at.Equal(dropped.Truncate(time.Second)) {
		t.Errorf("%s is read as %s at %s: %v", key, gotID, at, err)
	}
	for _, bad := range []string{
		"window/", "window/06943a1f0", "window/06943a1f0/", "window/6943a1f0/" + id.String(), "window/06943A1F0/" + id.String(),
		"window/06943a1f0/" + id.String() + "/", "window/-6943a1f0/" + id.String(), "x/06943a1f0/" + id.String(),
		"window/06943a1f0/" + id.String()[1:], registry.DueKey(id, "snapshots", dropped).ID,
	} {
		if _, _, err := registry.ParseWindow(registry.Key{Table: registry.TableDue, ID: bad}); err == nil {
			t.Errorf("%q is taken for a drop", bad)
		}
	}
	if _, _, err := registry.ParseWindow(registry.Key{Table: registry.TableJob, ID: key.ID}); err == nil {
		t.Error("a key of another table is taken for a drop")
	}
	if _, _, _, err := registry.ParseDue(key); err == nil {
		t.Error("a drop is taken for a time of maintenance")
	}
}

// The end of a list of drops excludes exactly the drops of later seconds.
func TestWindowEnd(t *testing.T) {
	t.Parallel()
	last := time.Unix(0x6943a1ff, 5)
	for after, listed := range map[time.Duration]bool{
		-time.Hour: true, -time.Second: true, 0: true, 900 * time.Millisecond: true, time.Second: false, time.Hour: false,
	} {
		if key := registry.WindowKey(registry.ID{0xff}, last.Add(after)); key.ID < registry.WindowEnd(last) != listed {
			t.Errorf("the drop %s after the last is listed is %t, want %t", after, !listed, listed)
		}
	}
}
