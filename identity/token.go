package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// tokenBytesMax is far above the usual length of access tokens. net/http allows headers of 1
	// MiB.
	tokenBytesMax = 16 << 10
	// leeway is the accepted difference between the clock of an issuer and the clock of this
	// server.
	leeway = time.Minute
	// lifetimeMax is the maximum lifetime of a token of an outside issuer. There is a limit because
	// such a token cannot be withdrawn.
	lifetimeMax = 24 * time.Hour
	// rolesMax is the maximum number of roles in a token.
	rolesMax = 500
)

// algorithms returns every algorithm that an outside issuer may sign with.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA}
}

// token is a JWT that was parsed but not yet verified.
type token struct {
	algorithm jose.SignatureAlgorithm
	kid       string
	claims    claims
	signed    *jose.JSONWebSignature
}

// parseToken reads a signed JWT.
func parseToken(text string) (*token, error) {
	if len(text) > tokenBytesMax {
		return nil, refuse(reasonTooLong)
	}
	header, body, err := splitToken(text)
	if err != nil {
		return nil, err
	}
	if _, found := header["crit"]; found {
		return nil, refuse(reasonCritical)
	}
	algorithm, _ := header.text("alg")
	t := &token{algorithm: jose.SignatureAlgorithm(algorithm), claims: body}
	if !slices.Contains(algorithms(), t.algorithm) {
		return nil, refuse(reasonAlgorithm)
	}
	if _, found := header["kid"]; found {
		if t.kid, _ = header.text("kid"); t.kid == "" {
			return nil, refuse(reasonMalformed)
		}
	}
	if t.signed, err = jose.ParseSignedCompact(text, algorithms()); err != nil {
		return nil, refuse(reasonMalformed)
	}
	return t, nil
}

// splitToken returns the header and the claims of a JWT in the compact form. It does not check the
// signature.
func splitToken(text string) (header, body claims, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, nil, refuse(reasonMalformed)
	}
	if header, err = parseMembers(parts[0]); err != nil {
		return nil, nil, err
	}
	if body, err = parseMembers(parts[1]); err != nil {
		return nil, nil, err
	}
	return header, body, nil
}

// parseMembers reads a JSON object in base64url.
func parseMembers(encoded string) (claims, error) {
	if strings.ContainsAny(encoded, "\r\n") { // the decoder would ignore them
		return nil, refuse(reasonMalformed)
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, refuse(reasonMalformed)
	}
	var members claims
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, refuse(reasonMalformed)
	}
	return members, nil
}

// claims holds the members of a JSON object by their exact names.
type claims map[string]json.RawMessage

// text returns a member that is a string.
func (c claims) text(name string) (text string, ok bool) {
	raw, found := c[name]
	if !found || !bytes.HasPrefix(raw, []byte(`"`)) {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// moment returns a member that is a number of seconds since 1970. found is false if there is no
// such member.
func (c claims) moment(name string) (moment time.Time, found bool, err error) {
	raw, found := c[name]
	if !found {
		return time.Time{}, false, nil
	}
	var seconds float64
	const far = 1 << 40 // about thirty thousand years
	if bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &seconds) != nil || !(math.Abs(seconds) < far) {
		return time.Time{}, true, refuse(reasonClaims)
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC(), true, nil
}

// texts returns a member that is a string or a list of strings. path is the name of the member. For
// a member of a nested object, path is preceded by the names of the outer objects, separated by
// dots. texts returns nil if there is no such member.
func (c claims) texts(path string) ([]string, error) {
	raw, found := c[path]
	if !found {
		name, rest, nested := strings.Cut(path, ".")
		if inner, found := c[name]; nested && found {
			var members claims
			if json.Unmarshal(inner, &members) != nil {
				return nil, refuse(reasonClaims)
			}
			return members.texts(rest)
		}
		return nil, nil
	}
	if text, ok := c.text(path); ok {
		return []string{text}, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, refuse(reasonClaims)
	}
	texts := make([]string, len(list))
	for i, element := range list {
		if !bytes.HasPrefix(element, []byte(`"`)) || json.Unmarshal(element, &texts[i]) != nil {
			return nil, refuse(reasonClaims)
		}
	}
	return texts, nil
}

// checkTimes returns when a token expires. The token is accepted until slack after that. longest is
// the longest accepted lifetime.
func (c claims) checkTimes(now time.Time, longest, slack time.Duration) (ends time.Time, err error) {
	ends, found, err := c.moment("exp")
	if err != nil || !found {
		return time.Time{}, refuse(reasonClaims)
	}
	issued, isIssued, err := c.moment("iat")
	if err != nil {
		return time.Time{}, err
	}
	begins, _, err := c.moment("nbf")
	switch {
	case err != nil:
		return time.Time{}, err
	case issued.After(now.Add(leeway)) || begins.After(now.Add(leeway)):
		return time.Time{}, refuse(reasonNotYet)
	case isIssued && ends.Sub(issued) > longest, ends.Sub(now) > longest+leeway:
		return time.Time{}, refuse(reasonLifetime)
	case !now.Before(ends.Add(slack)):
		return ends, refuseExpired(ends)
	}
	return ends, nil
}
