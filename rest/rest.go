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

// CompressedBytesMaxDefault holds the compressed documents of some thousand tables.
const CompressedBytesMaxDefault = 64 << 20

// DefaultWarehouse is the warehouse of requests whose path names none.
const DefaultWarehouse = "default"

// Catalog is what the handlers ask for; *catalog.Catalog gives it. All methods are safe for
// concurrent use and fail with errors that have a moorage.Kind.
type Catalog interface {
	For(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) catalog.Verbs
}

// Config is what the Iceberg operations need. Only Catalog is required.
type Config struct {
	Catalog Catalog
	// IdempotencyLifetime is how long clients are told that they may repeat a request with the same
	// Idempotency-Key. It is that of the catalog. The server heeds keys in any case, but clients
	// send them only if they are told. Default: they are not.
	IdempotencyLifetime time.Duration
	// CompressedBytesMax bounds the memory of compressed documents. Default
	// CompressedBytesMaxDefault.
	CompressedBytesMax int64
	// Tokens answers requests for tokens. Default: gives out none, and says so.
	Tokens Tokens
	// Stages makes tokens for tables that are about to be made. Default: only this process reads
	// them.
	Stages Stages
	// Router sends commits of tables and views to other nodes. Default: none is sent.
	Router Router
}

// Router may have another node answer a commit; *cluster.Router does.
type Router interface {
	Forward(w http.ResponseWriter, r *http.Request, c cluster.Commit) (key string, answered bool)
}

// server holds what handlers share. It is safe for concurrent use.
type server struct {
	*web.Server

	config       Config
	endpoints    []string
	reports      *prometheus.CounterVec // type
	compressed   *otter.Cache[compressedKey, *deflated]
	flateWriters sync.Pool // of *flate.Writer
	envelopes    sync.Pool // of *envelope
}

// Mount adds the routes of the Iceberg REST specification to on.
func Mount(on *web.Server, config Config) { mount(on, config) }

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

// as returns the catalog as the caller of r has it.
func (s *server) as(r *http.Request) catalog.Verbs {
	return s.config.Catalog.For(web.CallerOf(r), nil, nil)
}
