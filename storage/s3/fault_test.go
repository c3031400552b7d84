package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// TestFaults gives every request the faults that occur in networks and in servers.
func TestFaults(t *testing.T) {
	t.Parallel()
	storagetest.RunFaults(t, storagetest.Cloud{
		Open: func(t *testing.T, patience storagetest.Patience) (*fakecloud.Proxy, storage.Store, string) {
			t.Helper()
			proxy, store, root := newProxy(t, func(o *s3.Options) {
				o.StallTimeout, o.RetryDelayMax = patience.Stall, patience.Pause
			})
			return proxy, store, root
		},
		Throttles: map[string]fakecloud.Fault{
			"slow down":        refuse(http.StatusServiceUnavailable, "SlowDown"),
			"too many":         refuse(http.StatusTooManyRequests, "TooManyRequests"),
			"too many, silent": refuse(http.StatusTooManyRequests, ""),
		},
		Failures: map[string]fakecloud.Fault{
			"internal":    refuse(http.StatusInternalServerError, "InternalError"),
			"bad gateway": refuse(http.StatusBadGateway, ""),
			"conflict":    refuse(http.StatusConflict, "ConditionalRequestConflict"),
		},
		Settles: "PUT PUT HEAD",
	})
}

// newProbed is like newProxy, with a store that has probed its server.
func newProbed(t *testing.T) (*fakecloud.Proxy, *s3.Store, string) {
	t.Helper()
	proxy, store, root := newProxy(t)
	if err := store.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return proxy, store, root
}

// checkBody fails the test unless a file has the content that these tests write.
func checkBody(t *testing.T, store *s3.Store, location string) {
	t.Helper()
	if content, err := storage.ReadAll(t.Context(), store, location, 100); string(content) != "body" {
		t.Errorf("the file has %q, %v", content, err)
	}
}

// TestUnknownOutcome loses the answer to a write, and to the check of the existing file. The file
// exists, so Create must not report that it belongs to another writer.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]plan{
		"cannot look": func(call int, r *http.Request) fault {
			switch {
			case call == 0:
				return fakecloud.Lose
			case r.Method == http.MethodHead:
				return fakecloud.Cut
			}
			return nil
		},
		"looked and found nothing": func(call int, r *http.Request) fault {
			switch {
			case call == 0:
				return fakecloud.Lose
			case r.Method == http.MethodHead:
				return refuse(http.StatusNotFound, "NoSuchKey")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProbed(t)
			location := storage.Join(root, "a")
			proxy.Follow(plan)
			err := store.Create(t.Context(), location, []byte("body"))
			if err == nil || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Create = %v, want an error that says nothing about the file", err)
			}
			proxy.Follow(nil)
			checkBody(t, store, location)
		})
	}
}

// TestAnsweredBySomethingElse gives a write a response with status 200 that is not from an S3
// server, or that lacks the version. If Create reports success, the file can be read.
func TestAnsweredBySomethingElse(t *testing.T) {
	t.Parallel()
	page := answerOK("<html><body>Back soon</body></html>")
	withoutVersion := func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
		answer := forward(r)
		answer.Header.Del("ETag")
		fakecloud.AnswerWith(w, answer, fakecloud.ReadBody(answer))
	}
	for _, tt := range []struct {
		name string
		plan plan
		made bool
	}{
		{"a page", fakecloud.Nth(0, page), false},
		{"a page for everything", fakecloud.FirstN(100, page), false},
		{"nothing", fakecloud.Nth(0, answerOK("")), false},
		{"no version", fakecloud.Nth(0, withoutVersion), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProbed(t)
			location := storage.Join(root, "a")
			proxy.Follow(tt.plan)
			err := store.Create(t.Context(), location, []byte("body"))
			if (err == nil) != tt.made || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Create = %v, want made: %t, or an error that says nothing about the file", err, tt.made)
			}
			if got := proxy.Requests(); got != "PUT HEAD" {
				t.Errorf("requests %s, want PUT HEAD", got)
			}
			proxy.Follow(nil)
			if tt.made {
				checkBody(t, store, location)
			}
			proxy.Follow(tt.plan)
			if err := store.Probe(t.Context()); tt.name == "a page for everything" && err == nil {
				t.Error("Probe found a server where there is none")
			}
		})
	}
}

// withoutCondition simulates a server that ignores If-None-Match. The header is signed, so the
// existing object is deleted before the real server gets the write.
func withoutCondition(direct *s3.Store, location func(r *http.Request) string) plan {
	return func(_ int, r *http.Request) fault {
		if r.Method != http.MethodPut || r.Header.Get("If-None-Match") == "" {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
			if err := direct.Delete(r.Context(), location(r)); err != nil {
				panic(http.ErrAbortHandler)
			}
			fakecloud.Pass(w, r, forward)
		}
	}
}

// TestServersWithoutConditions probes servers that ignore or refuse the header. That is logged
// once, and an existing file is still not replaced.
func TestServersWithoutConditions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ignores", "refuses"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			proxy, store, root := newProxy(t, func(o *s3.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			direct := open(t, options(fakecloud.StartS3(t).Endpoint), root)
			plan := withoutCondition(direct, func(r *http.Request) string { return "s3:/" + r.URL.Path })
			if name == "refuses" {
				plan = func(_ int, r *http.Request) fault {
					if r.Header.Get("If-None-Match") != "" {
						return refuse(http.StatusNotImplemented, "NotImplemented")
					}
					return nil
				}
			}
			proxy.Follow(plan)
			for range 2 {
				if err := store.Probe(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Count(log.String(), "level=WARN"); got != 1 {
				t.Errorf("%d warnings, want 1:\n%s", got, &log)
			}
			location := storage.Join(root, "a")
			if err := store.Create(t.Context(), location, []byte("first")); err != nil {
				t.Errorf("Create = %v", err)
			}
			if err := store.Create(t.Context(), location, []byte("second")); !errors.Is(err, storage.ErrExists) {
				t.Errorf("Create over a file = %v, want ErrExists", err)
			}
			if content, err := storage.ReadAll(t.Context(), store, location, 100); string(content) != "first" {
				t.Errorf("the file has %q, %v", content, err)
			}
			if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) != 1 {
				t.Errorf("the bucket has %q, want the file alone", keys)
			}
		})
	}
}

// TestRefusedCondition creates files in a bucket whose probes fail, on a server that refuses the
// header. The first write detects the refusal, and an existing file is still not replaced.
func TestRefusedCondition(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	proxy, store, root := newProxy(t, func(o *s3.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	proxy.Follow(func(_ int, r *http.Request) fault {
		switch {
		case strings.Contains(r.URL.Path, "moorage-probe-"):
			return refuse(http.StatusForbidden, "AccessDenied")
		case r.Header.Get("If-None-Match") != "":
			return refuse(http.StatusNotImplemented, "NotImplemented")
		}
		return nil
	})
	location := storage.Join(root, "a")
	if err := store.Create(t.Context(), location, []byte("first")); err != nil {
		t.Errorf("Create = %v", err)
	}
	if err := store.Create(t.Context(), location, []byte("second")); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create over a file = %v, want ErrExists", err)
	}
	if content, err := storage.ReadAll(t.Context(), store, location, 100); string(content) != "first" {
		t.Errorf("the file has %q, %v", content, err)
	}
	if got, want := proxy.Requests(), "PUT PUT HEAD PUT HEAD GET"; got != want {
		t.Errorf("requests %s, want %s: a probe, a write that is refused, then a look before each", got, want)
	}
	if got := strings.Count(log.String(), "does not honour"); got != 1 {
		t.Errorf("%d warnings, want 1:\n%s", got, &log)
	}
}

// TestFirstCreateProbes probes the server with the first Create, without an explicit probe.
func TestFirstCreateProbes(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	proxy.Follow(nil)
	for i := range 2 {
		if err := store.Create(t.Context(), storage.Join(root, fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := proxy.Requests(), "PUT PUT PUT PUT POST PUT PUT"; got != want {
		t.Errorf("requests %s, want %s: a probe once", got, want)
	}
}

// TestProbeThatFails makes the probe of a first Create fail. The write continues, with the
// condition.
func TestProbeThatFails(t *testing.T) {
	t.Parallel()
	proxy, store, root := newProxy(t)
	proxy.Follow(func(_ int, r *http.Request) fault {
		if strings.Contains(r.URL.Path, "moorage-probe-") {
			return refuse(http.StatusForbidden, "AccessDenied")
		}
		return nil
	})
	location := storage.Join(root, "a")
	if err := store.Create(t.Context(), location, nil); err != nil {
		t.Errorf("Create = %v", err)
	}
	if err := store.Create(t.Context(), location, nil); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Create over a file = %v, want ErrExists", err)
	}
	if err := store.Probe(t.Context()); err == nil {
		t.Error("Probe of a bucket that cannot be written to is no error")
	}
}

// TestProbeLeavesNothing makes the second write of each probe fail in a way that shows nothing
// about the header, or cancels the caller. The object of the first write is still deleted.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refused", "gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, store, root := newProxy(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := make(map[string]bool) // probes whose first write has passed; calls of the plan do not overlap
			proxy.Follow(func(_ int, r *http.Request) fault {
				switch {
				case r.Method != http.MethodPut || !seen[r.URL.Path]:
					seen[r.URL.Path] = true
					return nil
				case name == "gone":
					cancel()
				}
				return refuse(http.StatusForbidden, "AccessDenied")
			})
			if err := store.Probe(ctx); err == nil {
				t.Error("a probe that found out nothing is no error")
			}
			if got, want := proxy.Requests(), "HEAD PUT PUT POST"; got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
			if keys := fakecloud.StartS3(t).Keys(t, bucketOf(root)); len(keys) > 0 {
				t.Errorf("left over: %q", keys)
			}
		})
	}
}

// readTo reads location. It returns the bytes read, and the error that ended the read.
func readTo(ctx context.Context, store *s3.Store, location string) ([]byte, error) {
	body, _, err := store.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// A Create that cannot draw its id makes no file, and returns an error.
func TestCreateWithoutChance(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	root := "s3://" + server.NewBucket(t) + "/w"
	noChance := errors.New("no chance")
	without := options(server.Endpoint)
	without.Random = iotest.ErrReader(noChance)
	location := storage.Join(root, "a.json")
	if err := open(t, without, root).Create(t.Context(), location, []byte("body")); !errors.Is(err, noChance) {
		t.Errorf("got %v, want the error of its source", err)
	}
	if _, err := open(t, options(server.Endpoint), root).Stat(t.Context(), location); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
}
