package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
)

// standStill sends the header of an answer with this status, and only the beginning of its body. If
// the status means success, the request is forwarded to the real server first.
func standStill(status int) fault {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
		if status == http.StatusOK {
			fakecloud.ReadBody(forward(r))
		} else {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<?xml version=\"1.0\"?>")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// answered returns calls on a file whose answers may have a body.
func answered() map[string]func(ctx context.Context, store *s3.Store, location string) error {
	return map[string]func(ctx context.Context, store *s3.Store, location string) error{
		"Create": func(ctx context.Context, store *s3.Store, location string) error {
			return store.Create(ctx, location, fileBody())
		},
		"Open": func(ctx context.Context, store *s3.Store, location string) error {
			_, err := storage.ReadAll(ctx, store, location, 1<<20)
			return err
		},
		"Delete": func(ctx context.Context, store *s3.Store, location string) error { return store.Delete(ctx, location) },
	}
}

// TestAnswersThatStandStill calls servers that stop within an answer, which may be an error,
// without closing the connection. Each such try is abandoned, even if the caller's context has no
// deadline.
func TestAnswersThatStandStill(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		for name, call := range answered() {
			if name == "Open" && status == http.StatusOK {
				continue // TestSilentInAnswer covers that call
			}
			t.Run(http.StatusText(status)+"/"+name, func(t *testing.T) {
				t.Parallel()
				proxy, store, location := newFile(t, func(o *s3.Options) { o.StallTimeout = time.Second })
				if name == "Create" {
					location += "2" // a missing file
				}
				proxy.Follow(fakecloud.Nth(0, standStill(status)))
				if err := call(t.Context(), store, location); err != nil {
					t.Errorf("%s = %v", name, err)
				}
				if count := len(strings.Fields(proxy.Requests())); count < 2 {
					t.Errorf("%d requests, want more than the one that stood still", count)
				}
				proxy.Follow(nil)
				body, err := storage.ReadAll(t.Context(), store, location, 1<<20)
				if name == "Delete" && !errors.Is(err, storage.ErrNotFound) || name != "Delete" && !bytes.Equal(body, fileBody()) {
					t.Errorf("then the file has %d bytes, %v", len(body), err)
				}
			})
		}
	}
}

// TestServerTakesNothing sends a file to a server that stops reading without closing the
// connection.
func TestServerTakesNothing(t *testing.T) {
	t.Parallel()
	// Within this time, a slow machine must answer the second try, too.
	proxy, store, root := newProxy(t, func(o *s3.Options) { o.StallTimeout = 5 * time.Second })
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	if err := store.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Follow(func(call int, _ *http.Request) fault {
		if call == 0 {
			return func(http.ResponseWriter, *http.Request, func(*http.Request) *http.Response) { <-done }
		}
		return refuse(http.StatusForbidden, "AccessDenied")
	})
	const bytes = 16 << 20 // more than the system buffers between client and server
	err := store.Create(t.Context(), storage.Join(root, "a"), make([]byte, bytes))
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("Create = %v, want what the second try was answered", err)
	}
	if got, want := proxy.Requests(), "PUT PUT"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
}
