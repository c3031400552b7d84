package access

import (
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"time"
)

// ID identifies an object as the store does. The zero ID is the server.
type ID [16]byte

// ServerID is the id of the server, which is above all objects.
var ServerID = ID{}

// String returns id as 32 lower-case hexadecimal digits, and "server" for the server.
func (id ID) String() string {
	if id == ServerID {
		return kindNames[Server]
	}
	return hex.EncodeToString(id[:])
}

// Principal is what is recorded about a principal. One without a record may ask too.
type Principal struct {
	Name     string
	Disabled bool
	Keys     []Key
}

// Key is one secret of an API key. While a key is being replaced, two have the same id.
type Key struct {
	ID         string
	Generation uint64
	SHA256     [32]byte // of the secret
	Ends       time.Time
	Roles      []string // that the key is narrowed to; nil for all that the principal has
}

// Matches reports whether sum is the SHA-256 of the key's secret, in constant time, and whether the
// key has not ended at now.
func (k Key) Matches(sum [32]byte, now time.Time) bool {
	return subtle.ConstantTimeCompare(k.SHA256[:], sum[:]) == 1 && now.Before(k.Ends)
}

// Role is a role of the store, with its direct members: principals, roles and token roles.
type Role struct {
	Name    string
	Members []string
}

// Grants is what is recorded about one object.
type Grants struct {
	ID   ID // ServerID for the server
	Kind Kind
	// Ancestors are the namespaces above the object, nearest first, and last its warehouse. The
	// server is not named. Of a warehouse and of the server it is empty.
	Ancestors []ID
	// Owner is the principal or role that the object was handed over to, empty if it still belongs
	// to its creator.
	Owner   string
	Managed bool // of a warehouse or namespace: owners beneath lack Manage
	Grants  []Grant
}

// Grant gives privileges to one grantee. A Grants has one for each grantee at most: of several, New
// and With take the union.
type Grant struct {
	Grantee    string
	Privileges Privileges // as they were granted, without what they imply
}

// Records are all that decisions are made by. Neither New nor With keeps or changes what they are
// given.
//
// Members, owners, grantees and creators are identities, as moorage.IdentityOf spells them.
type Records struct {
	Principals []Principal
	Roles      []Role
	Grants     []Grants
	// Generations has, for each name that a principal or role had that was deleted, how many had
	// it.
	Generations map[string]uint64
}

// Changes are the records that a change of policy wrote, and those that it removed. What is
// removed needs not to have been there.
type Changes struct {
	Records
	GonePrincipals []string
	GoneRoles      []string
	GoneGrants     []ID
}

// Caller is who asks.
type Caller struct {
	Name  string
	Roles []string // token roles, as GranteeOf spells them; others in it are not heeded
	// Only are the roles that the caller's token is narrowed to, nil for no such limit. The caller
	// then has nothing as a principal: neither grants nor objects of his own. A role that he does
	// not hold gives him nothing.
	Only []string
	// Acting says that an engine asks in the caller's name: what stands on the server then does
	// not count.
	Acting bool
}

func (c Caller) equal(other Caller) bool {
	return c.Name == other.Name && c.Acting == other.Acting && slices.Equal(c.Roles, other.Roles) &&
		(c.Only == nil) == (other.Only == nil) && slices.Equal(c.Only, other.Only)
}

// Object is one step of a path.
type Object struct {
	ID      ID
	Kind    Kind
	Creator string // as its record says; empty if nobody knows
	// OwnsBeneath says that the caller owns something beneath the object by having created it,
	// which no snapshot knows. It shows the object, and need be looked up only if it is hidden.
	OwnsBeneath bool
}
