package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/catalog"
	"moorage/storage"
	"moorage/storage/adls"
	"moorage/storage/gcs"
	"moorage/storage/s3"
)

// serverSettings returns the settings that the YAML file may contain: the settings of serve.
func serverSettings() []setting {
	return slices.Concat(
		nodeSettings(), accessSettings(), identitySettings(), auditSettings(), peerSettings(), limitSettings())
}

// probeSettings returns the settings of serve that say where it answers probes.
func probeSettings() []setting {
	return append([]setting{configFile()}, slices.DeleteFunc(serverSettings(), func(s setting) bool {
		return !slices.Contains([]string{"listen", "debug-listen", "tls-cert"}, s.name)
	})...)
}

// ServeDefaults returns the settings of moorage serve without flags, variables and a file.
func ServeDefaults() (Config, error) {
	for _, c := range storeCommands() {
		if c.name == "serve" {
			return load(c, nil, nil)
		}
	}
	return Config{}, errors.New("there is no command serve")
}

// traceNames is the name of a setting. Only commands that send traces have this setting.
const traceNames = "trace-names"

// accessSettings returns the settings of serve for addresses, locations of files, and logs.
func accessSettings() []setting {
	return []setting{
		{name: "listen", value: "HOST:PORT", preset: "127.0.0.1:8181",
			usage: "Address to listen on. With port 0 the server takes a free port and prints it.",
			set: func(c *Config, v []string) (err error) {
				c.Listen, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "debug-listen", value: "[HOST:]PORT",
			usage: "Address that serves /metrics, /healthz and /readyz without authentication and without TLS. " +
				"The default host is 127.0.0.1. Every client that can reach the address can read the metrics. " +
				"Clients on this machine can also get the profiles at /debug/pprof/. Default: off.",
			set: func(c *Config, v []string) error {
				c.DebugListen = v[0]
				if port := strings.TrimPrefix(v[0], ":"); !strings.Contains(port, ":") {
					c.DebugListen = "127.0.0.1:" + port
				}
				return checkHostPort(c.DebugListen)
			}},
		{name: "host", value: "NAME", list: true,
			usage: "Host name that requests may use, in addition to localhost and loopback addresses, such as " +
				"the name of a proxy. Requests with other names get 421, which protects a local server against " +
				"web pages. Default: any name, if callers must authenticate or with --insecure no-auth. May be " +
				"repeated.",
			set: func(c *Config, v []string) error {
				c.Hosts = v
				if slices.Contains(v, "") {
					return fmt.Errorf("must not be empty")
				}
				return nil
			}},
		{name: "console", preset: "true", set: toggle(func(c *Config) *bool { return &c.Console }),
			usage: "Serve the console, which people open in a browser, at /console. --console=false switches it " +
				"off."},
		{name: "migrate", set: toggle(func(c *Config) *bool { return &c.Migrate }),
			usage: "First migrate the tables of a PostgreSQL database to this version, as moorage migrate does."},
		{name: "default-location", value: "URI", set: place(func(c *Config) *string { return &c.DefaultLocation }),
			usage: "Location for the tables of the warehouse called default, which the first start creates: " +
				"s3://bucket/prefix, gs://bucket/prefix, abfss://container@account.dfs.core.windows.net/path or " +
				"file:///absolute/folder. Later starts ignore it. Default: the folder warehouse in --data."},
		{name: "default-storage-option", value: "NAME=VALUE", list: true,
			set: pairs(func(c *Config) *map[string]string { return &c.DefaultStorageOptions }),
			usage: "Storage option of the warehouse called default, used when the first start creates it, such " +
				"as s3.endpoint=http://127.0.0.1:9000. Must not be a secret. May be repeated."},
		allowLocation(),
		{name: "backups", value: "DIR", set: folder(func(c *Config) *string { return &c.Backups }),
			usage: "Folder for the backups made by moorage backup --uri. Its parent folder must exist. Default: " +
				"the folder backups in --data."},
		{name: "log-level", value: "debug|info|warn|error", preset: "info",
			usage: "Lowest level of the log on stderr.",
			set:   one(parseLevel, "debug, info, warn or error", func(c *Config) *slog.Level { return &c.LogLevel })},
		{name: traceNames, set: toggle(func(c *Config) *bool { return &c.TraceNames }),
			usage: "Include the names of namespaces and tables in traces. Without it, traces contain only the " +
				"names of warehouses. The server sends traces if the variable OTEL_EXPORTER_OTLP_ENDPOINT is the " +
				"address of a collector, such as http://127.0.0.1:4318."},
		{name: "log-format", value: "text|json", preset: "text", usage: "Format of the log.",
			set: one(oneOf("text", "json"), "text or json", func(c *Config) *string { return &c.LogFormat })},
	}
}

// The values of --audit that are not the name of a file.
const (
	AuditStderr = "stderr"
	AuditOff    = "off"
)

// auditReadsMax is the maximum number of reads that one line of the audit log may represent.
const auditReadsMax = 1_000_000

// auditSettings returns the settings of serve for the audit log.
func auditSettings() []setting {
	return []setting{
		{name: "audit", value: "FILE|stderr|off", set: folder(func(c *Config) *string { return &c.Audit }),
			usage: "Destination of the audit log. The log has one JSON line for each request that was allowed or " +
				"refused, and for each token and key. When the file reaches 1 GiB, it is renamed to .1, and four " +
				"such files are kept. With a file, SIGHUP makes the server open it again, instead of ending the " +
				"server. Default: the file audit.log in --data if callers must authenticate, and otherwise off. " +
				"With a database, the file is audit-HOST.log, and audit-HOST-2.log for a second server on the " +
				"same machine."},
		{name: "audit-reads", value: "summed|each|1/N", preset: "summed",
			usage: "Which allowed reads get a line in the audit log. With summed, there is a line for the first " +
				"read in a minute by the same caller, with the same operation, of the same object, and a second " +
				"line counts the others. With each, every read gets a line. With 1/N, one in N reads gets a " +
				"line. Every change gets a line, and so do a caller's first 100 refusals in a minute; further " +
				"refusals share lines.",
			set: one(parseShare, "summed, each, or 1/N with N from 1 to 1000000",
				func(c *Config) *int { return &c.AuditReads })},
		{name: "audit-strict",
			set: toggle(func(c *Config) *bool { return &c.AuditStrict }),
			usage: "Refuse requests with 503 while the audit log cannot be written. Without this setting, the " +
				"server drops lines and counts them."},
	}
}

// parseShare reads "1/N" and returns N. It returns 0 for "summed" and 1 for "each".
func parseShare(v string) (int, error) {
	switch v {
	case "summed":
		return 0, nil
	case "each":
		return 1, nil
	}
	digits, ok := strings.CutPrefix(v, "1/")
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return within(strconv.Atoi, 1, auditReadsMax)(digits)
}

// AuditTo returns where the audit log goes: AuditOff, AuditStderr, or a file.
func (c Config) AuditTo() string {
	switch {
	case c.Audit != "":
		return c.Audit
	case c.Authenticates():
		return filepath.Join(c.Data, "audit.log")
	}
	return AuditOff
}

// peerSettings returns the settings of serve that let nodes send commits to each other.
func peerSettings() []setting {
	return []setting{
		{name: "peer-listen", value: "HOST:PORT",
			usage: "Address for the other nodes of a cluster. If commits race on a table, the nodes then send " +
				"them all to one node. Needs a PostgreSQL store and --peer-tls. Default: nodes do not call each " +
				"other.",
			set: func(c *Config, v []string) (err error) {
				c.PeerListen, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "peer-address", value: "HOST:PORT",
			usage: "Address that other nodes call. Its host must be in this node's certificate. Port 0 means the " +
				"port of --peer-listen. Default: the address of --peer-listen.",
			set: func(c *Config, v []string) (err error) {
				c.PeerAddress, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "peer-tls", value: "DIR", set: folder(func(c *Config) *string { return &c.PeerTLS }),
			usage: "Folder with three PEM files: this node's certificate (tls.crt), its key (tls.key), and the " +
				"authority of all nodes (ca.crt). The authority must sign certificates only for nodes, because a " +
				"node trusts what another node reports about a caller."},
	}
}

// limitSettings returns the settings of serve that limit sizes and times.
func limitSettings() []setting {
	const days, size = "a duration such as 7d or 36h, more than 0", "a size such as 64MiB, at least 1"
	return []setting{
		{name: "connection-limit", value: "N", preset: "4096",
			usage: "Maximum number of connections. An idle connection costs about 30 KiB. At the limit, a new " +
				"connection replaces the one that has been idle longest, or gets 429. Once three quarters of the " +
				"limit are in use, a single address may have at most an eighth of the limit, unless it is a " +
				"--trusted-proxy. Requests for health and metrics are always answered.",
			set: one(within(strconv.Atoi, 1, 1_000_000), "a number from 1 to 1000000",
				func(c *Config) *int { return &c.ConnectionsMax })},
		{name: "cache-size", value: "SIZE", preset: "64MiB",
			usage: "Memory for cached metadata documents, in bytes or with a unit: KiB, MiB, GiB.",
			set:   one(parseSize, size, func(c *Config) *int64 { return &c.CacheBytes })},
		{name: "hedge-writes",
			set: toggle(func(c *Config) *bool { return &c.HedgeWrites }),
			usage: "Write a metadata file in cloud storage a second time, under another name, if the first write " +
				"takes over 150 ms and 3 times as long as usual. The commit uses the file that is written first."},
		{name: "maintenance", value: "on|off|only", preset: MaintenanceOn,
			usage: "on: this server does the maintenance that policies require. off: it does no maintenance. " +
				"only: it does maintenance, and answers only operators and probes.",
			set: one(oneOf(MaintenanceOn, MaintenanceOff, MaintenanceOnly), "on, off or only",
				func(c *Config) *string { return &c.Maintenance })},
		{name: "undrop-window", value: "DURATION", preset: "7d",
			usage: "How long a dropped table or view can come back, such as 7d or 36h. After a drop with a " +
				"purge, the files are deleted after the same time, unless the warehouse has the property " +
				"moorage.purge-delay.",
			set: one(parseDuration, days, func(c *Config) *time.Duration { return &c.UndropWindow })},
		{name: "idempotency-lifetime", value: "DURATION", preset: "30m",
			usage: "How long clients may repeat a change with the same Idempotency-Key: 1s to 8760h. If a table " +
				"was changed with a key, a purge of the table waits for this time and 5 minutes more.",
			set: one(parseLifetime, "a duration such as 30m, 1s to 8760h",
				func(c *Config) *time.Duration { return &c.IdempotencyLifetime })},
		{name: "change-retention", value: "DURATION",
			usage: "How long the server keeps the record of a change, such as 7d or 36h. The minimum is " +
				"--idempotency-lifetime plus 5 minutes. Default: 7d, or the minimum if that is longer.",
			set: one(parseDuration, days, func(c *Config) *time.Duration { return &c.ChangeRetention })},
		{name: "store-wait", value: "DURATION", preset: "30s",
			usage: "How long the start waits for a PostgreSQL database that does not answer, or does not accept " +
				"writes yet. At least 0s.",
			set: one(within(parseDays, 0, math.MaxInt64), "a duration such as 30s, at least 0s",
				func(c *Config) *time.Duration { return &c.StoreWait })},
		{name: "shutdown-timeout", value: "DURATION", preset: "50s",
			usage: "How long requests in progress may take to end after SIGTERM, SIGINT or SIGHUP. A commit to " +
				"several tables may need 45s.",
			set: one(parseDuration, "a duration such as 45s, more than 0",
				func(c *Config) *time.Duration { return &c.ShutdownTimeout })},
	}
}

func validateServe(c Config, faults *usageError) {
	validateIdentity(c, faults)
	validateKeys(c, faults)
	validateDefaultWarehouse(c, faults)
	if least := catalog.ChangeRetentionMin(c.IdempotencyLifetime); c.ChangeRetention > 0 && c.ChangeRetention < least {
		faults.addf("--change-retention: %s is shorter than the %s for which keys are honoured",
			c.ChangeRetention, least)
	}
	if c.Migrate && !c.InDatabase() && !isURI(c.Store) {
		faults.addf("--migrate: --store does not name a PostgreSQL database")
	}
	validatePeer(c, faults)
}

// validatePeer checks that the settings of a peer listener are complete.
func validatePeer(c Config, faults *usageError) {
	if c.PeerListen == "" {
		if c.PeerAddress != "" || c.PeerTLS != "" {
			faults.addf("--peer-address and --peer-tls go with --peer-listen")
		}
		return
	}
	if c.PeerTLS == "" {
		faults.addf("--peer-listen: --peer-tls is needed too")
	}
	if !c.InDatabase() && !isURI(c.Store) {
		faults.addf("--peer-listen: --store does not name a PostgreSQL database, so there are no other nodes")
	}
	called := c.PeerListen
	if c.PeerAddress != "" {
		called = c.PeerAddress
	}
	if host, _, err := net.SplitHostPort(called); err == nil && isEveryAddress(host) {
		faults.addf("--peer-listen: other nodes cannot call %s; say with --peer-address what they call", called)
	}
}

// validateKeys refuses a former secrets key without a present one.
func validateKeys(c Config, faults *usageError) {
	if c.FormerSecretsKey != "" && c.SecretsKey == "" {
		faults.addf("--former-secrets-key: goes with --secrets-key, which is missing")
	}
}

// validateDefaultWarehouse refuses options that the storage of --default-location does not have.
func validateDefaultWarehouse(c Config, faults *usageError) {
	if len(c.DefaultStorageOptions) == 0 {
		return
	}
	location, err := storage.Parse(c.DefaultLocation)
	switch {
	case c.DefaultLocation == "" || err == nil && location.Scheme == storage.SchemeFile:
		faults.addf("--default-storage-option: goes with a --default-location in a cloud")
		return
	case err != nil:
		return // --default-location itself has a fault
	case location.Scheme == storage.SchemeS3:
		_, err = s3.Options{}.With(c.DefaultStorageOptions)
	case location.Scheme == storage.SchemeGCS:
		_, err = gcs.Options{Trusted: c.Trusted()}.With(c.DefaultStorageOptions)
	case location.Scheme == storage.SchemeAzure:
		_, err = adls.Options{}.With(c.DefaultStorageOptions)
	}
	if err != nil {
		faults.addf("--default-storage-option: %s", err)
	}
}
