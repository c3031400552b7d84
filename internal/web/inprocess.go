package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// InProcess sends requests to a handler of this process. It keeps each answer in memory. It is safe
// for concurrent use.
type InProcess struct {
	Handler http.Handler
	// Prepare adds the sender to a request: its address and its headers. Default: the sender is
	// 127.0.0.1.
	Prepare func(asked *http.Request)
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
	answer := &keptAnswer{header: make(http.Header), status: http.StatusOK}
	p.Handler.ServeHTTP(answer, asked)
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)),
		StatusCode: answer.status, Header: answer.header, Body: io.NopCloser(&answer.body), Request: r,
	}, nil
}

// keptAnswer keeps an answer in memory.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *keptAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *keptAnswer) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *keptAnswer) Write(part []byte) (int, error) { return w.body.Write(part) }
