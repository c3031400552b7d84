package metadata

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Chain combines the changes of several requests, each on top of the previous ones, into one
// version of a document. The version has one entry in the metadata log, and the snapshots of all
// requests. It shows the effect of each request, because a chain accepts only requests that do not
// undo each other. A Chain is not safe for concurrent use.
type Chain struct {
	base    *Document
	env     Env
	b       *builder
	joined  [][]Update
	touched map[string]bool // keys touched by requests in the chain; see touchesOf
	// appended holds the refs that requests in the chain have moved only to snapshots that they
	// added themselves.
	appended map[string]bool
}

// Joining reports whether a request has joined a chain.
type Joining int

// The results of Chain.Add.
const (
	Joined  Joining = iota // the changes are in the chain
	Refused                // the changes fail on top of the previous requests; the error explains why
	Apart                  // the changes need a separate version, after this version
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

// Add adds the changes of one request to the chain. They must be shareable; see Shares. Unless the
// result is Joined, the chain does not change. A rebased append may follow another append to its
// branch; see Append.On. It returns the errors of Check and Document.Apply.
func (c *Chain) Add(step Step) (Joining, error) {
	touches, _ := touchesOf(step)
	for name := range touches {
		// The step may be a retry of a request in the chain. It waits for the next version. When
		// that begins, the table shows that the request has been applied.
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
				return Refused, again // not reached: the same updates were applied before
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

// noteAppended records the refs that step moved to snapshots that it added itself.
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

// isRebased reports whether step is a rebased append. A rebased append does not undo another append
// to the same ref.
func isRebased(step Step) bool {
	return slices.ContainsFunc(step.Updates, func(u Update) bool {
		op, ok := u.op.(*addSnapshot)
		return ok && op.rebased
	})
}

// join applies updates to the chain. They must already have been applied successfully to a copy.
func (c *Chain) join(updates []Update) error {
	err := c.b.applyAll(updates)
	c.b.settle()
	return err
}

// Finish returns the new version, or the base itself if nothing changed. It returns the errors of
// Document.Apply for all requests together.
func (c *Chain) Finish() (*Document, error) {
	if !c.b.changed {
		return c.base, nil
	}
	return c.b.finish()
}

// settle separates the changes so far from the next request. After settle, the rules of branches
// and of the snapshot log treat these changes as an earlier version.
func (b *builder) settle() {
	// A snapshot that was current only between two updates of one request gets no entry in the log.
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

// Prefixes of the keys for a request's changes.
const (
	touchProperty = "property "
	touchRef      = "ref "
	touchSnapshot = "snapshot "
	touchStats    = "statistics "
)

// Shares reports whether a request may share a version with others. bytes is an upper bound on the
// size of its changes.
func Shares(steps []Step) (bytes int, ok bool) {
	if len(steps) != 1 {
		return 0, false
	}
	if _, ok := touchesOf(steps[0]); !ok {
		return 0, false
	}
	for _, u := range steps[0].Updates {
		const around, escaped = 256, len(`\u0000`) // per update, and per byte of text, at most
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

// AddedSnapshot returns the id of the last snapshot that steps add, or zero if they add no
// snapshot.
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

// touchesOf returns keys for the changes of step, such as refs and properties. Two requests with a
// common key may undo each other. If step has a change that cannot share a version with another
// request, ok is false.
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
