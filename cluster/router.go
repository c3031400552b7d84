package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/internal/trace"
)

// Bounds of forwarding.
const (
	// PassedOver is the time for which this node forwards no requests to an owner that did not
	// answer.
	PassedOver = 6 * time.Second
	// connectMax bounds how long a node waits for a connection to a peer, including the TLS
	// handshake.
	connectMax = time.Second
	// silenceMax is the longest silence of a peer before it gets a ping. It is also the time limit
	// for the answer to the ping. A peer that hangs accepts connections, but does not answer.
	silenceMax = time.Second
	// answerMax is the timeout of a forwarded request. The owner gives up a commit before that.
	answerMax = 45 * time.Second
	// forwardsMax is the maximum number of requests that this node forwards at once. It executes
	// further requests itself.
	forwardsMax = 256
	// answerBytesKept is the number of bytes of an answer that are read before the client gets any.
	// If the connection breaks earlier, this node executes the commit, and the client does not
	// notice.
	answerBytesKept = 1 << 20
	// idlePeerTimeout is the lifetime of an idle connection to a peer.
	idlePeerTimeout = 90 * time.Second
)

// Result is the result of an attempt to forward.
type Result string

// The results. After all of them except Answered, this node executes the request itself.
const (
	Answered    Result = "answered"    // the owner answered
	Refused     Result = "refused"     // the owner answered that it did nothing
	Unreachable Result = "unreachable" // there was no connection
	Lost        Result = "lost"        // no answer came, or the owner did not know the outcome
	Skipped     Result = "skipped"     // not sent: owner passed over or of another version, or forwardsMax reached
)

// Results returns all results.
func Results() []Result { return []Result{Answered, Refused, Unreachable, Lost, Skipped} }

// RouterConfig configures a Router. Fields without a default are required.
type RouterConfig struct {
	View    func() View // the present view
	Address string      // the peer address of this node
	Version string      // of this node; only nodes of one version interpret a caller alike
	TLS     *tls.Config // the settings for calls to other nodes
	Heat    *Heat
	// PointerOf returns the last known pointer for the name of a table or view. It must not do I/O.
	PointerOf func(moorage.Identifier) (Pointer, bool)
	// Observe is called with each result. It must not block. Default: does nothing.
	Observe func(Result)
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // default: discards
}

// Router forwards commits to the owners of their tables and views. It is safe for concurrent use.
type Router struct {
	config    RouterConfig
	transport *http.Transport
	underWay  atomic.Int64

	mu         sync.Mutex           // guards the field below; no lock is taken under it
	passedOver map[string]time.Time // until when each address is passed over; entries of former nodes are deleted
}

// NewRouter returns a Router. It must be closed.
func NewRouter(config RouterConfig) *Router {
	if config.Observe == nil {
		config.Observe = func(Result) {}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	dialer := &net.Dialer{Timeout: connectMax}
	return &Router{
		config:     config,
		passedOver: make(map[string]time.Time),
		transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: config.TLS, TLSHandshakeTimeout: connectMax,
			Protocols: Protocols(), HTTP2: &http.HTTP2Config{SendPingTimeout: silenceMax, PingTimeout: silenceMax},
			DisableCompression: true, IdleConnTimeout: idlePeerTimeout,
		},
	}
}

// Close closes idle connections to other nodes.
func (r *Router) Close() { r.transport.CloseIdleConnections() }

// Commit is a request for one table or view, whose body has been read.
type Commit struct {
	Ident  moorage.Identifier
	Caller moorage.Caller
	Body   []byte
	HasKey bool // the request has the client's Idempotency-Key
}

// Forward lets the owner of a commit answer request. It does so only if this node forwards to that
// owner now.
//
// If answered is false, the client got no answer, and this node must execute the commit. In that
// case, key is the internal key under which the owner may have executed the commit, or may still do
// so. key is empty if the owner did nothing and will do nothing, or if the request has its own key.
// If the answer breaks off after the client got a part of it, Forward panics with
// http.ErrAbortHandler.
func (r *Router) Forward(w http.ResponseWriter, request *http.Request, c Commit) (key string, answered bool) {
	if _, arrived := moorage.ArrivalOf(request.Context()); arrived {
		return "", false // a forwarded request is not forwarded again
	}
	pointer, known := r.config.PointerOf(c.Ident)
	if !known || !r.config.Heat.IsHot(pointer) {
		return "", false
	}
	owner, found := r.config.View().Owner(pointer)
	if !found || owner.Address == r.config.Address {
		return "", false
	}
	defer r.underWay.Add(-1)
	if r.underWay.Add(1) > forwardsMax || !r.mayAsk(owner) {
		r.config.Observe(Skipped)
		return "", false
	}
	if !c.HasKey {
		key = rand.Text()
	}
	result, why := r.ask(w, request, c, owner.Address, key)
	r.config.Observe(result)
	if result == Unreachable || result == Lost {
		r.passOver(request.Context(), owner.Address, result, why)
	}
	if result != Lost {
		key = "" // the owner did nothing, and will do nothing
	}
	return key, result == Answered
}

// mayAsk reports whether this node may forward requests to owner now.
func (r *Router) mayAsk(owner Member) bool {
	if owner.Version != r.config.Version {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until, passed := r.passedOver[owner.Address]
	if !passed {
		return true
	}
	if r.config.Now().Before(until) {
		return false
	}
	delete(r.passedOver, owner.Address)
	return true
}

// passOver stops forwarding to the node at address for a while. It does nothing if the client has
// disconnected. cause is the error of the failed request.
func (r *Router) passOver(ctx context.Context, address string, result Result, cause error) {
	if ctx.Err() != nil {
		return
	}
	now := r.config.Now()
	r.mu.Lock()
	for other, until := range r.passedOver {
		if !now.Before(until) {
			delete(r.passedOver, other)
		}
	}
	_, known := r.passedOver[address]
	r.passedOver[address] = now.Add(PassedOver)
	r.mu.Unlock()
	if !known {
		r.config.Logger.WarnContext(ctx, "a node did not answer, so its commits are carried out here for a while",
			"peer", address, "result", string(result), "for", PassedOver, "error", moorage.OneLine(cause.Error()))
	}
}

// ask sends the request to the node at address, and sends its answer to the client. If there is no
// answer, it returns the reason.
func (r *Router) ask(w http.ResponseWriter, request *http.Request, c Commit, address, key string) (Result, error) {
	ctx, cancel := context.WithTimeout(request.Context(), answerMax)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	forwarded, err := r.forwardOf(ctx, request, c, address, key)
	if err != nil {
		r.config.Logger.ErrorContext(ctx, "could not forward a commit", "error", err)
		return Skipped, nil
	}
	answer, err := r.transport.RoundTrip(forwarded)
	if err != nil {
		if connected.Load() {
			return Lost, err
		}
		return Unreachable, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return Refused, nil
	}
	if answer.StatusCode >= http.StatusInternalServerError {
		// The owner does not know the outcome. This node may be able to determine it.
		return Lost, fmt.Errorf("the answer was %s", answer.Status)
	}
	var kept bytes.Buffer
	_, err = io.CopyN(&kept, answer.Body, answerBytesKept)
	whole := errors.Is(err, io.EOF)
	if err != nil && !whole {
		return Lost, err
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	if _, err := w.Write(kept.Bytes()); err != nil || whole {
		return Answered, nil // all was sent, or the client has disconnected
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	return Answered, nil
}

// forwardOf returns the request to send to the node at address.
func (r *Router) forwardOf(ctx context.Context, request *http.Request, c Commit, address, key string) (
	*http.Request, error) {
	caller, err := encodeCaller(c.Caller)
	if err != nil {
		return nil, err
	}
	header := endToEnd(request.Header)
	header.Set(headerForwarded, r.config.Address)
	header.Set(headerCaller, caller)
	header.Set(headerRequestID, moorage.RequestID(ctx))
	trace.Inject(ctx, header)
	if key != "" {
		header.Set(headerKey, key)
	}
	if len(header.Values("User-Agent")) == 0 {
		header["User-Agent"] = []string{""} // otherwise net/http would add its own
	}
	path := request.URL.RawPath
	if path == "" {
		path = request.URL.EscapedPath()
	}
	forwarded := &http.Request{
		Method: request.Method,
		// Opaque is sent unchanged. A Path would be re-encoded.
		URL:    &url.URL{Scheme: "https", Host: address, Opaque: path, RawQuery: request.URL.RawQuery},
		Header: header, ContentLength: int64(len(c.Body)),
	}
	if len(c.Body) > 0 {
		// GetBody lets the transport resend a request if it is certain that the peer did not begin
		// it.
		forwarded.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.Body)), nil }
		forwarded.Body = io.NopCloser(bytes.NewReader(c.Body))
	}
	return forwarded.WithContext(ctx), nil
}

// endToEnd returns a copy of header without three kinds of headers: for one connection, for nodes
// only, or for this node only. This node has authenticated the caller, so it does not forward the
// caller's secrets.
func endToEnd(header http.Header) http.Header {
	copied := header.Clone()
	if copied == nil {
		copied = http.Header{}
	}
	for _, list := range header.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			copied.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Content-Length", "Authorization", "Proxy-Authorization", "Cookie", "X-Forwarded-For",
	} {
		copied.Del(name)
	}
	dropHeaders(copied)
	return copied
}
