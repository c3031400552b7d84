package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// Access are the verbs by which one caller manages who may do what. It is safe for concurrent use.
// Each change is one Apply, which counts the epoch of the store on. A change that was answered
// holds for every request that begins afterwards, on every node.
//
// Errors of all verbs: KindForbidden and the errors of what is hidden; KindIllegalArgument for what
// can never be recorded; KindTooLarge beyond a bound of package access; KindUnsupported while
// access is not on; KindUnavailable; KindCommitUnknown.
type Access struct{ catalog *Catalog }

// AccessOf returns the verbs that manage access, for the caller of c.
func AccessOf(c *Catalog) Access { return Access{c} }

// ObjectRef names what something is granted on.
type ObjectRef struct {
	Kind access.Kind
	// Ident is zero for the server. That of a warehouse or a namespace has no name.
	Ident moorage.Identifier
}

// Grant is what one grantee was given on one object.
type Grant struct {
	Grantee    string
	Privileges access.Privileges
	By         string // who changed it last
	At         time.Time
}

// ObjectGrants is all that was granted on one object.
type ObjectGrants struct {
	Object  ObjectRef
	Owner   string // whom it belongs to; empty if to nobody
	Managed bool
	Grants  []Grant // sorted by grantee
}

// GrantChange grants privileges to a grantee on an object, or revokes them.
type GrantChange struct {
	Revoke     bool
	Object     ObjectRef
	Grantee    string
	Privileges access.Privileges
}

// GrantChangesMax is how many changes ChangeGrants takes at once.
const GrantChangesMax = 1000

// Principal is what is recorded about a principal.
type Principal struct {
	Name string
	PrincipalSpec
	Created time.Time // zero: it has no record
	Keys    []APIKey
}

// PrincipalSpec is what can be set of a principal.
type PrincipalSpec struct {
	Disabled    bool
	Description string
	// SpeaksFor is the alias of the issuer for whose subjects the principal may ask, if it may
	// impersonate.
	SpeaksFor string
}

// APIKey is an API key, without anything that shows its secret.
type APIKey struct {
	ID          string
	Description string
	Generation  uint64
	Roles       []string // that it is narrowed to; nil: it is not
	Created     time.Time
	By          string
	Ends        time.Time // of its newest secret
}

// KeySpec is a request for a new API key. The face that asks draws its id and its secret.
type KeySpec struct {
	ID          string
	SHA256      [32]byte // of the secret
	Description string
	Roles       []string
	Ends        time.Time
}

// KeySecret is what a credential is compared with.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// LiveKey is an API key as authentication needs it.
type LiveKey struct {
	Principal string
	Roles     []string
	Secrets   []KeySecret // those that have not ended
}

// Role is a role of the store.
type Role struct {
	Name        string
	Description string
	Members     []string // principals, roles and token roles; sorted
}

// AccessQuestion asks whether somebody may do something. Exactly one of Operation and Privileges is
// set.
type AccessQuestion struct {
	Caller     moorage.Caller // zero: who asks
	Operation  string         // a verb, as package verb spells it
	Privileges access.Privileges
	Object     ObjectRef
}

// AccessAnswer is the answer to an AccessQuestion.
type AccessAnswer struct {
	Allowed bool
	// Explanation is why; it is zero if only Allowed was asked for. Names[i] is what the object of
	// Explanation.Steps[i] is called.
	Explanation access.Explanation
	Names       []string
}

// AccessQuestionsMax is how many questions Check takes at once.
const AccessQuestionsMax = 1000

// errNotYet is the answer of verbs that are being built.
func errNotYet() error {
	return moorage.Errorf(moorage.KindUnsupported, "This version cannot manage access yet")
}

// IsOn reports whether access is on in the store: whether what callers may do is decided at all.
func (a Access) IsOn(context.Context) (bool, error) { return false, nil }

// Enable switches access on, for good. From then on nobody may do anything without a grant. It
// returns nil if access is on already.
func (a Access) Enable(context.Context) error { return errNotYet() }

// ChangeGrants makes all of changes true, or none: at most GrantChangesMax. The caller must have
// manage on each object, and each privilege that he grants. It returns the names of grantees that
// have no record, which may be typing errors.
func (a Access) ChangeGrants(_ context.Context, _ []GrantChange) (unknown []string, err error) {
	return nil, errNotYet()
}

// GrantsOn returns what was granted on an object. It needs manage there, or admin.
func (a Access) GrantsOn(context.Context, ObjectRef) (ObjectGrants, error) {
	return ObjectGrants{}, errNotYet()
}

// GrantsTo returns what was granted to one grantee itself, on each object. It needs admin, unless
// the grantee is the caller. next is the After of the next page.
func (a Access) GrantsTo(_ context.Context, _ string, _ Page) (grants []ObjectGrants, next string, err error) {
	return nil, "", errNotYet()
}

// SetOwner hands an object over. Its owner may do that, the owner of what is above it, and admin.
// An empty owner gives it back to its creator.
func (a Access) SetOwner(context.Context, ObjectRef, string) error { return errNotYet() }

// SetManaged says whether the owners of what is in a warehouse or namespace can grant it. It needs
// manage.
func (a Access) SetManaged(context.Context, ObjectRef, bool) error { return errNotYet() }

// Principals returns the principals that have a record, sorted by name. It needs admin.
func (a Access) Principals(_ context.Context, _ Page) (principals []Principal, next string, err error) {
	return nil, "", errNotYet()
}

// LoadPrincipal returns what is recorded about a principal. It needs admin, unless that is the
// caller. One without a record is KindNotFound.
func (a Access) LoadPrincipal(context.Context, string) (Principal, error) {
	return Principal{}, errNotYet()
}

// PutPrincipal makes or changes the record of a principal. Its keys stay. It needs admin.
func (a Access) PutPrincipal(context.Context, string, PrincipalSpec) (Principal, error) {
	return Principal{}, errNotYet()
}

// DeletePrincipal removes the record of a principal, with its keys. What was granted to it stays
// granted. It needs admin. One without a record is KindNotFound.
func (a Access) DeletePrincipal(context.Context, string) error { return errNotYet() }

// CreateKey makes an API key of a principal whose alias is key, and the record of that principal if
// there is none. It needs admin, unless the principal is the caller.
func (a Access) CreateKey(_ context.Context, principal string, _ KeySpec) (APIKey, error) {
	_ = principal
	return APIKey{}, errNotYet()
}

// RotateKey gives an API key another secret, that of spec. The present one ends after grace. It
// needs what CreateKey does.
func (a Access) RotateKey(_ context.Context, principal string, _ KeySpec, grace time.Duration) (APIKey, error) {
	_, _ = principal, grace
	return APIKey{}, errNotYet()
}

// WithdrawKey ends an API key at once. It needs what CreateKey does. A key that is not there is
// KindNotFound.
func (a Access) WithdrawKey(_ context.Context, principal, id string) error {
	_, _ = principal, id
	return errNotYet()
}

// Roles returns the roles of the store, sorted by name. It needs admin.
func (a Access) Roles(_ context.Context, _ Page) (roles []Role, next string, err error) {
	return nil, "", errNotYet()
}

// LoadRole returns a role. It needs admin. One that is not there is KindNotFound.
func (a Access) LoadRole(context.Context, string) (Role, error) { return Role{}, errNotYet() }

// PutRole makes or replaces a role. It needs admin.
func (a Access) PutRole(context.Context, Role) (Role, error) { return Role{}, errNotYet() }

// ChangeMembers adds members to a role and removes others. It needs admin. A role that is not there
// is KindNotFound.
func (a Access) ChangeMembers(_ context.Context, name string, add, remove []string) (Role, error) {
	_, _, _ = name, add, remove
	return Role{}, errNotYet()
}

// DeleteRole removes a role. What was granted to it stays granted, and holds for a role that gets
// the name. It needs admin. One that is not there is KindNotFound.
func (a Access) DeleteRole(context.Context, string) error { return errNotYet() }

// Explain says why somebody may do something or not. About others it needs audit.
func (a Access) Explain(context.Context, AccessQuestion) (AccessAnswer, error) {
	return AccessAnswer{}, errNotYet()
}

// Check answers at most AccessQuestionsMax questions, in their order. About others it needs audit.
func (a Access) Check(context.Context, []AccessQuestion) ([]AccessAnswer, error) {
	return nil, errNotYet()
}

// Key returns the API key called id, for authentication; found is false if there is none, or its
// principal is disabled. Nobody needs to be its caller.
func (a Access) Key(_ context.Context, id string) (key LiveKey, found bool, err error) {
	_ = id
	return LiveKey{}, false, nil
}

// CheckImpersonate returns nil if the caller may ask for tokens of the subjects of issuer, which is
// an alias.
func (a Access) CheckImpersonate(_ context.Context, issuer string) error {
	_ = issuer
	return errNotYet()
}

// PublicKey is the public half of a key with which nodes sign tokens.
type PublicKey struct {
	ID        string
	Algorithm string
	Key       string    // base64url without padding
	Ends      time.Time // when the last token that it signed ends
}

// StoreID returns the id of the store in tokens; zero while access is not on.
func (a Access) StoreID(context.Context) (registry.ID, error) { return registry.ID{}, nil }

// PublishKey stores the public half of a key. Other nodes find it when it returns.
func (a Access) PublishKey(context.Context, PublicKey) error { return errNotYet() }

// PublicKey returns the public key called id; found is false if there is none.
func (a Access) PublicKey(_ context.Context, id string) (key PublicKey, found bool, err error) {
	_ = id
	return PublicKey{}, false, nil
}
