package moorage

import (
	"strconv"
	"time"
)

// Caller is the sender of a request. A Caller without a name is denied everything.
//
// A Caller is set once, where a request arrives. Nothing changes it or its slices afterwards. Nodes
// send it to each other as JSON, with all its fields.
type Caller struct {
	// Name is the alias of the caller's issuer, a colon, and the caller's name there:
	// "corp:248289761001", "key:etl", "cert:spiffe://lake/etl". So no issuer can speak for another.
	// Anonymous and System have names of their own.
	Name string
	// Via are the names of the programs that act in the caller's name, such as an engine, the
	// nearest to the server first. It is empty if the caller acts itself.
	Via []string
	// Roles are the caller's roles from its issuer: "corp/analysts". They do not include the roles
	// in the store.
	Roles []string
	// Only are the roles that the caller's credential is narrowed to, nil for no such limit. An
	// empty slice that is not nil leaves the caller no privileges.
	Only []string
	// Source is how the caller authenticated; empty for Anonymous and System.
	Source Source
	// KeyID and KeyGeneration name the API key in the request, or the one that its token was issued
	// for. A decision checks that the key is still valid. KeyID is empty if there is no key.
	KeyID         string
	KeyGeneration uint64
	// Ends is when the credential expires, and the request with it. Zero if that is unknown.
	Ends time.Time
	// Address is the IP address of the request's sender, as reported by a trusted proxy if there is
	// one. It is for the audit log and does not affect decisions.
	Address string
	// Client is the User-Agent of the caller's program, at most ClientBytesMax. It does not affect
	// decisions.
	Client string
}

// ClientBytesMax bounds Caller.Client.
const ClientBytesMax = 200

// Source is a way to authenticate.
type Source string

// The ways to authenticate.
const (
	SourceKey         Source = "key"         // an API key
	SourceToken       Source = "token"       // a token that the server issued
	SourceIssuer      Source = "issuer"      // a token of an outside issuer
	SourceCertificate Source = "certificate" // a client certificate
)

// Anonymous returns the caller of a request without authentication.
func Anonymous() Caller { return Caller{Name: "anonymous"} }

// System returns the caller of a job of the server itself, such as "purge".
func System(job string) Caller { return Caller{Name: "system:" + job} }

// IsNobody reports whether c has no name.
func (c Caller) IsNobody() bool { return c.Name == "" }

// IsActing reports whether another program acts in the name of c.
func (c Caller) IsActing() bool { return len(c.Via) > 0 }

// IdentityOf returns the identity, in records, of the principal or role that has a name now.
// generation is how many deleted ones had that name before. So a record about a deleted one no
// longer has an effect. The first identity is the name itself.
func IdentityOf(name string, generation uint64) string {
	if generation == 0 {
		return name
	}
	return strconv.FormatUint(generation, 10) + "#" + name
}

// AnyIdentityOf returns the identity of every principal that has a name, now or later. The
// configuration means that one.
func AnyIdentityOf(name string) string { return "#" + name }

// NameOf returns the name in an identity. No name has digits and a # before its colon, so a name
// and an identity cannot be confused.
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
