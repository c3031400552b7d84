package moorage

import (
	"cmp"
	"strconv"
	"time"
)

// Caller is the sender of a request. A Caller without a name is denied everything.
//
// The node that receives a request creates its Caller. Afterwards, the Caller and its slices never
// change. Nodes send it to each other as JSON, with all its fields.
type Caller struct {
	// Name is the alias of the caller's issuer, a colon, and the caller's name at that issuer:
	// "corp:248289761001", "key:etl", "cert:spiffe://lake/etl". So an issuer cannot issue a name
	// that belongs to another issuer. For the names without an issuer see Anonymous and System.
	Name string
	// Via lists the programs that act on behalf of the caller, such as an engine. The program
	// nearest to the server comes first. Via is empty if the caller sent the request directly.
	Via []string
	// Roles are the roles given to the caller by its issuer, such as "corp/analysts". They do not
	// include roles assigned in the catalog's store.
	Roles []string
	// Only lists the roles to which the caller's credential is limited. It is nil if there is no
	// such limit. An empty slice that is not nil leaves the caller no privileges.
	Only []string
	// Source names how the caller authenticated. It is empty for Anonymous and System.
	Source Source
	// KeyID and KeyGeneration name the API key in the request, or the API key for which the
	// request's token was issued. Each access decision checks that the key is still valid. KeyID is
	// empty if there is no key.
	KeyID         string
	KeyGeneration uint64
	// Ends is when the credential expires. The request ends at that time too. Ends is zero if the
	// time is unknown.
	Ends time.Time
	// Address is the IP address of the request's sender. Behind a trusted proxy, it is the address
	// that the proxy reports. It is for the audit log and does not affect access decisions.
	Address string
	// Client is the caller's program, at most ClientBytesMax long: see ClientOf. It does not affect
	// access decisions.
	Client string
}

// ClientOf returns Caller.Client for a request with these values of the headers X-Client-Version
// and User-Agent. Iceberg's clients send their version in the first, and only the name of their
// HTTP library in the second.
func ClientOf(version, userAgent string) string {
	return Cut(cmp.Or(version, userAgent), ClientBytesMax)
}

// ClientBytesMax bounds Caller.Client.
const ClientBytesMax = 200

// Source is a way to authenticate.
type Source string

// The ways to authenticate.
const (
	SourceKey         Source = "key"         // an API key
	SourceToken       Source = "token"       // a token issued by the server
	SourceIssuer      Source = "issuer"      // a token of an outside issuer
	SourceCertificate Source = "certificate" // a client certificate
)

// Anonymous returns the caller of a request without authentication.
func Anonymous() Caller { return Caller{Name: "anonymous"} }

// System returns the caller of a job of the server itself, such as "purge".
func System(job string) Caller { return Caller{Name: "system:" + job} }

// IsNobody reports whether c has no name.
func (c Caller) IsNobody() bool { return c.Name == "" }

// IsActing reports whether another program acts on behalf of c.
func (c Caller) IsActing() bool { return len(c.Via) > 0 }

// IdentityOf returns the identity of the present principal or role with a name. Records refer to a
// principal or role by its identity. generation is the number of deleted principals or roles that
// had the same name. So a record about a deleted principal does not affect a new principal of the
// same name. For generation 0 the identity is the name itself.
func IdentityOf(name string, generation uint64) string {
	if generation == 0 {
		return name
	}
	return strconv.FormatUint(generation, 10) + "#" + name
}

// AnyIdentityOf returns the identity of every principal with a name, now or later. A name in the
// server's configuration refers to this identity.
func AnyIdentityOf(name string) string { return "#" + name }

// NameOf returns the name in an identity. A name never begins with digits and a #, so a name and an
// identity cannot be confused.
func NameOf(identity string) string {
	for i, r := range identity {
		switch {
		case r == '#':
			return identity[i+1:]
		case r < '0' || r > '9':
			return identity
		}
	}
	return identity
}
