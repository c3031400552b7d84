package pebble

import (
	"bytes"
	"testing"

	"moorage/registry"
)

// FuzzSplitRecord reads arbitrary bytes as the stored form of a record of any kind. They are
// refused, or encoding the record gives the same bytes.
func FuzzSplitRecord(f *testing.F) {
	for _, table := range registry.Tables() {
		write := registry.Write{Key: registry.Key{Table: table, ID: "id"}, State: registry.StateLive, Value: []byte(`{"a":1}`)}
		f.Add(appendRecord(nil, write, registry.ETag{1, 2, 3}))
	}
	f.Add(make([]byte, headerBytes-1))
	f.Add(make([]byte, headerBytes+positionBytes-1))
	f.Fuzz(func(t *testing.T, stored []byte) {
		for _, table := range registry.Tables() {
			key := registry.Key{Table: table, ID: "id"}
			h, value, err := splitRecord(key, stored)
			if err != nil {
				continue
			}
			again := appendRecord(nil, registry.Write{Key: key, State: h.state, Value: value}, h.etag)
			if table == registry.TableChange {
				setPosition(again, h.position)
			}
			if !bytes.Equal(again, stored) {
				t.Errorf("%s: %x is read as %+v %q, which is written as %x", key, stored, h, value, again)
			}
		}
	})
}
