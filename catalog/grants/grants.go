package grants

import (
	"context"
	"io"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Config holds the parts of a Grants. All fields but Guard are required.
type Config struct {
	Ledger    *ledger.Ledger
	Pipeline  *commit.Pipeline
	Directory *directory.Directory
	// Guard decides about requests. If it is nil, the server has no access control, and most verbs
	// fail with KindUnsupported.
	Guard  *gate.Guard
	Now    func() time.Time
	Random io.Reader
	// Views returns the views on the path of a question, in the form that the directory needs.
	Views func(names []moorage.Identifier) (*directory.Views, error)
	// IsDefiner reports whether a view is a definer view. For the tables behind a definer view, the
	// privileges of its owner count.
	IsDefiner func(ctx context.Context, view *directory.Found) (bool, error)
}

// Grants has the verbs for managing access, as one caller: see As. It is safe for concurrent use.
// Each change is one Apply, which increments the epoch of the store. A confirmed change applies to
// every request that begins afterwards, on every node.
//
// Errors of all verbs: KindForbidden and the errors for hidden objects; KindIllegalArgument for
// values that can never be stored; KindTooLarge for values beyond a bound of package access;
// KindUnsupported while access control is disabled; KindUnavailable; KindCommitUnknown.
type Grants struct {
	ledger    *ledger.Ledger
	pipeline  *commit.Pipeline
	directory *directory.Directory
	guard     *gate.Guard
	now       func() time.Time
	random    io.Reader
	views     func(names []moorage.Identifier) (*directory.Views, error)
	isDefiner func(ctx context.Context, view *directory.Found) (bool, error)
	caller    moorage.Caller
}

// New returns a Grants over the parts of config. It has no caller yet: see As.
func New(config Config) *Grants {
	return &Grants{
		ledger: config.Ledger, pipeline: config.Pipeline, directory: config.Directory, guard: config.Guard,
		now: config.Now, random: config.Random, views: config.Views, isDefiner: config.IsDefiner,
	}
}

// As returns the verbs for managing access, as caller.
func (g *Grants) As(caller moorage.Caller) *Grants {
	other := *g
	other.caller = caller
	return &other
}

// call is one call of a verb for managing access, with the policy that applies to it.
type call struct {
	*Grants
	verb   gate.Verb
	who    *access.Who // nil for a job of the server, which may do everything
	policy *access.Snapshot
	change registry.Change // the change that the call makes; zero if it changes nothing
}

// begin returns a call of v, with the caller's entry in the present policy.
func (g *Grants) begin(ctx context.Context, v gate.Verb) (*call, error) {
	if g.guard == nil {
		return nil, moorage.Errorf(moorage.KindUnsupported, "This server decides nothing about access")
	}
	who, policy, err := g.guard.Who(ctx, g.caller)
	return &call{Grants: g, verb: v, who: who, policy: policy}, err
}

// decide returns nil if the caller has the privileges in asked on object, and otherwise the
// refusal. rule makes the decision.
func (c *call) decide(ctx context.Context, object gate.Object, asked access.Privileges,
	rule func(who *access.Who, path []access.Object) access.Decision) error {
	q := gate.Question{Caller: c.caller, Verb: c.verb, Object: object, Asked: asked}
	return c.guard.DecideBy(ctx, c.who, c.policy, q, rule)
}

// onServer returns nil if the caller has the privileges that its verb requires on the server. met
// has the conditions that the request meets.
func (c *call) onServer(ctx context.Context, met gate.When) error {
	asked := c.verb.Needs(gate.OfServer, met)
	return c.decide(ctx, gate.Object{}, asked, func(who *access.Who, _ []access.Object) access.Decision {
		return who.Decide(nil, asked)
	})
}

// isSelf reports whether the caller is the principal itself. The caller must not use an engine, and
// its roles must not be narrowed. Such a caller needs no privilege for requests about itself.
func (c *call) isSelf(principal string) bool {
	return c.caller.Name == principal && c.caller.Only == nil && len(c.caller.Via) == 0
}

// adminOrSelf returns nil if the caller is the principal itself or an administrator.
func (c *call) adminOrSelf(ctx context.Context, principal string) error {
	if c.isSelf(principal) {
		return nil
	}
	return c.onServer(ctx, gate.IfOther)
}

// edit holds the writes of one change of policy.
type edit struct {
	puts  []ledger.Write
	gone  []registry.Key
	items []registry.Item
	// read has conditions on the records that the edit is based on. marks has the writes that mark
	// objects as having grants.
	read  []registry.Condition
	marks []ledger.Write
}

// change makes a change of policy in one Apply, which increments the epoch. plan checks the caller
// against the policy of the previous epoch, and returns the edit. If the policy or a record changes
// before the Apply, change calls plan again.
func (g *Grants) change(ctx context.Context, v gate.Verb,
	plan func(ctx context.Context, c *call) (edit, error)) error {
	_, err := g.pipeline.Submit(ctx, commit.Intent{
		Caller: g.caller, Verb: v, On: []moorage.Identifier{{}}, Silent: true,
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			call, err := g.begin(ctx, v)
			if err != nil {
				return nil, err
			}
			call.change = attempt.Change
			planned, err := plan(ctx, call)
			if err != nil {
				return nil, err
			}
			return g.planPolicy(ctx, call.policy.Epoch(), planned)
		},
	})
	return err
}

// planPolicy plans an edit that was allowed by the policy of epoch.
func (g *Grants) planPolicy(ctx context.Context, epoch uint64, e edit) (*commit.Plan, error) {
	if len(e.puts)+len(e.gone) == 0 {
		return &commit.Plan{Empty: true}, nil
	}
	policy, err := g.ledger.DropPolicy(ctx, e.gone, e.puts...)
	if err != nil {
		return nil, err
	}
	if policy.Epoch != epoch+1 {
		return nil, ledger.ErrRetry // an older policy allowed the edit
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
