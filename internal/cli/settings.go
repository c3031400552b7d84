package cli

import (
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/catalog"
	"moorage/secrets/keyservice"
	"moorage/storage/adls"
	"moorage/storage/gcs"
	"moorage/storage/s3"
)

// setting is one choice of the user. It is a flag --name. Unless flagOnly is set, it is also the
// environment variable MOORAGE_NAME and a key of the YAML file.
type setting struct {
	name string
	// value is the placeholder of the value in help; empty for a switch. Lower-case words between
	// bars are literal.
	value    string
	preset   string // default, as a user would write it; empty if there is none
	list     bool   // may be given more than once
	flagOnly bool
	required bool
	// unless names flags that disable the environment variable.
	unless []string
	usage  string
	// set puts values into c; there is exactly one value unless list is set.
	set func(c *Config, values []string) error
}

// variable is the name of the environment variable.
func (s setting) variable() string {
	return "MOORAGE_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// serverSettings returns the settings that the YAML file may contain: the settings of serve.
func serverSettings() []setting {
	return slices.Concat(
		nodeSettings(), accessSettings(), identitySettings(), auditSettings(), peerSettings(), limitSettings())
}

// peerSettings returns the settings of serve with which nodes send commits to each other.
func peerSettings() []setting {
	return []setting{
		{name: "peer-listen", value: "HOST:PORT",
			usage: "Address at which the other nodes of a cluster reach this one. Commits of a table that race " +
				"between nodes then go to one of them. Needs a PostgreSQL store and the three files below. " +
				"Default: nodes do not call each other.",
			set: func(c *Config, v []string) (err error) {
				c.PeerListen, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "peer-address", value: "HOST:PORT",
			usage: "Address that the other nodes call, if it is not that of --peer-listen. Its host is in the " +
				"certificate. Port 0 means the port of --peer-listen.",
			set: func(c *Config, v []string) (err error) {
				c.PeerAddress, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "peer-cert", value: "FILE", set: folder(func(c *Config) *string { return &c.PeerCert }),
			usage: "PEM file with the certificate of this node, for servers and clients."},
		{name: "peer-key", value: "FILE", set: folder(func(c *Config) *string { return &c.PeerKey }),
			usage: "PEM file with the key of --peer-cert."},
		{name: "peer-ca", value: "FILE", set: folder(func(c *Config) *string { return &c.PeerCA }),
			usage: "PEM file with the authority that signed the certificates of all nodes. It must sign for nobody " +
				"else: a node believes what another says about a caller."},
	}
}

// accessSettings returns the settings of serve for addresses, locations of files, and logs.
func accessSettings() []setting {
	return []setting{
		{name: "listen", value: "HOST:PORT", preset: "127.0.0.1:8181",
			usage: "Address to listen on. Port 0 takes a free port, which the server prints.",
			set: func(c *Config, v []string) (err error) {
				c.Listen, err = v[0], checkHostPort(v[0])
				return err
			}},
		{name: "debug-listen", value: "[HOST:]PORT",
			usage: "Address at which the server answers /metrics, /healthz and /readyz without a key and without " +
				"TLS. A port alone is one of 127.0.0.1. Every client that reaches the address can read the metrics. " +
				"Default: off.",
			set: func(c *Config, v []string) error {
				c.DebugListen = v[0]
				if port := strings.TrimPrefix(v[0], ":"); !strings.Contains(port, ":") {
					c.DebugListen = "127.0.0.1:" + port
				}
				return checkHostPort(c.DebugListen)
			}},
		{name: "host", value: "NAME", list: true,
			usage: "Name by which clients may ask for the server, besides localhost and loopback addresses: that " +
				"of a proxy in front of it, say. The server refuses others (421): a web page could make its own name " +
				"mean this machine. Default: any name if callers have to show who they are, or with " +
				"--insecure-no-auth. May be given more than once.",
			set: func(c *Config, v []string) error {
				c.Hosts = v
				if slices.Contains(v, "") {
					return fmt.Errorf("must not be empty")
				}
				return nil
			}},
		{name: "migrate", set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Migrate }),
			usage: "Bring the tables of a PostgreSQL database to this version first, as moorage migrate does."},
		{name: "default-location", value: "URI", set: place(func(c *Config) *string { return &c.DefaultLocation }),
			usage: "Where the tables of the warehouse called default go, when it is made: s3://bucket/prefix, " +
				"gs://bucket/prefix, abfss://container@account.dfs.core.windows.net/path or " +
				"file:///absolute/folder. Default: the folder warehouse in --data."},
		allowLocation(),
		{name: "backups", value: "DIR", set: folder(func(c *Config) *string { return &c.Backups }),
			usage: "Folder in which the server makes the backups of moorage backup --uri. The folder that it is in " +
				"must be there. Default: the folder backups in --data."},
		{name: "log-level", value: "debug|info|warn|error", preset: "info",
			usage: "Lowest level of the log, which goes to stderr.",
			set:   one(parseLevel, "debug, info, warn or error", func(c *Config) *slog.Level { return &c.LogLevel })},
		{name: "log-format", value: "text|json", preset: "text", usage: "Form of the log.",
			set: one(oneOf("text", "json"), "text or json", func(c *Config) *string { return &c.LogFormat })},
	}
}

// limitSettings returns the settings of serve that bound sizes and times.
func limitSettings() []setting {
	const days, size = "a duration such as 7d or 36h, more than 0", "a size such as 64MiB, at least 1"
	return []setting{
		{name: "body-limit", value: "SIZE", preset: "64MiB",
			usage: "Longest request body. Bytes, or with a unit: KiB, MiB, GiB.",
			set:   one(parseSize, size, func(c *Config) *int64 { return &c.BodyBytesMax })},
		{name: "connection-limit", value: "N", preset: "4096",
			usage: "How many connections the server has at a time. For one more the longest idle " +
				"connection ends. Above three quarters of it an address has a share of an eighth, but not a " +
				"--trusted-proxy. What finds no room is told to come back (429), unless it asks for health or " +
				"metrics. An idle connection costs some 30 KiB.",
			set: one(within(strconv.Atoi, 1, 1_000_000), "a number from 1 to 1000000",
				func(c *Config) *int { return &c.ConnectionsMax })},
		{name: "cache-size", value: "SIZE", preset: "64MiB", usage: "Memory for metadata documents.",
			set: one(parseSize, size, func(c *Config) *int64 { return &c.CacheBytes })},
		{name: "commit-group", value: "N", preset: "64",
			usage: "How many commits that wait at one table at a time may share a metadata file. 1: each has its " +
				"own.",
			set: one(within(strconv.Atoi, 1, 1024), "a number from 1 to 1024",
				func(c *Config) *int { return &c.CommitGroup })},
		{name: "append-rebase", value: "off",
			usage: "off: refuse every append that comes too late for its snapshot (409), even where the table and " +
				"the request consent to a rebase.",
			set: one(parseRebaseOff, "off", func(c *Config) *bool { return &c.NoAppendRebase })},
		{name: "hedge-writes",
			set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.HedgeWrites }),
			usage: "Write a metadata file in S3 again, under another name, if the first write takes over 150 ms " +
				"and over 3 times as long as usual. Whichever is there first counts. Commits of one table or view " +
				"do so."},
		{name: "maintenance", value: "on|off|only", preset: MaintenanceOn,
			usage: "on: this server does the maintenance that policies ask for. off: it does none. only: it does " +
				"that, and answers no requests but those of operators and probes.",
			set: one(oneOf(MaintenanceOn, MaintenanceOff, MaintenanceOnly), "on, off or only",
				func(c *Config) *string { return &c.Maintenance })},
		{name: "undrop-window", value: "DURATION", preset: "7d",
			usage: "How long the records of a dropped table or view are kept, so that it can come back, such as 7d " +
				"or 36h. The files of a table that is dropped with a purge are kept as long, unless its warehouse " +
				"has the property moorage.purge-delay.",
			set: one(parseDuration, days, func(c *Config) *time.Duration { return &c.UndropWindow })},
		{name: "idempotency-lifetime", value: "DURATION", preset: "30m",
			usage: "How long clients may repeat a change with the same Idempotency-Key: 1s to 8760h. A purge of a " +
				"table that was changed with a key waits until then, and 5 minutes more.",
			set: one(parseLifetime, "a duration such as 30m, 1s to 8760h",
				func(c *Config) *time.Duration { return &c.KeyLifetime })},
		{name: "change-retention", value: "DURATION",
			usage: "How long the record of a change is kept, such as 7d or 36h. Not shorter than " +
				"--idempotency-lifetime and 5 minutes. Default: 7d, or as long as that.",
			set: one(parseDuration, days, func(c *Config) *time.Duration { return &c.ChangeRetention })},
		{name: "transaction-wait", value: "DURATION", preset: "2s",
			usage: "How long a commit of several tables waits for one that another operation holds, before it is " +
				"refused. It holds none meanwhile. At most 5s, and 0s for not at all.",
			set: one(within(time.ParseDuration, 0, catalog.TransactionLockWaitMax), "a duration from 0s to 5s",
				func(c *Config) *time.Duration { return &c.TransactionWait })},
		{name: "store-wait", value: "DURATION", preset: "30s",
			usage: "How long a start waits for a PostgreSQL database that does not answer, or accepts no writes yet. " +
				"At least 0s.",
			set: one(within(parseDays, 0, math.MaxInt64), "a duration such as 30s, at least 0s",
				func(c *Config) *time.Duration { return &c.StoreWait })},
		{name: "shutdown-timeout", value: "DURATION", preset: "50s",
			usage: "How long requests under way may take to end after SIGTERM, SIGINT or SIGHUP. A commit of " +
				"several tables may need 45s.",
			set: one(parseDuration, "a duration such as 45s, more than 0",
				func(c *Config) *time.Duration { return &c.ShutdownTimeout })},
	}
}

// configFile returns the setting for the file with other settings.
func configFile() setting {
	return setting{name: "config", value: "FILE", set: text(func(c *Config) *string { return &c.File }),
		usage: "YAML file with settings."}
}

// storeSettings returns the settings for the store's place.
func storeSettings() []setting {
	return []setting{
		configFile(),
		{name: "data", value: "DIR", preset: "./moorage-data", set: folder(func(c *Config) *string { return &c.Data }),
			usage: "Folder for everything the server keeps. If it is not there, serve makes it. The warehouse " +
				"called default is the folder warehouse in it, unless it was made with --default-location."},
		{name: "store", value: "memory|DIR|URI",
			usage: "Where the catalog keeps which metadata file is current: the folder of the embedded store; " +
				"memory, which is gone when the server ends; or, for several servers at once, a PostgreSQL database, " +
				"postgres://USER@HOST:PORT,HOST:PORT/DATABASE. Default: the folder registry in --data.",
			set: func(c *Config, v []string) error {
				if c.Store = v[0]; c.InDatabase() {
					return nil
				}
				if isURI(c.Store) { // the message does not repeat it, because it may contain a password
					return fmt.Errorf("must be memory, a folder of this machine, or begin with postgres://")
				}
				return notEmpty(c.Store)
			}},
	}
}

// asking returns the settings of a command that calls a server or opens the store itself. The
// command's own settings come first.
func asking(own ...setting) []setting {
	return slices.Concat(own, []setting{askedServer("Ask the server that runs at this address."), token(), authority()},
		nodeSettings())
}

// nodeSettings returns the settings of every command that opens a catalog: the store's place, and
// how S3 and Google Cloud Storage are reached unless a warehouse has its own options.
func nodeSettings() []setting {
	const amazon = " For warehouses that were made without one."
	return append(storeSettings(), []setting{
		{name: "s3-endpoint", value: "URL",
			usage: "S3 server of warehouses on s3://, such as http://127.0.0.1:9000. Engines learn it too." + amazon +
				" Default: what AWS_ENDPOINT_URL_S3 says, else Amazon's.",
			set: checkedText(s3.CheckEndpoint, func(c *Config) *string { return &c.S3Endpoint })},
		{name: "s3-region", value: "REGION", set: text(func(c *Config) *string { return &c.S3Region }),
			usage: "Region of buckets." + amazon + " Default: what AWS_REGION or the profile says, else us-east-1."},
		{name: "s3-path-style", value: "true|false",
			usage: "Whether the bucket is a part of the path rather than of the host's name." + amazon +
				" Default: true if there is an endpoint.",
			set: one(oneOf("true", "false"), "true or false", func(c *Config) *string { return &c.S3PathStyle })},
		{name: "s3-profile", value: "NAME", set: text(func(c *Config) *string { return &c.S3Profile }),
			usage: "Section of the shared AWS configuration files that has the credentials." + amazon},
		{name: "s3-access-key-id", value: "ID", set: text(func(c *Config) *string { return &c.S3AccessKeyID }),
			usage: "Static credentials, for warehouses without a profile. Default: the chain of the AWS SDKs " +
				"(environment, shared files, web identity, container, instance)."},
		{name: "s3-secret-access-key", value: "SECRET",
			set: text(func(c *Config) *string { return &c.S3SecretAccessKey }),
			usage: "The secret that belongs to it. A variable or the file is better: other users of the machine can " +
				"see command lines."},
		{name: "gcs-service-host", value: "URL",
			usage: "Server of warehouses on gs://. Engines learn it too. Tokens are sent there." + amazon +
				" Default: Google's.",
			set: checkedText(gcs.CheckEndpoint, func(c *Config) *string { return &c.GCSServiceHost })},
		{name: "gcs-sts-endpoint", value: "URL",
			usage: "Server that makes credentials for engines of warehouses on gs://. Tokens are sent there." + amazon +
				" Default: Google's.",
			set: checkedText(gcs.CheckEndpoint, func(c *Config) *string { return &c.GCSSTSEndpoint })},
		{name: "gcs-project-id", value: "ID", set: text(func(c *Config) *string { return &c.GCSProjectID }),
			usage: "Project that engines name for warehouses on gs://." + amazon},
		{name: "gcs-no-auth", value: "true|false",
			usage: "Whether the server of warehouses on gs:// is sent no token, because it asks for none." + amazon +
				" Default: false.",
			set: one(oneOf("true", "false"), "true or false", func(c *Config) *string { return &c.GCSNoAuth })},
		{name: "adls-endpoint", value: "URL",
			usage: "Blob service of warehouses on abfss://, such as http://127.0.0.1:10000/devstoreaccount1 for an " +
				"emulator. Engines learn it too." + amazon + " Default: that of each account in Azure.",
			set: checkedText(adls.CheckEndpoint, func(c *Config) *string { return &c.ADLSEndpoint })},
		{name: "adls-account-key", value: "KEY", set: text(func(c *Config) *string { return &c.ADLSAccountKey }),
			usage: "Key of the account in Azure, for development. No credentials for engines can be made with it. " +
				"Default: the identity of the process: AZURE_CLIENT_ID and the like, a workload identity, a managed " +
				"identity, or that of the Azure CLI."},
		secretsKey(), formerSecretsKey(),
		{name: "vault-token-file", value: "FILE", set: folder(func(c *Config) *string { return &c.VaultTokenFile }),
			usage: "File with the token for the Vault that --secrets-key or --former-secrets-key names. It is read " +
				"for each call, so another program may renew it there."},
		{name: "vault-ca", value: "FILE", set: folder(func(c *Config) *string { return &c.VaultCA }),
			usage: "PEM file with the certificates that the Vault's is signed by. Default: those of the system."},
		{name: "kms-endpoint", value: "URL",
			usage: "Service of the key in a cloud that --secrets-key names, such as one in a private network. " +
				"Requests that are signed, or a token, are sent there. Default: that of the cloud.",
			set: checkedText(keyservice.CheckEndpoint, func(c *Config) *string { return &c.KMSEndpoint })},
		{name: "former-kms-endpoint", value: "URL",
			usage: "The same for the key that --former-secrets-key names. Default: that of the cloud.",
			set:   checkedText(keyservice.CheckEndpoint, func(c *Config) *string { return &c.FormerKMSEndpoint })},
	}...)
}

// checkedText is text for values that check must accept.
func checkedText(check func(string) error, field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		*field(c) = values[0]
		return check(values[0])
	}
}

// secretsKey returns the setting for the place of the keys that seal secrets.
func secretsKey() setting {
	return setting{name: "secrets-key", value: "FILE|URI",
		set: text(func(c *Config) *string { return &c.SecretsKey }),
		usage: "What the secrets of warehouses are sealed with: a file with keys, which moorage secrets init makes, " +
			"or a key that never leaves its service: hcvault://HOST:8200/transit/keys/NAME in a Vault, " +
			"aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID, or " +
			"gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K. Default: nothing, and no warehouse can have a " +
			"secret."}
}

// formerSecretsKey returns the setting for the former place of those keys.
func formerSecretsKey() setting {
	return setting{name: "former-secrets-key", value: "FILE|URI",
		set: text(func(c *Config) *string { return &c.FormerSecretsKey }),
		usage: "What --secrets-key was before. What that sealed opens too, and moorage secrets rotate --keep-key " +
			"seals it with --secrets-key. Default: none."}
}

// warehouseSettings returns the settings that only warehouse create has.
func warehouseSettings() []setting {
	allow := allowLocation()
	allow.flagOnly = true
	return []setting{
		{name: "location", value: "URI", set: place(func(c *Config) *string { return &c.Location }),
			flagOnly: true, required: true,
			usage: "Where the warehouse's tables go: file:///absolute/folder, s3://bucket/prefix, gs://bucket/prefix " +
				"or abfss://container@account.dfs.core.windows.net/path."},
		allow,
		property(), delegation(), secretFile(), storageOption(),
	}
}

// changeSettings returns the settings that only warehouse change has.
func changeSettings() []setting {
	removal := func(name, what string, field func(*Config) *[]string) setting {
		return setting{name: name, value: "NAME", list: true, flagOnly: true,
			usage: what + " to remove. May be repeated.",
			set: func(c *Config, values []string) error {
				*field(c) = values
				return nil
			}}
	}
	offers := delegation()
	offers.usage += " It takes the place of what the warehouse offers now; none: nothing."
	return []setting{
		property(), removal("remove-property", "Property", func(c *Config) *[]string { return &c.RemovedProperties }),
		offers, secretFile(),
		{name: "no-secret", flagOnly: true,
			set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.NoSecret }),
			usage: "Take the secret away: the server reaches the storage with what its process has."},
		storageOption(),
		removal("remove-storage-option", "Option of the storage",
			func(c *Config) *[]string { return &c.RemovedOptions }),
	}
}

func property() setting {
	return setting{name: "property", value: "KEY=VALUE", list: true, flagOnly: true,
		usage: "Property of the warehouse. Every client that connects to it is told, and takes it for a default " +
			"of its own settings, such as table-default.write.format.default=orc. No secrets. May be repeated.",
		set: pairs(func(c *Config) *map[string]string { return &c.Properties })}
}

// DelegationNone is the delegation of a warehouse that offers engines no access.
const DelegationNone = "none"

func delegation() setting {
	return setting{name: "delegation", value: "WAY", list: true, flagOnly: true,
		usage: "How engines reach the files without a key of their own: vended-credentials or " +
			"remote-signing. May be repeated, the preferred way first. The storage is tried first, and must " +
			"enforce it.",
		set: func(c *Config, values []string) error {
			c.Delegation = values
			return nil
		}}
}

func secretFile() setting {
	return setting{name: "secret-file", value: "FILE", flagOnly: true,
		set: text(func(c *Config) *string { return &c.SecretFile }),
		usage: "JSON object with the key for the storage: access-key-id and secret-access-key for S3, " +
			"client-secret or account-key for Azure, or the file of a service account's key for Google Cloud " +
			"Storage. It is sealed before it is stored; see --secrets-key. Default: the server's own."}
}

func storageOption() setting {
	return setting{name: "storage-option", value: "NAME=VALUE", list: true, flagOnly: true,
		usage: "Option of the warehouse's storage, such as " +
			"s3.sts.role-arn=arn:aws:iam::123456789012:role/engines. No secrets. May be repeated.",
		set: pairs(func(c *Config) *map[string]string { return &c.StorageOptions })}
}

// pairs is the set function of a setting whose values are KEY=VALUE.
func pairs(field func(*Config) *map[string]string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		read := make(map[string]string, len(values))
		for _, pair := range values {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return fmt.Errorf("%q is not KEY=VALUE", pair)
			}
			read[key] = value
		}
		*field(c) = read
		return nil
	}
}

func allowLocation() setting {
	return setting{name: "allow-location", value: "URI", list: true,
		usage: "Location below which tables may live, besides their warehouse's own. Below a folder of this machine " +
			"warehouses can then be made over the network. May be given more than once.",
		set: func(c *Config, v []string) error {
			c.AllowLocations = v
			for _, uri := range v {
				if err := CheckLocation(uri); err != nil {
					return err
				}
			}
			return nil
		}}
}

// askedServer is the flag for the address of a running server.
func askedServer(usage string) setting {
	unless := []string{"data", "store"} // a user who names a store means that store
	return setting{name: "uri", value: "URI", unless: unless, usage: usage, set: func(c *Config, v []string) error {
		u, err := url.Parse(v[0])
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return fmt.Errorf("%q is not an address such as http://127.0.0.1:8181", v[0])
		}
		c.URI = strings.TrimSuffix(v[0], "/")
		return nil
	}}
}

// The values of --audit that are not the name of a file.
const (
	AuditStderr = "stderr"
	AuditOff    = "off"
)

// auditReadsMax bounds how many reads one line of the audit log may represent.
const auditReadsMax = 1_000_000

// auditSettings returns the settings of serve for the audit log.
func auditSettings() []setting {
	return []setting{
		{name: "audit", value: "FILE|stderr|off", set: folder(func(c *Config) *string { return &c.Audit }),
			usage: "Where the audit log goes: one JSON line for each request that was let in or refused, and for " +
				"each token and key. SIGHUP then opens the file again, and does not end the server. Default: the " +
				"file audit.log in --data where callers are authenticated, else off. With a database it is " +
				"audit-HOST.log, and audit-HOST-2.log for a second server of that machine."},
		{name: "audit-reads", value: "summed|each|1/N", preset: "summed",
			usage: "Which lines the audit log has of reads that were let in. summed: the first of a caller, an " +
				"operation and an object in a minute, and one with the number of the others. each: all. " +
				"1/N: one of N. Each change has a line. Refusals have one each, and share lines beyond 100 of a " +
				"caller in a minute.",
			set: one(parseShare, "summed, each, or 1/N with N from 1 to 1000000",
				func(c *Config) *int { return &c.AuditReads })},
		{name: "audit-max-size", value: "SIZE", preset: "1GiB",
			usage: "How long the file of the audit log becomes before it is moved to the same name with .1 behind " +
				"it. The files before become .2 to .4, and the oldest goes.",
			set: one(parseSize, "a size such as 64MiB, at least 1",
				func(c *Config) *int64 { return &c.AuditBytesMax })},
		{name: "audit-strict",
			set:   one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.AuditStrict }),
			usage: "Refuse requests (503) while the audit log cannot be written. Otherwise lines go, and are counted."},
	}
}

// parseShare reads "1/N" and returns N. "summed" is 0, "each" is 1.
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

// AuditTo returns where the audit log goes: AuditOff, AuditStderr, or a file. authenticated is true
// if callers must authenticate.
func (c Config) AuditTo(authenticated bool) string {
	switch {
	case c.Audit != "":
		return c.Audit
	case authenticated:
		return filepath.Join(c.Data, "audit.log")
	}
	return AuditOff
}
