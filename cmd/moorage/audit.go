package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/audit"
	"moorage/internal/cli"
)

// openAudit opens the audit log of the settings, not started.
func openAudit(c cli.Config, metrics prometheus.Registerer, logger *slog.Logger) (*audit.Log, error) {
	config := audit.Config{
		Reads: c.AuditReads, Strict: c.AuditStrict, Now: time.Now, Jitter: newJitter(), Logger: logger,
		Node: nodeName(),
	}
	switch to := c.AuditTo(c.Authenticates()); to {
	case cli.AuditOff:
	case cli.AuditStderr:
		config.Out = audit.Stream(os.Stderr)
	default:
		file, to, err := openAuditFile(c, to)
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

// auditFile is a file that only this process writes.
type auditFile struct {
	*audit.File
	claim io.Closer
}

// Close closes the file, and lets another process open it.
func (f auditFile) Close() error { return errors.Join(f.File.Close(), f.claim.Close()) }

// auditNodesMax bounds how many nodes of one machine share a data folder.
const auditNodesMax = 64

// openAuditFile opens the audit log and returns its path. Nodes with one database may share their
// data folder. So without --audit the file is named after the machine. Further nodes of the machine
// add a number.
func openAuditFile(c cli.Config, to string) (audit.Out, string, error) {
	names := []string{to}
	if c.Audit == "" && c.InDatabase() {
		host, err := os.Hostname()
		if err != nil {
			return nil, "", fmt.Errorf("name the audit log by this machine: %w", err)
		}
		names[0] = filepath.Join(c.Data, "audit-"+host+".log")
		for number := 2; number <= auditNodesMax; number++ {
			names = append(names, filepath.Join(c.Data, fmt.Sprintf("audit-%s-%d.log", host, number)))
		}
	}
	var refused error
	for _, name := range names {
		claim := io.Closer(io.NopCloser(nil))
		if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() { // not a pipe or a device
			if claim, refused = audit.Claim(name); errors.Is(refused, audit.ErrClaimed) {
				continue
			} else if refused != nil {
				return nil, "", refused
			}
		}
		file, err := audit.OpenFile(name, c.AuditBytesMax)
		if err != nil {
			return nil, "", errors.Join(err, claim.Close())
		}
		return auditFile{file, claim}, name, nil
	}
	return nil, "", refused
}

// meterAudit registers the counters of an audit log.
func meterAudit(metrics prometheus.Registerer, stats func() audit.Stats) {
	metrics.MustRegister(
		counterOf(stats, "moorage_audit_lines_total", "Lines of the audit log that were written.",
			func(s audit.Stats) int64 { return int64(s.Written) }),
		counterOf(stats, "moorage_audit_dropped_total",
			"Lines of the audit log that its buffer had no room for; reads that were let in go first.",
			func(s audit.Stats) int64 { return int64(s.DroppedReads + s.DroppedLines) }))
}

// auditNotice returns the fault of an audit log, for /readyz.
func auditNotice(log *audit.Log) map[string]string {
	if why := log.Trouble(); why != "" {
		return map[string]string{"audit": "not written: " + why}
	}
	return nil
}

// withAudit returns ready with a further condition: it fails while a strict audit log cannot be
// written, because every request is refused then.
func withAudit(ready func(context.Context) error, log *audit.Log) func(context.Context) error {
	return func(ctx context.Context) error {
		if why := log.Trouble(); why != "" && log.Strict() {
			return moorage.Errorf(moorage.KindUnavailable, "The audit log is not written: %s", why)
		}
		return ready(ctx)
	}
}
