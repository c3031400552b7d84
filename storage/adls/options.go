package adls

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Options describes how to reach Azure. The zero value means Azure itself, with the identity from
// the process's environment.
type Options struct {
	// Endpoint is the URL of the blob service of an account, such as
	// http://127.0.0.1:10000/devstoreaccount1 for an emulator. Default: the endpoint of each
	// account.
	Endpoint string
	// TenantID and ClientID identify an application or a managed identity. Default: from the
	// environment.
	TenantID, ClientID string
	// ClientSecret is the secret of the application. If it is empty, a workload identity or a
	// managed identity is used.
	ClientSecret string
	// AccountKey is the key of the account, for development. It cannot make credentials for
	// engines.
	AccountKey string

	// Trusted lists further endpoints that may get tokens: their URLs, separated by spaces.
	Trusted string

	// Hierarchical is true if the accounts have a hierarchical namespace.
	Hierarchical bool
	// Duration is the lifetime of credentials for engines, from 15 minutes to 12 hours. Default 1
	// hour.
	Duration time.Duration

	// StallTimeout is the longest time without any transfer before the client abandons a try.
	// Default 10 s.
	StallTimeout time.Duration
	// RetryDelayMax is the maximum pause between two tries. Default 5 s.
	RetryDelayMax time.Duration
}

// The options of a storage.Place that this package knows.
const (
	OptionEndpoint     = "adls.endpoint"
	OptionTenantID     = "adls.tenant-id"
	OptionClientID     = "adls.client-id"
	OptionHierarchical = "adls.hierarchical"
	OptionDuration     = "adls.sas.duration"
)

// The possible members of a secret. A secret has exactly one.
const (
	SecretClientSecret = "client-secret"
	SecretAccountKey   = "account-key"
)

// Bounds of a credential's lifetime.
const (
	durationMin     = 15 * time.Minute
	durationMax     = 12 * time.Hour
	durationDefault = time.Hour
)

// idPattern is the form of the ids of tenants and applications. A tenant may have a domain name.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$`)

// With returns o with the options of a place. An unknown option or an invalid value is an error.
// Connect, not With, refuses an endpoint to which tokens must not be sent.
func (o Options) With(place map[string]string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(place)) {
		value := place[name]
		var err error
		switch name {
		case OptionEndpoint:
			o.Endpoint = value
			err = CheckEndpoint(value)
		case OptionTenantID:
			o.TenantID = value
			err = checkID(value)
		case OptionClientID:
			// The process's own account key must not be used for this place.
			o.ClientID, o.AccountKey = value, ""
			err = checkID(value)
		case OptionHierarchical:
			o.Hierarchical, err = strconv.ParseBool(value)
			if err != nil {
				err = fmt.Errorf("%q is neither true nor false", value)
			}
		case OptionDuration:
			o.Duration, err = time.ParseDuration(value)
			if err != nil || o.Duration < durationMin || o.Duration > durationMax {
				err = fmt.Errorf("%q is not a duration from 15m to 12h", value)
			}
		default:
			return o, fmt.Errorf("adls: unknown option %s", name)
		}
		if err != nil {
			return o, fmt.Errorf("adls: the option %s: %w", name, err)
		}
	}
	return o, nil
}

// WithSecret returns o with a secret instead of the process's credentials. Its errors contain no
// part of the secret.
func (o Options) WithSecret(secret map[string]string) (Options, error) {
	o.ClientSecret, o.AccountKey = secret[SecretClientSecret], secret[SecretAccountKey]
	if len(secret) != 1 || o.ClientSecret == "" && o.AccountKey == "" {
		return o, fmt.Errorf("adls: a secret has one of the members %s and %s, and no other",
			SecretClientSecret, SecretAccountKey)
	}
	if o.ClientSecret != "" && (o.TenantID == "" || o.ClientID == "") {
		return o, fmt.Errorf("adls: a %s needs the options %s and %s",
			SecretClientSecret, OptionTenantID, OptionClientID)
	}
	return o, nil
}

// CheckEndpoint returns an error if the URL of a blob service is not valid.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:10000/devstoreaccount1",
			endpoint)
	}
	return nil
}

func checkID(value string) error {
	if !idPattern.MatchString(value) {
		return fmt.Errorf("%q is not the id of a tenant or an application", value)
	}
	return nil
}
