package metadata

import (
	"strings"

	"moorage"
)

// Step is one of the changes of a table that a request asks for. Most requests have one; a transaction may
// name a table several times.
type Step struct {
	Requirements []Requirement
	Updates      []Update
}

// ApplySteps returns the document after steps, in order, as one new version, or d itself if they change nothing.
// d is nil if there is no such table; then the first step must be a create (see IsCreate). The requirements of a
// step are checked against what the steps before it made of d.
//
// Errors are those of Check, and of Apply or Build; KindBadRequest for more than 1,000 additions of schemas, partition specs and sort orders.
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
	// All at once, not on top of what is in between: that is no version that anybody could have seen, so neither
	// the logs nor the guards of branches may take it for one.
	return applyStep(d, all, env)
}

// additionsMax is how many schemas, partition specs and sort orders one commit of a table may add; engines add one or two. Each is
// compared with all that are there, so that a request of many megabytes would take hours.
const additionsMax = 1000

// boundAdditions refuses steps that ask for more than additionsMax.
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
			"Cannot add %d schemas, partition specs and sort orders to a table at once, at most %d are allowed", additions, additionsMax)
	}
	return nil
}

func applyStep(d *Document, updates []Update, env Env) (*Document, error) {
	if d == nil {
		return Build(updates, env)
	}
	return d.Apply(updates, env)
}

// IsReplay tells whether updates, which add snapshots and set refs to them and nothing else, have been applied to d
// before: each snapshot is there with the manifest list that updates give it, and each ref is at its
// snapshot or at a descendant. Nobody but who draws a snapshot's id can have written both. No updates at all are a replay.
func (d *Document) IsReplay(updates []Update) bool {
	added := make(map[int64]bool, len(updates))
	for _, u := range updates {
		switch op := u.op.(type) {
		case *addSnapshot:
			if !d.holds(&op.snapshot) {
				return false
			}
			added[op.snapshot.id] = true
		case setRef:
			if !added[op.ref.snapshotID] || !d.isBeyond(&op.ref) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// IsBirth tells whether steps, of which the first asks for a new table, are those that d was made of, whatever became of it since: they
// assign d's uuid and add snapshots, and IsReplay holds for what they say of snapshots and refs. Steps without snapshots are told
// from others by the uuid only, and that is what a client may have chosen; they are not taken for the same.
func (d *Document) IsBirth(steps []Step) bool {
	named := false
	var pointing []Update
	for _, step := range steps {
		for _, u := range step.Updates {
			switch op := u.op.(type) {
			case assignUUID:
				named = strings.EqualFold(op.uuid, d.UUID())
			case *addSnapshot, setRef:
				pointing = append(pointing, u)
			}
		}
	}
	return named && len(pointing) > 0 && d.IsReplay(pointing)
}

// holds tells whether the document has the snapshot, with the same manifest list.
func (d *Document) holds(s *snapshot) bool {
	all := d.arrays[snapshots]
	at, ok := d.snapshotAt.find(all, s.id)
	if !ok || s.manifestList == nil {
		return false
	}
	mine := d.snapshot(all.at(at))
	return mine.manifestList != nil && unquote(mine.manifestList) == unquote(s.manifestList)
}

// isBeyond tells whether the document has the ref, at its snapshot or at a descendant, and otherwise alike.
func (d *Document) isBeyond(want *ref) bool {
	have := d.ref(want.name)
	if have == nil {
		return false
	}
	all := d.arrays[snapshots]
	at := *have
	for range all.len() {
		if at.snapshotID == want.snapshotID {
			return at.sameAs(want)
		}
		i, ok := d.snapshotAt.find(all, at.snapshotID)
		if !ok {
			return false
		}
		parent := d.snapshot(all.at(i)).parent
		if !parent.given {
			return false
		}
		at.snapshotID = parent.value
	}
	return false
}
