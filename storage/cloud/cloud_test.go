package cloud_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"moorage/storage"
	"moorage/storage/cloud"
)

func TestRoots(t *testing.T) {
	t.Parallel()
	if _, err := cloud.ParseRoots(storage.SchemeS3, "S3", []string{"gs://b/w"}); !errors.Is(err, storage.ErrLocation) {
		t.Errorf("ParseRoots of another scheme = %v, want ErrLocation", err)
	}
	roots, err := cloud.ParseRoots(storage.SchemeS3, "S3", []string{"s3://b/wh/deep", "s3://b/wh", "s3://a"})
	if err != nil {
		t.Fatal(err)
	}
	names, buckets := roots.Shortest()
	if !slices.Equal(buckets, []string{"a", "b"}) || names["b"] != "wh" || names["a"] != "" {
		t.Errorf("Shortest = %v, %v", names, buckets)
	}
	if _, err := roots.File(t.Context(), "s3://b/what/a"); !errors.Is(err, storage.ErrOutside) {
		t.Errorf("File beside a root = %v, want ErrOutside", err)
	}
	if found, err := roots.File(t.Context(), "s3a://b/wh/a"); err != nil || found.Path != "/wh/a" {
		t.Errorf("File = %v, %v", found, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := roots.File(ended, "s3://b/wh/a"); !errors.Is(err, context.Canceled) {
		t.Errorf("File after the end = %v", err)
	}
	if _, err := roots.Scope([]string{"s3://b/wh/t", "s3://c/t"}); !errors.Is(err, storage.ErrOutside) {
		t.Errorf("Scope = %v, want ErrOutside", err)
	}
	for folder, want := range map[string]string{"": "", "/": "", "a": "a/", "a/b/": "a/b/"} {
		if got := cloud.Below(folder); got != want {
			t.Errorf("Below(%q) = %q, want %q", folder, got, want)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	id, err := cloud.NewWriteID(strings.NewReader(strings.Repeat("x", 16)))
	if err != nil || len(id) != 32 {
		t.Fatalf("NewWriteID = %q, %v", id, err)
	}
	if _, err := cloud.NewWriteID(strings.NewReader("short")); err == nil {
		t.Error("an id of too few bits is no error")
	}
	ours := cloud.Written{ID: id, Bytes: 3}
	if err := cloud.Settle("l", ours, ours); err != nil {
		t.Errorf("Settle of our own = %v", err)
	}
	if err := cloud.Settle("l", ours, cloud.Written{ID: "", Bytes: 3}); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Settle of another call's = %v, want ErrExists", err)
	}
	err = cloud.Settle("l", ours, cloud.Written{ID: id, Bytes: 2})
	if err == nil || errors.Is(err, storage.ErrExists) {
		t.Errorf("Settle of a part = %v, want another error", err)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	listing := cloud.Listing{
		Folder: "s3://b/w", After: "2", Prefix: "w/", Bucket: storage.Location{Scheme: storage.SchemeS3, Authority: "b"},
	}
	now := time.Unix(1e9, 0)
	for name, bad := range map[string]func() (storage.Page, error){
		"no time":            func() (storage.Page, error) { return listing.Page(time.Time{}, false, "") },
		"more, and no next":  func() (storage.Page, error) { return listing.Page(now, true, "") },
		"more, and the same": func() (storage.Page, error) { return listing.Page(now, true, "2") },
	} {
		if _, err := bad(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	page, err := listing.Page(now, true, "3")
	if err != nil || page.Next != "3" || !page.Now.Equal(now) {
		t.Fatalf("Page = %+v, %v", page, err)
	}
	for _, name := range []string{"w/a", "w/folder/", "elsewhere/a", "w/../a", "w//b"} {
		listing.Add(&page, name, storage.Info{Bytes: 1})
	}
	var got []string
	for _, file := range page.Files {
		got = append(got, file.Location)
	}
	if !slices.Contains(got, "s3://b/w/a") || slices.ContainsFunc(got, func(location string) bool {
		return strings.HasSuffix(location, "/") || strings.Contains(location, "..") || strings.Contains(location, "elsewhere")
	}) {
		t.Errorf("the page has %q", got)
	}
}

// TestResend deletes three objects. One of them fails temporarily, and one permanently.
func TestResend(t *testing.T) {
	t.Parallel()
	passing, lasting := errors.New("passing"), errors.New("lasting")
	for name, row := range map[string]struct {
		passes int // number of requests after which it succeeds
		sends  []int
		want   []error
	}{
		"passes": {1, []int{3, 1}, []error{lasting}},
		"stays":  {9, []int{3, 1, 1}, []error{lasting, passing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sends []int
			got := cloud.Resend([]string{"gone", "passing", "lasting"}, 3, func(int) error { return nil },
				func(batch []string) (deleted cloud.Deleted[string], err error) {
					sends = append(sends, len(batch))
					for _, each := range batch {
						switch {
						case each == "lasting":
							deleted.Lasting = append(deleted.Lasting, lasting)
						case each == "passing" && len(sends) <= row.passes:
							deleted.Again, deleted.Passing = append(deleted.Again, each), append(deleted.Passing, passing)
						}
					}
					return deleted, nil
				})
			if !slices.Equal(got, row.want) || !slices.Equal(sends, row.sends) {
				t.Errorf("Resend = %v in requests of %v, want %v in %v", got, sends, row.want, row.sends)
			}
		})
	}
	broken := errors.New("broken")
	got := cloud.Resend([]string{"a"}, 3, func(int) error { return broken }, func(batch []string) (cloud.Deleted[string], error) {
		return cloud.Deleted[string]{Again: batch, Passing: []error{passing}}, nil
	})
	if !slices.Equal(got, []error{passing}) {
		t.Errorf("Resend that cannot wait = %v", got)
	}
	objects, failures := cloud.Located([]string{"a", "none", "bad"}, func(location string) (string, error) {
		switch location {
		case "none":
			return "", storage.ErrNotFound
		case "bad":
			return "", broken
		}
		return location, nil
	})
	if !slices.Equal(objects, []string{"a"}) || !slices.Equal(failures, []error{broken}) {
		t.Errorf("Located = %q, %v", objects, failures)
	}
}

// TestResume cuts an object after each byte.
func TestResume(t *testing.T) {
	t.Parallel()
	const whole = "all of it"
	sum := sha256.Sum256([]byte(whole))
	cut := func(from, bytes int) io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(whole[from:from+bytes]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	}
	for at := range len(whole) {
		content := cloud.Content{Name: "l", Bytes: int64(len(whole)), Sum: sha256.New(), Want: sum[:],
			Resume: func(offset int64) (io.ReadCloser, error) { return cut(int(offset), len(whole)-int(offset)), nil }}
		if got, err := io.ReadAll(cloud.Resume(cut(0, at), content)); err != nil || string(got) != whole {
			t.Errorf("cut after %d bytes: %q, %v", at, got, err)
		}
		content.Sum = sha256.New()
		content.Resume = func(int64) (io.ReadCloser, error) { return nil, storage.ErrNotFound }
		if _, err := io.ReadAll(cloud.Resume(cut(0, at), content)); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("cut after %d bytes, and then gone: %v", at, err)
		}
	}
	other := cloud.Content{Name: "l", Bytes: int64(len(whole)), Sum: sha256.New(), Want: sum[1:]}
	if _, err := io.ReadAll(cloud.Resume(cut(0, len(whole)), other)); err == nil {
		t.Error("an object with another checksum is no error")
	}
}
