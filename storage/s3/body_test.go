package s3_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// TestDamagedAnswers reads through a connection that changes the data. The reader always gets an
// error.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	flip := func(body []byte) []byte {
		body[len(body)/2] ^= 1
		return body
	}
	for name, do := range map[string]fault{
		"a bit":     fakecloud.Edit(flip),
		"shorter":   fakecloud.Edit(func(body []byte) []byte { return body[:len(body)-1] }),
		"longer":    fakecloud.Edit(func(body []byte) []byte { return append(body, 'x') }),
		"empty":     fakecloud.Edit(func([]byte) []byte { return nil }),
		"other end": fakecloud.Edit(func(body []byte) []byte { return append(body[:len(body)-1:len(body)-1], 'x') }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, location := newFile(t)
			proxy.Follow(fakecloud.Every(http.MethodGet, do))
			if content, err := readTo(t.Context(), store, location); err == nil {
				t.Errorf("%d bytes were read, without an error", len(content))
			}
			if _, err := storage.ReadAll(t.Context(), store, location, 1<<20); err == nil {
				t.Error("ReadAll: no error")
			}
		})
	}
}

// TestCutAgainAndAgain reads through a connection that is always cut in the middle of the requested
// range. The reader resumes four times and then gives up.
func TestCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	proxy, store, location := newFile(t)
	for cuts, whole := range map[int]bool{4: true, 5: false} {
		proxy.Follow(fakecloud.FirstN(cuts, fakecloud.CutInAnswer))
		content, err := readTo(t.Context(), store, location)
		if (err == nil) != whole || bytes.Equal(content, fileBody()) != whole {
			t.Errorf("after %d cuts %d bytes, %v; want all: %t", cuts, len(content), err, whole)
		}
		if !bytes.HasPrefix(fileBody(), content) {
			t.Errorf("after %d cuts what was read is not the beginning of the file", cuts)
		}
	}
}

// TestSilentInAnswer reads from a server that stops in the middle of an answer without closing the
// connection.
func TestSilentInAnswer(t *testing.T) {
	t.Parallel()
	proxy, store, location := newFile(t, func(o *s3.Options) { o.StallTimeout = time.Second })
	proxy.Follow(fakecloud.Nth(0, fakecloud.SilentInAnswer))
	if content, err := readTo(t.Context(), store, location); err != nil || !bytes.Equal(content, fileBody()) {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// TestGoesOnWithTheSameObject replaces or removes the object while the reader reconnects. No reader
// gets the beginning of one file and the end of another.
func TestGoesOnWithTheSameObject(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"replaced", "removed", "range ignored"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, location := newFile(t)
			direct := open(t, options(fakecloud.StartS3(t).Endpoint), "s3://"+bucketOf(location))
			proxy.Follow(func(call int, r *http.Request) fault {
				switch {
				case call == 0:
					return fakecloud.CutInAnswer
				case name == "range ignored":
					return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
						w.WriteHeader(http.StatusOK)
						_, _ = w.Write(fileBody())
					}
				}
				if err := direct.Delete(r.Context(), location); err != nil {
					t.Error(err)
				}
				if name == "replaced" {
					if err := direct.Create(r.Context(), location, bytes.Repeat([]byte("x"), len(fileBody()))); err != nil {
						t.Error(err)
					}
				}
				return nil
			})
			content, err := readTo(t.Context(), store, location)
			if err == nil {
				t.Error("no error")
			}
			if !bytes.HasPrefix(fileBody(), content) {
				t.Error("what was read is not the beginning of the file")
			}
		})
	}
}

// TestMissingBucket distinguishes a missing bucket from a missing file. The error names the bucket.
func TestMissingBucket(t *testing.T) {
	t.Parallel()
	store := open(t, options(fakecloud.StartS3(t).Endpoint), "s3://no-such-bucket/w")
	err := store.Probe(t.Context())
	if !errors.Is(err, storage.ErrNotFound) || !strings.Contains(err.Error(), "there is no bucket called no-such-bucket") {
		t.Errorf("Probe = %v", err)
	}
	if _, _, err := store.Open(t.Context(), "s3://no-such-bucket/w/a"); err == nil || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Open = %v, want an error that is not ErrNotFound", err)
	}
	if err := store.Create(t.Context(), "s3://no-such-bucket/w/a", nil); err == nil || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Create = %v, want an error that is not ErrNotFound", err)
	}
}

// TestMoreThanTheObjectHas resumes after a cut connection. The server keeps no checksum, and sends
// more bytes than the object has. The reader gets an error.
func TestMoreThanTheObjectHas(t *testing.T) {
	t.Parallel()
	proxy, store, location := newFile(t)
	withoutChecksum := func(do fault) fault {
		return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
			do(w, r, func(r *http.Request) *http.Response {
				answer := forward(r)
				for name := range answer.Header {
					if strings.HasPrefix(name, "X-Amz-Checksum-") {
						answer.Header.Del(name)
					}
				}
				return answer
			})
		}
	}
	for surplus, whole := range map[string]bool{"": true, "x": false} {
		longer := fakecloud.Edit(func(body []byte) []byte { return append(body, surplus...) })
		proxy.Follow(func(call int, _ *http.Request) fault {
			if call == 0 {
				return withoutChecksum(fakecloud.CutInAnswer)
			}
			return withoutChecksum(longer)
		})
		content, err := readTo(t.Context(), store, location)
		if (err == nil) != whole || whole && !bytes.Equal(content, fileBody()) {
			t.Errorf("with %q behind it: %d bytes, %v; want all: %t", surplus, len(content), err, whole)
		}
		if requests := proxy.Requests(); requests != "GET GET" {
			t.Errorf("with %q behind it: %s, want GET GET", surplus, requests)
		}
	}
}

// newFile is like newProxy, but instead of a root it returns the location of a file with the
// content fileBody.
func newFile(t *testing.T, change ...func(*s3.Options)) (*fakecloud.Proxy, *s3.Store, string) {
	t.Helper()
	proxy, store, root := newProxy(t, change...)
	location := storage.Join(root, "a")
	if err := store.Create(t.Context(), location, fileBody()); err != nil {
		t.Fatal(err)
	}
	return proxy, store, location
}

// fileBody returns a body that is longer than one write to a connection.
func fileBody() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 1<<10) }
