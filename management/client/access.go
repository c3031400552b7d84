package client

import (
	"time"
)

// Principal is the record of a principal.
type Principal struct {
	Name        string    `json:"name"` // alias:subject
	Disabled    bool      `json:"disabled"`
	Description string    `json:"description,omitempty"`
	SpeaksFor   string    `json:"speaks-for,omitempty"` // alias of an issuer; it may act for the issuer's subjects
	Created     time.Time `json:"created,omitzero"`
	Keys        []Key     `json:"keys"` // never null
}

// PrincipalSpec has the settable fields of a principal.
type PrincipalSpec struct {
	Disabled    bool   `json:"disabled"`
	Description string `json:"description,omitempty"`
	SpeaksFor   string `json:"speaks-for,omitempty"`
}

// Key is an API key without its secret.
type Key struct {
	ID          string    `json:"id"`
	Description string    `json:"description,omitempty"`
	Generation  uint64    `json:"generation"`
	Roles       []string  `json:"roles,omitempty"` // if not empty, the key has only the privileges of these roles
	Created     time.Time `json:"created"`
	By          string    `json:"by"`
	Ends        time.Time `json:"ends"` // when its newest secret ends
	// Parent is the id of the key that authenticated the request for the newest secret.
	Parent string `json:"parent,omitempty"`
}

// KeySpec specifies a new key, or a further secret for an existing key.
type KeySpec struct {
	Description string    `json:"description,omitempty"`
	Roles       []string  `json:"roles,omitempty"`
	Ends        time.Time `json:"ends,omitzero"` // default: 90 days from now
	// GraceSeconds is the time in seconds for which the present secret remains valid after a
	// further secret is drawn.
	GraceSeconds int64 `json:"grace-seconds,omitempty"`
}

// MadeKey is a new key with its secret, which is returned only once.
type MadeKey struct {
	Key
	Principal string `json:"principal"`
	// Secret is the whole key, which a client sends as a bearer token or as a credential.
	Secret string `json:"key"`
}

// Role is a role of the store.
type Role struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Members     []string `json:"members"` // principals, roles and token roles; never null
}

// MembersChange adds members to a role, and removes others.
type MembersChange struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Grant lists the privileges of one grantee on one object.
type Grant struct {
	Grantee    string    `json:"grantee"`
	Privileges []string  `json:"privileges"`
	By         string    `json:"by"` // the caller that changed it last
	At         time.Time `json:"at"`
}

// ObjectGrants lists all grants on one object.
type ObjectGrants struct {
	Object Object `json:"object"`
	Owner  string `json:"owner,omitempty"`
	// OwnerIsCreator means that no other owner was set.
	OwnerIsCreator bool    `json:"owner-is-creator,omitempty"`
	Managed        bool    `json:"managed"`
	Grants         []Grant `json:"grants"` // never null
}

// The values of GrantChange.Change.
const (
	ChangeGrant  = "grant"
	ChangeRevoke = "revoke"
)

// GrantChange grants privileges to a grantee on an object, or revokes them.
type GrantChange struct {
	Change     string   `json:"change"` // ChangeGrant or ChangeRevoke
	Object     Object   `json:"object"`
	Grantee    string   `json:"grantee"`
	Privileges []string `json:"privileges"`
}

// GrantChanges are several changes of grants, which are made together or not at all.
type GrantChanges struct {
	Changes []GrantChange `json:"changes"`
}

// GrantsChanged is the result of changes of grants.
type GrantsChanged struct {
	Changes int `json:"changes"`
	// Unknown is true if a grantee has no record. The name may be misspelled, or the principal may
	// not have made a request yet.
	Unknown         bool     `json:"unknown"`
	UnknownGrantees []string `json:"unknown-grantees,omitempty"`
}

// Owner is a request to change the owner of an object.
type Owner struct {
	Object Object `json:"object"`
	Owner  string `json:"owner"` // empty to return it to its creator
}

// Managed sets whether a warehouse or namespace is managed. If it is, the owners of objects in it
// cannot grant privileges on them.
type Managed struct {
	Object  Object `json:"object"`
	Managed bool   `json:"managed"`
}

// Subject is the principal that a question is about.
type Subject struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles,omitempty"` // roles that an issuer's token gives the principal
}

// Question requests an explanation of an access decision: about an Operation, by its name in the
// audit log, or about Privileges.
type Question struct {
	Caller     *Subject `json:"caller,omitempty"` // default: the caller that sends the question
	Operation  string   `json:"operation,omitempty"`
	Privileges []string `json:"privileges,omitempty"`
	Object     Object   `json:"object"`
	// Through lists the views through which the caller reaches the object, the outermost first.
	// Engine is the principal that acts for the caller. Engine is empty if the caller acts itself.
	Through []Object `json:"through,omitempty"`
	Engine  string   `json:"engine,omitempty"`
}

// Explanation gives the reasons for the answer to a question.
type Explanation struct {
	Decision string   `json:"decision"` // allow, forbid or hidden
	Asked    []string `json:"asked"`
	Has      []string `json:"has"` // including implied privileges
	Missing  []string `json:"missing"`
	Steps    []Step   `json:"steps"`    // for the object first, for the server last
	Grantors []string `json:"grantors"` // grantees that could grant the missing privileges
	// Through lists the views of the question, up to the one that denied access. If a view denied
	// access, the fields above describe the decision on that view. If the privileges of a view's
	// owner decided, As is that owner. It is "nobody" if that view has no owner, and empty if the
	// caller's own privileges decided. Ignored is true if the views were ignored, because the
	// engine is not trusted.
	Through []Passed `json:"through,omitempty"`
	As      string   `json:"as,omitempty"`
	Ignored bool     `json:"ignored,omitempty"`
}

// Passed is a view in the Through of a question.
type Passed struct {
	View     string   `json:"view"`
	Decision string   `json:"decision"`
	Missing  []string `json:"missing"`
	As       string   `json:"as,omitempty"`
}

// Step is the contribution of one object on the path from the object of the question to the server.
type Step struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Owner   string    `json:"owner,omitempty"`
	Owns    bool      `json:"owns"`
	Managed bool      `json:"managed"`
	Grants  []Counted `json:"grants"` // the grants that count for the caller
}

// Counted is a grant that counts for the subject of a question.
type Counted struct {
	Grantee    string   `json:"grantee"`
	Privileges []string `json:"privileges"`
	Via        []string `json:"via,omitempty"` // the roles between the caller and the grantee
}

// Checked lists the answers to several questions, in the order of the questions.
type Checked struct {
	Allowed []bool `json:"allowed"`
}

// Denial is one denial of a request.
type Denial struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request-id"`
	Caller    string    `json:"caller"`
	Operation string    `json:"operation"`
	Kind      string    `json:"kind"`
	Object    string    `json:"object"`
	Asked     []string  `json:"asked"`
	Missing   []string  `json:"missing"`
	Decision  string    `json:"decision"` // forbid or hidden
}

// Denials lists the denials of one request.
type Denials struct {
	Decisions []Denial `json:"decisions"`
}

// Access is the state of access control.
type Access struct {
	On bool `json:"on"`
	// Caller is the principal that the server identified as the sender of the request.
	Caller string `json:"caller,omitempty"`
	// Grantees are the names for which a grant counts: the caller, the roles in its token, and
	// everyone. Roles of the store with one of these names as a member count too. Grantees is nil
	// in the answer to a change.
	Grantees []string `json:"grantees,omitempty"`
	// LimitedTo lists the roles to which the credential is limited. Of the caller's roles, only
	// these and everyone count. LimitedTo is nil if there is no limit.
	LimitedTo []string `json:"limited-to,omitzero"`
	// AlwaysAdministrator is true if the server was started with the caller as an administrator.
	AlwaysAdministrator bool `json:"always-administrator,omitempty"`
}

// Export is the whole access policy of a store, without secrets.
type Export struct {
	Principals []Principal    `json:"principals"`
	Roles      []Role         `json:"roles"`
	Grants     []ObjectGrants `json:"grants"`
}

// PrincipalsPage is a page of the principals that have a record.
type PrincipalsPage struct {
	Principals []Principal `json:"principals"`
	NextPage
}

// RolesPage is a page of the roles.
type RolesPage struct {
	Roles []Role `json:"roles"`
	NextPage
}

// GrantsPage is a page of grants, grouped by object.
type GrantsPage struct {
	Grants []ObjectGrants `json:"grants"`
	NextPage
}

// Done is the response of a change without further information.
type Done struct{}
