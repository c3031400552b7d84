// Package web is what the HTTP faces of Moorage share: one server with its routes, ids of requests,
// answers and failures, bodies, pages, probes and metrics.
//
// A face adds its routes with Server.Handle. Its handlers return an error, which the server turns
// into a status and a message. One table has the statuses (errors.go). Every failure is answered
// as {"error":{…}}, also a panic and a path that does not exist. Only what net/http refuses before
// it calls the handler is not. Every body and page is bounded, and names are decoded once, from
// the escaped path (params.go).
//
// It knows nothing of catalogs.
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
)

// Defaults of Config.
const (
	// BodyBytesMaxDefault is generous because replacing or expiring a large table sends its
	// snapshots and schemas in one request.
	BodyBytesMaxDefault = 64 << 20
	// BodiesBytesMaxDefault is room for four of the largest bodies of the default.
	BodiesBytesMaxDefault = 256 << 20
	// AnswersBytesMaxDefault is room for four loads of the longest document.
	AnswersBytesMaxDefault = 1 << 30
)

// Config is what a Server is made of. The zero value is good.
type Config struct {
	// Logger gets one line for each request, and one for each failure of the server. The line of a
	// request has debug level, that of a refused one info level; see SumRefusals. Default:
	// discards.
	Logger *slog.Logger
	// Now gives the time for latencies, logs and the deadlines of connections. Default time.Now.
	Now func() time.Time
	// Registry is what GET /metrics shows. The server adds its own metrics to it, so it serves one
	// server. Default: a new one.
	Registry *prometheus.Registry
	// Ready returns nil if the server can do its work, and the reason if not. GET /readyz asks it.
	// Default: always ready.
	Ready func(ctx context.Context) error
	// Notices returns what is wrong and does not keep the server from its work, by what it is
	// about. GET /readyz answers it beside the status. Default: nothing.
	Notices func() map[string]string
	// Details returns what GET /readyz?verbose answers besides, by what it is about. It names
	// warehouses only if named is true, for callers who may read GET /metrics. Default: nothing.
	Details func(named bool) map[string]string
	// Refusal returns nil, or why the server refuses every request except those for /healthz and
	// /metrics. It does so until it ends. Default: it refuses none.
	Refusal func() error
	// Authenticate returns who sends a request. The server asks it before anything else, except for
	// the routes of HandleOpen. The error may have a method Challenge in its chain, which returns
	// the header WWW-Authenticate. Default: everybody is moorage.Anonymous.
	Authenticate func(r *http.Request) (moorage.Caller, error)
	// Measure returns nil if a caller may read GET /metrics, else the refusal. Default: everybody
	// may.
	Measure func(ctx context.Context, caller moorage.Caller) error
	// Hosts are the names by which clients may ask for the server, besides localhost and loopback
	// addresses; nil: any. A server that trusts everybody who reaches it must not answer other
	// names: a page in a browser can bind a name of its own to the server's address.
	Hosts []string
	// BodyBytesMax is the longest request body that is read. Default BodyBytesMaxDefault.
	BodyBytesMax int64
	// BodiesBytesMax bounds the memory of the bodies of all requests that are being answered, as
	// far as they have arrived. Bodies of at most 64 KiB do not count. What is decoded from a body
	// takes up to a few times as much again. A request that finds no room within some seconds is
	// KindTooManyRequests. Default BodiesBytesMaxDefault; at least BodyBytesMax.
	BodiesBytesMax int64
	// AnswersBytesMax bounds the memory of large answers until their clients have taken them; see
	// HoldAnswer. Default AnswersBytesMaxDefault.
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
	direct    []directRoute   // beside the router
	words     map[string]bool // that routes have in their paths
	metrics   metrics
	unknown   *operation // of a request that met no route
	origins   *http.CrossOriginProtection
	bodies    *room           // for large bodies
	answers   *answers        // large ones
	explained string          // see Explain
	summed    map[string]bool // by operation; see SumRefusals
	refusals  refusals

	// A request's id is requestIDPrefix, which differs from server to server and from run to run,
	// and a number.
	requestIDPrefix string
	requestCount    atomic.Uint64

	// Reused, because each is large or made for each request.
	exchanges   sync.Pool // of *exchange
	gzipWriters sync.Pool // of *gzip.Writer
}

// Handler answers a request. The server answers an error that it returns if the handler has not
// begun to answer.
type Handler func(w http.ResponseWriter, r *http.Request) error

// New returns a server that has the routes of probes and no others. It panics if config.Registry
// has a server's metrics already.
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
	s.router.NotFound(s.adapt(s.unknown, s.authenticated(s.noRoute)))
	s.router.MethodNotAllowed(s.adapt(s.unknown, s.authenticated(s.noMethod)))
	return s
}

// Handle adds a route. Logs and metrics call its requests operation. A part of path in braces is a
// parameter.
func (s *Server) Handle(operation, method, path string, h Handler) {
	s.add(operation, method, path, s.authenticated(h))
}

// HandleOpen is Handle for a route that anybody may use: nobody is asked who sends a request.
func (s *Server) HandleOpen(operation, method, path string, h Handler) {
	s.add(operation, method, path, h)
}

// add adds a route and returns what the router calls.
func (s *Server) add(operation, method, path string, h Handler) http.HandlerFunc {
	adapted := s.adapt(s.metrics.operation(operation), h)
	s.learn(path)
	s.router.Method(method, path, adapted)
	return adapted
}

// Explain lets failures below prefix say the request's id, and what the client can do.
func (s *Server) Explain(prefix string) { s.explained = prefix }

// Metrics is where a face registers metrics of its own.
func (s *Server) Metrics() prometheus.Registerer { return s.config.Registry }
