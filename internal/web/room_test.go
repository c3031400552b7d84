package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newHolding returns a server with one route, for the creation of a namespace. The handler creates
// nothing. If the namespace is called "panic", it panics. If it is called "hold", the handler waits
// for a value from release.
func newHolding(config Config, release <-chan struct{}) *Server {
	s := New(config)
	s.Handle("createNamespace", http.MethodPost, "/v1/namespaces", func(w http.ResponseWriter, r *http.Request) error {
		f, err := s.ReadFields(w, r, "create namespace request")
		if err != nil {
			return err
		}
		f.TextMap("properties")
		switch f.Texts("namespace")[0] {
		case "hold":
			<-release
		case "panic":
			panic("asked for")
		}
		return s.AnswerJSON(w, r, map[string]string{})
	})
	return s
}

// createBody returns a request body for a namespace of that name, with the given length in bytes.
func createBody(name string, bytes int) string {
	head, tail := `{"namespace":["`+name+`"],"properties":{"k":"`, `"}}`
	return head + strings.Repeat("x", bytes-len(head)-len(tail)) + tail
}

// post sends body, and declares its length. With length -1 it declares no length.
func post(server http.Handler, body io.Reader, length int64) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/namespaces", body)
	r.ContentLength = length
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w
}

// TestRoomForBodies fills the room for large bodies. Further large bodies wait for room, and are
// refused if that takes too long. Small bodies are not affected.
func TestRoomForBodies(t *testing.T) {
	t.Parallel()
	const large, largest = 1<<20 + 1, 2 << 20
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		server := newHolding(Config{BodyBytesMax: largest, BodiesBytesMax: 3 << 20}, release)
		// begin sends a request in the background. The channel that it returns receives the status.
		begin := func(name string, bytes int, length int64) chan int {
			ended := make(chan int, 1)
			go func() { ended <- post(server, strings.NewReader(createBody(name, bytes)), length).Code }()
			synctest.Wait()
			return ended
		}
		first := begin("hold", largest, largest)
		if got := <-begin("small", 1<<20, 1<<20); got != http.StatusOK {
			t.Errorf("a small body: %d", got)
		}
		for name, length := range map[string]int64{"of known length": large, "of unknown length": -1} {
			began := time.Now()
			w := post(server, strings.NewReader(createBody("a", large)), length)
			wantFailure(t, w, http.StatusTooManyRequests, "TooManyRequestsException")
			if w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" || time.Since(began) != roomWait {
				t.Errorf("a large body %s: header %v after %s", name, w.Header(), time.Since(began))
			}
		}
		second := begin("hold", large, large)
		release <- struct{}{}
		if got := <-first; got != http.StatusOK {
			t.Errorf("the first: %d", got)
		}
		synctest.Wait() // the second request has its room now
		release <- struct{}{}
		if got := <-second; got != http.StatusOK {
			t.Errorf("one that waited: %d", got)
		}
	})
}

// TestRoomIsGivenBack sends bodies one after another, which together need more than the whole room.
// Each must give back its room, however its request ends.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	const large = 1<<20 + 1
	server := newHolding(Config{BodyBytesMax: 2 << 20, BodiesBytesMax: 2 << 20}, nil)
	for range 3 {
		for name, tt := range map[string]struct {
			body   string
			length int64
			status int
		}{
			"answered":              {createBody("a", large), large, 200},
			"of unknown size":       {createBody("a", large), -1, 200},
			"panicked":              {createBody("panic", large), large, 500},
			"not JSON":              {strings.Repeat("x", large), large, 400},
			"cut":                   {createBody("a", large) + "x", large + 100, 400},
			"too long":              {createBody("a", 3<<20), -1, 413},
			"too long, and said so": {"", 3 << 20, 413},
		} {
			var body io.Reader = strings.NewReader(tt.body)
			if name == "cut" {
				body = io.MultiReader(body, failingReader{})
			}
			if got := post(server, body, tt.length); got.Code != tt.status {
				t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, tt.status)
			}
		}
	}
}

// failingReader reads like a connection that was cut.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A request that fits into the room does not wait for earlier requests that do not fit.
func TestRoomIsGivenToWhoFits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10, 10)
		var first, large, small share
		if !r.take(t.Context(), &first, 7) {
			t.Fatal("no room in an empty one")
		}
		given := make(chan bool, 1)
		go func() { given <- r.take(t.Context(), &large, 8) }()
		synctest.Wait()
		if !r.take(t.Context(), &small, 3) {
			t.Error("one that fits was refused")
		}
		r.giveBack(&first)
		r.giveBack(&small)
		if !<-given || r.free != 2 {
			t.Errorf("one that waited was refused, or %d of the room is free", r.free)
		}
		r.giveBack(&large)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if !r.take(t.Context(), &first, 10) || r.take(ctx, &small, 1) {
			t.Error("room was given that there is not")
		}
		r.giveBack(&small)
		r.giveBack(&first)
		if r.free != 10 || r.stuck != 0 || len(r.waiting) != 0 {
			t.Errorf("left behind: %d free, %d stuck, %d waiting", r.free, r.stuck, len(r.waiting))
		}
	})
}

// If all requests that hold room wait for more, the youngest is refused at once, and the oldest
// continues.
func TestRoomEndsADeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10, 10)
		shares := make([]share, 3)
		given := make([]chan bool, len(shares))
		for i, bytes := range []int64{3, 3, 4} {
			if !r.take(t.Context(), &shares[i], bytes) {
				t.Fatal("no room in an empty one")
			}
		}
		for _, i := range []int{2, 0, 1} {
			given[i] = make(chan bool, 1)
			go func() { given[i] <- r.take(t.Context(), &shares[i], 4) }()
			synctest.Wait()
		}
		if <-given[2] {
			t.Error("the youngest got room that there is not")
		}
		r.giveBack(&shares[2])
		if !<-given[0] {
			t.Error("the oldest did not go on")
		}
		r.giveBack(&shares[0])
		if !<-given[1] {
			t.Error("the next did not go on")
		}
	})
}
