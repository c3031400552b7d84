package web_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage/internal/web"
)

// largeBytes is the length of an answer that takes room.
const largeBytes = 600 << 10

// newLargeServer returns a server with room for one large answer, and a function that sends it a
// request.
func newLargeServer() (*web.Server, func(p web.InProcess, method string) *http.Response) {
	server := web.New(web.Config{AnswersBytesMax: 1 << 20})
	answer := func(w http.ResponseWriter, r *http.Request) error {
		if err := server.HoldAnswer(w, r, nil, largeBytes); err != nil {
			return err
		}
		for range 2 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), largeBytes/2))
		}
		return nil
	}
	server.HandleOpen("large", http.MethodGet, "/large", answer)
	server.HandleOpen("large", http.MethodPost, "/large", answer)
	return server, func(p web.InProcess, method string) *http.Response {
		p.Handler = server
		answered, err := p.RoundTrip(httptest.NewRequest(method, "/large", nil))
		if err != nil {
			panic(err)
		}
		return answered
	}
}

// TestInProcessKeepsRoom requests large answers, with room for one at a time. The room is free
// again when the first answer is no longer needed.
func TestInProcessKeepsRoom(t *testing.T) {
	t.Parallel()
	for _, isKept := range []bool{false, true} {
		_, ask := newLargeServer()
		var p web.InProcess
		var releases []func()
		if isKept {
			p.Keep = func(release func()) { releases = append(releases, release) }
		}
		first := ask(p, http.MethodGet)
		body, err := io.ReadAll(first.Body)
		if first.StatusCode != http.StatusOK || len(body) != largeBytes || err != nil {
			t.Fatalf("%d with %d bytes, %v", first.StatusCode, len(body), err)
		}
		if isKept {
			first.Body.Close()
		}
		if second := ask(p, http.MethodGet); second.StatusCode != http.StatusTooManyRequests {
			t.Errorf("kept %v: a second answer has room beside the first: %d", isKept, second.StatusCode)
		}
		first.Body.Close()
		for _, release := range releases {
			release()
		}
		if third := ask(p, http.MethodGet); third.StatusCode != http.StatusOK {
			t.Errorf("kept %v: the room of the first answer is not free: %d", isKept, third.StatusCode)
		}
	}
}

// TestInProcessBound requests an answer that is too long. A read fails with a message, and a change
// keeps its status.
func TestInProcessBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method         string
		bytesMax, want int
		says           string
	}{
		{http.MethodGet, largeBytes, http.StatusOK, "xxx"},
		{http.MethodGet, largeBytes - 1, http.StatusRequestEntityTooLarge, `{"error":{"message":"The answer is longer than`},
		{http.MethodPost, largeBytes - 1, http.StatusOK, ""},
	} {
		_, ask := newLargeServer()
		got := ask(web.InProcess{AnswerBytesMax: tt.bytesMax}, tt.method)
		body, err := io.ReadAll(got.Body)
		if got.StatusCode != tt.want || !strings.HasPrefix(string(body), tt.says) || tt.says == "" && len(body) > 0 || err != nil {
			t.Errorf("%s with at most %d bytes: %d %.100s, %v", tt.method, tt.bytesMax, got.StatusCode, body, err)
		}
	}
}

// TestInProcessHeaders checks that headers have the same names as over a connection, however a
// handler spells them.
func TestInProcessHeaders(t *testing.T) {
	t.Parallel()
	api := web.InProcess{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["ETag"] = []string{"7"}
	})}
	answer, err := api.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil || answer.Header.Get("ETag") != "7" {
		t.Errorf("got %v, %v", answer.Header, err)
	}
	_ = answer.Body.Close()
}
