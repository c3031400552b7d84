package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"moorage"
)

// InProcess sends requests to a handler of this process. It keeps each answer in memory. It is safe
// for concurrent use if its functions are.
type InProcess struct {
	Handler http.Handler
	// Prepare adds the sender to a request: its address and its headers. Default: the sender is
	// 127.0.0.1.
	Prepare func(asked *http.Request)
	// AnswerBytesMax is the maximum length of an answer. A longer answer to a GET becomes a 413. A
	// longer answer to any other request loses its body but keeps its status, because the request
	// may have changed something. 0 means no limit.
	AnswerBytesMax int
	// Keep is called with a function that gives back the room of a large answer; see
	// Server.HoldAnswer. The caller must call release when it no longer needs the answer. By
	// default, closing the body gives the room back.
	Keep func(release func())
}

// RoundTrip implements http.RoundTripper.
func (p InProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.RequestURI, asked.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	if p.Prepare != nil {
		p.Prepare(asked)
	}
	answer := &keptAnswer{header: make(http.Header), status: http.StatusOK, bytesMax: p.AnswerBytesMax}
	isAnswered := false
	defer func() {
		if !isAnswered { // the handler panicked
			answer.release()
		}
	}()
	p.Handler.ServeHTTP(answer, asked)
	isAnswered = true
	if answer.isTooLong && r.Method == http.MethodGet {
		answer.refuse()
	}
	for name, values := range answer.header { // in the form in which a client receives them over a connection
		if canonical := http.CanonicalHeaderKey(name); canonical != name {
			delete(answer.header, name)
			answer.header[canonical] = values
		}
	}
	body := keptBody{&answer.body, answer.release}
	if p.Keep != nil && len(answer.releases) > 0 {
		p.Keep(answer.release)
		body.close = func() {}
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)),
		StatusCode: answer.status, Header: answer.header, Body: body, Request: r,
	}, nil
}

// keptAnswer keeps an answer in memory.
type keptAnswer struct {
	header    http.Header
	status    int
	body      bytes.Buffer
	bytesMax  int // maximum length of the body; 0 means no limit
	isTooLong bool
	releases  []func() // each gives back room that the answer holds
}

// Header implements http.ResponseWriter.
func (w *keptAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *keptAnswer) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *keptAnswer) Write(part []byte) (int, error) {
	if w.bytesMax > 0 && w.body.Len()+len(part) > w.bytesMax {
		w.isTooLong, w.body = true, bytes.Buffer{}
	}
	if w.isTooLong {
		return len(part), nil
	}
	return w.body.Write(part)
}

// refuse turns an answer that is too long into an error.
func (w *keptAnswer) refuse() {
	refused := FailureOf(moorage.KindTooLarge)
	body, err := json.Marshal(errorAnswer{errorModel{
		Message: fmt.Sprintf("The answer is longer than %d MiB, which is too much for a page. Ask the API for it",
			w.bytesMax>>20),
		Type: refused.Type, Code: refused.Status,
	}})
	if err != nil {
		panic(err) // strings and a number can always be encoded
	}
	w.status, w.header = refused.Status, http.Header{"Content-Type": HeaderJSON}
	w.body.Write(body)
}

// release gives back the room that the answer holds. Further calls do nothing.
func (w *keptAnswer) release() {
	for _, release := range w.releases {
		release()
	}
	w.releases = nil
}

// keptBody is the body of a kept answer.
type keptBody struct {
	io.Reader

	close func()
}

// Close implements io.Closer.
func (b keptBody) Close() error {
	b.close()
	return nil
}
