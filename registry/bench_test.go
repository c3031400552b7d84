package registry_test

import (
	"testing"

	"moorage/registry"
)

// BenchmarkPointer decodes and encodes a pointer, as each commit does.
func BenchmarkPointer(b *testing.B) {
	pointer := goldenValues()["pointer"][0]
	value, err := registry.Encode(pointer)
	if err != nil {
		b.Fatal(err)
	}
	later := append(append([]byte(nil), value[:len(value)-1]...), `,"a member of a later version":{"a":1}}`...)
	for name, value := range map[string][]byte{"known": value, "later": later} {
		record := registry.Record{Key: registry.PointerKey(someID), ETag: someETag, Value: value}
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Decode[registry.Pointer](record); err != nil {
					b.Fatal(err)
				}
			}
		})
		read, err := registry.Decode[registry.Pointer](record)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Encode(read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
