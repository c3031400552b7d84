package fakecloud

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Way describes how much longer requests to a server take. With the zero value, they take no
// longer.
type Way struct {
	// Delay is the additional time of each request.
	Delay time.Duration
	// On average one request in SlowEvery, chosen at random, takes SlowDelay longer instead. If
	// SlowEvery is 0, no request does.
	SlowEvery int
	SlowDelay time.Duration
	// Methods lists the HTTP methods whose requests take longer. If it is empty, all requests do.
	Methods []string
}

// Far is a proxy that makes a server seem far away from a store: requests take longer. It counts
// the requests. It is safe for concurrent use.
type Far struct {
	// URL is the proxy's address.
	URL string

	forward http.Handler

	// mu guards the fields below. No other lock is taken under it.
	mu     sync.Mutex
	way    Way
	random *rand.Rand
	seen   map[string]int // requests by method
}

// connectionsKept is the number of idle connections to the server that a Far keeps.
const connectionsKept = 256

// NewFar returns a proxy for the server at a URL. It ends with the test.
func NewFar(tb testing.TB, server string, way Way) *Far {
	tb.Helper()
	target, err := url.Parse(server)
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: connectionsKept, DisableCompression: true}
	f := &Far{
		way: way, random: rand.New(rand.NewPCG(1, 2)), seen: make(map[string]int),
		forward: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // the request's signature covers the host
			},
			Transport: transport,
		},
	}
	front := httptest.NewServer(f)
	tb.Cleanup(transport.CloseIdleConnections)
	tb.Cleanup(front.Close)
	f.URL = front.URL
	return f
}

// SetWay sets how much longer later requests take.
func (f *Far) SetWay(way Way) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.way = way
}

// TakeSeen returns the requests since the last call, by method. The method of a request that lists
// objects is LIST.
func (f *Far) TakeSeen() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = make(map[string]int)
	return seen
}

// ServeHTTP waits, and then answers as the server does.
func (f *Far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(f.note(r)):
		f.forward.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}

// note counts a request, and returns how much longer it takes.
func (f *Far) note(r *http.Request) time.Duration {
	method := r.Method
	if r.URL.Query().Has("list-type") {
		method = "LIST"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[method]++
	switch {
	case len(f.way.Methods) > 0 && !slices.Contains(f.way.Methods, r.Method):
		return 0
	case f.way.SlowEvery > 0 && f.random.IntN(f.way.SlowEvery) == 0:
		return f.way.SlowDelay
	}
	return f.way.Delay
}
