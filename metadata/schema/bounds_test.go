package schema_test

import (
	"testing"

	"moorage/metadata/schema"
)

// TestBound checks the readable form of columns' bounds.
func TestBound(t *testing.T) {
	t.Parallel()
	read, err := schema.Parse([]byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"n","required":false,"type":"long"},
		{"id":2,"name":"s","required":false,"type":"string"},{"id":3,"name":"d","required":false,"type":"date"},
		{"id":4,"name":"x","required":false,"type":"double"},{"id":5,"name":"b","required":false,"type":"binary"},
		{"id":6,"name":"l","required":false,"type":{"type":"list","element-id":7,"element":"int","element-required":false}},
		{"id":8,"name":"p","required":false,"type":"decimal(9, 2)"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		id   int
		raw  string
		want string
		ok   bool
	}{
		{1, "\x05\x00\x00\x00\x00\x00\x00\x00", "5", true}, {1, "\x05\x00\x00\x00", "5", true}, {1, "\x05", "", false},
		{2, "Aurora", "Aurora", true}, {3, "\x01\x00\x00\x00", "1970-01-02", true}, {4, "\x00\x00\x00\x3f", "0.5", true},
		{5, "\x01\xff", "01ff", true}, {6, "\x01", "", false}, {9, "\x01", "", false}, {8, "\x04\xd2", "12.34", true}, {3, "", "", false},
	} {
		if got, ok := read.Bound(test.id, []byte(test.raw)); got != test.want || ok != test.ok {
			t.Errorf("column %d, %x: got %q, %v; want %q, %v", test.id, test.raw, got, ok, test.want, test.ok)
		}
	}
}
