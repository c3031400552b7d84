package access

import (
	"encoding/hex"
	"slices"
	"time"
)

// ID is the id of an object in the store. The zero ID is the server.
type ID [16]byte

// ServerID is the id of the server, which is above all other objects.
var ServerID = ID{}

// String returns id as 32 lower-case hexadecimal digits, and "server" for the server.
func (id ID) String() string {
	if id == ServerID {
		return kindNames[Server]
	}
	return hex.EncodeToString(id[:])
}

// Principal is the record of a principal. A caller can make requests even if its principal has no
// record.
type Principal struct {
	Name     string
	Disabled bool
	Keys     []Key
}

// Key is one secret of an API key. While a secret is being replaced, two Keys have the same id.
type Key struct {
	ID         string
	Generation uint64
	SHA256     [32]byte // of the secret
	Ends       time.Time
	Roles      []string // the roles that limit the key; nil means all roles of the principal
}

// Role is a role of the store. Its direct members are principals, roles and token roles.
type Role struct {
	Name    string
	Members []string
}

// Grants is the grants record of one object.
type Grants struct {
	ID   ID // ServerID for the server
	Kind Kind
	// Ancestors are the namespaces above the object, nearest first, and then its warehouse. It
	// never contains the server. It is empty for a warehouse and for the server.
	Ancestors []ID
	// Owner is the principal or role to which the object was transferred. It is empty if the object
	// still belongs to its creator.
	Owner   string
	Managed bool // only for a warehouse or namespace: owners of objects in it lack Manage
	Grants  []Grant
}

// Grant gives privileges to one grantee. Grants has at most one Grant for each grantee. If a record
// has several, New and With use their union.
type Grant struct {
	Grantee    string
	Privileges Privileges // as granted, without implied privileges
}

// Records holds all records that decisions depend on. New and With neither keep nor change the
// Records that they get.
//
// Members, owners, grantees and creators are identities, as spelled by moorage.IdentityOf.
type Records struct {
	Principals []Principal
	Roles      []Role
	Grants     []Grants
	// Generations counts, for each name of a deleted principal or role, how many deleted principals
	// and roles had that name.
	Generations map[string]uint64
}

// Changes holds the records that a change of access policy wrote and removed. A removed record need
// not have existed.
type Changes struct {
	Records
	GonePrincipals []string
	GoneRoles      []string
	GoneGrants     []ID
}

// Caller is the caller of a request.
type Caller struct {
	Name  string
	Roles []string // token roles, in the form that GranteeOf expects; others are ignored
	// Only lists the roles to which the caller's token is limited. It is nil if there is no limit.
	// With a limit, the caller has no privileges as a principal: neither grants to it nor its own
	// objects count. A role in Only that the caller does not have gives it nothing.
	Only []string
	// Acting is true if an engine acts in the caller's name. Then grants on the server do not
	// count.
	Acting bool
}

func (c Caller) equal(other Caller) bool {
	return c.Name == other.Name && c.Acting == other.Acting && slices.Equal(c.Roles, other.Roles) &&
		(c.Only == nil) == (other.Only == nil) && slices.Equal(c.Only, other.Only)
}

// Object is one object of a path.
type Object struct {
	ID      ID
	Kind    Kind
	Creator string // from the object's record; empty if unknown
	// OwnsInside is true if the caller created, and so owns, an object below this one. That makes
	// this object visible. A snapshot does not have this information. Look it up only if the object
	// would otherwise be hidden.
	OwnsInside bool
}
