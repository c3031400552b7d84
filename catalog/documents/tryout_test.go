package documents_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"moorage/catalog/documents"
	"moorage/storage"
	"moorage/storage/memory"
)

// limping is a store in which one operation fails.
type limping struct {
	*memory.Store
	lacks string
}

var errLimping = errors.New("not today")

func (l limping) Create(ctx context.Context, location string, body []byte) error {
	if l.lacks == "write" {
		return errLimping
	}
	return l.Store.Create(ctx, location, body)
}

func (l limping) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	switch l.lacks {
	case "read":
		return nil, storage.Info{}, errLimping
	case "tell the truth":
		return io.NopCloser(strings.NewReader("no")), storage.Info{Bytes: 2}, nil
	}
	return l.Store.Open(ctx, location)
}

func (l limping) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	switch l.lacks {
	case "list":
		return storage.Page{}, errLimping
	case "find":
		return storage.Page{}, nil
	}
	return l.Store.List(ctx, folder, after, limit)
}

func (l limping) Delete(ctx context.Context, locations ...string) error {
	if l.lacks == "delete" {
		return errLimping
	}
	return l.Store.Delete(ctx, locations...)
}

// TryOut reports the failing operation of a store, and leaves nothing behind.
func TestTryOut(t *testing.T) {
	t.Parallel()
	for lacks, want := range map[string]string{
		"": "", "write": "write s3://b/w/moorage-probe-id/data", "read": "read s3", "tell the truth": "its content differs from what was written",
		"list": "list s3://b/w/moorage-probe-id", "find": "not listed", "delete": "delete s3",
	} {
		files := memory.New()
		err := documents.TryOut(t.Context(), limping{files, lacks}, "s3://b/w/", "id")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a store that does not %s: %v, want %q", lacks, err, want)
		}
		page, err := files.List(t.Context(), "s3://b/w", "", 10)
		if left := len(page.Files); err != nil || (left > 0) != (lacks == "delete") {
			t.Errorf("a store that does not %s has %d files, %v", lacks, left, err)
		}
	}
}
