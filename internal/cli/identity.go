package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage/identity"
)

// identitySettings returns the settings of serve for the authentication of callers, and for
// encryption.
func identitySettings() []setting {
	return []setting{
		{name: "keys", set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.APIKeys }),
			usage: "Accept the API keys of the store, and give out tokens for them at /v1/oauth/tokens."},
		{name: "issuer", value: "ALIAS=URL,audience=A", list: true, set: setIssuers,
			usage: "Accept the tokens of an outside issuer. Its subjects are called ALIAS:SUBJECT. Further " +
				"settings, separated by commas: subject, roles (the paths of claims), roles-prefix, algorithms (as " +
				"RS256+ES256), jwks (a URL or a file), ca, token-file. May be given more than once."},
		{name: "admin", value: "PRINCIPAL", list: true, set: setAdmins,
			usage: "Principal who is always an administrator, such as corp:248289761001. May be given more than once."},
		{name: "token-lifetime", value: "DURATION", preset: "1h",
			usage: "How long a token that the server gives out lasts: 1s to 12h.",
			set: one(within(time.ParseDuration, time.Second, 12*time.Hour), "a duration such as 1h, 1s to 12h",
				func(c *Config) *time.Duration { return &c.TokenLifetime })},
		{name: "tls-cert", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSCert }),
			usage: "PEM file with the certificate of the server, and those between it and its authority. The server " +
				"then speaks HTTPS. It looks every 10 s whether the files of TLS have changed."},
		{name: "tls-key", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSKey }),
			usage: "PEM file with the key of --tls-cert."},
		{name: "tls-client-ca", value: "FILE", set: folder(func(c *Config) *string { return &c.TLSClientCA }),
			usage: "PEM file with the authorities that sign certificates of clients. A client that shows one is " +
				"called cert: and its SPIFFE id, or the common name."},
		{name: "trusted-proxy", value: "CIDR", list: true, set: setProxies,
			usage: "Addresses of proxies in front of the server, which do TLS. What they say in X-Forwarded-For goes " +
				"into the audit log. May be given more than once."},
		{name: "insecure", set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.Insecure }),
			usage: "Listen beyond loopback although neither TLS nor a proxy hides what is sent: who listens on the " +
				"way can use the keys of others."},
		{name: "insecure-no-auth",
			set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.InsecureNoAuth }),
			usage: "Listen beyond loopback, or open a store with access control, although there is no " +
				"authentication: a client that can reach the port can change every table."},
		{name: "insecure-open-to-issuer",
			set: one(strconv.ParseBool, "true or false", func(c *Config) *bool { return &c.OpenToIssuer }),
			usage: "Start with --issuer or --tls-client-ca on a store without access control: every holder of " +
				"a token or a certificate of these authorities can change every table."},
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

// RefuseListen returns why the server must not listen on an address that other machines can reach.
// It returns nil if the server may listen there.
func (c Config) RefuseListen(address string) error {
	switch {
	case !c.Authenticates() && !c.InsecureNoAuth:
		return fmt.Errorf("%s can be reached from other machines and there is no authentication; listen on 127.0.0.1, "+
			"or say --keys, --issuer or --tls-client-ca; --insecure-no-auth lets everybody change every table", address)
	case c.Authenticates() && c.TLSCert == "" && len(c.TrustedProxies) == 0 && !c.Insecure:
		return fmt.Errorf("%s can be reached from other machines, and keys would be sent in the clear; "+
			"say --tls-cert and --tls-key, --trusted-proxy, or --insecure if that is meant", address)
	}
	return nil
}

// validateIdentity finds incomplete settings of authentication.
func validateIdentity(c Config, faults *usageError) {
	if checkHostPort(c.Listen) == nil && !IsLoopback(c.Listen) {
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
