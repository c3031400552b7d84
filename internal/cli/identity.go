package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"moorage/identity"
	"moorage/internal/loopback"
)

// identitySettings returns the settings of serve for the authentication of callers, and for
// encryption.
func identitySettings() []setting {
	return []setting{
		{name: "keys", set: toggle(func(c *Config) *bool { return &c.APIKeys }),
			usage: "Accept the API keys of the store, and issue tokens for them at /v1/oauth/tokens."},
		{name: "issuer", value: "ALIAS=URL,audience=A", list: true, set: setIssuers,
			usage: "Accept the tokens of an external issuer. Its subjects are called ALIAS:SUBJECT. Further " +
				"options, separated by commas, are: subject and roles (paths of claims), roles-prefix, " +
				"algorithms (such as RS256+ES256), jwks (a URL or a file), ca, and token-file. The options for " +
				"signing in to the console at this issuer are: console-client-id, console-client-secret-file, " +
				"console-scopes (such as openid+profile), and console-token (access or id). May be repeated."},
		{name: "admin", value: "PRINCIPAL", list: true, set: setAdmins,
			usage: "Principal that is always an administrator, such as corp:248289761001. May be repeated."},
		{name: "token-lifetime", value: "DURATION", preset: "1h",
			usage: "How long a token of this server is valid: 1s to 12h.",
			set: one(within(time.ParseDuration, time.Second, 12*time.Hour), "a duration such as 1h, 1s to 12h",
				func(c *Config) *time.Duration { return &c.TokenLifetime })},
		{name: "tls-cert", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSCert }),
			usage: "PEM file with the certificate of the server and its intermediate certificates. The server then " +
				"uses HTTPS. It reads changed TLS files within 10 s."},
		{name: "tls-key", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSKey }),
			usage: "PEM file with the key of --tls-cert."},
		{name: "tls-client-ca", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSClientCA }),
			usage: "PEM file with the authorities that sign client certificates. The name of a client with a " +
				"certificate is cert: followed by the SPIFFE id, or by the common name."},
		{name: "trusted-proxy", value: "CIDR", list: true, set: setProxies,
			usage: "Addresses of proxies in front of the server, which terminate TLS. The audit log records the " +
				"client address that they send in X-Forwarded-For. May be repeated."},
		{name: "insecure", value: "plain-http|no-auth|open-to-issuer", list: true, set: setInsecure,
			usage: "Accept a risk. plain-http: listen beyond loopback without TLS or a proxy, so that others on the " +
				"network can read keys. no-auth: listen beyond loopback, or open a store with access control, " +
				"without authentication, so that every client can change every table. open-to-issuer: serve a store " +
				"without access control with --issuer or --tls-client-ca, so that every holder of a token or a " +
				"certificate can change every table. May be repeated."},
	}
}

func setIssuers(c *Config, values []string) error {
	for _, text := range values {
		issuer, err := identity.ParseIssuer(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		c.Issuers = append(c.Issuers, issuer)
	}
	return nil
}

func setInsecure(c *Config, values []string) error {
	for _, risk := range values {
		switch risk {
		case "plain-http":
			c.InsecurePlainHTTP = true
		case "no-auth":
			c.InsecureNoAuth = true
		case "open-to-issuer":
			c.InsecureOpenToIssuer = true
		default:
			return fmt.Errorf("%q is not plain-http, no-auth or open-to-issuer", risk)
		}
	}
	return nil
}

func setAdmins(c *Config, values []string) error {
	for _, name := range values {
		if alias, subject, ok := strings.Cut(name, ":"); !ok || alias == "" || subject == "" {
			return fmt.Errorf("%q is not ALIAS:SUBJECT, such as key:etl", name)
		}
	}
	c.Admins = values
	return nil
}

func setProxies(c *Config, values []string) error {
	for _, text := range values {
		prefix, err := netip.ParsePrefix(text)
		if address, failed := netip.ParseAddr(text); err != nil && failed == nil {
			prefix, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		if prefix.Bits() == 0 {
			return fmt.Errorf("%q is every address: each client could then say that it comes from another one. "+
				"Name the proxies", text)
		}
		c.TrustedProxies = append(c.TrustedProxies, prefix.Masked())
	}
	return nil
}

// Authenticates reports whether callers must authenticate.
func (c Config) Authenticates() bool { return c.APIKeys || len(c.Issuers) > 0 || c.TLSClientCA != "" }

// RefuseListen returns an error if other machines can reach the address and the server must not
// listen there.
func (c Config) RefuseListen(address string) error {
	switch {
	case !c.Authenticates() && !c.InsecureNoAuth:
		return fmt.Errorf("%s can be reached from other machines and there is no authentication; listen on 127.0.0.1, "+
			"or say --keys, --issuer or --tls-client-ca; --insecure no-auth lets every client change every table",
			address)
	case c.Authenticates() && c.TLSCert == "" && len(c.TrustedProxies) == 0 && !c.InsecurePlainHTTP:
		return fmt.Errorf("%s can be reached from other machines, and keys would be sent in the clear; "+
			"say --tls-cert and --tls-key, --trusted-proxy, or --insecure plain-http if that is meant", address)
	}
	return nil
}

// validateIdentity finds incomplete settings for authentication.
func validateIdentity(c Config, faults *usageError) {
	if checkHostPort(c.Listen) == nil && !loopback.Is(c.Listen) {
		if err := c.RefuseListen(c.Listen); err != nil {
			faults.addf("--listen: %s", err)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		faults.addf("--tls-cert and --tls-key go together")
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		faults.addf("--tls-client-ca: --tls-cert and --tls-key are needed too")
	}
	if len(c.Admins) > 0 && !c.Authenticates() {
		faults.addf("--admin: nobody can show that he is %s: say --keys, --issuer or --tls-client-ca", c.Admins[0])
	}
	aliases := []string{"key", "cert"}
	for _, issuer := range c.Issuers {
		if slices.Contains(aliases, issuer.Alias) {
			faults.addf("--issuer: two issuers have the alias %s", issuer.Alias)
		}
		aliases = append(aliases, issuer.Alias)
	}
	for _, name := range c.Admins {
		if alias, _, _ := strings.Cut(name, ":"); !slices.Contains(aliases, alias) {
			faults.addf("--admin: no issuer has the alias %s", alias)
		}
	}
}
