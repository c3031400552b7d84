package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Access has the verbs with which one caller manages access. It is safe for concurrent use. Each
// change is one Apply, which increments the epoch of the store. A confirmed change applies to every
// request that begins afterwards, on every node.
//
// Errors of all verbs: KindForbidden and the errors for hidden objects; KindIllegalArgument for
// values that can never be recorded; KindTooLarge beyond a bound of package access; KindUnsupported
// while access control is off; KindUnavailable; KindCommitUnknown.
type Access struct{ catalog *Catalog }

// AccessOf returns the verbs for managing access, for the caller of c.
func AccessOf(c *Catalog) Access { return Access{c} }

// ObjectRef names an object of grants.
type ObjectRef struct {
	Kind access.Kind
	// Ident is zero for the server. A warehouse or a namespace has an empty name.
	Ident moorage.Identifier
}

// Grant holds the privileges of one grantee on one object.
type Grant struct {
	Grantee    string
	Privileges access.Privileges
	By         string // the caller of the last change
	At         time.Time
}

// ObjectGrants holds all grants on one object.
type ObjectGrants struct {
	Object  ObjectRef
	Owner   string // empty if the object has no owner
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

// GrantChangesMax is how many changes ChangeGrants accepts at once.
const GrantChangesMax = 1000

// Principal is the record of a principal.
type Principal struct {
	Name string
	PrincipalSpec
	Created time.Time // zero if it has no record
	Keys    []APIKey
}

// PrincipalSpec holds the fields of a principal that can be set.
type PrincipalSpec struct {
	Disabled    bool
	Description string
	// SpeaksFor is the alias of the issuer whose subjects the principal may act for, if it may
	// impersonate.
	SpeaksFor string
}

// APIKey is an API key, without its secret or its hash.
type APIKey struct {
	ID          string
	Description string
	Generation  uint64
	Roles       []string // the roles to which it is narrowed; nil if it is not narrowed
	Created     time.Time
	By          string
	Ends        time.Time // of its newest secret
	// Parent is the id of the API key with which that secret was requested; empty if it was not
	// requested with an API key.
	Parent string
}

// KeyLifeMax is the longest lifetime of a key that was requested with a token or a certificate.
// These expire soon, and the key outlives them.
const KeyLifeMax = 90 * 24 * time.Hour

// KeySpec is a request for a new API key. The API that receives the request draws the id and the
// secret.
type KeySpec struct {
	ID          string
	SHA256      [32]byte // of the secret
	Description string
	Roles       []string
	// Ends is when the key expires. It is shortened to KeyLifeMax if the caller does not
	// authenticate with an API key.
	Ends time.Time
}

// KeySecret is the data against which a credential is checked.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// KnownKey is an API key in the form that authentication needs.
type KnownKey struct {
	Principal string
	Disabled  bool // whether its principal is disabled
	Roles     []string
	Secrets   []KeySecret // including expired secrets
}

// Role is a role of the store.
type Role struct {
	Name        string
	Description string
	Members     []string // principals, roles and token roles; sorted
}

// AccessQuestion is the question whether a caller may do something. Exactly one of Operation and
// Privileges is set.
type AccessQuestion struct {
	Caller     moorage.Caller // zero: the caller of the verb
	Operation  string         // a verb, as package gate spells it
	Privileges access.Privileges
	Object     ObjectRef
	// Through are the views through which the caller reaches the object, the outermost first; see
	// Catalog.LoadTable. Then the question requires audit. The engine is in the caller's Via.
	Through []moorage.Identifier
}

// AccessAnswer is the answer to an AccessQuestion.
type AccessAnswer struct {
	Allowed bool
	// Explanation has the reasons; it is zero if only Allowed was requested. Names[i] is the name
	// of the object of Explanation.Steps[i].
	Explanation access.Explanation
	Names       []string
	// Through are the views of the question, up to the one that refused. The explanation is for the
	// last step: for that view, or for the object. AsOwner and Owner have the same meaning as in
	// access.Walk.
	Through []AccessStep
	AsOwner bool
	Owner   string
	// Ignored means that the views of the question were ignored because their sender is not
	// trusted.
	Ignored bool
}

// AccessQuestionsMax is how many questions Check accepts at once.
const AccessQuestionsMax = 1000

// PublicKey is the public half of a key with which nodes sign tokens.
type PublicKey struct {
	ID        string
	Algorithm string
	Key       string    // base64url without padding
	Ends      time.Time // when the last token that it signed expires
}

// asking is one call of a verb about access, with the policy that decides on it.
type asking struct {
	catalog *Catalog
	verb    gate.Verb
	who     *access.Who // nil for a job of the server, which may do everything
	policy  *access.Snapshot
}

// ask returns the asking for v, with the caller's entry in the present policy.
func (a Access) ask(ctx context.Context, v gate.Verb) (*asking, error) {
	if a.catalog.planner.guard == nil {
		return nil, moorage.Errorf(moorage.KindUnsupported, "This server decides nothing about access")
	}
	who, policy, err := a.catalog.planner.guard.Who(ctx, a.catalog.caller)
	return &asking{a.catalog, v, who, policy}, err
}

// decide returns the refusal of a request for asked on object. rule makes the decision.
func (a *asking) decide(ctx context.Context, object gate.Object, asked access.Privileges,
	rule func(who *access.Who, path []access.Object) access.Decision) error {
	if a.who == nil {
		return nil
	}
	q := gate.Question{Caller: a.catalog.caller, Verb: a.verb, Object: object, Asked: asked}
	decision := rule(a.who, object.Path)
	if decision.Outcome == access.Hidden {
		shown, err := a.catalog.planner.guard.MarkOwned(ctx, q.Caller, object.Path)
		if err != nil {
			return err
		}
		if shown != nil {
			decision = rule(a.who, shown)
		}
	}
	return a.catalog.planner.guard.Report(ctx, a.policy, q, decision)
}

// onServer returns nil if the caller has the privileges that its verb requires on the server. met
// are the conditions that the request meets.
func (a *asking) onServer(ctx context.Context, met gate.When) error {
	asked := a.verb.Needs(gate.OfServer, met)
	return a.decide(ctx, gate.Object{}, asked, func(who *access.Who, _ []access.Object) access.Decision {
		return who.Decide(nil, asked)
	})
}

// isSelf reports whether the caller is the principal itself, without narrowed roles or an engine.
// Such a caller needs no privilege for requests about itself.
func (a *asking) isSelf(principal string) bool {
	caller := a.catalog.caller
	return caller.Name == principal && caller.Only == nil && len(caller.Via) == 0
}

// adminOrSelf returns nil if the caller is the principal itself or an administrator.
func (a *asking) adminOrSelf(ctx context.Context, principal string) error {
	if a.isSelf(principal) {
		return nil
	}
	return a.onServer(ctx, gate.IfOther)
}

// by returns the name under which a change is recorded.
func (a *asking) by() string { return a.catalog.caller.Name }

// edit holds the writes of one change of policy.
type edit struct {
	puts  []ledger.Write
	gone  []registry.Key
	items []registry.Item
	// read are conditions on the records on which the edit is based. marks are the writes that mark
	// objects as having grants.
	read  []registry.Condition
	marks []ledger.Write
}

// change makes a change of policy: one Apply, which increments the epoch. plan checks the caller by
// the policy of the epoch before, and returns the edit. It is called again if the policy or a
// record changed in between.
func (a Access) change(ctx context.Context, v gate.Verb,
	plan func(ctx context.Context, a *asking) (edit, error)) error {
	_, err := a.catalog.submit(ctx, commit.Intent{
		Verb: v, On: []moorage.Identifier{{}}, Silent: true,
		Plan: func(ctx context.Context, _ *commit.Attempt) (*commit.Plan, error) {
			asking, err := a.ask(ctx, v)
			if err != nil {
				return nil, err
			}
			planned, err := plan(ctx, asking)
			if err != nil {
				return nil, err
			}
			return a.catalog.planner.planPolicy(ctx, asking.policy.Epoch(), planned)
		},
	})
	return err
}

// planPolicy plans an edit that was decided by the policy of epoch.
func (p *planner) planPolicy(ctx context.Context, epoch uint64, e edit) (*commit.Plan, error) {
	if len(e.puts)+len(e.gone) == 0 {
		return &commit.Plan{Empty: true}, nil
	}
	policy, err := p.ledger.DropPolicy(ctx, e.gone, e.puts...)
	if err != nil {
		return nil, err
	}
	if policy.Epoch != epoch+1 {
		return nil, ledger.ErrRetry // it was decided by an older policy
	}
	marks, err := ledger.Encode(e.marks...)
	return &commit.Plan{
		Conditions: append(e.read, policy.Conditions...), Writes: append(marks, policy.Writes...), Items: e.items,
	}, err
}

// noSuch returns the error for a missing principal, role or key.
func noSuch(noun, name string) error {
	return moorage.Errorf(moorage.KindNotFound, "%s does not exist: %s", noun, name)
}
