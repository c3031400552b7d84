package web

import (
	"context"
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"moorage"
)

// Names of the operations that report the server's health. The server answers them even when it has
// no room for other requests.
const (
	operationHealth  = "health"
	operationReady   = "ready"
	operationMetrics = "metrics"
)

// routeProbes adds the routes of probes, for GET and HEAD.
func (s *Server) routeProbes() {
	metrics := promhttp.HandlerFor(s.config.Registry, promhttp.HandlerOpts{})
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		s.HandleOpen(operationHealth, method, "/healthz", s.health)
		s.HandleOpen(operationReady, method, "/readyz", s.ready)
		s.Handle(operationMetrics, method, "/metrics", func(w http.ResponseWriter, r *http.Request) error {
			if err := s.config.Measure(r.Context(), CallerOf(r)); err != nil {
				return err
			}
			metrics.ServeHTTP(w, r)
			return nil
		})
	}
}

// Probes returns a handler for a separate port that requires no credentials. It answers /healthz,
// /readyz and /metrics to every caller, and 404 to all other requests.
func (s *Server) Probes() http.Handler {
	probes := http.NewServeMux()
	probes.Handle("/healthz", s)
	probes.Handle("/readyz", s)
	probes.Handle("GET /metrics", promhttp.HandlerFor(s.config.Registry, promhttp.HandlerOpts{}))
	return probes
}

// probesOnlyContext is the key under which WithProbesOnly stores its value in a context.
type probesOnlyContext struct{}

// WithProbesOnly returns a context for the requests of a connection beyond the server's limit of
// connections. With this context, the server answers only requests for health and metrics, and
// refuses others with KindTooManyRequests. In any case it closes the connection after the first
// request.
func WithProbesOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, probesOnlyContext{}, true)
}

// refuseBeyondRoom refuses a request that came over a connection beyond the limit, unless it is a
// probe.
func (s *Server) refuseBeyondRoom(x *exchange, r *http.Request) error {
	if r.Context().Value(probesOnlyContext{}) == nil {
		return nil
	}
	s.hangUp(x)
	switch x.operation.name {
	case operationHealth, operationReady, operationMetrics:
		return nil
	}
	return moorage.Errorf(moorage.KindTooManyRequests, "Too many connections are open; nothing was changed")
}

// health reports only that the process runs. A supervisor restarts a process that does not answer
// this request.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	return s.AnswerJSON(w, r, map[string]string{"status": "ok"})
}

// ready reports whether the server can do its work now. If not, a load balancer sends it no
// requests.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.config.Ready(r.Context()); err != nil {
		return moorage.E("web.ready", "", moorage.KindUnavailable, err)
	}
	answer := map[string]string{"status": "ready"}
	maps.Copy(answer, s.config.Notices())
	if r.URL.Query().Has("verbose") {
		maps.Copy(answer, s.config.Details(s.mayMeasure(r)))
	}
	return s.AnswerJSON(w, r, answer)
}

// mayMeasure reports whether the sender of a request may read the content of GET /metrics.
func (s *Server) mayMeasure(r *http.Request) bool {
	caller := CallerOf(r)
	if s.config.Authenticate != nil {
		var err error
		if caller, err = s.config.Authenticate(r); err != nil {
			return false
		}
	}
	return s.config.Measure(r.Context(), caller) == nil
}
