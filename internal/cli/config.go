package cli

import (
	"crypto/x509"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"moorage/identity"
	"moorage/storage/adls"
	"moorage/storage/gcs"
	"moorage/storage/s3"
)

// What the setting maintenance may be.
const (
	MaintenanceOn   = "on"
	MaintenanceOff  = "off"
	MaintenanceOnly = "only"
)

// Config is what the settings of a command come to. A command looks only at the
// fields of its own settings; the others have their defaults.
type Config struct {
	Operand string // what follows the flags: the name of a warehouse, the folder of a backup

	File            string        // YAML file the rest was read from; empty: none
	Backups         string        // folder that the server writes backups to; empty: the folder "backups" below Data
	Data            string        // folder for everything the server keeps; example /var/lib/moorage
	Store           string        // "memory", a folder, or where a database is; empty: the folder "registry" below Data
	Migrate         bool          // bring the tables of the database to this version first
	Listen          string        // host:port; port 0 takes a free one
	DebugListen     string        // host:port that answers probes and metrics without a key; empty: there is none
	Hosts           []string      // names by which clients may ask a server on loopback
	APIKeys         bool          // accept the API keys of the store, and give out tokens for them
	Admins          []string      // principals who are always administrators
	TokenLifetime   time.Duration // how long a token lasts that the server gives out
	TLSCert         string        // PEM file: the certificate of the server; empty: it speaks plain HTTP
	TLSKey          string        // PEM file: the key of TLSCert
	TLSClientCA     string        // PEM file: what signs certificates of clients; empty: they show none
	Insecure        bool          // may listen beyond loopback without TLS
	InsecureNoAuth  bool          // may listen beyond loopback without authentication
	OpenToIssuer    bool          // may let all that an authority vouches for change every table
	PeerListen      string        // host:port at which other nodes reach this one; empty: they do not
	PeerAddress     string        // host:port that they call; empty: that of PeerListen
	PeerCert        string        // PEM file: the certificate of this node
	PeerKey         string        // PEM file: the key of PeerCert
	PeerCA          string        // PEM file: what signed the certificates of all nodes
	AllowLocations  []string      // URIs below which tables may live besides their warehouse's own
	Audit           string        // a file, AuditStderr or AuditOff; empty: see AuditTo
	AuditReads      int           // the audit log has one of so many reads that were let in; 0: sums of them
	AuditBytesMax   int64         // how long its file becomes, in bytes
	AuditStrict     bool          // requests are refused while it cannot be written
	LogLevel        slog.Level    // the lowest level that is written
	LogFormat       string        // "text" or "json"
	BodyBytesMax    int64         // longest request body, in bytes
	ConnectionsMax  int           // connections that are served at a time
	CacheBytes      int64         // memory for metadata documents, in bytes
	UndropWindow    time.Duration // how long a dropped table's records are kept
	KeyLifetime     time.Duration // how long a request may be repeated with its Idempotency-Key
	ChangeRetention time.Duration // how long change records are kept; 0: the catalog's default
	StoreWait       time.Duration // how long a start waits for a database that does not answer; 0: not at all
	ShutdownTimeout time.Duration // how long requests under way may take to end
	CommitGroup     int           // how many commits of one table share a version at most
	Maintenance     string        // on, off or only
	HedgeWrites     bool          // write a metadata file again if the first write takes unusually long
	TransactionWait time.Duration // how long a commit of several tables waits for one that is held

	Issuers        []identity.IssuerConfig // outside issuers whose tokens are accepted
	TrustedProxies []netip.Prefix          // whose X-Forwarded-For is believed

	// NoAppendRebase refuses appends whose branch has moved, even with everybody's consent.
	NoAppendRebase bool

	DefaultLocation   string // where the warehouse default goes when it is made; empty: a folder below Data
	S3Endpoint        string // URL of the S3 server; empty: what the environment says
	S3Region          string // empty: what the environment says
	S3PathStyle       string // "true", "false"; empty: true if there is an endpoint
	S3Profile         string // section of the shared AWS files; empty: what the environment says
	S3AccessKeyID     string // empty: the default chain
	S3SecretAccessKey string // goes with S3AccessKeyID

	GCSServiceHost string // URL of the server of Cloud Storage; empty: Google's
	GCSSTSEndpoint string // URL of the service that narrows tokens; empty: Google's
	GCSProjectID   string // that engines name; empty: none
	GCSNoAuth      string // "true", "false"; empty: false

	ADLSEndpoint   string // URL of a blob service of Azure; empty: that of each account
	ADLSAccountKey string // key of its account; empty: the identity of the process

	SecretsKey string // file with the keys that secrets are sealed with, or the URI of one; empty: none
	// FormerSecretsKey is what SecretsKey was before; empty: none.
	FormerSecretsKey string
	// VaultTokenFile and VaultCA are for a key in a Vault.
	VaultTokenFile, VaultCA string
	// KMSEndpoint is the URL of the service of a key in a cloud, FormerKMSEndpoint that of
	// FormerSecretsKey; empty: that of the cloud.
	KMSEndpoint, FormerKMSEndpoint string

	SecretFile string // warehouse create, warehouse change: file with the secret of the storage; empty: none
	NoSecret   bool   // warehouse change: take the secret away
	KeepKey    bool   // secrets rotate: draw no key

	Location   string            // warehouse create: where its tables go
	Properties map[string]string // warehouse create, warehouse change
	// Delegation and StorageOptions are those of warehouse create and warehouse change.
	Delegation     []string
	StorageOptions map[string]string
	// RemovedOptions and RemovedProperties are names; warehouse change.
	RemovedOptions, RemovedProperties []string

	URI   string // the running server to ask; empty: open the store
	Token string // shows the server of URI who asks; empty: nobody does
	// Authorities may vouch for the server of URI; nil: those that the system trusts.
	Authorities *x509.CertPool

	Maintain MaintainWords // commands about maintenance: their words and settings
	Lease    LeaseWords    // lease run

	Access      AccessWords   // commands about access: their words
	Admin       bool          // key create: it may administer the server
	Expires     time.Duration // key create, key rotate: how long the secret is good
	Grace       time.Duration // key rotate: how long the present secret is good
	Roles       []string      // key create: that the key is narrowed to; nil: it is not
	Description string        // key create, role create
}

// LeaseWords is what lease run is told.
type LeaseWords struct {
	Warehouse string
	Namespace []string
	Table     string
	Scope     string
	Holder    string
	TTL, Wait time.Duration
	Exec      string // the program, without arguments
}

const (
	// StoreFolder is the folder of the embedded store in --data, and in a backup. So a server can
	// go on in a backup.
	StoreFolder = "registry"
	// StoreMemory is the Store of a server that forgets everything when it ends.
	StoreMemory = "memory"
)

// InDatabase reports whether the store is a PostgreSQL database.
func (c Config) InDatabase() bool {
	return strings.HasPrefix(c.Store, "postgres://") || strings.HasPrefix(c.Store, "postgresql://")
}

// StoreName is what a log may say about where the store is: no user, no password.
func (c Config) StoreName() string {
	switch {
	case c.Store == StoreMemory:
		return StoreMemory
	case c.InDatabase():
		return "PostgreSQL"
	}
	return c.StoreDir()
}

// StoreDir is the folder of the embedded store; not for another one.
func (c Config) StoreDir() string {
	if c.Store != "" {
		return c.Store
	}
	return filepath.Join(c.Data, StoreFolder)
}

// HostNames are the names by which clients may ask for the server; nil: any.
func (c Config) HostNames() []string {
	if (c.Authenticates() || c.InsecureNoAuth) && len(c.Hosts) == 0 {
		return nil // a page of a browser has nothing to show, or nothing is to be hidden from it
	}
	return append([]string{}, c.Hosts...)
}

// BackupsDir is the folder that the server writes backups to.
func (c Config) BackupsDir() string {
	if c.Backups != "" {
		return c.Backups
	}
	return filepath.Join(c.Data, "backups")
}

// S3Options returns how S3 is reached where a warehouse does not say it. Load checked each setting.
func (c Config) S3Options() s3.Options {
	options, _ := s3.Options{AccessKeyID: c.S3AccessKeyID, SecretAccessKey: c.S3SecretAccessKey}.With(c.S3Place())
	// A profile of the server as a whole does not take its static credentials away.
	options.AccessKeyID, options.SecretAccessKey = c.S3AccessKeyID, c.S3SecretAccessKey
	return options
}

// S3Place returns the settings as options of a place: all but the secrets.
func (c Config) S3Place() map[string]string {
	return filled(map[string]string{
		s3.OptionEndpoint: c.S3Endpoint, s3.OptionRegion: c.S3Region,
		s3.OptionPathStyle: c.S3PathStyle, s3.OptionProfile: c.S3Profile,
	})
}

// GCSOptions returns how Google Cloud Storage is reached where a warehouse does not say it. Load
// checked each setting.
func (c Config) GCSOptions() gcs.Options {
	// They name their own hosts, so tokens may go there.
	options, _ := gcs.Options{Endpoint: c.GCSServiceHost, STS: c.GCSSTSEndpoint}.With(c.GCSPlace())
	return options
}

// GCSPlace returns the settings as options of a place.
func (c Config) GCSPlace() map[string]string {
	return filled(map[string]string{
		gcs.OptionEndpoint: c.GCSServiceHost, gcs.OptionSTS: c.GCSSTSEndpoint,
		gcs.OptionProject: c.GCSProjectID, gcs.OptionNoAuth: c.GCSNoAuth,
	})
}

// ADLSOptions returns how Azure is reached where a warehouse does not say it.
func (c Config) ADLSOptions() adls.Options {
	return adls.Options{Endpoint: c.ADLSEndpoint, AccountKey: c.ADLSAccountKey}
}

// ADLSPlace returns the settings as options of a place: all but the key.
func (c Config) ADLSPlace() map[string]string {
	return filled(map[string]string{adls.OptionEndpoint: c.ADLSEndpoint})
}

// filled returns the options that have a value.
func filled(options map[string]string) map[string]string {
	maps.DeleteFunc(options, func(_, value string) bool { return value == "" })
	return options
}
