package moorage

import (
	"strconv"
	"time"
)

// Caller is who asks for something. One without a name is nobody, who is denied everything.
//
// A Caller is set once, where a request arrives. Nothing changes it or its slices afterwards. It
// travels between nodes as JSON, with all that it has.
type Caller struct {
	// Name is the alias of who vouches for the caller, a colon, and the name given there:
	// "corp:248289761001", "key:etl", "cert:spiffe://lake/etl". Two issuers cannot speak for
	// each other. Anonymous and System have names of their own.
	Name string
	// Via are the names of those who ask in the caller's name, such as an engine, the nearest to
	// the server first. Empty: the caller asks himself.
	Via []string
	// Roles are those that the issuer says the caller has: "corp/analysts". Roles that the store
	// gives are not among them.
	Roles []string
	// Only are the roles that the caller's credential is narrowed to; nil: it is not narrowed. One
	// that is empty and not nil leaves the caller nothing.
	Only []string
	// Source is how the caller showed who it is; empty for Anonymous and System.
	Source Source
	// KeyID and KeyGeneration name the API key that the request shows, or that its token was
	// given for. A decision looks whether that key is still alive. Empty: there is none.
	KeyID         string
	KeyGeneration uint64
	// Ends is when the credential ends, and the request with it; zero: not at a known time.
	Ends time.Time
	// Address is where the request came from: an IP address, as a trusted proxy says it if there
	// is one. It is for the audit log and decides nothing.
	Address string
	// Client is what the caller's program calls itself: the User-Agent, at most ClientBytesMax. It
	// decides nothing.
	Client string
}

// ClientBytesMax bounds Caller.Client.
const ClientBytesMax = 200

// Source is a way to show who one is.
type Source string

// The ways to show who one is.
const (
	SourceKey         Source = "key"         // an API key
	SourceToken       Source = "token"       // a token that the server gave out
	SourceIssuer      Source = "issuer"      // a token of an outside issuer
	SourceCertificate Source = "certificate" // a client certificate
)

// Anonymous returns the caller of a request that nobody had to sign.
func Anonymous() Caller { return Caller{Name: "anonymous"} }

// System returns the caller of a job of the server itself, such as "purge".
func System(job string) Caller { return Caller{Name: "system:" + job} }

// IsNobody reports whether c has no name.
func (c Caller) IsNobody() bool { return c.Name == "" }

// IsActing reports whether somebody else asks in the name of c.
func (c Caller) IsActing() bool { return len(c.Via) > 0 }

// IdentityOf returns what records call the one who has the name of a principal or role after
// generation others had it, who were deleted. So what names one of those names nobody any more. The
// first one's identity is the name.
func IdentityOf(name string, generation uint64) string {
	if generation == 0 {
		return name
	}
	return strconv.FormatUint(generation, 10) + "#" + name
}

// AnyIdentityOf returns the identity of each one who comes to have a name: what the configuration
// means by it.
func AnyIdentityOf(name string) string { return "#" + name }

// NameOf returns the name that is part of an identity. No name has digits and a # before its colon,
// so the two are not mixed up.
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
