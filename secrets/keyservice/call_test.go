package keyservice

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage/secrets"
)

func get(url string) func(context.Context) (*http.Request, error) {
	return func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	}
}

// silent starts a server that accepts connections, and does nothing else.
func silent(t *testing.T) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return "http://" + listener.Addr().String()
}

// If a service is silent, an attempt ends after its timeout and is repeated, and the call ends
// after the timeout of a call. Each timeout works on its own.
func TestSilentService(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		attempt, call time.Duration
		attempts      int
	}{
		{"attempts end", 50 * time.Millisecond, time.Hour, attemptsMax},
		{"the call ends", time.Hour, 100 * time.Millisecond, 1},
	} {
		url := silent(t)
		client := NewClient(nil)
		client.setTimeouts(tt.attempt, tt.call)
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		attempts := 0
		counted := func(ctx context.Context) (*http.Request, error) {
			attempts++
			return get(url)(ctx)
		}
		_, err := client.Call(ctx, counted, Answer.MayPass)
		if !errors.Is(err, secrets.ErrAway) || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: %v, %v", tt.name, err, ctx.Err())
		}
		if attempts != tt.attempts {
			t.Errorf("%s: %d attempts, want %d", tt.name, attempts, tt.attempts)
		}
		cancel()
		if _, err := NewClient(nil).Call(ctx, get(url), Answer.MayPass); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Call for somebody who is gone = %v", tt.name, err)
		}
	}
}

// Other requests have the timeout of an attempt.
func TestHTTPEnds(t *testing.T) {
	t.Parallel()
	url := silent(t)
	client := NewClient(nil)
	client.attemptTimeout = 50 * time.Millisecond
	if answer, err := client.HTTP().Get(url); err == nil {
		_ = answer.Body.Close()
		t.Error("a silent service answers")
	}
}

// If an answer is lost, completely or in part, the request is repeated.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("whole"))
	}))
	defer server.Close()
	client := NewClient(nil)
	client.setTimeouts(Patience, Patience)
	answer, err := client.Call(t.Context(), get(server.URL), Answer.MayPass)
	if err != nil || string(answer.Content) != "whole" || asked.Load() != 3 {
		t.Errorf("Call = %q, %v, after %d requests", answer.Content, err, asked.Load())
	}
}

// The size of an answer is limited. No redirect is followed, because it would send a token to
// another server.
func TestAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write(make([]byte, answerBytesMax+1))
		case "/whole":
			_, _ = w.Write(make([]byte, answerBytesMax))
		default:
			http.Redirect(w, r, "/whole", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	client := NewClient(nil)
	client.setTimeouts(Patience, Patience)
	if _, err := client.Call(t.Context(), get(server.URL+"/long"), Answer.MayPass); !errors.Is(err, secrets.ErrAway) {
		t.Errorf("a long answer: %v", err)
	}
	if answer, err := client.Call(t.Context(), get(server.URL+"/whole"), Answer.MayPass); err != nil ||
		len(answer.Content) != answerBytesMax {
		t.Errorf("the longest answer: %d bytes, %v", len(answer.Content), err)
	}
	if answer, err := client.Call(t.Context(), get(server.URL), Answer.MayPass); err != nil ||
		answer.Status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect: %d, %v", answer.Status, err)
	}
}

// Unreadable content is not repeated in an error, because it may be a secret.
func TestDecodeTellsNothing(t *testing.T) {
	t.Parallel()
	var document struct{ Plaintext []byte }
	err := Answer{Status: 200, Content: []byte(`{"Plaintext":"hunter2!"}`)}.Decode(&document)
	if !errors.Is(err, secrets.ErrAway) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Decode = %v", err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	if got := Words("a\r\nb\x00\xff"); got != "a  b " {
		t.Errorf("Words = %q", got)
	}
	if got := Words(strings.Repeat("é", 2*wordsMax)); len([]rune(got)) != wordsMax+1 {
		t.Errorf("Words has %d characters", len([]rune(got)))
	}
}
