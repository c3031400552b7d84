package rest

import (
	"net/http"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/cluster"
	"moorage/identity"
	"moorage/internal/web"
)

// CompressedBytesMaxDefault is enough for the compressed documents of some thousand tables.
const CompressedBytesMaxDefault = 64 << 20

// Catalog has the operations that the handlers call. *catalog.Catalog implements it. All methods
// are safe for concurrent use. Their errors have a moorage.Kind.
type Catalog interface {
	For(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) catalog.Verbs
}

// Config configures the Iceberg operations. Only Catalog is required.
type Config struct {
	Catalog Catalog
	// IdempotencyLifetime is the time in which clients may retry a request with the same
	// Idempotency-Key, as advertised to clients. It must equal the catalog's lifetime of keys. The
	// server always accepts keys, but clients send them only if it advertises the lifetime.
	// Default: not advertised.
	IdempotencyLifetime time.Duration
	// CompressedBytesMax is the maximum memory for compressed documents. Default
	// CompressedBytesMaxDefault.
	CompressedBytesMax int64
	// Tokens answers requests for tokens. Default: all requests for tokens are refused.
	Tokens Tokens
	// Stages issues tokens for staged tables. Default: tokens that only this process can read.
	Stages Stages
	// Router sends commits of tables and views to other nodes. Default: no commit is sent.
	Router Router
}

// Router may forward a commit to another node, which answers it. *cluster.Router implements it.
type Router interface {
	Forward(w http.ResponseWriter, r *http.Request, c cluster.Commit) (key string, answered bool)
}

// server has the shared state of the handlers. It is safe for concurrent use.
type server struct {
	*web.Server

	config       Config
	endpoints    []string
	reports      *prometheus.CounterVec // type
	compressed   *otter.Cache[compressedKey, *deflated]
	flateWriters sync.Pool // of *flate.Writer
	envelopes    sync.Pool // of *envelope
}

// Mount adds the routes of the Iceberg REST specification to s.
func Mount(s *web.Server, config Config) { mount(s, config) }

func mount(on *web.Server, config Config) *server {
	if config.CompressedBytesMax <= 0 {
		config.CompressedBytesMax = CompressedBytesMaxDefault
	}
	if config.Tokens == nil {
		config.Tokens = noTokens{}
	}
	if config.Stages == nil {
		config.Stages = identity.NewStages(identity.StagesConfig{})
	}
	s := &server{
		Server: on,
		config: config,
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_metrics_reports_total",
			Help: "Scan and commit reports that clients sent.",
		}, []string{"type"}),
		compressed: otter.Must(&otter.Options[compressedKey, *deflated]{
			MaximumWeight: uint64(config.CompressedBytesMax),
			Weigher:       compressedKey.weight,
		}),
	}
	s.flateWriters.New = newFlateWriter
	s.envelopes.New = func() any { return new(envelope) }
	on.Metrics().MustRegister(s.reports)
	s.routes()
	return s
}

// catalogFor returns the catalog's operations for the caller of r.
func (s *server) catalogFor(r *http.Request) catalog.Verbs {
	return s.config.Catalog.For(web.CallerOf(r), nil, nil)
}
