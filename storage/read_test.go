package storage_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"moorage/storage"
)

// oneFile is a store of one file, whose real length may differ from the reported one.
type oneFile struct {
	storage.Store
	says int64
	body io.Reader
	err  error
}

func (o oneFile) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(o.body), storage.Info{Bytes: o.says}, o.err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		file  oneFile
		want  string
		fails bool
		is    error
	}{
		"whole":            {oneFile{says: 4, body: strings.NewReader("body")}, "body", false, nil},
		"empty":            {oneFile{body: strings.NewReader("")}, "", false, nil},
		"shorter":          {oneFile{says: 4, body: strings.NewReader("b")}, "b", false, nil},
		"longer":           {oneFile{says: 1, body: strings.NewReader("body")}, "body", false, nil},
		"too long":         {oneFile{says: 5, body: strings.NewReader("body5")}, "", true, nil},
		"too long, hidden": {oneFile{says: 1, body: strings.NewReader("body5")}, "", true, nil},
		"broken":           {oneFile{says: 4, body: io.MultiReader(strings.NewReader("b"), failing{broken})}, "", true, broken},
		"missing":          {oneFile{body: strings.NewReader(""), err: storage.ErrNotFound}, "", true, storage.ErrNotFound},
	} {
		got, err := storage.ReadAll(t.Context(), tt.file, "file:///a", 4)
		if string(got) != tt.want || (err != nil) != tt.fails || (tt.is != nil && !errors.Is(err, tt.is)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
