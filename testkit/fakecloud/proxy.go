package fakecloud

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards requests from a store to a server, and injects the faults of a plan. It is safe
// for concurrent use.
type Proxy struct {
	// URL is the proxy's address.
	URL string

	server string
	client *http.Client

	// mu guards the fields below. No other lock is taken under it.
	mu   sync.Mutex
	plan Plan
	seen []string // methods of the requests, in order
}

// Plan returns the fault for a request, or nil for no fault. call is the number of the request in
// its run; see Follow. Only one goroutine at a time calls the Plan.
type Plan func(call int, r *http.Request) Fault

// Fault answers a request instead of the proxy.
type Fault func(w http.ResponseWriter, r *http.Request, forward Forward)

// Forward sends a request to the server behind the proxy.
type Forward = func(*http.Request) *http.Response

// NewProxy returns a proxy for the server at a URL. It ends with the test.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	p := &Proxy{server: server, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	front := httptest.NewServer(p)
	tb.Cleanup(front.Close)
	tb.Cleanup(p.client.CloseIdleConnections)
	p.URL = front.URL
	return p
}

// Follow begins a new run of requests, whose faults plan decides. The numbers of requests begin
// again.
func (p *Proxy) Follow(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.seen = plan, nil
}

// Requests returns the methods of the current run's requests.
func (p *Proxy) Requests() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.seen, " ")
}

// ServeHTTP answers as the real server does, or with the fault of the plan.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	var do Fault
	if p.plan != nil {
		do = p.plan(len(p.seen), r)
	}
	p.seen = append(p.seen, r.Method)
	p.mu.Unlock()
	if do == nil {
		do = Pass
	}
	do(w, r, p.forward)
}

// forward sends a request to the server. r's path and host must be unchanged, because a signature
// may cover them. If the server is not reachable, forward closes the connection to the client.
func (p *Proxy) forward(r *http.Request) *http.Response {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.server+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header, out.Host = r.Header.Clone(), r.Host
	answer, err := p.client.Do(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer
}

// AnswerWith sends header and body as the answer to the client.
func AnswerWith(w http.ResponseWriter, answer *http.Response, body []byte) {
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body) // the client may have disconnected
}

// ReadBody returns the body of an answer, which must arrive completely.
func ReadBody(answer *http.Response) []byte {
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// Pass is the Fault that answers as the server does.
func Pass(w http.ResponseWriter, r *http.Request, forward Forward) {
	answer := forward(r)
	AnswerWith(w, answer, ReadBody(answer))
}

// Cut ends the connection before the server sees the request.
func Cut(http.ResponseWriter, *http.Request, Forward) {
	panic(http.ErrAbortHandler)
}

// CutAfter returns a Fault that calls do, and then ends the connection before the server sees the
// request.
func CutAfter(do func()) Fault {
	return func(http.ResponseWriter, *http.Request, Forward) {
		do()
		panic(http.ErrAbortHandler)
	}
}

// CutInRequest ends the connection in the middle of the request's body.
func CutInRequest(_ http.ResponseWriter, r *http.Request, _ Forward) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	panic(http.ErrAbortHandler)
}

// Lose ends the connection after the server has carried out the request.
func Lose(_ http.ResponseWriter, r *http.Request, forward Forward) {
	ReadBody(forward(r))
	panic(http.ErrAbortHandler)
}

// CutInAnswer ends the connection in the middle of the answer's body, or of its header if there is
// no body.
func CutInAnswer(w http.ResponseWriter, r *http.Request, forward Forward) {
	answer := forward(r)
	body := ReadBody(answer)
	if len(body) == 0 {
		panic(http.ErrAbortHandler)
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	AnswerWith(w, answer, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Silent never answers, and does not forward the request.
func Silent(_ http.ResponseWriter, r *http.Request, _ Forward) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// SilentInAnswer sends half of the answer's body, and then nothing more. If the answer has no body,
// it sends nothing.
func SilentInAnswer(w http.ResponseWriter, r *http.Request, forward Forward) {
	answer := forward(r)
	body := ReadBody(answer)
	if len(body) == 0 {
		<-r.Context().Done()
		return
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	AnswerWith(w, answer, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Answer returns a Fault that answers with the given status and body, and does not forward the
// request.
func Answer(status int, contentType, body string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ Forward) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
	}
}

// Edit returns a Fault that changes the body of the answer, and adapts the header.
func Edit(change func(body []byte) []byte) Fault {
	return func(w http.ResponseWriter, r *http.Request, forward Forward) {
		answer := forward(r)
		body := change(ReadBody(answer))
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		AnswerWith(w, answer, body)
	}
}

// Nth returns a Plan that injects a fault into the request number k of a run.
func Nth(k int, do Fault) Plan {
	return func(call int, _ *http.Request) Fault {
		if call == k {
			return do
		}
		return nil
	}
}

// Always returns a Plan that injects a fault into every request.
func Always(do Fault) Plan { return func(int, *http.Request) Fault { return do } }

// FirstN returns a Plan that injects a fault into the first n requests of a run.
func FirstN(n int, do Fault) Plan {
	return func(call int, _ *http.Request) Fault {
		if call < n {
			return do
		}
		return nil
	}
}

// Every returns a Plan that injects a fault into each request with the given method.
func Every(method string, do Fault) Plan {
	return func(_ int, r *http.Request) Fault {
		if r.Method == method {
			return do
		}
		return nil
	}
}
