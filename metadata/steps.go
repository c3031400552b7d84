package metadata

import "moorage"

// Step is one change of a table in a request. Most requests have one step for a table. A
// transaction may have several changes of the same table.
type Step struct {
	Requirements []Requirement
	Updates      []Update
}

// ApplySteps returns the document after steps, in order, as one new version, or d itself if they
// change nothing. If there is no such table, d is nil, and the first step must be a create (see
// IsCreate). ApplySteps checks the requirements of a step against the result of the steps before
// it.
//
// It returns the errors of Check, and of Apply or Build. It returns KindBadRequest if steps add
// more than 1,000 schemas, partition specs and sort orders.
func ApplySteps(d *Document, steps []Step, env Env) (*Document, error) {
	if err := boundAdditions(steps); err != nil {
		return nil, err
	}
	var all []Update
	between := d
	for _, step := range steps {
		if err := Check(between, step.Requirements); err != nil {
			return nil, err
		}
		if len(steps) == 1 {
			return applyStep(d, step.Updates, env)
		}
		all = append(all, step.Updates...)
		var err error
		if between, err = applyStep(between, step.Updates, env); err != nil {
			return nil, err
		}
	}
	// Apply all updates at once, as one version. No client can see an intermediate version. So
	// intermediate versions must not get log entries, and must not count in the checks of branches.
	return applyStep(d, all, env)
}

// additionsMax is the maximum number of schemas, partition specs and sort orders that one commit of
// a table may add. Engines add one or two. Each addition is compared with all existing parts of its
// kind, so a request of many megabytes would take hours.
const additionsMax = 1000

// boundAdditions refuses steps with more than additionsMax additions.
func boundAdditions(steps []Step) error {
	additions := 0
	for _, step := range steps {
		for _, u := range step.Updates {
			switch u.op.(type) {
			case addSchema, addSpec, addSortOrder:
				additions++
			}
		}
	}
	if additions > additionsMax {
		return moorage.Errorf(moorage.KindBadRequest,
			"Cannot add %d schemas, partition specs and sort orders to a table at once, at most %d are allowed",
			additions, additionsMax)
	}
	return nil
}

func applyStep(d *Document, updates []Update, env Env) (*Document, error) {
	if d == nil {
		return Build(updates, env)
	}
	return d.Apply(updates, env)
}
