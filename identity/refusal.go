package identity

import (
	"time"

	"moorage"
)

// Reasons for refusing a credential, as texts for logs.
const (
	reasonNone        = "no credentials"
	reasonMalformed   = "malformed"
	reasonTooLong     = "too long"
	reasonAlgorithm   = "algorithm"
	reasonCritical    = "critical header"
	reasonIssuer      = "unknown issuer"
	reasonKey         = "unknown key"
	reasonNoKeyID     = "no key id"
	reasonSignature   = "signature"
	reasonAudience    = "audience"
	reasonExpired     = "expired"
	reasonNotYet      = "not valid yet"
	reasonLifetime    = "lives too long"
	reasonClaims      = "claims"
	reasonKind        = "not an access token"
	reasonNonce       = "nonce"
	reasonRoles       = "too many roles"
	reasonName        = "name"
	reasonAPIKey      = "API key"
	reasonCertificate = "certificate"
	reasonStore       = "another store"
)

// refusal is a refused credential.
type refusal struct {
	reason string
	isKey  bool // reason names a key of the store; the sender has or had its secret
	// ended is the time when a formerly valid credential ended. For other reasons, it is zero.
	ended time.Time
}

func refuse(reason string) error { return &refusal{reason: reason} }

// refuseKey returns the refusal of an API key of principal, or of a token that was issued for such
// a key.
func refuseKey(principal, id, why string) error {
	return &refusal{reason: principal + " " + id + ": " + why, isKey: true}
}

// refuseExpired returns the refusal of a token that was valid until ended.
func refuseExpired(ended time.Time) error { return &refusal{reason: reasonExpired, ended: ended} }

// Error returns the reason. Clients must not see it.
func (r *refusal) Error() string { return "credentials refused: " + r.reason }

// Challenge returns the WWW-Authenticate header of the response.
func (r *refusal) Challenge() string {
	switch r.reason {
	case reasonNone:
		return `Bearer realm="moorage"`
	case reasonExpired:
		return `Bearer realm="moorage", error="invalid_token", error_description="expired"`
	}
	return `Bearer realm="moorage", error="invalid_token"`
}

// unavailable returns the error for an authentication that cannot be completed now.
func unavailable(doing string, err error) error {
	return &moorage.Error{
		Ident: doing, Kind: moorage.KindUnavailable, Err: err,
		Message: "The server cannot authenticate you now; nothing was changed",
	}
}
