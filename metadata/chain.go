package metadata

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Chain makes one version of a document of what several requests ask for, each on top of those
// before it. The version has one entry in the metadata log, and the snapshots of all. What each
// request did shows in it: a chain takes only requests that do not undo one another. A Chain
// belongs to one goroutine.
type Chain struct {
	base    *Document
	env     Env
	b       *builder
	joined  [][]Update
	touched map[string]bool // by those that joined
	// appended has the touched refs that those who joined only moved to snapshots that they added.
	appended map[string]bool
}

// Joining is how Chain.Add ended.
type Joining int

// The ways in which Chain.Add ends.
const (
	Joined  Joining = iota // the changes are in the chain
	Refused                // they fail on top of those before; the error says why
	Apart                  // they need a version of their own, after this one
)

// Chain begins a chain of versions on top of d.
func (d *Document) Chain(env Env) *Chain {
	c := &Chain{base: d, env: env, touched: make(map[string]bool), appended: make(map[string]bool)}
	c.restart()
	return c
}

// restart begins the next version, without any changes.
func (c *Chain) restart() {
	base := c.base
	if base.canonical != nil {
		base = base.canonical
	}
	c.b = newBuilder(base, c.env)
}

// Add adds the changes of one request to the chain. They must be shareable; see Shares. If they do
// not join, the chain is as it was. A rebased append may follow another append to its branch; see
// Append.On. The errors are those of Check and Document.Apply.
func (c *Chain) Add(step Step) (Joining, error) {
	touches, _ := touchesOf(step)
	for name := range touches {
		// The same request again. Once the version is there, it shows that the request happened.
		if strings.HasPrefix(name, touchSnapshot) && c.touched[name] {
			return Apart, nil
		}
	}
	if err := Check(c.b.next, step.Requirements); err != nil {
		return Refused, err
	}
	rebased := isRebased(step)
	for name := range touches {
		if c.touched[name] && !(rebased && c.appended[name]) {
			return Apart, nil
		}
	}
	if err := c.b.applyAll(step.Updates); err != nil {
		c.restart()
		for _, updates := range c.joined {
			if again := c.join(updates); again != nil {
				return Refused, again // not reached: they were applied before
			}
		}
		return Refused, err
	}
	c.b.settle()
	c.joined = append(c.joined, step.Updates)
	maps.Copy(c.touched, touches)
	c.noteAppended(step)
	return Joined, nil
}

// noteAppended notes which refs step moved to snapshots that it added.
func (c *Chain) noteAppended(step Step) {
	added := make(map[int64]bool, 1)
	for _, u := range step.Updates {
		switch op := u.op.(type) {
		case *addSnapshot:
			added[op.snapshot.id] = true
		case setRef:
			c.appended[touchRef+op.ref.name] = added[op.ref.snapshotID]
		}
	}
}

// isRebased reports whether step is that of an append that was put on top of another snapshot. It
// undoes no other append to the same ref.
func isRebased(step Step) bool {
	return slices.ContainsFunc(step.Updates, func(u Update) bool {
		op, ok := u.op.(*addSnapshot)
		return ok && op.rebased
	})
}

// join applies updates that were applied before.
func (c *Chain) join(updates []Update) error {
	err := c.b.applyAll(updates)
	c.b.settle()
	return err
}

// Finish returns the version, or the base itself if nothing changed. The errors are those of
// Document.Apply, about all requests together.
func (c *Chain) Finish() (*Document, error) {
	if !c.b.changed {
		return c.base, nil
	}
	return c.b.finish()
}

// settle makes what was changed so far a version of its own as far as branches and the snapshot log
// are concerned: what comes after is another request.
func (b *builder) settle() {
	// A snapshot that was current only within one request leaves no entry in the log.
	b.logged = slices.DeleteFunc(b.logged, func(e snapshotLogEntry) bool {
		return e.snapshotID != b.currentSnapshotID && slices.Contains(b.newMains, e.snapshotID)
	})
	b.newMains = nil
	if len(b.addedSnapshots) > len(b.settled) {
		b.settled = make(map[int64]bool, len(b.addedSnapshots))
		for id := range b.addedSnapshots {
			b.settled[id] = true
		}
	}
}

// Prefixes of what requests touch.
const (
	touchProperty = "property "
	touchRef      = "ref "
	touchSnapshot = "snapshot "
	touchStats    = "statistics "
)

// Shares reports whether a request may share a version with others, and how many bytes its changes
// add at most.
func Shares(steps []Step) (bytes int, ok bool) {
	if len(steps) != 1 {
		return 0, false
	}
	if _, ok := touchesOf(steps[0]); !ok {
		return 0, false
	}
	for _, u := range steps[0].Updates {
		const around, escaped = 256, len(`\u0000`) // what goes around a value, and one byte of text at most
		bytes += around
		switch op := u.op.(type) {
		case setProperties:
			for _, p := range op.updates {
				bytes += escaped * (len(p.name) + len(p.value))
			}
		case *addSnapshot:
			bytes += len(op.raw)
		case setRef:
			bytes += escaped * len(op.ref.name)
		case setStatistics:
			bytes += len(op.raw)
		}
	}
	return bytes, true
}

// AddedSnapshot returns the id of the last snapshot that steps add; zero if they add none.
func AddedSnapshot(steps []Step) (id int64) {
	for _, step := range steps {
		for _, u := range step.Updates {
			if op, ok := u.op.(*addSnapshot); ok {
				id = op.snapshot.id
			}
		}
	}
	return id
}

// touchesOf returns what step changes: two requests that touch the same may undo one another. ok is
// false if step changes what no other request may share a version with.
func touchesOf(step Step) (touches map[string]bool, ok bool) {
	for _, r := range step.Requirements {
		if r.kind == assertCreate {
			return nil, false
		}
	}
	touches = make(map[string]bool, len(step.Updates))
	for _, u := range step.Updates {
		switch op := u.op.(type) {
		case setProperties:
			for _, p := range op.updates {
				if isActedOn(p.name) {
					return nil, false
				}
				touches[touchProperty+p.name] = true
			}
		case removeProperties:
			for _, name := range op.removals {
				if isActedOn(name) {
					return nil, false
				}
				touches[touchProperty+name] = true
			}
		case *addSnapshot:
			touches[touchSnapshot+strconv.FormatInt(op.snapshot.id, 10)] = true
		case setRef:
			touches[touchRef+op.ref.name] = true
		case setStatistics:
			touches[touchStats+op.array.key()+strconv.FormatInt(op.snapshotID, 10)] = true
		default:
			return nil, false
		}
	}
	return touches, true
}

// isActedOn reports whether the catalog itself acts on a property when it makes a version.
func isActedOn(property string) bool {
	return strings.HasPrefix(property, "write.metadata.") || strings.HasPrefix(property, ownPrefix) ||
		property == propFormatVersion || property == propEncryptionKeyID
}
