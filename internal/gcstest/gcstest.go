// Package gcstest replaces Google Cloud Storage in tests. Start returns a real server with its JSON
// API, one process for each test binary, without authentication. NewCloud adds the services that
// make and downscope tokens, and a gate that enforces the tokens. This command installs the server:
//
//	interop/setup.sh gcs
//
// It must not know what is tested.
package gcstest

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

	"moorage/internal/cloudtest"
)

// Server is a running server. It is safe for concurrent use.
type Server struct {
	// URL is the server's address.
	URL string

	process *cloudtest.Process
	buckets atomic.Int64
}

var shared = sync.OnceValues(func() (*Server, error) {
	process, err := cloudtest.Start("gcsserver.py")
	if err != nil {
		return nil, err
	}
	return &Server{URL: process.URL, process: process}, nil
})

// Start returns the server of this process. It starts the server if no test did before. The server
// ends with the process, even if the process crashes.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := shared()
	if err != nil {
		tb.Fatalf("gcstest: %v", err)
	}
	return server
}

// NewBucket creates an empty bucket for the calling test alone, and returns its name.
func (s *Server) NewBucket(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	body := fmt.Appendf(nil, `{"name":%q}`, name)
	err := s.call(tb.Context(), http.MethodPost, "/storage/v1/b?project=test", body, &struct{}{})
	if err != nil {
		tb.Fatalf("gcstest: make a bucket: %v", err)
	}
	return name
}

// Names returns the names of all objects in a bucket, in byte order.
func (s *Server) Names(tb testing.TB, bucket string) []string {
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
			tb.Fatalf("gcstest: list a bucket: %v", err)
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
func (s *Server) call(ctx context.Context, method, path string, body []byte, answered any) error {
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
