package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"moorage"
)

// Bounds of what Recent keeps.
const (
	// RecentChangesMax is how many changes of policy Recent names. A node that is further behind
	// loads all policy.
	RecentChangesMax = 256
	// RecentKeysMax is how many keys Recent names at most: all of it is written with each change of
	// policy. A change that wrote more keys than this is not named.
	RecentKeysMax = 4096
)

// Principal is the value of a principal record: what is known of somebody who may ask. Nobody needs
// one to ask or to be granted something.
type Principal struct {
	Unknown
	Disabled    bool   `json:"disabled,omitempty"`
	Description string `json:"description,omitempty"`
	// SpeaksFor is the alias of the issuer for whose subjects it may ask, if it has the privilege
	// to impersonate. Empty: for nobody.
	SpeaksFor string    `json:"speaks-for,omitempty"`
	Keys      []APIKey  `json:"keys,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// Deleted says that there is no principal of this name now. The record stays, so that a later
	// one gets another identity. Generation is how many had the name and were deleted; see
	// moorage.IdentityOf.
	Deleted    bool   `json:"deleted,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

// APIKey is a key with which a principal shows who it is.
type APIKey struct {
	ID          string `json:"id"` // drawn by the server
	Description string `json:"description,omitempty"`
	// Secrets are those that are alive, the newest last: two while a key is being replaced.
	Secrets []KeySecret `json:"secrets"`
	// Roles are those that the key is narrowed to; nil: it may all that the principal may.
	Roles   []string  `json:"roles,omitempty"`
	Created time.Time `json:"created"`
	By      string    `json:"by"`
	// Parent is the id of the key with which its maker, or who gave it its newest secret, asked for
	// that; empty: it was not a key.
	Parent string `json:"parent,omitempty"`
}

// KeySecret is one secret of a key. Nothing that is stored can be used as the secret.
type KeySecret struct {
	SHA256     Hash      `json:"sha256"`
	Generation uint64    `json:"generation"`
	Ends       time.Time `json:"ends"`
}

// Role is the value of a role record. Holders are identities of principals, roles and token roles,
// as moorage.IdentityOf spells them: sorted, without repetitions.
type Role struct {
	Unknown
	Description string    `json:"description,omitempty"`
	Holders     []string  `json:"members"`
	Created     time.Time `json:"created,omitzero"`
	// Deleted and Generation are those of Principal.
	Deleted    bool   `json:"deleted,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

// Grants is the value of a grants record: what was granted on one object.
type Grants struct {
	Unknown
	Kind string `json:"kind"` // as package access calls it
	// Ident is the name of a warehouse or namespace, which stays. That of a table or view is in its
	// pointer.
	Ident moorage.Identifier `json:"identifier,omitzero"`
	// Ancestors are the ids of the namespaces above the object, nearest first, and last that of its
	// warehouse.
	Ancestors []ID `json:"ancestors,omitempty"`
	// Owner is the identity of whom the object was handed over to; empty if it belongs to its
	// creator.
	Owner string `json:"owner,omitempty"`
	// Managed says that the owners of what is beneath cannot grant it.
	Managed bool `json:"managed,omitempty"`
	// Grants has one for each grantee at most, sorted by grantee.
	Grants []Grant `json:"grants,omitempty"`
}

// Grant gives privileges to one grantee.
type Grant struct {
	Grantee    string    `json:"grantee"`    // an identity
	Privileges []string  `json:"privileges"` // in the words of package access
	By         string    `json:"by"`         // who changed it last
	At         time.Time `json:"at"`
}

// IsEmpty reports whether the record says nothing, so that it need not be there.
func (g Grants) IsEmpty() bool { return g.Owner == "" && !g.Managed && len(g.Grants) == 0 }

// Epoch is the value of the record EpochKey: how many changes of policy there were. It is there if
// access is on. Each Apply that writes a record of policy requires its version and writes the next
// one. So all changes of policy have one order.
type Epoch struct {
	Unknown
	Number uint64 `json:"number"`
}

// Recent is the value of the record RecentKey. It is written with each Epoch.
type Recent struct {
	Unknown
	// Changes are the last changes of policy, the oldest first, without a gap. The last one made
	// the present epoch.
	Changes []PolicyChange `json:"changes"`
}

// PolicyChange is one change of policy.
type PolicyChange struct {
	Epoch uint64 `json:"epoch"`
	Keys  []Key  `json:"keys"` // that it wrote or deleted
}

// Since returns the keys that the changes behind an epoch wrote, sorted, without repetitions. ok is
// false if r does not name all of these changes.
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

// With returns r with one change more, within the bounds.
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

// AccessStore is the value of the record AccessStoreKey, which is made with the first epoch and
// never changes.
type AccessStore struct {
	Unknown
	// ID names the store in the tokens that its nodes give out.
	ID ID `json:"id"`
	// PageKey seals page tokens, which name what their reader may not see.
	PageKey Hash      `json:"page-key"`
	Since   time.Time `json:"since"` // when access was switched on
}

// PublicKey is the value of a record of PublicKeyKey: the public half of a key with which a node
// signs tokens.
type PublicKey struct {
	Unknown
	Algorithm string    `json:"algorithm"`
	Key       string    `json:"key"`  // in the alphabet of base64url, without padding
	Ends      time.Time `json:"ends"` // when the last token that it signed ends
}

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

// GrantsObject returns the object whose grants record has the key.
func GrantsObject(key Key) (object ID, err error) {
	if key.ID != serverGrants {
		err = object.UnmarshalText([]byte(key.ID))
	}
	return object, err
}

// EpochKey is the key of the record that counts the changes of policy.
func EpochKey() Key { return Key{TableAccess, "epoch"} }

// RecentKey is the key of the record that names the last changes of policy.
func RecentKey() Key { return Key{TableAccess, "recent"} }

// AccessStoreKey is the key of the record that says since when access is on.
func AccessStoreKey() Key { return Key{TableAccess, "store"} }

// PublicKeyPrefix is what the IDs of all records of PublicKeyKey begin with.
const PublicKeyPrefix = "key/"

// Maker is the value of a record of MakerKey: somebody made something in a container, or beneath
// it. Its maker sees the container from then on, whatever is granted to him. The record stays when
// what he made is gone.
type Maker struct {
	Unknown
	Name string `json:"name"` // the identity of the principal
}

// makerPrefix is what the IDs of all records of MakerKey begin with.
const makerPrefix = "maker/"

// IsMakerKey reports whether key is one of MakerKey.
func IsMakerKey(key Key) bool {
	return key.Table == TableAccess && strings.HasPrefix(key.ID, makerPrefix)
}

// MakerPrefix is what the IDs of the records of one maker begin with.
func MakerPrefix(maker string) string {
	sum := sha256.Sum256([]byte(maker))
	return makerPrefix + hex.EncodeToString(sum[:]) + "/"
}

// MakerKey is the key of the record that says that maker made something in the namespace or
// warehouse called container.
func MakerKey(maker string, container ID) Key {
	return Key{TableAccess, MakerPrefix(maker) + container.String()}
}

// MakerContainer returns the container of a key of MakerKey.
func MakerContainer(key Key) (container ID, err error) {
	err = container.UnmarshalText([]byte(key.ID[strings.LastIndexByte(key.ID, '/')+1:]))
	return container, err
}

// PublicKeyKey is the key of the public key called kid.
func PublicKeyKey(kid string) Key { return Key{TableAccess, PublicKeyPrefix + kid} }
