package gcs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/gcs"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// newProxy returns a proxy in front of the test server, a store that uses the proxy, and an empty
// root of the store.
func newProxy(t *testing.T, change ...func(*gcs.Options)) (*fakecloud.Proxy, *gcs.Store, string) {
	t.Helper()
	server := fakecloud.StartGoogle(t)
	proxy := fakecloud.NewProxy(t, server.URL)
	opts := options(proxy.URL)
	opts.RetryDelayMax = time.Millisecond
	for _, each := range change {
		each(&opts)
	}
	root := "gs://" + server.NewBucket(t) + "/w"
	return proxy, open(t, opts, root), root
}

// refuse answers with an error of the JSON API.
func refuse(status int) fakecloud.Fault {
	return fakecloud.Answer(status, "application/json",
		fmt.Sprintf(`{"error":{"code":%d,"message":"as planned\nand so on","errors":[]}}`, status))
}

// deaf forwards a write without its precondition.
func deaf(w http.ResponseWriter, r *http.Request, forward fakecloud.Forward) {
	r.RequestURI = strings.Replace(r.RequestURI, "ifGenerationMatch=0&", "", 1)
	fakecloud.Pass(w, r, forward)
}

// TestFaults gives every request the faults that occur in networks and in the service.
func TestFaults(t *testing.T) {
	t.Parallel()
	storagetest.RunFaults(t, storagetest.Cloud{
		Open: func(t *testing.T, patience storagetest.Patience) (*fakecloud.Proxy, storage.Store, string) {
			t.Helper()
			proxy, store, root := newProxy(t, func(o *gcs.Options) {
				o.StallTimeout, o.RetryDelayMax = patience.Stall, patience.Pause
			})
			return proxy, store, root
		},
		Throttles: map[string]fakecloud.Fault{
			"too many":    refuse(http.StatusTooManyRequests),
			"unavailable": refuse(http.StatusServiceUnavailable),
		},
		Failures: map[string]fakecloud.Fault{
			"timeout":     refuse(http.StatusRequestTimeout),
			"internal":    refuse(http.StatusInternalServerError),
			"bad gateway": fakecloud.Answer(http.StatusBadGateway, "text/html", "<html>"),
		},
		Settles: "POST POST GET",
	})
}

// TestQuota repeatedly calls a server that is down. In the end, each call is sent only once.
func TestQuota(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	proxy.Follow(fakecloud.FirstN(1_000_000, refuse(http.StatusServiceUnavailable)))
	for range 40 {
		_, _ = store.Stat(t.Context(), storage.Join(root, "a"))
	}
	if got := len(strings.Fields(proxy.Requests())); got != 140 {
		t.Errorf("40 calls sent %d requests, want 140", got)
	}
	proxy.Follow(nil)
	if _, err := store.Stat(t.Context(), storage.Join(root, "a")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
}

// TestUnknownOutcome loses or changes the answer to a write, and to the check of the existing file.
// The file exists, so Create must not report that it belongs to another writer.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	firstLostThen := func(do fakecloud.Fault) fakecloud.Plan {
		return func(call int, r *http.Request) fakecloud.Fault {
			switch {
			case call == 0:
				return fakecloud.Lose
			case r.Method == http.MethodGet:
				return do
			}
			return nil
		}
	}
	for name, plan := range map[string]fakecloud.Plan{
		"cannot look":              firstLostThen(fakecloud.Cut),
		"looked and found nothing": firstLostThen(refuse(http.StatusNotFound)),
		"answers of another kind":  fakecloud.Every(http.MethodPost, fakecloud.Edit(func([]byte) []byte { return []byte("<html>") })),
		"answers for another": fakecloud.Every(http.MethodPost, fakecloud.Edit(func(body []byte) []byte {
			return bytes.Replace(body, []byte(`"name":"w/`), []byte(`"name":"x/`), 1)
		})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			location := storage.Join(root, "a")
			proxy.Follow(plan)
			err := store.Create(t.Context(), location, []byte("body"))
			if err == nil || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Create = %v, want an error that says nothing about the file", err)
			}
			proxy.Follow(nil)
			if content, err := storage.ReadAll(t.Context(), store, location, 100); string(content) != "body" {
				t.Errorf("the file has %q, %v", content, err)
			}
		})
	}
}

// TestDamagedAnswers reads through a connection that changes the data. The reader always gets an
// error.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(body []byte) []byte{
		"a bit": func(body []byte) []byte {
			body[len(body)/2] ^= 1
			return body
		},
		"shorter": func(body []byte) []byte { return body[:len(body)-1] },
		"longer":  func(body []byte) []byte { return append(body, 'x') },
		"empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			location := storage.Join(root, "a")
			if err := store.Create(t.Context(), location, []byte("0123456789")); err != nil {
				t.Fatal(err)
			}
			proxy.Follow(fakecloud.Every(http.MethodGet, fakecloud.Edit(change)))
			if _, err := storage.ReadAll(t.Context(), store, location, 1<<20); err == nil {
				t.Error("ReadAll: no error")
			}
		})
	}
}

// TestReplacedMeanwhile cuts a read while the object is replaced. The reader gets the beginning of
// the old object, and then an error.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	other := open(t, options(fakecloud.StartGoogle(t).URL), root)
	location := storage.Join(root, "a")
	if err := store.Create(t.Context(), location, bytes.Repeat([]byte("0"), 16<<10)); err != nil {
		t.Fatal(err)
	}
	proxy.Follow(fakecloud.Nth(0, func(w http.ResponseWriter, r *http.Request, forward fakecloud.Forward) {
		defer func() {
			if err := errors.Join(other.Delete(r.Context(), location),
				other.Create(r.Context(), location, bytes.Repeat([]byte("x"), 16<<10))); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		}()
		answer := forward(r)
		body := fakecloud.ReadBody(answer)
		fakecloud.AnswerWith(w, answer, body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
	}))
	body, _, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if content, err := io.ReadAll(body); err == nil || bytes.Contains(content, []byte("x")) {
		t.Errorf("%d bytes, %v; want an error and nothing of the new object", len(content), err)
	}
}

// TestServerTakesNothing sends a file to a server that stops reading without closing the
// connection.
func TestServerTakesNothing(t *testing.T) {
	t.Parallel()
	// Within this time, a slow machine must answer the second try, too.
	proxy, store, root := newProxy(t, func(o *gcs.Options) { o.StallTimeout = 5 * time.Second })
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	proxy.Follow(func(call int, _ *http.Request) fakecloud.Fault {
		if call == 0 {
			return func(http.ResponseWriter, *http.Request, fakecloud.Forward) { <-done }
		}
		return refuse(http.StatusForbidden)
	})
	const bytes = 16 << 20 // more than the system buffers between client and server
	err := store.Create(t.Context(), storage.Join(root, "a"), make([]byte, bytes))
	if err == nil || !strings.Contains(err.Error(), "403 Forbidden: as planned and so on") {
		t.Errorf("Create = %v, want what the second try was answered", err)
	}
}

// TestRedirects: redirects are not followed, because the other host would get a token.
func TestRedirects(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	proxy.Follow(fakecloud.FirstN(100, func(w http.ResponseWriter, r *http.Request, _ fakecloud.Forward) {
		http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
	}))
	_, err := store.Stat(t.Context(), storage.Join(root, "a"))
	if err == nil || !strings.Contains(err.Error(), "307") || strings.Contains(proxy.Requests(), " ") {
		t.Errorf("Stat = %v after %s, want the redirect itself", err, proxy.Requests())
	}
}

// TestBatchAnswers reads unexpected answers to a bulk delete.
func TestBatchAnswers(t *testing.T) {
	t.Parallel()
	const kind = "multipart/mixed; boundary=b"
	part := func(id, status string) string {
		return "--b\r\nContent-Type: application/http\r\nContent-ID: " + id + "\r\n\r\nHTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n\r\n"
	}
	for name, tt := range map[string]struct {
		kind, body string
		requests   int
		want       string // text in the error; empty for no error
	}{
		"not several":    {"text/html", "<html>", 1, "not multipart"},
		"of another":     {kind, part("<response-7>", "204 No Content") + "--b--\r\n", 1, "not sent"},
		"none":           {kind, "--b--\r\n", 5, "did not answer this one"},
		"one missing":    {kind, part("<response-0>", "204 No Content") + "--b--\r\n", 2, ""}, // then the other is number 0
		"no end":         {kind, part("<response-0>", "204 No Content"), 2, ""},
		"no answer":      {kind, "--b\r\nContent-ID: <response-0>\r\n\r\nx\r\n--b--\r\n", 1, "the answer to call 0"},
		"in other order": {kind, part("<response-1>", "204 No Content") + part("<response-0>", "404 Not Found") + "--b--\r\n", 1, ""},
		"one refused":    {kind, part("<response-0>", "204 No Content") + part("<response-1>", "403 Forbidden") + "--b--\r\n", 1, "403 Forbidden"},
		"throttled":      {kind, part("<response-0>", "429 Too Many Requests") + part("<response-1>", "429 Too Many Requests") + "--b--\r\n", 5, "429 Too Many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			proxy.Follow(fakecloud.FirstN(100, fakecloud.Answer(http.StatusOK, tt.kind, tt.body)))
			err := store.Delete(t.Context(), storage.Join(root, "a"), storage.Join(root, "b"))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Delete = %v, want %q", err, tt.want)
			}
			if got := errors.Is(err, storage.ErrSlowDown); got != (name == "throttled") {
				t.Errorf("Delete = %v, which is ErrSlowDown: %t", err, got)
			}
			if got := len(strings.Fields(proxy.Requests())); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
		})
	}
}
