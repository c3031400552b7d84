package rest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
)

// Defaults of Config.
const (
	// BodyBytesMaxDefault is generous because replacing or expiring a large table sends its
	// snapshots and schemas in one request.
	BodyBytesMaxDefault = 64 << 20
	// BodiesBytesMaxDefault is room for four of the largest bodies of the default.
	BodiesBytesMaxDefault = 256 << 20
	// CompressedBytesMaxDefault holds the compressed documents of some thousand tables.
	CompressedBytesMaxDefault = 64 << 20
)

// DefaultWarehouse is the warehouse of requests whose path names none.
const DefaultWarehouse = "default"

// Catalog is what the handlers ask for; *catalog.Catalog gives it. All methods are
// safe for concurrent use and fail with errors that have a moorage.Kind.
type Catalog interface {
	warehouses
	namespaces
	tables
	views
	unfinished
	Once(ctx context.Context, key catalog.Key, mutate func(ctx context.Context) (catalog.Outcome, error)) (catalog.Outcome, error)
}

type warehouses interface {
	LoadWarehouse(ctx context.Context, name string) (catalog.Warehouse, error)
	Check(ctx context.Context) (catalog.Report, error)
}

type namespaces interface {
	CreateNamespace(ctx context.Context, warehouse string, ns moorage.Namespace, properties map[string]string) (map[string]string, error)
	ListNamespaces(ctx context.Context, warehouse string, parent moorage.Namespace, page catalog.Page) ([]moorage.Namespace, string, error)
	LoadNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) (map[string]string, error)
	DropNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) error
	UpdateNamespaceProperties(ctx context.Context, warehouse string, ns moorage.Namespace, change catalog.PropertiesChange) (catalog.PropertiesResult, error)
}

type tables interface {
	ListTables(ctx context.Context, warehouse string, ns moorage.Namespace, page catalog.Page) ([]string, string, error)
	CreateTable(ctx context.Context, ident moorage.Identifier, request catalog.CreateTableRequest) (*catalog.Table, error)
	LoadTable(ctx context.Context, ident moorage.Identifier) (*catalog.Table, error)
	TableExists(ctx context.Context, ident moorage.Identifier) error
	Commit(ctx context.Context, ident moorage.Identifier, request catalog.CommitRequest) (*catalog.Table, error)
	CommitTransaction(ctx context.Context, warehouse string, changes []catalog.TableChange) error
	DropTable(ctx context.Context, ident moorage.Identifier, options catalog.DropOptions) error
	RenameTable(ctx context.Context, from, to moorage.Identifier) error
	RegisterTable(ctx context.Context, ident moorage.Identifier, request catalog.RegisterRequest) (*catalog.Table, error)
	UnregisterTable(ctx context.Context, ident moorage.Identifier) (*catalog.Table, error)
}

type views interface {
	ListViews(ctx context.Context, warehouse string, ns moorage.Namespace, page catalog.Page) ([]string, string, error)
	CreateView(ctx context.Context, ident moorage.Identifier, request catalog.CreateViewRequest) (*catalog.View, error)
	LoadView(ctx context.Context, ident moorage.Identifier) (*catalog.View, error)
	ViewExists(ctx context.Context, ident moorage.Identifier) error
	ReplaceView(ctx context.Context, ident moorage.Identifier, request catalog.ReplaceViewRequest) (*catalog.View, error)
	DropView(ctx context.Context, ident moorage.Identifier) error
	RenameView(ctx context.Context, from, to moorage.Identifier) error
	RegisterView(ctx context.Context, ident moorage.Identifier, metadataLocation string) (*catalog.View, error)
}

// Config is what a server is made of. Only Catalog is required.
type Config struct {
	Catalog Catalog
	// Logger gets one line for each request, at debug level or, if it was refused, at info, and
	// one for each failure of the server. Default: discards.
	Logger *slog.Logger
	// Now gives the time for latencies, logs and the deadlines of connections. Default time.Now.
	Now func() time.Time
	// Registry is what GET /metrics shows; the server adds its own metrics to it, so it
	// serves one server. Default: a new one.
	Registry *prometheus.Registry
	// Ready returns nil if the server can do its work, and the reason if not; it is asked
	// by GET /readyz. Default: always ready.
	Ready func(ctx context.Context) error
	// Refusal returns nil, or why the server refuses every request but those for /healthz and /metrics: it does so until it
	// ends. Default: it refuses none.
	Refusal func() error
	// Hosts are the names by which clients may ask for the server, beside localhost and loopback addresses; nil: any. A server that trusts
	// whoever reaches it on loopback needs this: to a browser a page is at home wherever its name leads to, and a page's
	// owner may let its name lead to 127.0.0.1.
	Hosts []string
	// Backup copies the store to a new folder that is called name, below one of its own choice, and returns
	// when the copy is durable; it checks the name. Default: KindUnsupported.
	Backup func(ctx context.Context, name string) (Backup, error)
	// IdempotencyLifetime is how long clients are told that they may repeat a request with the same Idempotency-Key; that of
	// the catalog. Keys are heeded in any case, but clients send them only if they are told. Default: they are not.
	IdempotencyLifetime time.Duration
	// BodyBytesMax is the longest request body that is read. Default BodyBytesMaxDefault.
	BodyBytesMax int64
	// BodiesBytesMax bounds the memory of the bodies of all requests that are being answered, as far as they have arrived. Bodies of at
	// most 64 KiB do not count. What is decoded from a body takes up to a few times as much again. A request
	// that finds no room within some seconds is KindTooManyRequests. Default BodiesBytesMaxDefault; at least BodyBytesMax.
	BodiesBytesMax int64
	// CompressedBytesMax bounds the memory of compressed documents. Default CompressedBytesMaxDefault.
	CompressedBytesMax int64
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
	if c.Refusal == nil {
		c.Refusal = func() error { return nil }
	}
	if c.Backup == nil {
		c.Backup = func(context.Context, string) (Backup, error) {
			return Backup{}, moorage.Errorf(moorage.KindUnsupported, "This server makes no backups")
		}
	}
	if c.BodyBytesMax <= 0 {
		c.BodyBytesMax = BodyBytesMaxDefault
	}
	if c.BodiesBytesMax <= 0 {
		c.BodiesBytesMax = BodiesBytesMaxDefault
	}
	c.BodiesBytesMax = max(c.BodiesBytesMax, c.BodyBytesMax)
	if c.CompressedBytesMax <= 0 {
		c.CompressedBytesMax = CompressedBytesMaxDefault
	}
	return c
}

// server holds what handlers share. It is safe for concurrent use.
type server struct {
	config     Config
	catalog    Catalog
	router     *chi.Mux
	metrics    metrics
	endpoints  []string
	compressed *otter.Cache[compressedKey, *deflated]
	origins    *http.CrossOriginProtection
	bodies     *room // for large bodies

	// A request's id is requestIDPrefix, which tells servers and their runs apart, and a number.
	requestIDPrefix string
	requestCount    atomic.Uint64

	// Reused, because each is large or made for each request.
	exchanges    sync.Pool // of *exchange
	gzipWriters  sync.Pool // of *gzip.Writer
	flateWriters sync.Pool // of *flate.Writer
}

// New returns the handler of all routes. It is safe for concurrent use. It panics if
// config.Registry has a server's metrics already.
func New(config Config) http.Handler {
	config = config.withDefaults()
	s := &server{
		config:          config,
		catalog:         config.Catalog,
		origins:         http.NewCrossOriginProtection(),
		bodies:          newRoom(config.BodiesBytesMax),
		metrics:         newMetrics(config.Registry),
		requestIDPrefix: rand.Text()[:10] + "-",
		compressed: otter.Must(&otter.Options[compressedKey, *deflated]{
			MaximumWeight: uint64(config.CompressedBytesMax),
			Weigher:       compressedKey.weight,
		}),
	}
	s.exchanges.New = func() any { return &exchange{route: chi.NewRouteContext()} }
	s.gzipWriters.New = newGzipWriter
	s.flateWriters.New = newFlateWriter
	s.routes()
	return s
}
