package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
)

// largeAnswer is the length of an answer that holds room.
const largeAnswer = 4 << 20

// newAnswering returns a server that sends large answers. All answers to /same share one source,
// and those to /large share none.
func newAnswering(answersBytesMax int64) *Server {
	s := New(Config{AnswersBytesMax: answersBytesMax, Authenticate: func(r *http.Request) (moorage.Caller, error) {
		return moorage.Caller{Name: r.Header.Get("Authorization")}, nil
	}})
	text := []byte(strings.Repeat("x", largeAnswer))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		s.Handle("large", method, "/large", func(w http.ResponseWriter, r *http.Request) error {
			return s.AnswerText(w, r, text)
		})
	}
	s.Handle("same", http.MethodGet, "/same", func(w http.ResponseWriter, r *http.Request) error {
		if err := s.HoldAnswer(w, r, &text[0], largeAnswer); err != nil {
			return err
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text)
		return nil
	})
	return s
}

// free returns how many bytes of the room for answers are free.
func free(s *Server) int64 {
	s.answers.room.mu.Lock()
	defer s.answers.room.mu.Unlock()
	return s.answers.room.free
}

// reader is a client that receives its answer slowly.
type reader struct {
	status int
	body   io.Reader
	client net.Conn
}

// readSlowly sends a request and returns when its answer begins.
func readSlowly(t *testing.T, l *pipes, caller, method, path string) reader {
	t.Helper()
	client, served := net.Pipe()
	l.conns <- served
	fmt.Fprintf(client, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Length: 0\r\n\r\n", method, path, caller)
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	return reader{status: answer.StatusCode, body: answer.Body, client: client}
}

// serveAnswers calls do with a server, which can be called over connections in memory.
func serveAnswers(t *testing.T, answersBytesMax int64, do func(s *Server, l *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newAnswering(answersBytesMax)
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: s}
		go func() { _ = server.Serve(l) }()
		do(s, l)
		server.Close()
		synctest.Wait()
		if free(s) != answersBytesMax || len(s.answers.shared) > 0 || s.answers.waiting != 0 {
			t.Errorf("in the end %d of %d bytes are free", free(s), answersBytesMax)
		}
	})
}

// However many clients receive large answers slowly, the answers stay within the room. Further
// requests are refused until slow clients have gone. One caller gets at most half of the room.
func TestSlowReadersStayWithinTheRoom(t *testing.T) {
	t.Parallel()
	const room = 8 * largeAnswer
	serveAnswers(t, room, func(s *Server, l *pipes) {
		var held []net.Conn
		count := map[int]int{}
		readers := make(chan reader)
		for n := range 40 {
			go func() { readers <- readSlowly(t, l, fmt.Sprint("caller", n%4), http.MethodGet, "/large") }()
		}
		for range 40 {
			r := <-readers
			if count[r.status]++; r.status == http.StatusOK {
				held = append(held, r.client)
			} else {
				r.client.Close()
			}
		}
		if count[http.StatusOK] != 8 || count[http.StatusTooManyRequests] != 32 || free(s) != 0 {
			t.Errorf("answers %v, %d bytes are free", count, free(s))
		}
		change := readSlowly(t, l, "eve", http.MethodPost, "/large")
		if change.status != http.StatusOK || free(s) != -largeAnswer {
			t.Errorf("a change is answered %d, %d bytes are free", change.status, free(s))
		}
		change.client.Close()
		for _, client := range held {
			client.Close()
		}
		synctest.Wait()
		for n := range 6 {
			r := readSlowly(t, l, "eve", http.MethodGet, "/large")
			if want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[n < 4]; r.status != want {
				t.Errorf("answer %d to one caller: %d, want %d", n, r.status, want)
			}
			defer r.client.Close()
		}
	})
}

// Answers that are made from the same bytes take room only once.
func TestAnswersShareRoom(t *testing.T) {
	t.Parallel()
	serveAnswers(t, 2*largeAnswer, func(s *Server, l *pipes) {
		for range 20 {
			r := readSlowly(t, l, "ann", http.MethodGet, "/same")
			if r.status != http.StatusOK || free(s) != largeAnswer {
				t.Fatalf("%d, %d bytes are free", r.status, free(s))
			}
			defer r.client.Close()
		}
	})
}

// A client must receive a large answer at a minimum pace. There is no limit for a small answer, or
// for a client that is fast enough.
func TestPaceOfAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		bytes int // that the client receives each second
		whole bool
	}{
		{"in four minutes", largeAnswer / 240, true},
		{"in ten minutes", largeAnswer / 600, false},
		{"a byte a second", 1, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			serveAnswers(t, 2*largeAnswer, func(s *Server, l *pipes) {
				r := readSlowly(t, l, "ann", http.MethodGet, "/large")
				defer r.client.Close()
				began, taken := time.Now(), int64(0)
				isHeld := func() bool { return free(s) < s.answers.room.total }
				for isHeld() && taken < largeAnswer {
					n, _ := io.CopyN(io.Discard, r.body, int64(row.bytes))
					taken += n
					time.Sleep(time.Second)
				}
				took := time.Since(began)
				rest, _ := io.Copy(io.Discard, r.body) // bytes that were already on the way
				taken += rest
				if whole := taken == largeAnswer; whole != row.whole || isHeld() {
					t.Errorf("took %d bytes in %s, and holds room: %t", taken, took, isHeld())
				}
				if took > answerPatience+answerTimeMax {
					t.Errorf("held room for %s", took)
				}
			})
		})
	}
}

// After a large answer, the connection serves further requests without that answer's deadline.
func TestPaceEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	serveAnswers(t, 2*largeAnswer, func(_ *Server, l *pipes) {
		client, served := net.Pipe()
		defer client.Close()
		l.conns <- served
		answers := bufio.NewReader(client)
		for n := range 2 {
			fmt.Fprint(client, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
			answer, err := http.ReadResponse(answers, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
			}
			if err != nil {
				t.Fatalf("answer %d: %v", n, err)
			}
			time.Sleep(time.Hour)
		}
	})
}
