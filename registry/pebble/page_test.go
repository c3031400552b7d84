package pebble

import (
	"bytes"
	"fmt"
	"testing"

	"moorage/registry"
)

// A page returns the records that were added, however full its chunks are, and no two values share
// a byte. The page can be reused.
func TestPage(t *testing.T) {
	t.Parallel()
	s := new(instance)
	for _, lengths := range [][]int{
		{}, {0}, {0, 0, 1}, {10, 20, 30}, {valuesChunkBytes}, {valuesChunkBytes - 1, 1, 1},
		{1, valuesChunkBytes, 1}, {3 * valuesChunkBytes, 0, 5, valuesChunkBytes + 1}, {pageKeptBytes, 7},
	} {
		p := s.page()
		for n, length := range lengths {
			header := append(bytes.Repeat([]byte{byte(n + 1)}, etagBytes), byte(registry.StateTable))
			stored := append(header, bytes.Repeat([]byte{byte(n)}, length)...)
			value, err := p.add(registry.TableEntry, []byte(fmt.Sprint("id", n)), stored)
			if err != nil {
				t.Fatal(err)
			}
			p.addValue(value)
		}
		records, keys := p.records(registry.TableEntry, true), p.records(registry.TableEntry, false)
		s.putPage(p)
		if len(records) != len(lengths) || len(keys) != len(lengths) {
			t.Fatalf("%v: %d records and %d keys", lengths, len(records), len(keys))
		}
		for n, record := range records {
			_ = append(record.Value, 0xff) // must not overwrite the next value
			keys[n].Value = record.Value
			if fmt.Sprint(keys[n]) != fmt.Sprint(record) || record.Key.ID != fmt.Sprint("id", n) ||
				record.ETag[0] != byte(n+1) || record.State != registry.StateTable {
				t.Errorf("%v: record %d is %v of %v", lengths, n, record.Key, record.ETag)
			}
		}
		for n, record := range records {
			if record.Value == nil || !bytes.Equal(record.Value, bytes.Repeat([]byte{byte(n)}, lengths[n])) {
				t.Errorf("%v: value %d has %d bytes", lengths, n, len(record.Value))
			}
		}
	}
	if _, err := s.page().add(registry.TableEntry, []byte("cut"), []byte("short")); err == nil {
		t.Error("a record that is too short is taken")
	}
}
