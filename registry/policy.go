package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"moorage"
)

// Bounds of Recent.
const (
	// RecentChangesMax is the maximum number of changes in Recent. A node that is further behind
	// loads the whole policy.
	RecentChangesMax = 256
	// RecentKeysMax is the maximum number of keys in Recent. Each change of access policy rewrites
	// the whole list, so it must be short. A change with more keys than this is not listed.
	RecentKeysMax = 4096
)

// Principal is the value of a principal record: the stored facts about a possible caller. A caller
// needs no record to send requests or to be granted privileges.
type Principal struct {
	Unknown
	Disabled    bool   `json:"disabled,omitempty"`
	Description string `json:"description,omitempty"`
	// SpeaksFor is the alias of an issuer. The principal may act for the subjects of that issuer if
	// it has the privilege to impersonate. It is empty if the principal may impersonate no subject.
	SpeaksFor string    `json:"speaks-for,omitempty"`
	Keys      []APIKey  `json:"keys,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// Deleted is true if there is no principal of this name now. The record stays, so that a later
	// principal of this name gets another identity. Generation counts the deleted principals of
	// this name; see moorage.IdentityOf.
	Deleted    bool   `json:"deleted,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

// APIKey is a key that authenticates a principal.
type APIKey struct {
	ID          string `json:"id"` // drawn by the server
	Description string `json:"description,omitempty"`
	// Secrets lists the valid secrets, newest last. There are two while a secret is being replaced.
	Secrets []KeySecret `json:"secrets"`
	// Roles lists the roles to which the key is limited. Nil means all privileges of the principal.
	Roles   []string  `json:"roles,omitempty"`
	Created time.Time `json:"created"`
	By      string    `json:"by"`
	// Parent is the id of the key that requested this key or its newest secret. It is empty if the
	// request was not authenticated by a key.
	Parent string `json:"parent,omitempty"`
}

// KeySecret is one secret of a key. It holds a hash, which cannot be used as the secret.
type KeySecret struct {
	SHA256     Hash      `json:"sha256"`
	Generation uint64    `json:"generation"`
	Ends       time.Time `json:"ends"`
}

// Role is the value of a role record. Holders are identities of principals, roles and token roles
// in the form of moorage.IdentityOf. They are sorted and unique.
type Role struct {
	Unknown
	Description string    `json:"description,omitempty"`
	Holders     []string  `json:"members"`
	Created     time.Time `json:"created,omitzero"`
	// Deleted and Generation have the same meaning as in Principal.
	Deleted    bool   `json:"deleted,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

// Grants is the value of a grants record: the grants on one object.
type Grants struct {
	Unknown
	Kind string `json:"kind"` // a kind of package access
	// Ident is the name of a warehouse or namespace, which never changes. The name of a table or
	// view is in its pointer.
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// Ancestors are the ids of the namespaces above the object, nearest first. The last id is the
	// id of the warehouse.
	Ancestors []ID `json:"ancestors,omitempty"`
	// Owner is the identity of the new owner if the ownership was transferred. It is empty if the
	// creator owns the object.
	Owner string `json:"owner,omitempty"`
	// Managed is true if the owners of objects below cannot grant privileges on them.
	Managed bool `json:"managed,omitempty"`
	// Grants has at most one grant for each grantee, sorted by grantee.
	Grants []Grant `json:"grants,omitempty"`
}

// Grant gives privileges to one grantee.
type Grant struct {
	Grantee    string    `json:"grantee"`    // an identity
	Privileges []string  `json:"privileges"` // names of package access
	By         string    `json:"by"`         // identity that last changed the grant
	At         time.Time `json:"at"`
}

// IsEmpty reports whether the record has no content, so it may be missing.
func (g Grants) IsEmpty() bool { return g.Owner == "" && !g.Managed && len(g.Grants) == 0 }

// Epoch is the value of the record EpochKey: the number of changes of access policy. The record
// exists if access control is enabled. Each Apply that writes a record of access policy requires
// that the epoch is unchanged, and writes the next epoch. So all changes of access policy have one
// order.
type Epoch struct {
	Unknown
	Number uint64 `json:"number"`
}

// Recent is the value of the record RecentKey. It is written with each Epoch.
type Recent struct {
	Unknown
	// Changes lists the last changes of access policy, oldest first, without a gap. The last
	// element made the present epoch.
	Changes []PolicyChange `json:"changes"`
}

// PolicyChange is one change of access policy.
type PolicyChange struct {
	Epoch uint64 `json:"epoch"`
	Keys  []Key  `json:"keys"` // written or deleted
}

// Since returns the keys written by the changes after an epoch, sorted and unique. ok is false if r
// does not list all of these changes.
func (r Recent) Since(epoch uint64) (keys []Key, ok bool) {
	if n := len(r.Changes); n == 0 || r.Changes[n-1].Epoch <= epoch || r.Changes[0].Epoch > epoch+1 {
		return nil, false
	}
	for _, change := range r.Changes {
		if change.Epoch > epoch {
			keys = append(keys, change.Keys...)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys), true
}

// With returns r with change appended, within the bounds.
func (r Recent) With(change PolicyChange) Recent {
	next := Recent{Unknown: r.Unknown, Changes: append(slices.Clone(r.Changes), change)}
	count := 0
	for i, each := range slices.Backward(next.Changes) {
		if count += len(each.Keys); count > RecentKeysMax || len(next.Changes)-i > RecentChangesMax {
			next.Changes = next.Changes[i+1:]
			break
		}
	}
	return next
}

// AccessStore is the value of the record AccessStoreKey. The Apply that writes the first epoch also
// writes this record, which never changes.
type AccessStore struct {
	Unknown
	// ID identifies the store in the tokens that its nodes issue.
	ID ID `json:"id"`
	// PageKey encrypts page tokens, because they may contain hidden names.
	PageKey Hash      `json:"page-key"`
	Since   time.Time `json:"since"` // when access control was enabled
}

// PublicKey is the value of a record of PublicKeyKey: the public half of a key that a node uses to
// sign tokens.
type PublicKey struct {
	Unknown
	Algorithm string    `json:"algorithm"`
	Key       string    `json:"key"`  // in the alphabet of base64url, without padding
	Ends      time.Time `json:"ends"` // when the last token signed with it expires
}

// ConsoleKey is the value of the record of ConsoleKeyKey: the key that all nodes use to encrypt
// browser sessions.
type ConsoleKey struct {
	Unknown
	Key   string    `json:"key"`    // in the alphabet of base64url, without padding
	Seal  bool      `json:"sealed"` // Key is sealed with the secrets key of the server
	Drawn time.Time `json:"drawn"`
}

// ConsoleKeyKey is the key of the record of the console's key.
func ConsoleKeyKey() Key { return Key{TableAccess, "console"} }

// PrincipalKey is the key of the record of a principal.
func PrincipalKey(name string) Key { return Key{TablePrincipal, name} }

// RoleKey is the key of the record of a role.
func RoleKey(name string) Key { return Key{TableRole, name} }

// serverGrants is the ID of the grants record of the server.
const serverGrants = "server"

// GrantsKey is the key of the grants record of an object; the zero ID is the server.
func GrantsKey(object ID) Key {
	if object.IsZero() {
		return Key{TableGrants, serverGrants}
	}
	return Key{TableGrants, object.String()}
}

// GrantsObject returns the object of the grants record at key.
func GrantsObject(key Key) (object ID, err error) {
	if key.ID != serverGrants {
		err = object.UnmarshalText([]byte(key.ID))
	}
	return object, err
}

// EpochKey is the key of the record that counts the changes of access policy.
func EpochKey() Key { return Key{TableAccess, "epoch"} }

// RecentKey is the key of the record that lists the last changes of access policy.
func RecentKey() Key { return Key{TableAccess, "recent"} }

// AccessStoreKey is the key of the record with the time when access control was enabled.
func AccessStoreKey() Key { return Key{TableAccess, "store"} }

// PublicKeyPrefix is the prefix of the IDs of all records of PublicKeyKey.
const PublicKeyPrefix = "key/"

// Maker is the value of a record of MakerKey. The record means that a principal, the maker, has
// created an object in a container or below it. So the container is visible to the maker, whatever
// the grants are. The record stays after the object was dropped.
type Maker struct {
	Unknown
	Name string `json:"name"` // the identity of the principal
}

// makerPrefix is the prefix of the IDs of all records of MakerKey.
const makerPrefix = "maker/"

// IsMakerKey reports whether key is one of MakerKey.
func IsMakerKey(key Key) bool {
	return key.Table == TableAccess && strings.HasPrefix(key.ID, makerPrefix)
}

// MakerPrefix is the prefix of the IDs of the records of one maker.
func MakerPrefix(maker string) string {
	sum := sha256.Sum256([]byte(maker))
	return makerPrefix + hex.EncodeToString(sum[:]) + "/"
}

// MakerKey is the key of the record for maker, who has created an object in a namespace or
// warehouse. container is the ID of that container.
func MakerKey(maker string, container ID) Key {
	return Key{TableAccess, MakerPrefix(maker) + container.String()}
}

// MakerContainer returns the container in a key made by MakerKey.
func MakerContainer(key Key) (container ID, err error) {
	err = container.UnmarshalText([]byte(key.ID[strings.LastIndexByte(key.ID, '/')+1:]))
	return container, err
}

// PublicKeyKey is the key of the record of the public key with the id kid.
func PublicKeyKey(kid string) Key { return Key{TableAccess, PublicKeyPrefix + kid} }
