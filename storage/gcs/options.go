package gcs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The options of a storage.Place that this package knows. Clients also get the first three options,
// under the same names.
const (
	// OptionEndpoint is Options.Endpoint.
	OptionEndpoint = "gcs.service.host"
	// OptionProject is Options.Project.
	OptionProject = "gcs.project-id"
	// OptionNoAuth is Options.NoAuth: true or false.
	OptionNoAuth = "gcs.no-auth"
	// OptionImpersonate is Options.Impersonate.
	OptionImpersonate = "gcs.impersonate"
	// OptionSTS is Options.STS.
	OptionSTS = "gcs.sts.endpoint"
)

// Google's addresses.
const (
	googleEndpoint = "https://storage.googleapis.com"
	googleSTS      = "https://sts.googleapis.com"
	googleIAM      = "https://iamcredentials.googleapis.com"
	googleDomain   = "googleapis.com"
)

// Forms of the options that are used unescaped in requests.
var (
	accountPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}@[a-z0-9][a-z0-9.-]{0,252}$`)
	projectPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]{0,62}$`)
)

// With returns o with the options of a place. An unknown option or an invalid value is an error,
// because a misspelled endpoint must not lead to another server. With also refuses a host that
// would receive tokens and is neither Google's nor in Trusted.
func (o Options) With(place map[string]string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(place)) {
		value := place[name]
		var err error
		switch name {
		case OptionEndpoint:
			o.Endpoint, err = value, CheckEndpoint(value)
		case OptionSTS:
			o.STS, err = value, CheckEndpoint(value)
		case OptionProject:
			o.Project, err = value, matches(projectPattern, value, "the id of a project")
		case OptionImpersonate:
			o.Impersonate, err = value, matches(accountPattern, value, "the e-mail address of a service account")
		case OptionNoAuth:
			o.NoAuth, err = strconv.ParseBool(value)
			if err != nil {
				err = fmt.Errorf("%q is not true or false", value)
			}
		default:
			return o, fmt.Errorf("gcs: unknown option %s", name)
		}
		if err != nil {
			return o, fmt.Errorf("gcs: the option %s: %w", name, err)
		}
	}
	return o, o.checkHosts()
}

// checkHosts returns an error if tokens would be sent to a host that the process does not trust.
func (o Options) checkHosts() error {
	if o.NoAuth {
		return nil
	}
	for name, host := range map[string]string{OptionEndpoint: o.Endpoint, OptionSTS: o.STS} {
		if host != "" && !isGoogles(host) && !slices.Contains(strings.Fields(o.Trusted), host) {
			return fmt.Errorf("gcs: the option %s: tokens are not sent to %s. Name a host of %s, or start the server "+
				"with --trusted-storage %s, or say %s=true", name, host, googleDomain, host, OptionNoAuth)
		}
	}
	return nil
}

// isGoogles reports whether a checked URL leads to one of Google's hosts.
func isGoogles(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	return err == nil && parsed.Scheme == "https" && parsed.Port() == "" &&
		strings.HasSuffix(parsed.Hostname(), "."+googleDomain)
}

func matches(pattern *regexp.Regexp, value, what string) error {
	if !pattern.MatchString(value) {
		return fmt.Errorf("%q is not %s", value, what)
	}
	return nil
}

// WithSecret returns o with the key of a service account instead of the process's credentials.
// secret holds the JSON file that Google issues for the key. Errors contain no part of the secret.
func (o Options) WithSecret(secret map[string]string) (Options, error) {
	if o.NoAuth {
		// With NoAuth, With has not checked which hosts may receive tokens.
		return o, fmt.Errorf("gcs: a secret cannot be combined with %s", OptionNoAuth)
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return o, err
	}
	o.Key = string(text)
	_, err = parseKey(o.Key)
	return o, err
}

// CheckEndpoint returns an error if the URL of a server is not valid.
func CheckEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" || strings.Trim(parsed.Path, "/") != "" {
		return fmt.Errorf("%q is not the address of a server, such as https://storage.googleapis.com", endpoint)
	}
	return nil
}

// clientConfig returns the settings that an engine needs to reach the same server, under the names
// used by Java and PyIceberg. Without an address, engines use Google's server.
func clientConfig(options Options) map[string]string {
	config := make(map[string]string)
	if options.Endpoint != googleEndpoint {
		config[OptionEndpoint] = options.Endpoint
	}
	if options.Project != "" {
		config[OptionProject] = options.Project
	}
	if options.NoAuth {
		config[OptionNoAuth] = strconv.FormatBool(true)
	}
	return config
}
