package rest

import (
	"context"
	"net/http"

	"moorage"
)

type healthAnswer struct {
	Status string `json:"status"`
}

// Names of the operations that tell whether the server does well, which it answers also where it has no room for others.
const (
	operationHealth  = "health"
	operationReady   = "ready"
	operationMetrics = "metrics"
)

// probesOnlyContext is the context's key of WithProbesOnly.
type probesOnlyContext struct{}

// WithProbesOnly returns a context for the requests of a connection that the server has no room for: those for health and metrics are
// answered, others are KindTooManyRequests, and the connection ends after the first.
func WithProbesOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, probesOnlyContext{}, true)
}

// refuseBeyondRoom refuses a request that came over a connection beyond the limit, unless it is a probe.
func (s *server) refuseBeyondRoom(x *exchange, r *http.Request) error {
	if r.Context().Value(probesOnlyContext{}) == nil {
		return nil
	}
	s.hangUp(x)
	switch x.operation {
	case operationHealth, operationReady, operationMetrics:
		return nil
	}
	return moorage.Errorf(moorage.KindTooManyRequests, "Too many connections are open; nothing was changed")
}

// health answers that the process runs and nothing more: a supervisor restarts what fails it.
func (s *server) health(w http.ResponseWriter, r *http.Request) error {
	return s.answerJSON(w, r, healthAnswer{"ok"})
}

// ready answers whether the server can do its work now: a balancer passes over what fails it.
func (s *server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.config.Ready(r.Context()); err != nil {
		return moorage.E("rest.ready", "", moorage.KindUnavailable, err)
	}
	return s.answerJSON(w, r, healthAnswer{"ready"})
}

// check lets the catalog examine itself and answers its catalog.Report. It reads every record and
// every metadata file.
func (s *server) check(w http.ResponseWriter, r *http.Request) error {
	report, err := s.catalog.Check(r.Context())
	if err != nil {
		return err
	}
	return s.answerJSON(w, r, report)
}
