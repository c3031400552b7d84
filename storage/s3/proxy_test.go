package s3_test

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

	"moorage/internal/s3test"
	"moorage/storage/s3"
)

// proxy stands between a store and the real server, and spoils what it is told to.
type proxy struct {
	url    string
	server string
	client *http.Client

	// mu guards the fields below; a leaf.
	mu   sync.Mutex
	plan plan
	seen []string // methods of the requests, in order
}

// plan says what is done to a request, which is number call of its run; nil: nothing.
type plan func(call int, r *http.Request) fault

// fault answers a request instead of the proxy; forward asks the real server.
type fault func(w http.ResponseWriter, r *http.Request, forward func(*http.Request) *http.Response)

// newProxy returns a proxy before the test server, a store behind it, and an empty root of the
// store.
func newProxy(t *testing.T, change ...func(*s3.Options)) (*proxy, *s3.Store, string) {
	t.Helper()
	server := s3test.Start(t)
	root := "s3://" + server.NewBucket(t) + "/w"
	p := &proxy{server: server.Endpoint, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	t.Cleanup(p.client.CloseIdleConnections)
	p.url = front.URL
	opts := options(front.URL)
	opts.RetryDelayMax = time.Millisecond
	for _, each := range change {
		each(&opts)
	}
	return p, open(t, opts, root), root
}

// follow begins a new run, with plan.
func (p *proxy) follow(plan plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.seen = plan, nil
}

// requests returns the methods of the requests of the run.
func (p *proxy) requests() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.seen, " ")
}

// ServeHTTP answers as the real server does, or as the plan says.
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

// forward sends a request to the real server, which must not see the difference: the
// signature covers path and host. A server that is gone cuts the connection.
func (p *proxy) forward(r *http.Request) *http.Response {
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

// cutInRequest ends the connection in the middle of the request's body.
func cutInRequest(_ http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
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
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	answerWith(w, answer, body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// refuse answers with an error of S3 and does not pass the request on.
func refuse(status int, code string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>as planned</Message></Error>")
		}
	}
}

// answerOK answers with 200 and body, and does not pass the request on.
func answerOK(body string) fault {
	return func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *http.Response) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, body)
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

// firstN does a fault to the first n requests of a run.
func firstN(n int, do fault) plan {
	return func(call int, _ *http.Request) fault {
		if call < n {
			return do
		}
		return nil
	}
}

// every does a fault to each request with method.
func every(method string, do fault) plan {
	return func(_ int, r *http.Request) fault {
		if r.Method == method {
			return do
		}
		return nil
	}
}
