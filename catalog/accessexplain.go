package catalog

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
)

// AccessStep is the decision about one view of a question.
type AccessStep struct {
	View    moorage.Identifier
	Outcome access.Outcome
	Missing access.Privileges
	// AsOwner means that the privileges of an outer view's owner decided. Owner is that owner.
	AsOwner bool
	Owner   string
}

// Explain explains an access decision. It requires audit for a question about another caller. It
// also requires audit if the question names roles or an engine: the caller's own were found by
// authentication.
func (a Access) Explain(ctx context.Context, question AccessQuestion) (AccessAnswer, error) {
	asking, err := a.ask(ctx, gate.ExplainAccess)
	if err != nil {
		return AccessAnswer{}, moorage.Annotate("catalog.Explain", "", err)
	}
	answer, err := asking.answer(ctx, question, true)
	return answer, moorage.Annotate("catalog.Explain", question.Operation, err)
}

// Check answers at most AccessQuestionsMax questions, in their order. Questions about other callers
// require audit. An object that does not exist, or that the caller must not see, is not allowed.
func (a Access) Check(ctx context.Context, questions []AccessQuestion) ([]AccessAnswer, error) {
	const op = "catalog.Check"
	if len(questions) > AccessQuestionsMax {
		return nil, moorage.Annotate(op, "", moorage.Errorf(moorage.KindTooLarge,
			"%d questions, at most %d are possible at once", len(questions), AccessQuestionsMax))
	}
	asking, err := a.ask(ctx, gate.CheckAccess)
	if err != nil {
		return nil, moorage.Annotate(op, "", err)
	}
	answers := make([]AccessAnswer, len(questions))
	for i, question := range questions {
		answers[i], err = asking.answer(ctx, question, false)
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

// answer answers one question, with reasons if explained.
func (a *asking) answer(ctx context.Context, question AccessQuestion, explained bool) (AccessAnswer, error) {
	asked, err := question.asked()
	if err != nil {
		return AccessAnswer{}, err
	}
	about := *a
	caller, isSelf := question.Caller, false
	if self := a.catalog.caller; caller.IsNobody() ||
		caller.Name == self.Name && len(caller.Roles) == 0 && !caller.IsActing() {
		caller, isSelf = self, true // with its roles, as its credential narrows them
	}
	if !isSelf || len(question.Through) > 0 {
		if err := a.onServer(ctx, gate.IfOther); err != nil {
			return AccessAnswer{}, err
		}
		if access.GranteeOf(caller.Name) != access.IsPrincipal {
			return AccessAnswer{}, moorage.Errorf(moorage.KindIllegalArgument,
				"%q is not the name of a principal: issuer:subject", caller.Name)
		}
		// An auditor may learn about objects that they do not see.
		about.catalog = a.catalog.As(moorage.System("explain"))
	}
	g, err := about.object(ctx, question.Object)
	if err != nil {
		return AccessAnswer{}, err
	}
	if a.who == nil && caller.Name == a.catalog.caller.Name { // a job of the server
		return AccessAnswer{Allowed: true, Names: []string{}}, nil
	}
	who := a.policy.Who(access.Caller{
		Name: caller.Name, Roles: caller.Roles, Only: caller.Only, Acting: len(caller.Via) > 0,
	})
	shown, err := a.catalog.planner.guard.MarkOwned(ctx, caller, g.object.Path)
	if err != nil {
		return AccessAnswer{}, err
	}
	if shown != nil {
		g.object.Path = shown
	}
	asked = question.orInstead(who, g.object.Path, asked)
	ignored := len(question.Through) > 0
	if path := g.object.Path; ignored && len(path) > 0 && who.Believed(path[len(path)-1], caller.Via, nil) {
		return about.answerThrough(ctx, who, question, g, asked)
	}
	if !explained {
		return AccessAnswer{Allowed: who.Decide(g.object.Path, asked).Outcome == access.Allow}, nil
	}
	answer := AccessAnswer{Explanation: who.Explain(g.object.Path, asked), Ignored: ignored}
	answer.Allowed = answer.Explanation.Decision.Outcome == access.Allow
	answer.nameSteps(g)
	return answer, nil
}

// nameOfStep returns the name of an object on the path to g.
func nameOfStep(object access.Object, g *granted) string {
	ident := g.ref.Ident
	if object.ID == access.ServerID {
		return "server"
	}
	for i, each := range g.object.Path {
		if each.ID != object.ID {
			continue
		}
		switch up := len(g.object.Path) - 1 - i; {
		case up == 0:
			return ident.Warehouse
		case object.Kind == access.Namespace:
			return ident.Namespace[:up].String()
		}
	}
	return ident.String()
}

// orInstead returns the alternative to asked for the operation, if the caller has it on path and
// lacks asked. Otherwise it returns asked.
func (q AccessQuestion) orInstead(who *access.Who, path []access.Object,
	asked access.Privileges) access.Privileges {
	row, _ := gate.Verb(q.Operation).Row()
	other := row.InsteadOf(gate.OfObject)
	if other == access.See || who.Decide(path, asked).Outcome == access.Allow ||
		who.Decide(path, other).Outcome != access.Allow {
		return asked
	}
	return other
}

// asked returns the privileges that q asks for.
func (q AccessQuestion) asked() (asked access.Privileges, err error) {
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
