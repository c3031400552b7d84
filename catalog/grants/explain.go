package grants

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
)

// Question is the question whether a caller may do something. Exactly one of Operation and
// Privileges is set.
type Question struct {
	Caller     moorage.Caller // zero for the caller who asks the question
	Operation  string         // a verb in the spelling of package gate
	Privileges access.Privileges
	Object     Object
	// Through lists the views through which the caller reaches the object, outermost first; see
	// Catalog.LoadTable. A question with views requires audit. Caller.Via names the engine.
	Through []moorage.Identifier
}

// Answer is the answer to a Question.
type Answer struct {
	Allowed bool
	// Explanation has the reasons. It is zero in an answer of Check. Names[i] is the name of the
	// object in Explanation.Steps[i].
	Explanation access.Explanation
	Names       []string
	// Through lists the views of the question. If a view refused the caller, that view is the last
	// step, and the explanation is about it. Otherwise the explanation is about the object. AsOwner
	// and Owner have the same meaning as in access.Walk.
	Through []Step
	AsOwner bool
	Owner   string
	// Ignored is true if the views of the question were ignored because their sender is not
	// trusted.
	Ignored bool
}

// QuestionsMax is the maximum number of questions in one call of Check.
const QuestionsMax = 1000

// Step is the decision about one view of a question.
type Step struct {
	View    moorage.Identifier
	Outcome access.Outcome
	Missing access.Privileges
	// AsOwner is true if the privileges of an outer view's owner counted. Owner is that owner.
	AsOwner bool
	Owner   string
}

// Explain explains an access decision. It requires audit for a question about another caller. It
// also requires audit if the question names roles or an engine, because the caller's own roles and
// engine come only from authentication.
func (g *Grants) Explain(ctx context.Context, question Question) (Answer, error) {
	call, err := g.begin(ctx, gate.ExplainAccess)
	if err != nil {
		return Answer{}, moorage.Annotate("grants.Explain", "", err)
	}
	answer, err := call.answer(ctx, question, true)
	return answer, moorage.Annotate("grants.Explain", question.Operation, err)
}

// Check answers at most QuestionsMax questions, in their order. Questions about other callers
// require audit. If an object does not exist or is hidden from the caller, the answer is "not
// allowed".
func (g *Grants) Check(ctx context.Context, questions []Question) ([]Answer, error) {
	const op = "grants.Check"
	if len(questions) > QuestionsMax {
		return nil, moorage.Annotate(op, "", moorage.Errorf(moorage.KindTooLarge,
			"%d questions, at most %d are possible at once", len(questions), QuestionsMax))
	}
	call, err := g.begin(ctx, gate.CheckAccess)
	if err != nil {
		return nil, moorage.Annotate(op, "", err)
	}
	answers := make([]Answer, len(questions))
	for i, question := range questions {
		answers[i], err = call.answer(ctx, question, false)
		switch moorage.KindOf(err) {
		case moorage.KindNoSuchWarehouse, moorage.KindNoSuchNamespace, moorage.KindNoSuchTable, moorage.KindNoSuchView:
			continue
		}
		if err != nil {
			return nil, moorage.Annotate(op, "", err)
		}
	}
	return answers, nil
}

// answer answers one question. If explained is true, the answer has reasons.
func (c *call) answer(ctx context.Context, question Question, explained bool) (Answer, error) {
	asked, err := question.asked()
	if err != nil {
		return Answer{}, err
	}
	about := *c
	caller, isSelf := question.Caller, false
	if self := c.caller; caller.IsNobody() ||
		caller.Name == self.Name && len(caller.Roles) == 0 && !caller.IsActing() {
		caller, isSelf = self, true // with the roles to which its credential is narrowed
	}
	if !isSelf || len(question.Through) > 0 {
		if err := c.onServer(ctx, gate.IfOther); err != nil {
			return Answer{}, err
		}
		if access.GranteeOf(caller.Name) != access.IsPrincipal {
			return Answer{}, moorage.Errorf(moorage.KindIllegalArgument,
				"%q is not the name of a principal: issuer:subject", caller.Name)
		}
		// An auditor may ask about objects that are hidden from them.
		about.Grants = c.As(moorage.System("explain"))
	}
	t, err := about.object(ctx, question.Object)
	if err != nil {
		return Answer{}, err
	}
	if c.who == nil && caller.Name == c.caller.Name { // a job of the server
		return Answer{Allowed: true, Names: []string{}}, nil
	}
	who := c.policy.Who(access.Caller{
		Name: caller.Name, Roles: caller.Roles, Only: caller.Only, Acting: len(caller.Via) > 0,
	})
	shown, err := c.guard.MarkOwned(ctx, caller, t.object.Path)
	if err != nil {
		return Answer{}, err
	}
	if shown != nil {
		t.object.Path = shown
	}
	asked = question.orInstead(who, t.object.Path, asked)
	ignored := len(question.Through) > 0
	if path := t.object.Path; ignored && len(path) > 0 && who.Believed(path[len(path)-1], caller.Via, nil) {
		return about.answerThrough(ctx, who, question, t, asked)
	}
	if !explained {
		return Answer{Allowed: who.Decide(t.object.Path, asked).Outcome == access.Allow}, nil
	}
	answer := Answer{Explanation: who.Explain(t.object.Path, asked), Ignored: ignored}
	answer.Allowed = answer.Explanation.Decision.Outcome == access.Allow
	answer.nameSteps(t)
	return answer, nil
}

// nameOfStep returns the name of an object on the path to t.
func nameOfStep(object access.Object, t *target) string {
	ident := t.ref.Ident
	if object.ID == access.ServerID {
		return "server"
	}
	for i, each := range t.object.Path {
		if each.ID != object.ID {
			continue
		}
		switch up := len(t.object.Path) - 1 - i; {
		case up == 0:
			return ident.Warehouse
		case object.Kind == access.Namespace:
			return ident.Namespace[:up].String()
		}
	}
	return ident.String()
}

// orInstead returns the alternative privileges of the operation if the caller has those on path but
// lacks asked. Otherwise it returns asked.
func (q Question) orInstead(who *access.Who, path []access.Object,
	asked access.Privileges) access.Privileges {
	row, _ := gate.Verb(q.Operation).Row()
	other := row.InsteadOf(gate.OfObject)
	if other == access.See || who.Decide(path, asked).Outcome == access.Allow ||
		who.Decide(path, other).Outcome != access.Allow {
		return asked
	}
	return other
}

// asked returns the privileges that q is about.
func (q Question) asked() (asked access.Privileges, err error) {
	if (q.Operation == "") == (q.Privileges == 0) {
		return 0, moorage.Errorf(moorage.KindIllegalArgument, "Ask for an operation, or for privileges")
	}
	if q.Operation == "" {
		return q.Privileges, nil
	}
	row, ok := gate.Verb(q.Operation).Row()
	if !ok {
		return 0, moorage.Errorf(moorage.KindIllegalArgument, "There is no operation %q", q.Operation)
	}
	for _, subject := range []gate.Subject{gate.OfObject, gate.OfContainer, gate.OfServer} {
		needs, _ := row.Needs(subject, gate.Always)
		asked |= needs
	}
	return asked, nil
}

// answerThrough answers a question about t as reached through views. who is the entry of the
// question's caller, who uses an engine. As in a load, views named by an untrusted engine do not
// count.
func (c *call) answerThrough(ctx context.Context, who *access.Who, question Question, t *target,
	asked access.Privileges) (answer Answer, err error) {
	if _, err := c.views(question.Through); err != nil {
		return answer, err
	}
	views := make([]access.Passed, len(question.Through))
	objects := make([]*target, 0, len(views)+1)
	for i, name := range question.Through {
		view, err := c.object(ctx, Object{Kind: access.View, Ident: name})
		switch moorage.KindOf(err) {
		case moorage.KindNoSuchView, moorage.KindNoSuchWarehouse:
			view, err = &target{ref: Object{Kind: access.View, Ident: name}}, nil
		}
		if err == nil && view.found != nil {
			views[i].Path = view.object.Path
			views[i].Definer, err = c.isDefiner(ctx, view.found)
		}
		if err != nil {
			return answer, err
		}
		objects = append(objects, view)
	}
	objects = append(objects, t)
	walk, steps := who.ExplainThrough(views, t.object.Path, asked)
	for i, step := range steps {
		decision := step.Decision
		if i == walk.Step {
			decision = walk.Decision
		}
		if i < len(views) {
			answer.Through = append(answer.Through, Step{
				question.Through[i], decision.Outcome, decision.Missing, step.AsOwner, step.Owner,
			})
		}
	}
	answer.Allowed, answer.AsOwner, answer.Owner = walk.Outcome == access.Allow, walk.AsOwner, walk.Owner
	answer.Explanation = steps[walk.Step].Explanation
	answer.Explanation.Decision = walk.Decision
	answer.nameSteps(objects[walk.Step])
	return answer, nil
}

// nameSteps fills in a.Names, from the steps of the explanation. t is the object that the question
// is about.
func (a *Answer) nameSteps(t *target) {
	a.Names = []string{}
	for _, step := range a.Explanation.Steps {
		a.Names = append(a.Names, nameOfStep(step.Object, t))
	}
}
