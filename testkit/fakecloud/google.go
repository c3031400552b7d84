package fakecloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// GoogleServer is a running server. It is safe for concurrent use.
type GoogleServer struct {
	// URL is the server's address.
	URL string

	process *Process
	buckets atomic.Int64
}

var sharedGoogle = sync.OnceValues(func() (*GoogleServer, error) {
	process, err := StartProcess("gcsserver.py")
	if err != nil {
		return nil, err
	}
	return &GoogleServer{URL: process.URL, process: process}, nil
})

// StartGoogle returns the server of this process. It starts the server if no test has done so. The
// server ends with the process, even if the process crashes.
func StartGoogle(tb testing.TB) *GoogleServer {
	tb.Helper()
	server, err := sharedGoogle()
	if err != nil {
		tb.Fatalf("fakecloud: google: %v", err)
	}
	return server
}

// NewBucket creates an empty bucket for the calling test alone, and returns its name.
func (s *GoogleServer) NewBucket(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	body := fmt.Appendf(nil, `{"name":%q}`, name)
	err := s.call(tb.Context(), http.MethodPost, "/storage/v1/b?project=test", body, &struct{}{})
	if err != nil {
		tb.Fatalf("fakecloud: google: make a bucket: %v", err)
	}
	return name
}

// Names returns the names of all objects in a bucket, in byte order.
func (s *GoogleServer) Names(tb testing.TB, bucket string) []string {
	tb.Helper()
	var names []string
	for next := ""; ; {
		var page struct {
			Items []struct{ Name string }
			Next  string `json:"nextPageToken"`
		}
		path := "/storage/v1/b/" + bucket + "/o?pageToken=" + url.QueryEscape(next)
		err := s.call(tb.Context(), http.MethodGet, path, nil, &page)
		if err != nil {
			tb.Fatalf("fakecloud: google: list a bucket: %v", err)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if next = page.Next; next == "" {
			slices.Sort(names)
			return names
		}
	}
}

// call sends a request and decodes the answer.
func (s *GoogleServer) call(ctx context.Context, method, path string, body []byte, answered any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(answered)
}
