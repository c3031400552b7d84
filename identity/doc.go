// Package identity authenticates the callers of requests. Package access decides what a caller may
// do.
//
// # Ways in
//
// An Authenticator reads one credential of a request, the first of these that the request has. Its
// failure is final.
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
// The name of a caller is <alias>:<name>. The alias of an issuer is in the configuration; API keys
// and certificates have the aliases key and cert. So no issuer can speak for another.
//
// # Tokens of the store
//
// Authenticator.Token is the token endpoint: it exchanges API keys for tokens that expire. Each
// process signs with its own key. It publishes the public half through Records before it signs
// anything. The private half is never stored.
//
// # Outside issuers
//
// The keys of an issuer are fetched at the start, about every 15 minutes, and when a token names an
// unknown key. At most one fetch is in flight at a time, and at most one begins in 30 seconds.
// While an issuer is unreachable, its last keys are valid for up to 24 hours. Without keys a
// request gets KindUnavailable instead of a refusal, because some clients delete the files of a
// commit that was refused for its credentials.
//
// # Failures
//
// A credential that is not accepted is KindNotAuthorized, with one text for all reasons. The reason
// goes to Config.Refused, in one of a few words. Failures are limited by address. A correct secret
// always passes, so no caller can lock out another.
package identity
