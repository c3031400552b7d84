package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/internal/worker"
)

const (
	// keyWarnBefore and certificateWarnBefore are how long before its end the log warns of a key or
	// a certificate.
	keyWarnBefore         = 14 * 24 * time.Hour
	certificateWarnBefore = 30 * 24 * time.Hour
	// expiryInterval is the time between two warnings after the warning at the start.
	expiryInterval = 24 * time.Hour
	// keysToldMax bounds the keys in the warnings of one round. keysMeteredMax bounds the keys in
	// metrics. Both prefer the keys that end first.
	keysToldMax    = 20
	keysMeteredMax = 1000
	// keyEndsMax is how long the metrics wait for the keys.
	keyEndsMax = time.Second
)

// expiries finds API keys and certificates that end soon. It is safe for concurrent use.
type expiries struct {
	keys         func(ctx context.Context) ([]catalog.KeyEnd, error)
	certificates map[string]string // the files, by their settings
	now          func() time.Time
	logger       *slog.Logger
}

func newExpiries(c cli.Config, made *catalog.Catalog, logger *slog.Logger) *expiries {
	e := &expiries{
		keys:         catalog.AccessOf(made.As(moorage.System(whoAuthenticates))).KeyEnds,
		certificates: make(map[string]string), now: time.Now, logger: logger,
	}
	for name, file := range map[string]string{"--tls-cert": c.TLSCert, "--peer-cert": c.PeerCert} {
		if file != "" {
			e.certificates[name] = file
		}
	}
	return e
}

// worker returns the worker that logs warnings at once and each day.
func (e *expiries) worker() *worker.Worker {
	w := worker.New(worker.Config{
		Name: "expiry", Run: e.tell, Interval: expiryInterval, Jitter: newJitter(), Logger: e.logger,
	})
	w.Kick()
	return w
}

// tell logs each key and certificate that ends soon.
func (e *expiries) tell(ctx context.Context) error {
	now := e.now()
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil && ends.Sub(now) < certificateWarnBefore {
			e.logger.Warn("a certificate ends soon or has ended: put another one into its file",
				"setting", name, "file", e.certificates[name], "ends", ends)
		}
	}
	keys, err := e.keys(ctx)
	if err != nil {
		return err
	}
	told, more := 0, 0
	for _, key := range keys {
		if left := key.Ends.Sub(now); left > keyWarnBefore || left <= 0 {
			continue // a key that has ended is logged when a client uses it
		}
		if told++; told > keysToldMax {
			more++
			continue
		}
		e.logger.Warn("an API key ends soon: give it another secret with moorage key rotate",
			"principal", key.Principal, "key", key.ID, "ends", key.Ends)
	}
	if more > 0 {
		e.logger.Warn("more API keys end soon: see moorage key list", "keys", more)
	}
	return nil
}

// certificateEnd returns when the certificate of a setting ends.
func (e *expiries) certificateEnd(setting string) (time.Time, error) {
	text, err := os.ReadFile(e.certificates[setting])
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			first, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", setting, err)
			}
			return first.NotAfter, nil
		}
	}
	return time.Time{}, errors.New(setting + ": it holds no certificate")
}

// with returns the notices of /readyz, and notices about certificates that end soon.
func (e *expiries) with(notices map[string]string) map[string]string {
	found := make(map[string]string)
	maps.Copy(found, notices)
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil && ends.Sub(e.now()) < certificateWarnBefore {
			word := "ends "
			if !e.now().Before(ends) {
				word = "ended "
			}
			found["certificate of "+name] = word + ends.UTC().Format(time.RFC3339)
		}
	}
	return found
}

// Describe implements prometheus.Collector. It describes no metric, because they change.
func (e *expiries) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *expiries) Collect(to chan<- prometheus.Metric) {
	certificates := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_certificate_expiry_seconds",
		Help: "Time until the certificate of a setting ends; negative: since it has.",
	}, []string{"setting"})
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil {
			certificates.WithLabelValues(name).Set(ends.Sub(e.now()).Seconds())
		}
	}
	certificates.Collect(to)
	ctx, cancel := context.WithTimeout(context.Background(), keyEndsMax)
	defer cancel()
	keys, err := e.keys(ctx)
	if err != nil {
		return // failing requests show that the store is unavailable
	}
	left := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_key_expiry_seconds",
		Help: "Time until an API key ends, of the 1,000 that end first; negative: since it has.",
	}, []string{"principal", "key"})
	for _, key := range keys[:min(len(keys), keysMeteredMax)] {
		left.WithLabelValues(key.Principal, key.ID).Set(key.Ends.Sub(e.now()).Seconds())
	}
	left.Collect(to)
}
