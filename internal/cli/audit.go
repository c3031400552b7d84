package cli

import (
	"path/filepath"
	"strconv"
	"strings"
)

// What --audit may say besides the name of a file.
const (
	AuditStderr = "stderr"
	AuditOff    = "off"
)

// auditReadsMax bounds how many reads one line of the audit log may stand for.
const auditReadsMax = 1_000_000

// auditSettings returns the settings of serve that are about the audit log.
func auditSettings() []setting {
	return []setting{
		{name: "audit", value: "FILE|stderr|off", set: folder(func(c *Config) *string { return &c.Audit }),
			usage: "Where the audit log goes: one JSON line for each request that was let in or refused, and for " +
				"each token and key. SIGHUP then opens the file again, and does not end the server. Default: the " +
				"file audit.log in --data where callers are authenticated, else off."},
		{name: "audit-reads", value: "1/N", preset: "1/1",
			usage: "How many of the reads that were let in the audit log has: one of N. Changes and refusals are " +
				"always there.",
			set: one(parseShare, "1/N with N from 1 to 1000000", func(c *Config) *int { return &c.AuditReads })},
		{name: "audit-max-size", value: "SIZE", preset: "1GiB",
			usage: "How long the file of the audit log becomes before it is moved to the same name with .1 behind " +
				"it. The file before goes.",
			set: one(parseSize, "a size such as 64MiB, at least 1",
				func(c *Config) *int64 { return &c.AuditBytesMax })},
		{name: "audit-strict",
			set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.AuditStrict }),
			usage: "Refuse requests (503) while the audit log cannot be written. Otherwise lines go, and are counted."},
	}
}

// parseShare reads "1/N" and returns N.
func parseShare(v string) (int, error) {
	digits, ok := strings.CutPrefix(v, "1/")
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return within(strconv.Atoi, 1, auditReadsMax)(digits)
}

// AuditTo returns where the audit log goes: AuditOff, AuditStderr, or a file. authenticated says
// that callers must show who they are.
func (c Config) AuditTo(authenticated bool) string {
	switch {
	case c.Audit != "":
		return c.Audit
	case authenticated:
		return filepath.Join(c.Data, "audit.log")
	}
	return AuditOff
}
