package rest

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/internal/web"
)

// TestConfig configures a server for tests. It has the members of web.Config and of Config.
type TestConfig struct {
	Catalog             Catalog
	Logger              *slog.Logger
	Now                 func() time.Time
	Registry            *prometheus.Registry
	Ready               func(ctx context.Context) error
	Refusal             func() error
	Hosts               []string
	IdempotencyLifetime time.Duration
	BodyBytesMax        int64
	BodiesBytesMax      int64
	AnswersBytesMax     int64
	CompressedBytesMax  int64
}

// NewServer returns a server with the routes of this package and the routes of probes.
func NewServer(c TestConfig) *server {
	return mount(web.New(web.Config{
		Logger: c.Logger, Now: c.Now, Registry: c.Registry, Ready: c.Ready, Refusal: c.Refusal, Hosts: c.Hosts,
		BodyBytesMax: c.BodyBytesMax, BodiesBytesMax: c.BodiesBytesMax, AnswersBytesMax: c.AnswersBytesMax,
	}), Config{Catalog: c.Catalog, IdempotencyLifetime: c.IdempotencyLifetime, CompressedBytesMax: c.CompressedBytesMax})
}
