package keyservice

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"moorage/secrets"
)

func get(url string) func(context.Context) (*http.Request, error) {
	return func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	}
}

// A service that accepts connections and then does nothing costs the time of a call, no more.
func TestSilentService(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client := New(nil)
	client.attemptTimeout, client.callTimeout = 50*time.Millisecond, 120*time.Millisecond
	begun := time.Now()
	_, err = client.Call(t.Context(), get("http://"+listener.Addr().String()), Answer.MayPass)
	if !errors.Is(err, secrets.ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call = %v", err)
	}
	if took := time.Since(begun); took < 50*time.Millisecond || took > 5*time.Second {
		t.Errorf("Call took %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(nil).Call(ctx, get("http://"+listener.Addr().String()), Answer.MayPass); !errors.Is(err, context.Canceled) {
		t.Errorf("Call for somebody who is gone = %v", err)
	}
}

// An answer has a bound, and no redirect is followed: it would carry a token elsewhere.
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
	client := New(nil)
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

// What cannot be read is not repeated in an error: it may be a secret.
func TestDecodeTellsNothing(t *testing.T) {
	t.Parallel()
	var document struct{ Plaintext []byte }
	err := Answer{Status: 200, Content: []byte(`{"Plaintext":"hunter2!"}`)}.Decode(&document)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
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
