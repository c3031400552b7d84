package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/audit"
	"moorage/internal/cli"
)

// openAudit opens the audit log that the settings ask for, not started.
func openAudit(c cli.Config, metrics prometheus.Registerer, logger *slog.Logger) (*audit.Log, error) {
	config := audit.Config{
		Reads: c.AuditReads, Strict: c.AuditStrict, Now: time.Now, Jitter: newJitter(), Logger: logger,
	}
	switch to := c.AuditTo(c.Authenticates()); to {
	case cli.AuditOff:
	case cli.AuditStderr:
		config.Out = audit.Stream(os.Stderr)
	default:
		file, err := audit.OpenFile(to, c.AuditBytesMax)
		if err != nil {
			return nil, fmt.Errorf("--audit: %w", err)
		}
		config.Out = file
		config.Free = func() (uint64, error) { return freeBytes(filepath.Dir(to)) }
	}
	log := audit.New(config)
	meterAudit(metrics, log.Stats)
	return log, nil
}

// meterAudit registers what an audit log has done.
func meterAudit(metrics prometheus.Registerer, stats func() audit.Stats) {
	metrics.MustRegister(
		counterOf(stats, "moorage_audit_lines_total", "Lines of the audit log that were written.",
			func(s audit.Stats) int64 { return int64(s.Written) }),
		counterOf(stats, "moorage_audit_dropped_total",
			"Lines of the audit log that its buffer had no room for; reads that were let in go first.",
			func(s audit.Stats) int64 { return int64(s.DroppedReads + s.DroppedLines) }))
}

// auditNotice says what is wrong with an audit log, for /readyz.
func auditNotice(log *audit.Log) map[string]string {
	if why := log.Trouble(); why != "" {
		return map[string]string{"audit": "not written: " + why}
	}
	return nil
}

// withAudit returns ready, which also fails while a strict audit log cannot be written: every
// request is refused then.
func withAudit(ready func(context.Context) error, log *audit.Log) func(context.Context) error {
	return func(ctx context.Context) error {
		if why := log.Trouble(); why != "" && log.Strict() {
			return moorage.Errorf(moorage.KindUnavailable, "The audit log is not written: %s", why)
		}
		return ready(ctx)
	}
}
