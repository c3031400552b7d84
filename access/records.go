package access

import (
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

// Principal is the record of a principal. A principal without a record can make requests too.
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
	Roles      []string // the roles that the key is narrowed to; nil for all that the principal has
}

// Role is a role of the store, with its direct members: principals, roles and token roles.
type Role struct {
	Name    string
	Members []string
}

// Grants is the record of one object.
type Grants struct {
	ID   ID // ServerID for the server
	Kind Kind
	// Ancestors are the namespaces above the object, nearest first, and then its warehouse. The
	// server is not listed. Ancestors is empty for a warehouse and for the server.
	Ancestors []ID
	// Owner is the principal or role that the object was handed over to. It is empty if the object
	// still belongs to its creator.
	Owner   string
	Managed bool // of a warehouse or namespace: owners below it lack Manage
	Grants  []Grant
}

// Grant gives privileges to one grantee. A Grants has at most one Grant for each grantee. If there
// are several, New and With take the union.
type Grant struct {
	Grantee    string
	Privileges Privileges // as they were granted, without what they imply
}

// Records are the input of all decisions. New and With neither keep nor change the Records that
// they are given.
//
// Members, owners, grantees and creators are identities, as moorage.IdentityOf spells them.
type Records struct {
	Principals []Principal
	Roles      []Role
	Grants     []Grants
	// Generations has, for each name of a deleted principal or role, how many deleted ones had that
	// name.
	Generations map[string]uint64
}

// Changes are the records that a change of policy wrote, and the records that it removed. A removed
// record need not have existed.
type Changes struct {
	Records
	GonePrincipals []string
	GoneRoles      []string
	GoneGrants     []ID
}

// Caller is the caller of a request.
type Caller struct {
	Name  string
	Roles []string // token roles, as GranteeOf spells them; other roles are ignored
	// Only are the roles that the caller's token is narrowed to, nil for no such limit. The caller
	// then has no privileges as a principal: neither its grants nor its own objects count. A role
	// that the caller does not hold gives it nothing.
	Only []string
	// Acting reports that an engine acts in the caller's name. Grants on the server then do not
	// count.
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
	Creator string // from its record; empty if unknown
	// OwnsInside reports that the caller created, and so owns, something below the object; a
	// snapshot has no such information. It shows the object. Look it up only if the object is
	// hidden.
	OwnsInside bool
}
