// Package identity authenticates the callers of requests. Package access decides what a caller may
// do.
//
// # Ways in
//
// An Authenticator reads only one credential of a request: the first in this list that is present.
// If it is not valid, the request fails. token.go parses tokens, keys.go checks API keys, and
// certificate.go reads certificates.
//
//   - Authorization: Bearer with a token of an outside issuer (IssuerConfig), or with one of this
//     store.
//   - Authorization: Bearer with an API key, which begins with mrg_.
//   - Authorization: Basic with the id and the secret of an API key, or with the key alone.
//   - A client certificate that the TLS layer has verified.
//
// No other header identifies the caller.
//
// # Names
//
// The name of a caller is <alias>:<name>. The configuration sets the alias of each issuer. API keys
// and certificates have the aliases key and cert. So no issuer can impersonate a caller of another
// issuer.
//
// # Tokens of the store
//
// Authenticator.Token is the token endpoint. It exchanges API keys for tokens that expire. Each
// process signs with its own key. Before it signs anything, it publishes the public key through
// Records. The private key is never stored.
//
// # Outside issuers
//
// The keys of an issuer are fetched at the start, about every 15 minutes, and when a token refers
// to an unknown key. For one issuer, at most one fetch is in progress at a time, and at most one
// begins in 30 seconds. While an issuer is unreachable, its last keys are valid for up to 24 hours.
// Without valid keys, a request gets KindUnavailable instead of a refusal. A refusal could do harm,
// because some clients delete the files of a commit that was refused for its credentials.
//
// # Failures
//
// A credential that is not accepted leads to KindNotAuthorized, with one text for all reasons. Only
// the sender of a genuine but expired credential gets a different text, with the time.
// Config.Refused gets the reason, as one of a few fixed texts. The number of failures from one
// address is limited. A correct secret is always accepted, so no caller can lock out another
// caller.
package identity
