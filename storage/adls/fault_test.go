package adls_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"moorage/storage"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// TestFaults gives every request the faults that occur in networks and in Azure.
func TestFaults(t *testing.T) {
	t.Parallel()
	storagetest.RunFaults(t, storagetest.Cloud{
		Open: func(t *testing.T, patience storagetest.Patience) (*fakecloud.Proxy, storage.Store, string) {
			t.Helper()
			proxy, store, root := newProxy(t, patience)
			return proxy, store, root
		},
		Throttles: map[string]fakecloud.Fault{
			"busy":     refuse(http.StatusServiceUnavailable, "ServerBusy"),
			"too many": refuse(http.StatusTooManyRequests, ""),
			"time-out": refuse(http.StatusInternalServerError, "OperationTimedOut"),
		},
		Failures: map[string]fakecloud.Fault{
			"internal":    refuse(http.StatusInternalServerError, "InternalError"),
			"bad gateway": refuse(http.StatusBadGateway, ""),
		},
		Settles: "PUT PUT HEAD",
	})
}

// patient returns the timeouts for a server that is never silent.
func patient() storagetest.Patience {
	return storagetest.Patience{Stall: time.Minute, Pause: time.Millisecond}
}

// TestSpoiltContent reads a file whose bytes changed in transit.
func TestSpoiltContent(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t, patient())
	location := storage.Join(root, "a")
	if err := store.Create(t.Context(), location, []byte("body")); err != nil {
		t.Fatal(err)
	}
	proxy.Follow(fakecloud.Always(fakecloud.Edit(func(body []byte) []byte {
		body[0]++
		return body
	})))
	if _, err := storage.ReadAll(t.Context(), store, location, 1<<20); err == nil {
		t.Error("a reader was given other bytes than were written")
	}
}

// TestSpoiltWrite: a body that changed in transit is not stored.
func TestSpoiltWrite(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t, patient())
	location := storage.Join(root, "a")
	proxy.Follow(fakecloud.Always(func(w http.ResponseWriter, r *http.Request, forward fakecloud.Forward) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for i := range body {
			body[i]++
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fakecloud.Pass(w, r, forward)
	}))
	if err := store.Create(t.Context(), location, []byte("body")); err == nil {
		t.Error("Create returned no error")
	}
	proxy.Follow(nil)
	if _, err := store.Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
}
