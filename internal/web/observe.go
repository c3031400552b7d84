package web

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// operationUnknown is the operation of a request that met no route.
const operationUnknown = "unknown"

// metrics are what GET /metrics says about requests.
type metrics struct {
	requests *prometheus.CounterVec // operation, status
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_http_requests_total",
			Help: "Requests answered, by operation of the REST specification and status; 499: the client hung up.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_http_request_duration_seconds",
			Help:    "Time from the arrival of a request's header to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "moorage_http_requests_in_flight",
			Help: "Requests that are being answered.",
		}),
	}
	registry.MustRegister(m.requests, m.seconds, m.inFlight)
	return m
}

// note counts the request and logs it: refusals and failures at info level, with what the client
// was told, the rest at debug level.
func (s *Server) note(x *exchange, r *http.Request, started time.Time) {
	elapsed := s.config.Now().Sub(started)
	s.metrics.inFlight.Dec()
	s.metrics.requests.WithLabelValues(x.operation, statusText(x.status)).Inc()
	s.metrics.seconds.WithLabelValues(x.operation).Observe(elapsed.Seconds())

	level := slog.LevelDebug
	if x.status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	if s.config.Logger.Enabled(r.Context(), level) {
		attrs := []slog.Attr{
			slog.String("request_id", x.requestID), slog.String("operation", x.operation),
			slog.String("method", r.Method), slog.String("path", EscapedPath(r.URL)), slog.Int("status", x.status),
			slog.Int64("bytes", x.bytes), slog.Duration("elapsed", elapsed),
			slog.String("remote", r.RemoteAddr),
		}
		if x.refusal != "" {
			attrs = append(attrs, slog.String("error", x.refusal))
		}
		s.config.Logger.LogAttrs(r.Context(), level, "request", attrs...)
	}
}

// statusText returns status in digits; the common ones without an allocation.
func statusText(status int) string {
	switch status {
	case http.StatusOK:
		return "200"
	case http.StatusNoContent:
		return "204"
	case http.StatusNotModified:
		return "304"
	}
	return strconv.Itoa(status)
}
