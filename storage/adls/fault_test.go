package adls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/internal/cloudtest"
	"moorage/storage"
	"moorage/storage/adls"
)

// call is one call of a method, and what the file at its location holds after it: nil for nothing.
type call struct {
	name string
	make func(ctx context.Context, store *adls.Store, location string) error
	// before is whether there is a file before the call.
	before bool
	after  []byte
}

func calls() []call {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	return []call{
		{"Create", func(ctx context.Context, store *adls.Store, location string) error {
			return store.Create(ctx, location, content)
		}, false, content},
		{"Open", func(ctx context.Context, store *adls.Store, location string) error {
			body, err := storage.ReadAll(ctx, store, location, 1<<20)
			if err == nil && !bytes.Equal(body, content) {
				err = fmt.Errorf("read %d bytes that are not those of the file", len(body))
			}
			return err
		}, true, content},
		{"Stat", func(ctx context.Context, store *adls.Store, location string) error {
			info, err := store.Stat(ctx, location)
			if err == nil && info.Bytes != int64(len(content)) {
				err = fmt.Errorf("%d bytes, want %d", info.Bytes, len(content))
			}
			return err
		}, true, content},
		{"List", func(ctx context.Context, store *adls.Store, location string) error {
			parsed, err := storage.Parse(location)
			if err != nil {
				return err
			}
			page, err := store.List(ctx, parsed.Parent().String(), "", 1000)
			if err == nil && len(page.Files) == 0 {
				err = errors.New("the file is not listed")
			}
			return err
		}, true, content},
		{"Delete", func(ctx context.Context, store *adls.Store, location string) error {
			return store.Delete(ctx, location)
		}, true, nil},
	}
}

// prepare makes the file that a call begins with.
func (c call) prepare(t *testing.T, store *adls.Store, location string) {
	t.Helper()
	if c.before {
		if err := store.Create(t.Context(), location, calls()[0].after); err != nil {
			t.Fatal(err)
		}
	}
}

// check looks at what the call left.
func (c call) check(t *testing.T, store *adls.Store, location string) {
	t.Helper()
	content, err := storage.ReadAll(t.Context(), store, location, 1<<20)
	switch {
	case c.after == nil && !errors.Is(err, storage.ErrNotFound):
		t.Errorf("the file has %d bytes, %v; want none", len(content), err)
	case c.after != nil && (err != nil || !bytes.Equal(content, c.after)):
		t.Errorf("the file has %d bytes, %v; want %d", len(content), err, len(c.after))
	}
}

// TestPassingFaults does each fault to each request of each method, until a run has no such
// request: every call succeeds and does what it was to do.
func TestPassingFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]cloudtest.Fault{
		"cut":              cloudtest.Cut,
		"lost answer":      cloudtest.Lose,
		"cut in answer":    cloudtest.CutInAnswer,
		"silent":           cloudtest.Silent,
		"silent in answer": cloudtest.SilentInAnswer,
		"busy":             refuse(http.StatusServiceUnavailable, "ServerBusy"),
		"too many":         refuse(http.StatusTooManyRequests, ""),
		"internal":         refuse(http.StatusInternalServerError, "InternalError"),
		"time-out":         refuse(http.StatusInternalServerError, "OperationTimedOut"),
		"bad gateway":      refuse(http.StatusBadGateway, ""),
	}
	for name, do := range faults {
		for _, c := range calls() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				stall := time.Minute
				if name == "silent" || name == "silent in answer" { // elsewhere a slow machine must not look silent
					stall = 2 * time.Second
				}
				proxy, store, root := newProxy(t, stall)
				for k := 0; ; k++ {
					location := storage.Join(root, fmt.Sprint(k))
					proxy.Follow(nil)
					c.prepare(t, store, location)
					proxy.Follow(cloudtest.Nth(k, do))
					if err := c.make(t.Context(), store, location); err != nil {
						t.Errorf("request %d: %v", k, err)
					}
					count := len(strings.Fields(proxy.Requests()))
					proxy.Follow(nil)
					c.check(t, store, location)
					if count <= k {
						break
					}
					if k > 10 {
						t.Fatal("the run does not end")
					}
				}
			})
		}
	}
}

// TestLastingThrottle asks a server that always says no: a call gives up after five requests.
func TestLastingThrottle(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t, time.Minute)
			location := storage.Join(root, "a")
			c.prepare(t, store, location)
			proxy.Follow(cloudtest.Always(refuse(http.StatusServiceUnavailable, "ServerBusy")))
			if err := c.make(t.Context(), store, location); err == nil || errors.Is(err, storage.ErrNotFound) ||
				errors.Is(err, storage.ErrExists) {
				t.Errorf("%s = %v, want what the server answered", c.name, err)
			}
			if got := len(strings.Fields(proxy.Requests())); got != 5 {
				t.Errorf("%d requests, want 5", got)
			}
		})
	}
}

// TestEndsWithContext: a server that is silent holds nobody longer than his context.
func TestEndsWithContext(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t, time.Hour)
			location := storage.Join(root, "a")
			c.prepare(t, store, location)
			proxy.Follow(cloudtest.Always(cloudtest.Silent))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if err := c.make(ctx, store, location); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want context.DeadlineExceeded", c.name, err)
			}
		})
	}
}

// TestSpoiltContent reads a file whose bytes changed on the way.
func TestSpoiltContent(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t, time.Minute)
	location := storage.Join(root, "a")
	calls()[1].prepare(t, store, location)
	proxy.Follow(cloudtest.Always(cloudtest.Edit(func(body []byte) []byte {
		body[0]++
		return body
	})))
	if _, err := storage.ReadAll(t.Context(), store, location, 1<<20); err == nil {
		t.Error("a reader was given other bytes than were written")
	}
}

// TestSpoiltWrite: what does not arrive as it was sent is not kept.
func TestSpoiltWrite(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t, time.Minute)
	location := storage.Join(root, "a")
	proxy.Follow(cloudtest.Always(func(w http.ResponseWriter, r *http.Request, forward cloudtest.Forward) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for i := range body {
			body[i]++
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		cloudtest.Pass(w, r, forward)
	}))
	if err := store.Create(t.Context(), location, []byte("body")); err == nil {
		t.Error("Create returned no error")
	}
	proxy.Follow(nil)
	if _, err := store.Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
}
