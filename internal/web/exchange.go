package web

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"moorage"
	"moorage/internal/loopback"
	"moorage/internal/trace"
)

// exchange is one request with its answer. It is the ResponseWriter for handlers, and collects the
// facts for logs and metrics. Exchanges are reused, but one exchange serves only one request at a
// time.
type exchange struct {
	http.ResponseWriter
	route     *chi.Context
	operation *operation
	requestID string
	traceID   string      // empty if the request is not traced
	span      *trace.Span // nil if the request is not traced
	status    int         // 0: no answer yet
	refusal   string      // the error message in the answer
	bytes     int64
	room      share // of Server.bodies; given back when the request is answered
	pace      pace  // of a large answer
	// isStranger is set by MarkStranger.
	isStranger bool
}

// ids returns the ids of the request, for the log.
func (x *exchange) ids() slog.Attr {
	request := slog.String("request_id", x.requestID)
	if x.traceID == "" {
		return request
	}
	// A group without a name adds its attributes to the outer level.
	return slog.Attr{Value: slog.GroupValue(request, slog.String("trace_id", x.traceID))}
}

func (x *exchange) began() bool { return x.status != 0 }

// WriteHeader sends the header. Further calls do nothing.
func (x *exchange) WriteHeader(status int) {
	if !x.began() {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (x *exchange) Write(part []byte) (int, error) {
	if !x.began() {
		x.status = http.StatusOK
	}
	if x.pace.isKept {
		return x.writePaced(part)
	}
	n, err := x.ResponseWriter.Write(part)
	x.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// ServeHTTP answers one request. It gives the request an id, routes it by its escaped path, and
// records the outcome.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := s.config.Now()
	x := s.exchanges.Get().(*exchange)
	x.ResponseWriter, x.operation, x.status, x.refusal, x.bytes = w, s.unknown, 0, "", 0
	x.isStranger = false
	x.requestID = s.requestID(r)
	// Without this route context, the router would create one, and copy the request once more. It
	// would also decode %2F in names before it splits the path at slashes.
	x.route.Reset()
	x.route.Routes = s.router
	path := EscapedPath(r.URL)
	x.route.RoutePath = withoutEmptySegments(path)
	ctx := context.WithValue(moorage.WithRequestID(r.Context(), x.requestID), chi.RouteCtxKey, x.route)
	ctx, x.span = s.config.Tracer.Request(ctx, r.Header)
	x.traceID = moorage.TraceID(ctx)

	w.Header()["X-Request-Id"] = []string{x.requestID}
	s.expectBody(x, r)
	s.metrics.inFlight.Inc()
	defer func() {
		torn := s.recovered(x, r, recover())
		s.bodies.giveBack(&x.room)
		x.endPace()
		s.note(x, r, started)
		x.span.EndRequest(x.operation.name, r.Method, x.status, x.bytes)
		if torn {
			panic(http.ErrAbortHandler) // makes net/http close the connection
		}
		x.ResponseWriter = nil
		s.exchanges.Put(x)
	}()
	r = r.WithContext(ctx)
	if x.route.RoutePath != path {
		r.URL = reSpelled(r.URL, x.route.RoutePath)
	}
	if handle := s.findDirect(r.Method, x.route.RoutePath, &x.route.URLParams); handle != nil {
		handle(x, r)
		return
	}
	s.router.ServeHTTP(x, r)
}

// adapt turns h into a handler for the router, and sets the request's operation for logs and
// metrics.
func (s *Server) adapt(operation *operation, h Handler) http.HandlerFunc {
	probe := operation.name == operationHealth || operation.name == operationMetrics
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.operation = operation
		if !probe && operation.name != operationReady && !s.isMine(r.Host) { // a probe's host is a pod's address
			s.writeFailure(x, r, failureNoHost,
				"This server is not "+r.Host+": use localhost, or start it with --host")
			return
		}
		err := cmp.Or(s.refuseBeyondRoom(x, r), s.refuseForeignPage(r))
		if err == nil && !probe {
			err = s.config.Refusal()
		}
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			s.fail(x, r, err)
		}
	}
}

// refuseForeignPage refuses a change that a page from another origin makes a browser send. Any page
// may send a POST, even to a server that listens on loopback only and trusts every caller there.
// Clients other than browsers send none of the headers that this function checks. A page cannot set
// the header Authorization of a cross-origin request, so a request with that header is safe.
func (s *Server) refuseForeignPage(r *http.Request) error {
	if s.config.Authenticate != nil && r.Header["Authorization"] != nil {
		return nil
	}
	if s.origins.Check(r) != nil {
		return moorage.Errorf(moorage.KindForbidden, "A page from another origin may not change anything here")
	}
	return nil
}

// isMine reports whether clients may use host as a name of this server, with or without a port. An
// empty host is allowed, because it cannot come from a browser: every browser sends a host.
func (s *Server) isMine(host string) bool {
	if s.config.Hosts == nil || host == "" || loopback.Is(host) {
		return true
	}
	name := strings.TrimSuffix(hostWithoutPort(host), ".")
	return slices.ContainsFunc(s.config.Hosts, func(mine string) bool {
		return strings.EqualFold(name, mine) || strings.EqualFold(host, mine)
	})
}

// recovered answers a request whose handler panicked with reason. It does nothing if reason is nil,
// which means that there was no panic. It returns true if the handler had already begun an answer,
// which then must not look complete.
func (s *Server) recovered(x *exchange, r *http.Request, reason any) (torn bool) {
	switch {
	case reason == nil:
		return false
	case reason == http.ErrAbortHandler:
		return true
	}
	s.config.Logger.LogAttrs(r.Context(), slog.LevelError, "handler panicked",
		x.ids(), slog.String("operation", x.operation.name),
		slog.String("reason", fmt.Sprint(reason)), slog.String("stack", string(debug.Stack())))
	if x.began() {
		return true
	}
	clear(x.Header())
	x.Header()["X-Request-Id"] = []string{x.requestID}
	internal := FailureOf(moorage.KindInternal)
	s.writeFailure(x, r, internal, internal.Fallback)
	return false
}

// requestID returns the client's id for the request if it is safe for logs and headers, and
// otherwise a new id. Only another node may send an id in the form that nodes generate. Otherwise a
// client could hide its request behind the id of another request.
func (s *Server) requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && saneRequestID(given[0]) {
		if _, forwarded := moorage.ArrivalOf(r.Context()); forwarded || !isDrawn(given[0]) {
			return given[0]
		}
	}
	return s.requestIDPrefix + strconv.FormatUint(s.requestCount.Add(1), 10)
}

// requestIDBytesMax is the maximum length of an id from a client.
const requestIDBytesMax = 128

// saneRequestID reports whether an id consists of letters, digits and the other characters in
// UUIDs, trace ids and paths.
func saneRequestID(id string) bool {
	return id != "" && len(id) <= requestIDBytesMax && strings.Trim(id, requestIDCharacters) == ""
}

// The characters that ids from clients may have, and the characters of the prefix of generated ids.
const (
	requestIDCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:;/+="
	drawnCharacters     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	drawnBytes          = 10
)

// isDrawn reports whether an id has the form of a generated id.
func isDrawn(id string) bool {
	prefix, number, found := strings.Cut(id, "-")
	return found && len(prefix) == drawnBytes && strings.Trim(prefix, drawnCharacters) == "" &&
		number != "" && strings.Trim(number, "0123456789") == ""
}

// withoutEmptySegments returns an escaped path without surplus slashes. Clients add them, at the
// end or twice in a row, when they join a base address and a path. No name is empty, and a slash in
// a name is %2F, so these slashes have no meaning. The empty namespace in /namespaces//tables/t
// stays. A Java client sends this path if it requests a table t without a namespace, and the answer
// must be that the table does not exist.
func withoutEmptySegments(path string) string {
	if !strings.Contains(path, "//") && (len(path) < 2 || path[len(path)-1] != '/') {
		return path
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	kept := segments[:0]
	for i, segment := range segments {
		if segment != "" || i > 0 && segments[i-1] == "namespaces" {
			kept = append(kept, segment)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// reSpelled returns a copy of u whose escaped path is path.
func reSpelled(u *url.URL, path string) *url.URL {
	changed := *u
	changed.RawPath = path
	if plain, err := url.PathUnescape(path); err == nil {
		changed.Path = plain
	}
	return &changed
}

// EscapedPath returns the path of u exactly as the client sent it. URL.EscapedPath is different in
// one case: if the client did not escape a character that it should have escaped, URL.EscapedPath
// encodes the path again, and loses %2F.
func EscapedPath(u *url.URL) string {
	path := u.RawPath
	if path == "" {
		path = u.EscapedPath()
	}
	if path == "" {
		path = "/"
	}
	return path
}
