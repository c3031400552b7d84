// Package identity finds out who sends a request. It decides nothing else: what a caller may do is
// for package access.
//
// # Ways in
//
// An Authenticator looks at one thing of a request, the first of these that is there. Its failure
// is final.
//
//   - Authorization: Bearer with a token of an outside issuer (IssuerConfig), or with one of ours.
//   - Authorization: Bearer with an API key, which begins with mrg_.
//   - Authorization: Basic with the id and the secret of an API key, or with the key alone.
//   - A client certificate that the TLS layer has verified.
//
// No other header says who asks.
//
// # Names
//
// A caller is called <alias>:<name>. The alias of an issuer stands in the configuration; key and
// cert are those of API keys and certificates. So no issuer can speak for another.
//
// # Tokens of ours
//
// Authenticator.Token is the token endpoint: it gives API keys tokens that end. Each process signs
// with a key of its own, whose public half it publishes through Records before it signs anything.
// The private half is stored nowhere.
//
// # Outside issuers
//
// The keys of an issuer are fetched at the start, about every 15 minutes, and when a token names a
// key that is not known. However many tokens do, one fetch is under way at a time, and one begins
// in 30 seconds. While an issuer is away its last keys serve for up to 24 hours. Without keys a
// request is KindUnavailable. It is not refused: some clients delete the files of a commit that was
// refused for its credentials.
//
// # Failures
//
// A credential that is not accepted is KindNotAuthorized, with one text for all reasons. The reason
// goes to Config.Refused, in one of a few words. Failures are limited by address. A right secret
// always passes, so nobody can lock out somebody else.
package identity
