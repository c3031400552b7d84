// Package web is the common part of Moorage's HTTP faces: one server with its routes, request ids,
// answers and failures, bodies, pages, probes and metrics.
//
// A face is a package with HTTP handlers, such as rest and management. It adds its routes with
// Server.Handle. Its handlers return an error, which the server turns into a status and a message.
// One table assigns the statuses to kinds of errors (errors.go). Every failure is answered as
// {"error":{…}}, including a panic and an unknown path. The only exception is a request that
// net/http refuses before it calls the handler. Every body and page is bounded, and names are
// decoded once, from the escaped path (params.go).
//
// The package must not import catalogs.
package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/internal/trace"
)

// Defaults of Config.
const (
	// BodyBytesMaxDefault is generous, because a client that replaces or expires a large table
	// sends its snapshots and schemas in one request.
	BodyBytesMaxDefault = 64 << 20
	// BodiesBytesMaxDefault is enough for four bodies of BodyBytesMaxDefault.
	BodiesBytesMaxDefault = 256 << 20
	// AnswersBytesMaxDefault is enough for four loads of the longest document.
	AnswersBytesMaxDefault = 1 << 30
)

// Config configures a Server. The zero value is valid.
type Config struct {
	// Logger gets one line for each request, and one line for each failure of the server. The line
	// of a refused request has info level, unless SumRefusals limits such lines. The lines of other
	// requests have debug level. By default nothing is logged.
	Logger *slog.Logger
	// Now gives the time for latencies, logs and the deadlines of connections. Default time.Now.
	Now func() time.Time
	// Registry is the source of GET /metrics. The server adds its own metrics, so a registry can
	// serve only one server. Default: a new registry.
	Registry *prometheus.Registry
	// Ready returns nil if the server can do its work, and the reason if not. GET /readyz calls it.
	// By default the server is always ready.
	Ready func(ctx context.Context) error
	// Notices returns problems that do not stop the server from working, by subject. GET /readyz
	// adds them to the status. By default there are no problems.
	Notices func() map[string]string
	// Details returns the details that GET /readyz?verbose adds, by subject. The details name
	// warehouses only if named is true. named is true for callers that may read GET /metrics. By
	// default there are no details.
	Details func(named bool) map[string]string
	// Tracer starts the spans of requests. By default nothing is traced.
	Tracer *trace.Tracer
	// Refusal returns the reason if the server must refuse every request except /healthz and
	// /metrics, and nil otherwise. Once Refusal has returned a reason, it must keep returning it
	// until the server ends. By default it returns nil.
	Refusal func() error
	// Authenticate returns the sender of a request. The server calls it before the handler, except
	// for the routes of HandleOpen. An error in the chain of its result may have a method
	// Challenge, which returns the value of the header WWW-Authenticate. By default every caller is
	// moorage.Anonymous.
	Authenticate func(r *http.Request) (moorage.Caller, error)
	// Measure returns nil if a caller may read GET /metrics, and the refusal otherwise. By default
	// every caller may read the metrics.
	Measure func(ctx context.Context, caller moorage.Caller) error
	// Home returns the page that a browser gets at the root. uri is the address that the browser
	// used. Every caller gets the page. By default there is no page.
	Home func(ctx context.Context, uri string) []byte
	// HomePath is the path to which the server redirects a browser at the root, instead of
	// answering with Home. By default it does not redirect.
	HomePath string
	// Hosts are the host names that clients may use for the server, in addition to localhost and
	// loopback addresses. Nil means any name. A server that trusts every caller must refuse all
	// other names: the author of a page in a browser can point a domain name at the server's
	// address.
	Hosts []string
	// BodyBytesMax is the longest request body that is read. Default BodyBytesMaxDefault.
	BodyBytesMax int64
	// BodiesBytesMax limits the memory for the bodies of all requests in progress, as far as the
	// bodies have arrived. Bodies of at most 64 KiB do not count. The decoded form of a body takes
	// up to a few times as much memory in addition. A request that gets no room within some seconds
	// fails with KindTooManyRequests. Default BodiesBytesMaxDefault; at least BodyBytesMax.
	BodiesBytesMax int64
	// AnswersBytesMax limits the memory for large answers until their clients have received them;
	// see HoldAnswer. Default AnswersBytesMaxDefault.
	AnswersBytesMax int64
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	if c.Notices == nil {
		c.Notices = func() map[string]string { return nil }
	}
	if c.Details == nil {
		c.Details = func(bool) map[string]string { return nil }
	}
	if c.Refusal == nil {
		c.Refusal = func() error { return nil }
	}
	if c.Measure == nil {
		c.Measure = func(context.Context, moorage.Caller) error { return nil }
	}
	if c.BodyBytesMax <= 0 {
		c.BodyBytesMax = BodyBytesMaxDefault
	}
	if c.BodiesBytesMax <= 0 {
		c.BodiesBytesMax = BodiesBytesMaxDefault
	}
	if c.AnswersBytesMax <= 0 {
		c.AnswersBytesMax = AnswersBytesMaxDefault
	}
	c.BodiesBytesMax = max(c.BodiesBytesMax, c.BodyBytesMax)
	return c
}

// Server answers the requests of all faces. It is safe for concurrent use once all routes are
// added.
type Server struct {
	config    Config
	router    *chi.Mux
	direct    []directRoute   // routes that bypass the router
	words     map[string]bool // the literal segments in the paths of routes
	metrics   metrics
	unknown   *operation // for requests that matched no route
	origins   *http.CrossOriginProtection
	bodies    *room           // for large bodies
	answers   *answers        // for large answers
	explained string          // see Explain
	summed    map[string]bool // by operation; see SumRefusals
	refusals  refusals

	// A request's id is requestIDPrefix and a number. The prefix differs between servers and
	// between runs.
	requestIDPrefix string
	requestCount    atomic.Uint64

	// These objects are reused, because they are large or because every request needs one.
	exchanges   sync.Pool // of *exchange
	gzipWriters sync.Pool // of *gzip.Writer
}

// Handler answers a request. If it returns an error and has not begun to answer, the server answers
// the error.
type Handler func(w http.ResponseWriter, r *http.Request) error

// New returns a server that has only the routes of probes. It panics if config.Registry already has
// a server's metrics.
func New(config Config) *Server {
	config = config.withDefaults()
	s := &Server{
		config:          config,
		router:          chi.NewRouter(),
		words:           map[string]bool{},
		origins:         http.NewCrossOriginProtection(),
		bodies:          newRoom(config.BodiesBytesMax, config.BodyBytesMax),
		answers:         newAnswers(config.AnswersBytesMax, 0),
		metrics:         newMetrics(config.Registry),
		summed:          map[string]bool{},
		requestIDPrefix: rand.Text()[:10] + "-",
	}
	s.unknown = s.metrics.operation(operationUnknown)
	s.exchanges.New = func() any { return &exchange{route: chi.NewRouteContext()} }
	s.gzipWriters.New = newGzipWriter
	s.routeProbes()
	s.routeHome()
	s.router.NotFound(s.adapt(s.unknown, s.authenticated(s.noRoute)))
	s.router.MethodNotAllowed(s.adapt(s.unknown, s.authenticated(s.noMethod)))
	return s
}

// Handle adds a route. operation is its name in logs and metrics. A part of path in braces is a
// parameter.
func (s *Server) Handle(operation, method, path string, h Handler) {
	s.add(operation, method, path, s.authenticated(h))
}

// HandleOpen is like Handle, for a route that requires no authentication.
func (s *Server) HandleOpen(operation, method, path string, h Handler) {
	s.add(operation, method, path, h)
}

// add adds a route and returns the handler that the router calls.
func (s *Server) add(operation, method, path string, h Handler) http.HandlerFunc {
	adapted := s.adapt(s.metrics.operation(operation), h)
	s.learn(path)
	s.router.Method(method, path, adapted)
	return adapted
}

// Explain adds the request's id and a help sentence to failures below prefix.
func (s *Server) Explain(prefix string) { s.explained = prefix }

// Metrics returns the registry for a face's own metrics.
func (s *Server) Metrics() prometheus.Registerer { return s.config.Registry }
