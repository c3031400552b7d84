package identity

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"moorage/internal/loopback"
)

// IssuerConfig describes an outside issuer of tokens. ParseIssuer makes one.
type IssuerConfig struct {
	// Alias begins the names of the issuer's subjects. It matches [a-z][a-z0-9-]* and is not a
	// reserved alias.
	Alias string
	// URL is the iss in the issuer's tokens, byte for byte. It is an HTTPS URL, except on loopback.
	URL string
	// Audience must be one of the audiences of each token.
	Audience string
	// Subject is the path of the claim with the caller's name. Default sub.
	Subject string
	// Roles is the path of the claim with the caller's roles. If Roles is empty, callers get no
	// roles from tokens.
	Roles string
	// RolesPrefix is a prefix. Only roles that have it count, and it is removed from them.
	RolesPrefix string
	// Algorithms are the algorithms with which the issuer signs. Default: all algorithms that are
	// accepted here.
	Algorithms []string
	// KeySet is the URL or file of the issuer's keys. Default: the URL in the issuer's discovery
	// document.
	KeySet string
	// CA is a PEM file with the certificate authorities of the issuer's server. Default: the
	// system's.
	CA string
	// TokenFile is a file with a token to send to the issuer's server. It is read for each fetch.
	// Default: no token.
	TokenFile string
	// SignIn is the client of this server at the issuer, with which people sign in. Without an id
	// of the client, people cannot sign in there.
	SignIn SignInClient
}

// SignInClient is the client of this server at an issuer. People sign in with it, in a browser.
type SignInClient struct {
	// ID is the id of the client.
	ID string
	// SecretFile is a file with the secret of the client. It is read for each sign-in. Default: a
	// public client, which has no secret.
	SecretFile string
	// Scopes are what the client asks for. Default: openid.
	Scopes []string
	// Token is the token that authenticates a person after the sign-in: TokenAccess or TokenID.
	// Default: TokenAccess.
	Token string
}

// The tokens that an issuer returns for a sign-in.
const (
	TokenAccess = "access"
	// TokenID is for an issuer whose access tokens are not JWTs. Only with it are ID tokens of the
	// issuer accepted.
	TokenID = "id"
)

// ParseIssuer reads the text ALIAS=URL,audience=A and further settings. Each setting has the form
// name=value, and commas separate them.
func ParseIssuer(text string) (IssuerConfig, error) {
	alias, rest, _ := strings.Cut(text, "=")
	address, settings, _ := strings.Cut(rest, ",")
	c := IssuerConfig{Alias: alias, URL: address, Subject: "sub"}
	fields := map[string]*string{
		"audience": &c.Audience, "subject": &c.Subject, "roles": &c.Roles, "roles-prefix": &c.RolesPrefix,
		"jwks": &c.KeySet, "ca": &c.CA, "token-file": &c.TokenFile, "algorithms": new(string),
		"console-client-id": &c.SignIn.ID, "console-client-secret-file": &c.SignIn.SecretFile,
		"console-scopes": new(string), "console-token": &c.SignIn.Token,
	}
	seen := map[string]bool{}
	for setting := range strings.SplitSeq(settings, ",") {
		if settings == "" {
			break
		}
		name, value, _ := strings.Cut(setting, "=")
		field, known := fields[name]
		switch {
		case !known:
			return IssuerConfig{}, fmt.Errorf("%q is no setting of an issuer", name)
		case seen[name]:
			return IssuerConfig{}, fmt.Errorf("%s is given more than once", name)
		case value == "":
			return IssuerConfig{}, fmt.Errorf("%s has no value", name)
		}
		seen[name], *field = true, value
	}
	if names := *fields["algorithms"]; names != "" {
		c.Algorithms = strings.Split(names, "+")
	}
	if names := *fields["console-scopes"]; names != "" {
		c.SignIn.Scopes = strings.Split(names, "+")
	}
	return c, c.check()
}

func (c IssuerConfig) check() error {
	if !isAlias(c.Alias) {
		return fmt.Errorf("%q is not an alias: it is lower-case letters, digits and dashes, begins with a letter, "+
			"and is none of %s", c.Alias, strings.Join(reservedAliases(), ", "))
	}
	if err := checkIssuer(c.URL); err != nil {
		return err
	}
	if c.Audience == "" {
		return errors.New("it needs audience=…: otherwise a token for another service would work here too")
	}
	for _, name := range c.Algorithms {
		if !slices.Contains(algorithms(), jose.SignatureAlgorithm(name)) {
			return fmt.Errorf("algorithms: %q is none of %v", name, algorithms())
		}
	}
	if isURL(c.KeySet) {
		if err := checkEndpoint(c.KeySet); err != nil {
			return err
		}
	}
	return c.checkSignIn()
}

// checkSignIn returns an error for faults of the settings of sign-ins.
func (c IssuerConfig) checkSignIn() error {
	switch s := c.SignIn; {
	case s.ID == "" && (s.SecretFile != "" || s.Scopes != nil || s.Token != ""):
		return errors.New("it needs console-client-id=… for the other settings of the console")
	case s.Scopes != nil && !slices.Contains(s.Scopes, scopeOpenID):
		return errors.New("console-scopes: openid is missing, such as openid+profile")
	case s.Token != "" && s.Token != TokenAccess && s.Token != TokenID:
		return fmt.Errorf("console-token: %q is neither %s nor %s", s.Token, TokenAccess, TokenID)
	case s.Token == TokenID && s.ID != c.Audience:
		return errors.New("console-token=id: the audience of an ID token is the client's id: " +
			"set audience to console-client-id")
	}
	return nil
}

func isURL(text string) bool { return strings.Contains(text, "://") }

// checkIssuer returns an error for a URL that cannot be that of an issuer. Source: OpenID Connect
// Discovery, 3: it has no query.
func checkIssuer(text string) error {
	if strings.Contains(text, "?") {
		return fmt.Errorf("%q has a query: it is not a URL such as https://idp.example/realms/lake", text)
	}
	return checkEndpoint(text)
}

// checkEndpoint returns an error for a URL from which keys must not be fetched, and to which no
// person and no secret must be sent. It must be an HTTPS URL, except on loopback. It can have a
// query. Source: RFC 6749, 3.1 and 3.2.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q is not a URL such as https://idp.example/realms/lake", text)
	case u.Scheme == "https", u.Scheme == "http" && loopback.Is(u.Host):
		return nil
	}
	return fmt.Errorf("%q must begin with https://", text)
}

func (c IssuerConfig) algorithms() []jose.SignatureAlgorithm {
	if len(c.Algorithms) == 0 {
		return algorithms()
	}
	chosen := make([]jose.SignatureAlgorithm, len(c.Algorithms))
	for i, name := range c.Algorithms {
		chosen[i] = jose.SignatureAlgorithm(name)
	}
	return chosen
}
