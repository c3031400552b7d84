package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/catalog"
)

// config is what the settings of a command come to. A command looks only at the
// fields of its own settings; the others have their defaults.
type config struct {
	Operand string // what follows the flags: the name of a warehouse, the folder of a backup

	File            string        // YAML file the rest was read from; empty: none
	Backups         string        // folder that the server writes backups to; empty: the folder "backups" below Data
	Data            string        // folder for everything the server keeps; example /var/lib/moorage
	Store           string        // "memory", a folder, or where a database is; empty: the folder "registry" below Data
	Migrate         bool          // bring the tables of the database to this version first
	Listen          string        // host:port; port 0 takes a free one
	Hosts           []string      // names by which clients may ask a server on loopback
	Insecure        bool          // may listen beyond loopback without authentication
	AllowLocations  []string      // URIs below which tables may live beside their warehouse's own
	LogLevel        slog.Level    // the lowest level that is written
	LogFormat       string        // "text" or "json"
	BodyBytesMax    int64         // longest request body, in bytes
	ConnectionsMax  int64         // connections that are served at a time
	CacheBytes      int64         // memory for metadata documents, in bytes
	UndropWindow    time.Duration // how long a dropped table's records are kept
	KeyLifetime     time.Duration // how long a request may be repeated with its Idempotency-Key
	ChangeRetention time.Duration // how long change records are kept; 0: the catalog's default
	StoreWait       time.Duration // how long a start waits for a database that does not answer; 0: not at all
	ShutdownTimeout time.Duration // how long requests under way may take to end
	TransactionWait time.Duration // how long a commit of several tables waits for one that is held

	DefaultLocation   string // where the warehouse default goes when it is made; empty: a folder below Data
	S3Endpoint        string // URL of the S3 server; empty: what the environment says
	S3Region          string // empty: what the environment says
	S3PathStyle       string // "true", "false"; empty: true if there is an endpoint
	S3Profile         string // section of the shared AWS files; empty: what the environment says
	S3AccessKeyID     string // empty: the default chain
	S3SecretAccessKey string // goes with S3AccessKeyID

	Location   string            // warehouse create: where its tables go
	Properties map[string]string // warehouse create
	URI        string            // check, backup, recover: the running server to ask; empty: open the store
}

// storeMemory is the Store of a server that forgets everything when it ends.
const storeMemory = "memory"

// inDatabase tells whether the store is a PostgreSQL database.
func (c config) inDatabase() bool {
	return strings.HasPrefix(c.Store, "postgres://") || strings.HasPrefix(c.Store, "postgresql://")
}

// storeName is what a log may say about where the store is: no user, no password.
func (c config) storeName() string {
	switch {
	case c.Store == storeMemory:
		return storeMemory
	case c.inDatabase():
		return "PostgreSQL"
	}
	return c.storeDir()
}

// storeDir is the folder of the embedded store; not for another one.
func (c config) storeDir() string {
	if c.Store != "" {
		return c.Store
	}
	return filepath.Join(c.Data, storeFolder)
}

// hosts are the names by which clients may ask for the server; nil: any.
func (c config) hosts() []string {
	if c.Insecure && len(c.Hosts) == 0 {
		return nil
	}
	return append([]string{}, c.Hosts...)
}

// backupsDir is the folder that the server writes backups to.
func (c config) backupsDir() string {
	if c.Backups != "" {
		return c.Backups
	}
	return filepath.Join(c.Data, "backups")
}

// setting is one thing that a user can choose. It is a flag --name, and unless flagOnly
// is set also the environment variable MOORAGE_NAME and a key of the YAML file.
type setting struct {
	name     string
	value    string // what stands for its value in the help text; empty: a switch
	preset   string // default, as a user would write it; empty: none
	list     bool   // may be given more than once
	flagOnly bool
	required bool
	usage    string
	// set puts values into c; there is exactly one unless list is set.
	set func(c *config, values []string) error
}

// variable is the name of the environment variable.
func (s setting) variable() string {
	return "MOORAGE_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// serverSettings returns the settings that the YAML file may hold: those of serve.
func serverSettings() []setting {
	return append(nodeSettings(), []setting{
		{
			name: "listen", value: "HOST:PORT", preset: "127.0.0.1:8181",
			usage: "Address to listen on. Port 0 takes a free port; the one that was taken is printed.",
			set: func(c *config, v []string) (err error) {
				c.Listen, err = v[0], checkHostPort(v[0])
				return err
			},
		},
		{
			name: "host", value: "NAME", list: true,
			usage: "Name by which clients may ask for the server, beside localhost and loopback addresses: that of a proxy in front of it, say. Others are refused " +
				"(421), unless --insecure stands without --host: a web page could make its own name mean this machine. May be given more than once.",
			set: func(c *config, v []string) error {
				c.Hosts = v
				if slices.Contains(v, "") {
					return fmt.Errorf("must not be empty")
				}
				return nil
			},
		},
		{
			name:  "insecure",
			usage: "Listen beyond loopback although there is no authentication: a client that can reach the port can change every table.",
			set:   one(strconv.ParseBool, "true or false", func(c *config, v bool) { c.Insecure = v }),
		},
		{
			name:  "migrate",
			usage: "Bring the tables of a PostgreSQL database to this version first, as moorage migrate does.",
			set:   one(strconv.ParseBool, "true or false", func(c *config, v bool) { c.Migrate = v }),
		},
		{
			name: "default-location", value: "URI",
			usage: "Where the tables of the warehouse called default go, when it is made: s3://bucket/prefix, or file:///absolute/folder. " +
				"Default: the folder warehouse in --data.",
			set: func(c *config, v []string) error {
				c.DefaultLocation = v[0]
				return checkLocation(v[0])
			},
		},
		allowLocation(false),
		{
			name: "backups", value: "DIR",
			usage: "Folder in which moorage backup --uri lets the server make backups; the one that it is in must be there. Default: the folder backups in --data.",
			set:   folder(func(c *config, v string) { c.Backups = v }),
		},
		{
			name: "log-level", value: "LEVEL", preset: "info",
			usage: "Lowest level of the log, which goes to stderr: debug, info, warn or error.",
			set:   one(parseLevel, "debug, info, warn or error", func(c *config, v slog.Level) { c.LogLevel = v }),
		},
		{
			name: "log-format", value: "FORMAT", preset: "text",
			usage: "Form of the log: text or json.",
			set:   one(oneOf("text", "json"), "text or json", func(c *config, v string) { c.LogFormat = v }),
		},
		{
			name: "body-limit", value: "SIZE", preset: "64MiB",
			usage: "Longest request body. Bytes, or with a unit: KiB, MiB, GiB.",
			set:   one(parseSize, "a size such as 64MiB, at least 1", func(c *config, v int64) { c.BodyBytesMax = v }),
		},
		{
			name: "connection-limit", value: "N", preset: "4096",
			usage: "How many connections are served at a time. One more is told to come back (429), unless it asks for health or metrics. " +
				"An idle one costs some 30 KiB.",
			set: one(parseCount, "a number from 1 to 1000000", func(c *config, v int64) { c.ConnectionsMax = v }),
		},
		{
			name: "cache-size", value: "SIZE", preset: "256MiB",
			usage: "Memory for metadata documents.",
			set:   one(parseSize, "a size such as 256MiB, at least 1", func(c *config, v int64) { c.CacheBytes = v }),
		},
		{
			name: "undrop-window", value: "DURATION", preset: "7d",
			usage: "How long the records of a dropped table or view are kept, so that it can come back, such as 7d or 36h.",
			set:   one(parseDuration, "a duration such as 7d or 36h, more than 0", func(c *config, v time.Duration) { c.UndropWindow = v }),
		},
		{
			name: "idempotency-lifetime", value: "DURATION", preset: "30m",
			usage: "How long clients may repeat a change with the same Idempotency-Key: 1s to 8760h. A purge of a table that " +
				"was changed with a key waits until then, and 5 minutes more.",
			set: one(parseLifetime, "a duration such as 30m, 1s to 8760h", func(c *config, v time.Duration) { c.KeyLifetime = v }),
		},
		{
			name: "change-retention", value: "DURATION",
			usage: "How long the record of a change is kept, such as 7d or 36h. Not shorter than --idempotency-lifetime and 5 minutes. " +
				"Default: 7d, or as long as that.",
			set: one(parseDuration, "a duration such as 7d or 36h, more than 0", func(c *config, v time.Duration) { c.ChangeRetention = v }),
		},
		{
			name: "transaction-wait", value: "DURATION", preset: "0s",
			usage: "How long a commit of several tables waits for one that another operation holds, before it is refused. At most 5s.",
			set:   one(parseTransactionWait, "a duration from 0s to 5s", func(c *config, v time.Duration) { c.TransactionWait = v }),
		},
		{
			name: "store-wait", value: "DURATION", preset: "30s",
			usage: "How long a start waits for a PostgreSQL database that does not answer, or accepts no writes yet. At least 0s.",
			set:   one(parseWait, "a duration such as 30s, at least 0s", func(c *config, v time.Duration) { c.StoreWait = v }),
		},
		{
			name: "shutdown-timeout", value: "DURATION", preset: "50s",
			usage: "How long requests under way may take to end after SIGTERM, SIGINT or SIGHUP. A commit of several tables may need 45s.",
			set:   one(parseDuration, "a duration such as 45s, more than 0", func(c *config, v time.Duration) { c.ShutdownTimeout = v }),
		},
	}...)
}

// storeSettings returns the settings that say where the store is.
func storeSettings() []setting {
	return []setting{
		{
			name: "config", value: "FILE",
			usage: "YAML file with settings.",
			set:   text(func(c *config, v string) { c.File = v }),
		},
		{
			name: "data", value: "DIR", preset: "./moorage-data",
			usage: "Folder for everything the server keeps, which serve makes if it is not there. " +
				"The warehouse called default is the folder warehouse in it, if nothing else was said when it was made.",
			set: folder(func(c *config, v string) { c.Data = v }),
		},
		{
			name: "store", value: "memory|DIR|postgres://…",
			usage: "Where the catalog keeps which metadata file is current: the folder of the embedded store; " +
				"memory, which is gone when the server ends; or, for several servers at once, a PostgreSQL database, " +
				"postgres://USER@HOST:PORT,HOST:PORT/DATABASE. Default: the folder registry in --data.",
			set: func(c *config, v []string) error {
				if c.Store = v[0]; c.inDatabase() {
					return nil
				}
				if isURI(c.Store) { // which is not repeated, because it may hold a password
					return fmt.Errorf("must be memory, a folder of this machine, or begin with postgres://")
				}
				return notEmpty(c.Store)
			},
		},
	}
}

func allowLocation(flagOnly bool) setting {
	return setting{
		name: "allow-location", value: "URI", list: true, flagOnly: flagOnly,
		usage: "Location below which tables may live beside their warehouse's own. May be given more than once.",
		set: func(c *config, v []string) error {
			c.AllowLocations = v
			for _, uri := range v {
				if err := checkLocation(uri); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// text is the set of a setting that takes any text but none at all.
func text(put func(*config, string)) func(*config, []string) error {
	return func(c *config, values []string) error {
		put(c, values[0])
		return notEmpty(values[0])
	}
}

func notEmpty(v string) error {
	if v == "" {
		return fmt.Errorf("must not be empty")
	}
	return nil
}

// folder is text that takes no URI, which would be made as a folder of that name on this machine.
func folder(put func(*config, string)) func(*config, []string) error {
	return func(c *config, values []string) error {
		if isURI(values[0]) {
			return fmt.Errorf("must be a folder of this machine, not a URI")
		}
		return text(put)(c, values)
	}
}

func isURI(v string) bool { return strings.Contains(v, "://") }

// one is the set of a setting that has one value, which parse reads; want says
// what it should have been.
func one[T any](parse func(string) (T, error), want string, put func(*config, T)) func(*config, []string) error {
	return func(c *config, values []string) error {
		value, err := parse(values[0])
		if err != nil {
			return fmt.Errorf("%q is not %s", values[0], want)
		}
		put(c, value)
		return nil
	}
}

func oneOf(allowed ...string) func(string) (string, error) {
	return func(v string) (string, error) {
		for _, a := range allowed {
			if v == a {
				return v, nil
			}
		}
		return "", strconv.ErrSyntax
	}
}

// connectionsMost is beyond what one process can have open.
const connectionsMost = 1_000_000

func parseCount(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err == nil && (n < 1 || n > connectionsMost) {
		err = strconv.ErrRange
	}
	return n, err
}

func parseLevel(v string) (slog.Level, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	level, ok := levels[v]
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return level, nil
}

// parseDuration reads a duration that is more than 0: as time.ParseDuration, or a whole number of days of 24 hours.
func parseDuration(v string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		if err == nil && n <= 0 {
			err = strconv.ErrRange
		}
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(v)
	if err == nil && d <= 0 {
		err = strconv.ErrRange
	}
	return d, err
}

// lifetimeMax is far beyond what any client waits.
const lifetimeMax = 365 * 24 * time.Hour

// parseLifetime reads a duration that clients are told in seconds.
func parseLifetime(v string) (time.Duration, error) {
	d, err := parseDuration(v)
	if err == nil && (d < time.Second || d > lifetimeMax) {
		err = strconv.ErrRange
	}
	return d.Round(time.Second), err
}

// parseTransactionWait reads a duration that a request can wait.
func parseTransactionWait(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err == nil && (d < 0 || d > catalog.TransactionLockWaitMax) {
		err = strconv.ErrRange
	}
	return d, err
}

// parseWait reads a duration that may be 0.
func parseWait(v string) (time.Duration, error) {
	if d, err := time.ParseDuration(v); err == nil && d == 0 {
		return 0, nil
	}
	return parseDuration(v)
}

// parseSize reads a positive number of bytes with an optional unit.
func parseSize(v string) (int64, error) {
	units := []struct {
		suffix string
		bits   uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(v, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, err
		}
		if n < 1 || n > (1<<62)>>unit.bits {
			return 0, strconv.ErrRange
		}
		return n << unit.bits, nil
	}
	return 0, strconv.ErrSyntax
}

func checkHostPort(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT with a port from 0 to 65535", v)
	}
	return nil
}

// isLoopback tells whether nobody beyond this machine can reach a server that listens on
// hostPort. Of names only localhost is trusted: what another one means may change.
func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
