package catalog

import (
	"context"

	"moorage"
	"moorage/access"
)

// answerThrough answers a question about g behind views. who is the caller in the question, which
// uses an engine. As in a load, views from an untrusted engine do not count.
func (a *asking) answerThrough(ctx context.Context, who *access.Who, question AccessQuestion, g *granted,
	asked access.Privileges) (answer AccessAnswer, err error) {
	if _, err := viewsOf(a.catalog.planner, question.Through); err != nil {
		return answer, err
	}
	views := make([]access.Passed, len(question.Through))
	objects := make([]*granted, 0, len(views)+1)
	for i, name := range question.Through {
		view, err := a.object(ctx, ObjectRef{Kind: access.View, Ident: name})
		switch moorage.KindOf(err) {
		case moorage.KindNoSuchView, moorage.KindNoSuchWarehouse:
			view, err = &granted{ref: ObjectRef{Kind: access.View, Ident: name}}, nil
		}
		if err == nil && view.found != nil {
			views[i].Path = view.object.Path
			views[i].Definer, err = isDefinerView(ctx, a.catalog.planner, view.found)
		}
		if err != nil {
			return answer, err
		}
		objects = append(objects, view)
	}
	objects = append(objects, g)
	walk, steps := who.ExplainThrough(views, g.object.Path, asked)
	for i, step := range steps {
		decision := step.Decision
		if i == walk.Step {
			decision = walk.Decision
		}
		if i < len(views) {
			answer.Through = append(answer.Through, AccessStep{
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

// nameSteps names the steps of a, which lead to g.
func (a *AccessAnswer) nameSteps(g *granted) {
	a.Names = []string{}
	for _, step := range a.Explanation.Steps {
		a.Names = append(a.Names, nameOfStep(step.Object, g))
	}
}
