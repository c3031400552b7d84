package web

import (
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
)

// operationUnknown is the operation of a request that matched no route.
const operationUnknown = "unknown"

// Maximum lengths of the parts of a log line that come from the client. A path can be up to 1 MiB
// long.
const (
	logTextBytesMax   = 512
	logMethodBytesMax = 20
)

// metrics holds the metrics of requests, for GET /metrics.
type metrics struct {
	requests *prometheus.CounterVec // operation, status
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_http_requests_total",
			Help: "Answered requests, by operation of the REST specification and status. 499: the client hung up.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_http_request_duration_seconds",
			Help:    "Time from the arrival of a request's header to the end of the response.",
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

// operation is the operation that a route serves, with the metrics of its requests. The counters of
// common statuses are looked up only once. It is safe for concurrent use.
type operation struct {
	name    string
	metrics metrics
	seconds func() prometheus.Observer
	common  [len(commonStatuses)]func() prometheus.Counter
}

// commonStatuses are the statuses of requests that succeeded.
var commonStatuses = [...]int{http.StatusOK, http.StatusNoContent, http.StatusNotModified}

func (m metrics) operation(name string) *operation {
	o := &operation{name: name, metrics: m, seconds: sync.OnceValue(func() prometheus.Observer {
		return m.seconds.WithLabelValues(name)
	})}
	for i, status := range commonStatuses {
		o.common[i] = sync.OnceValue(func() prometheus.Counter { return o.counter(status) })
	}
	return o
}

// counter returns the counter of requests that were answered with status.
func (o *operation) counter(status int) prometheus.Counter {
	return o.metrics.requests.WithLabelValues(o.name, strconv.Itoa(status))
}

// count counts a request that was answered with status. elapsed is the time from its arrival to the
// answer.
func (o *operation) count(status int, elapsed time.Duration) {
	if i := slices.Index(commonStatuses[:], status); i >= 0 {
		o.common[i]().Inc()
	} else {
		o.counter(status).Inc()
	}
	o.seconds().Observe(elapsed.Seconds())
}

// note counts the request and logs it. Refusals and failures are logged at info level, with the
// answer's message. Other requests are logged at debug level. See SumRefusals for frequent
// refusals.
func (s *Server) note(x *exchange, r *http.Request, started time.Time) {
	elapsed := s.config.Now().Sub(started)
	s.metrics.inFlight.Dec()
	x.operation.count(x.status, elapsed)

	level := slog.LevelDebug
	skipped := 0
	if x.status >= http.StatusBadRequest {
		level = slog.LevelInfo
	}
	if of, summed := s.refusalOf(x, r); summed {
		var due bool
		if skipped, due = s.refusals.next(of, s.config.Now()); !due {
			level = slog.LevelDebug
		}
	}
	if s.config.Logger.Enabled(r.Context(), level) {
		attrs := []slog.Attr{
			x.ids(), slog.String("operation", x.operation.name),
			slog.String("method", moorage.Cut(r.Method, logMethodBytesMax)),
			slog.String("path", moorage.Cut(EscapedPath(r.URL), logTextBytesMax)), slog.Int("status", x.status),
			slog.Int64("bytes", x.bytes), slog.Duration("elapsed", elapsed),
			slog.String("remote", r.RemoteAddr),
		}
		if x.refusal != "" {
			attrs = append(attrs, slog.String("error", moorage.Cut(x.refusal, logTextBytesMax)))
		}
		if skipped > 0 {
			attrs = append(attrs, slog.Int("skipped", skipped))
		}
		s.config.Logger.LogAttrs(r.Context(), level, "request", attrs...)
	}
}
