package pebble_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"moorage/registry"
	"moorage/registry/pebble"
)

// A list of keys copies no values, and one of records no more than a page holds. Not parallel: it counts what the process allocates.
func TestListsAllocateWhatTheyAnswer(t *testing.T) {
	store := open(t, t.TempDir(), pebble.Options{})
	long := bytes.Repeat([]byte("v"), registry.ListBytesMax)
	for _, name := range []string{"a", "b", "c", "d"} {
		key := registry.NamespaceKey(registry.ID{1}, registry.ID{2}, name)
		if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateLive, long)}}); err != nil {
			t.Fatal(err)
		}
	}
	const times, engine = 20, 128 << 20 // the engine writes tables beside, and copies more with the race detector
	for _, tt := range []struct {
		name string
		list func(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error)
		max  uint64
	}{
		{"ListKeys", store.ListKeys, engine},
		{"List", store.List, engine + 2*times*registry.ListBytesMax},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if _, err := tt.list(t.Context(), registry.TableNamespace, "", "", 1000); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > tt.max {
			t.Errorf("%s allocated %d bytes, want at most %d", tt.name, allocated, tt.max)
		}
	}
}
