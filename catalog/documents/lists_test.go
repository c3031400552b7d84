package documents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"moorage/storage"
)

// sizedFile is a storage of one file, with a declared size that may be wrong.
type sizedFile struct {
	storage.Store
	body  string
	bytes int64
}

func (s sizedFile) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(bytes.NewReader([]byte(s.body))), storage.Info{Bytes: s.bytes}, nil
}

// A file whose content does not match its size is refused, because a truncated list may still
// parse.
func TestReadRaw(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	for _, tt := range []struct {
		name       string
		bytes, max int64
		room       error
		ok         bool
	}{
		{"whole", 4, 4, nil, true},
		{"cut", 5, 9, nil, false},
		{"longer than it says", 3, 9, nil, false},
		{"too long", 4, 3, nil, false},
		{"no room", 4, 4, full, false},
	} {
		taken := int64(0)
		raw, err := (&Documents{}).ReadRaw(t.Context(), sizedFile{body: "list", bytes: tt.bytes}, "file:///a", tt.max,
			func(_ context.Context, bytes int64) error { taken += bytes; return tt.room })
		if ok := err == nil; ok != tt.ok || ok && (string(raw) != "list" || taken != tt.bytes) {
			t.Errorf("%s: %q, %v, %d bytes of room", tt.name, raw, err, taken)
		}
	}
}
