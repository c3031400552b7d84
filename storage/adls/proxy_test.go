package adls_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/internal/azuretest"
	"moorage/storage/adls"
)

// proxy stands between a store and the emulator, and spoils what it is told to.
type proxy struct {
	server string // the URL of the emulator without the account
	client *http.Client

	// mu guards the fields below; a leaf.
	mu   sync.Mutex
	plan plan
	seen []string // methods of the requests, in order
}

// plan says what is done to a request, which is number call of its run; nil: nothing.
type plan func(call int, r *http.Request) fault

// fault answers a request instead of the proxy; forward asks the emulator.
type fault func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response)

// newProxy returns a proxy, a store behind it, and an empty root of the store.
func newProxy(t *testing.T, stall time.Duration) (*proxy, *adls.Store, string) {
	t.Helper()
	server := azuretest.Start(t)
	root := server.NewContainer(t) + "/w"
	address, account, _ := strings.Cut(strings.TrimPrefix(server.Endpoint, "http://"), "/")
	p := &proxy{server: "http://" + address, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	t.Cleanup(p.client.CloseIdleConnections)
	options := emulated(server)
	options.Endpoint, options.RetryDelayMax, options.StallTimeout = front.URL+"/"+account, time.Millisecond, stall
	return p, open(t, options, root), root
}

// follow begins a new run, with plan.
func (p *proxy) follow(plan plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.seen = plan, nil
}

// requests returns the methods of the requests of the run.
func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// ServeHTTP answers as the emulator does, or as the plan says.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	var do fault
	if p.plan != nil {
		do = p.plan(len(p.seen), r)
	}
	p.seen = append(p.seen, r.Method)
	p.mu.Unlock()
	if do == nil {
		do = pass
	}
	do(w, r, p.forward)
}

func (p *proxy) forward(r *http.Request) *http.Response {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.server+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	answer, err := p.client.Do(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer
}

// answerWith sends header and body as the answer to the client.
func answerWith(w http.ResponseWriter, answer *http.Response, body []byte) {
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body) // the client may be gone
}

func readBody(answer *http.Response) []byte {
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// pass changes nothing.
func pass(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
	answer := forward(r)
	answerWith(w, answer, readBody(answer))
}

// cut ends the connection before the server sees the request.
func cut(http.ResponseWriter, *http.Request, func(*http.Request) *http.Response) {
	panic(http.ErrAbortHandler)
}

// lose ends the connection after the server did what it was asked to.
func lose(_ http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
	readBody(forward(r))
	panic(http.ErrAbortHandler)
}

// cutInAnswer ends the connection in the middle of the answer's body, or of its header if there is
// none.
func cutInAnswer(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
	answer := forward(r)
	body := readBody(answer)
	if len(body) == 0 {
		panic(http.ErrAbortHandler)
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	answerWith(w, answer, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// silent never answers, and does not pass the request on.
func silent(_ http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// silentInAnswer sends half of the answer's body and then nothing.
func silentInAnswer(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
	answer := forward(r)
	body := readBody(answer)
	if len(body) == 0 {
		<-r.Context().Done()
		return
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	answerWith(w, answer, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// refuse answers with an error of Azure and does not pass the request on.
func refuse(status int, code string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Ms-Error-Code", code)
		w.WriteHeader(status)
	}
}

// edit changes the body of the answer, and lets its header say so.
func edit(change func(body []byte) []byte) fault {
	return func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response) {
		answer := forward(r)
		body := change(readBody(answer))
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		answerWith(w, answer, body)
	}
}

// nth does a fault to the request number k of a run.
func nth(k int, do fault) plan {
	return func(call int, _ *http.Request) fault {
		if call == k {
			return do
		}
		return nil
	}
}

// always does a fault to every request.
func always(do fault) plan { return func(int, *http.Request) fault { return do } }
