package metadata

import "moorage"

// Step is one of a request's changes of a table. Most requests have one; a transaction may name a
// table several times.
type Step struct {
	Requirements []Requirement
	Updates      []Update
}

// ApplySteps returns the document after steps, in order, as one new version, or d itself if they
// change nothing. d is nil if there is no such table; then the first step must be a create (see
// IsCreate). The requirements of a step are checked against the result of the steps before it.
//
// It returns the errors of Check, and of Apply or Build. More than 1,000 additions of schemas,
// partition specs and sort orders are KindBadRequest.
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
	// All updates are applied at once, not on top of versions in between. No client could have seen
	// such a version, so the logs and the guards of branches must not count it.
	return applyStep(d, all, env)
}

// additionsMax is how many schemas, partition specs and sort orders one commit of a table may add.
// Engines add one or two. Each is compared with all existing ones, so a request of many megabytes
// would take hours.
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
