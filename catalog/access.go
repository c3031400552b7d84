package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/guard"
	"moorage/catalog/verb"
	"moorage/ledger"
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
	// Parent is the id of the API key with which that secret was asked for; empty: with none.
	Parent string
}

// KeyLifeMax is how long a key is good that was asked for with a token or a certificate. These end
// soon, and what they made outlives them.
const KeyLifeMax = 90 * 24 * time.Hour

// KeySpec is a request for a new API key. The face that asks draws its id and its secret.
type KeySpec struct {
	ID          string
	SHA256      [32]byte // of the secret
	Description string
	Roles       []string
	// Ends is when it ends; sooner, by KeyLifeMax, if the caller shows no API key.
	Ends time.Time
}

// KeySecret is what a credential is compared with.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// KnownKey is an API key as authentication needs it.
type KnownKey struct {
	Principal string
	Disabled  bool // its principal is
	Roles     []string
	Secrets   []KeySecret // also those that have ended
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
	// Through are the views by which the caller comes to the object, the outermost first; see
	// Catalog.LoadTable. Who asks needs audit then. The engine is in the caller's Via.
	Through []moorage.Identifier
}

// AccessAnswer is the answer to an AccessQuestion.
type AccessAnswer struct {
	Allowed bool
	// Explanation is why; it is zero if only Allowed was asked for. Names[i] is what the object of
	// Explanation.Steps[i] is called.
	Explanation access.Explanation
	Names       []string
	// Through are the views of the question, up to the one that refused. The explanation is that of
	// the last step: of that view, or of the object. AsOwner and Owner say whose rights decided
	// there, as in access.Walk.
	Through []AccessStep
	AsOwner bool
	Owner   string
	// Unheeded says that the views of the question were ignored: nobody trusts who names them.
	Unheeded bool
}

// AccessQuestionsMax is how many questions Check takes at once.
const AccessQuestionsMax = 1000

// PublicKey is the public half of a key with which nodes sign tokens.
type PublicKey struct {
	ID        string
	Algorithm string
	Key       string    // base64url without padding
	Ends      time.Time // when the last token that it signed ends
}

// asking is one caller who asks for a verb about access, and the policy that decides on it.
type asking struct {
	catalog *Catalog
	verb    verb.Verb
	who     *access.Who // nil: a job of the server, which may do everything
	policy  *access.Snapshot
}

// ask returns the caller of a as policy has him now.
func (a Access) ask(ctx context.Context, v verb.Verb) (*asking, error) {
	if a.catalog.planner.guard == nil {
		return nil, moorage.Errorf(moorage.KindUnsupported, "This server decides nothing about access")
	}
	who, policy, err := a.catalog.planner.guard.Who(ctx, a.catalog.caller)
	return &asking{a.catalog, v, who, policy}, err
}

// decide returns the refusal of what is asked on object, by the rule that asked stands for.
func (a *asking) decide(ctx context.Context, object guard.Object, asked access.Privileges,
	rule func(who *access.Who, path []access.Object) access.Decision) error {
	if a.who == nil {
		return nil
	}
	q := guard.Question{Caller: a.catalog.caller, Verb: a.verb, Object: object, Asked: asked}
	decision := rule(a.who, object.Path)
	if decision.Outcome == access.Hidden {
		shown, err := a.catalog.planner.guard.Shown(ctx, q.Caller, object.Path)
		if err != nil {
			return err
		}
		if shown != nil {
			decision = rule(a.who, shown)
		}
	}
	return a.catalog.planner.guard.Heard(ctx, a.policy, q, decision)
}

// onServer returns nil if the caller has on the server what its verb asks for there, of a request
// that meets the conditions.
func (a *asking) onServer(ctx context.Context, met verb.When) error {
	asked := a.verb.Needs(verb.OfServer, met)
	return a.decide(ctx, guard.Object{}, asked, func(who *access.Who, _ []access.Object) access.Decision {
		return who.Decide(nil, asked)
	})
}

// isSelf reports whether the caller is a principal, with all that it has: what it does for itself
// needs no privilege.
func (a *asking) isSelf(principal string) bool {
	caller := a.catalog.caller
	return caller.Name == principal && caller.Only == nil && len(caller.Via) == 0
}

// adminOrSelf returns nil if the caller is a principal, or an administrator.
func (a *asking) adminOrSelf(ctx context.Context, principal string) error {
	if a.isSelf(principal) {
		return nil
	}
	return a.onServer(ctx, verb.IfOther)
}

// by returns who is noted to have changed something.
func (a *asking) by() string { return a.catalog.caller.Name }

// edit is what one change of policy does.
type edit struct {
	puts  []ledger.Write
	gone  []registry.Key
	items []registry.Item
	// read are the records that it was planned on, and marks those of objects that are granted from
	// now on.
	read  []registry.Condition
	marks []ledger.Write
}

// change makes a change of policy: one Apply, which counts the epoch on. plan decides whether the
// caller may, by the policy of the epoch before, and returns what is to be written. It is called
// again if policy or a record changed meanwhile.
func (a Access) change(ctx context.Context, v verb.Verb,
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

// planPolicy plans an edit that was decided on by the policy of epoch.
func (p *planner) planPolicy(ctx context.Context, epoch uint64, e edit) (*commit.Plan, error) {
	if len(e.puts)+len(e.gone) == 0 {
		return &commit.Plan{Empty: true}, nil
	}
	policy, err := p.ledger.DropPolicy(ctx, e.gone, e.puts...)
	if err != nil {
		return nil, err
	}
	if policy.Epoch != epoch+1 {
		return nil, ledger.ErrRetry // it was decided by older policy
	}
	marks, err := ledger.Encode(e.marks...)
	return &commit.Plan{
		Conditions: append(e.read, policy.Conditions...), Writes: append(marks, policy.Writes...), Items: e.items,
	}, err
}

// noSuch returns the error that there is none of a name.
func noSuch(noun, name string) error {
	return moorage.Errorf(moorage.KindNotFound, "%s does not exist: %s", noun, name)
}
