package cli

import (
	"crypto/x509"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moorage/identity"
)

// The values of the setting maintenance.
const (
	MaintenanceOn   = "on"
	MaintenanceOff  = "off"
	MaintenanceOnly = "only"
)

// Config has the values of a command's settings. A command uses only the fields of its own
// settings; the other fields have their defaults.
type Config struct {
	Operand string   // the single operand: the name of a warehouse, or the folder of a backup
	Flags   []string // names of the flags on the command line, in the order of the command's settings

	File          string        // YAML file with the other settings; empty if there is none
	Backups       string        // folder for backups of the server; empty means the folder "backups" in Data
	Data          string        // folder for all data of the server; example /var/lib/moorage
	Store         string        // "memory", a folder, or a database URL; empty means the folder "registry" in Data
	Migrate       bool          // first migrate the database's tables to this version
	Listen        string        // host:port; port 0 means any free port
	DebugListen   string        // host:port for probes and metrics without a key; empty if there is none
	Console       bool          // serve the console below /console
	Hosts         []string      // host names that clients may use for a server on loopback
	APIKeys       bool          // accept the API keys of the store, and issue tokens for them
	Admins        []string      // principals that are always administrators
	TokenLifetime time.Duration // how long a token that this server issues is valid
	TLSCert       string        // PEM file: the certificate of the server; empty means plain HTTP
	TLSKey        string        // PEM file: the key of TLSCert
	TLSClientCA   string        // PEM file: the authorities that sign client certificates; empty if clients have none
	// The risks that --insecure accepts: plain HTTP beyond loopback, no authentication beyond
	// loopback, and a store that every identity of a token issuer can change.
	InsecurePlainHTTP, InsecureNoAuth, InsecureOpenToIssuer bool

	PeerListen          string        // host:port for connections from other nodes; empty if there is no such listener
	PeerAddress         string        // host:port that other nodes call; empty means PeerListen
	PeerTLS             string        // folder with this node's certificate and key, and the authority of all nodes
	AllowLocations      []string      // URIs below which tables may live, in addition to their warehouse's location
	Audit               string        // a file, AuditStderr or AuditOff; empty: see AuditTo
	AuditReads          int           // one of N allowed reads gets a line in the audit log; 0: reads are summed
	AuditStrict         bool          // refuse requests while the audit log cannot be written
	LogLevel            slog.Level    // the lowest level that is logged
	LogFormat           string        // "text" or "json"
	TraceNames          bool          // traces have the names of namespaces and tables
	ConnectionsMax      int           // maximum number of concurrent connections
	CacheBytes          int64         // memory for metadata documents, in bytes
	UndropWindow        time.Duration // how long the records of a dropped table are kept
	IdempotencyLifetime time.Duration // how long a request may be repeated with its Idempotency-Key
	ChangeRetention     time.Duration // how long change records are kept; 0 means the catalog's default
	StoreWait           time.Duration // how long a start waits for a database that does not answer; 0 means no wait
	ShutdownTimeout     time.Duration // how long requests in progress may take to end
	Maintenance         string        // on, off or only
	HedgeWrites         bool          // write a metadata file again if the first write takes unusually long

	// OpenTelemetry has the variables that begin with OTEL_, by name. Only serve sets it.
	OpenTelemetry map[string]string

	Issuers        []identity.IssuerConfig // external issuers whose tokens are accepted
	TrustedProxies []netip.Prefix          // proxies whose X-Forwarded-For is trusted

	DefaultLocation string // location of the warehouse default when it is created; empty means a folder in Data
	// DefaultStorageOptions are the storage options of the warehouse default when it is created.
	DefaultStorageOptions map[string]string
	// TrustedStorages are the URLs of storage servers that may get tokens of this process.
	TrustedStorages []string

	// SecretsKey is the address of the keys that seal secrets; empty if there are none. See
	// ParseKeyAddress.
	SecretsKey string
	// FormerSecretsKey is the previous SecretsKey; empty if there is none.
	FormerSecretsKey string

	SecretFile string // warehouse create, warehouse change: file with the storage's secret; empty if there is none
	NoSecret   bool   // warehouse change: remove the secret
	KeepKey    bool   // secrets rotate: generate no key
	Sessions   bool   // key withdraw: end all sessions of the console instead of a key

	Location   string            // warehouse create: location of its tables
	Properties map[string]string // warehouse create, warehouse change
	// Delegation and StorageOptions belong to warehouse create and warehouse change.
	Delegation     []string
	StorageOptions map[string]string
	// RemovedOptions and RemovedProperties are the names that warehouse change removes.
	RemovedOptions, RemovedProperties []string
	// RemovedLocations are the URIs that warehouse change removes from the allowed locations.
	RemovedLocations []string

	URI   string // address of the running server; if empty, the command opens the store itself
	Token string // authenticates the caller to the server at URI; empty means an anonymous caller
	// Authorities may sign the certificate of the server at URI. Nil means the system's
	// authorities.
	Authorities *x509.CertPool

	Deep     bool          // doctor: also read every record and metadata file
	Maintain MaintainWords // operands and settings of commands about maintenance
	Lease    LeaseWords    // lease run

	People      PeopleWords   // operands and settings of commands for people
	Transfer    TransferWords // operands and settings of import and export
	Access      AccessWords   // operands of commands about access
	Admin       bool          // key create: the key may administer the server
	Expires     time.Duration // key create, key rotate: how long the secret is valid
	Grace       time.Duration // key rotate: how long the present secret stays valid
	Roles       []string      // key create: roles to which the key is restricted; nil means no restriction
	Description string        // key create, role create
}

// LeaseWords are the operands and settings of lease run.
type LeaseWords struct {
	Warehouse string
	Namespace []string
	Table     string
	Scope     string
	Holder    string
	TTL, Wait time.Duration
	Exec      string // the program, without arguments
}

// IsGiven reports whether a flag is on the command line.
func (c Config) IsGiven(flag string) bool { return slices.Contains(c.Flags, flag) }

const (
	// StoreFolder is the name of the embedded store's folder, both in --data and in a backup. So a
	// backup can be the --data of a server.
	StoreFolder = "registry"
	// StoreMemory is the Store of a server that keeps nothing after it ends.
	StoreMemory = "memory"
)

// InDatabase reports whether the store is a PostgreSQL database.
func (c Config) InDatabase() bool {
	return strings.HasPrefix(c.Store, "postgres://") || strings.HasPrefix(c.Store, "postgresql://")
}

// StoreName describes the store for a log, without user and password.
func (c Config) StoreName() string {
	switch {
	case c.Store == StoreMemory:
		return StoreMemory
	case c.InDatabase():
		return "PostgreSQL"
	}
	return c.StoreDir()
}

// StoreDir returns the folder of the embedded store. It has no meaning for other stores.
func (c Config) StoreDir() string {
	if c.Store != "" {
		return c.Store
	}
	return filepath.Join(c.Data, StoreFolder)
}

// HostNames returns the host names that clients may use for the server. Nil means any name.
func (c Config) HostNames() []string {
	if (c.Authenticates() || c.InsecureNoAuth) && len(c.Hosts) == 0 {
		return nil // web pages have no credentials to send, or the operator chose no protection
	}
	return append([]string{}, c.Hosts...)
}

// BackupsDir returns the folder to which the server writes backups.
func (c Config) BackupsDir() string {
	if c.Backups != "" {
		return c.Backups
	}
	return filepath.Join(c.Data, "backups")
}

// Trusted returns TrustedStorages in the form that the storage option takes.
func (c Config) Trusted() string { return strings.Join(c.TrustedStorages, " ") }
