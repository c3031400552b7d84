package commit

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// CommitGroupDefault is the default of Config.CommitGroup.
	CommitGroupDefault = 64
	// groupBytesMax bounds the bytes that the commits of one version add to the document.
	groupBytesMax = 8 << 20
)

// Shared is an edit that can share one version with other edits of its kind.
type Shared interface {
	Edit
	// Shares reports whether this edit can share a version, and the maximum number of bytes that it
	// adds.
	Shares() (bytes int, ok bool)
	// Begin begins a version on top of ground.
	Begin(ground Ground) Chain
	// Snapshot returns the ID of the snapshot that the edit adds, or zero if it adds none.
	Snapshot() int64
}

// Movable is an edit that can be applied to a newer version than its client has read.
type Movable interface {
	Shared
	// Moves reports whether the edit may be moved on top of ground. It is called only if the edit
	// does not apply to ground unchanged.
	Moves(ctx context.Context, ground Ground) bool
	// Prepare reads the data for the move before the edit has its turn, to keep the turn short. It
	// reports whether the edit can probably be moved on top of ground.
	Prepare(ctx context.Context, ground Ground) bool
}

// Ground is the base of a new version.
type Ground struct {
	Found *directory.Found
	Base  documents.Document // named by Found
	Env   metadata.Env
	Room  *documents.Share // for data read during the move; nil for Movable
}

// Chain builds one version from several edits, each on top of the one before it.
type Chain interface {
	// Add adds an edit to the version. It moves the edit if that is necessary and allowed. If the
	// edit does not join, the chain is unchanged.
	Add(ctx context.Context, edit Edit) (metadata.Joining, error)
	// Finish returns the version, or the base itself if nothing changed. lists are the manifest
	// lists named in the version. They must be written before the version.
	Finish() (version documents.Document, lists []storage.File, err error)
}

// group is a leading edit, whose turn it is, and the edits behind it that it carries out. One file
// and one Apply commit all of them. Each edit is planned on top of the edit before it, and has its
// own key, answer and refusal. A group never waits for members. A lone edit is a group of one.
//
// Every member ends in one of these ways:
//
//	joined the version               ends with it: all members return the same version
//	fails on top of other members    ends with that refusal, once the Apply of the others succeeded
//	fails on the base                ends with that refusal
//	is a repeated request            returns the base, which contains its effect
//	conflicts with another member    keeps its place in the queue
//	its caller lost the privilege    ends with that refusal
//	its key has an outcome           ends with it; the others are planned again without it
//	nothing is certain yet           is planned again, or keeps its place in the queue
//
// If the Apply fails for all, the joined members end with its error. If the file could not be
// written, no Apply was sent, and only the leading edit ends with the error of the write.
type group struct {
	queue  *queue
	max    int // members
	now    func() time.Time
	ledger *ledger.Ledger
	turn   *turn
	lead   *edition
	held   *documents.Share
	// directory checks whether the caller of an edit may still change the table or view.
	directory *directory.Directory
	others    []*turn // taken from the queue, and not ended yet
	alone     bool    // the leading edit takes no more members
	charge    int     // bytes in held for members other than the leading edit
	// applying holds the members whose Apply may be in progress.
	applying []*edition
	// lost is the file of an attempt that lost the compare-and-set, until it is deleted.
	lost *documents.Lost
}

// gather takes from the queue commits that may share the version of the leading edit. These commits
// must be planned on a version that is read after the call of gather. An earlier version may have
// been replaced before they began.
func (g *group) gather() {
	room, size := g.max-1-len(g.others), g.lead.bytes
	for _, other := range g.others {
		size += other.edition.bytes
	}
	if !g.lead.shares || g.alone || room <= 0 {
		return
	}
	taken := g.queue.gather(g.turn, func(e *edition) bool {
		if !e.shares || room == 0 || size+e.bytes > groupBytesMax || e.Kind != g.lead.Kind || e.Verb != g.lead.Verb {
			return false
		}
		room, size = room-1, size+e.bytes
		return true
	})
	g.others = append(g.others, taken...)
	if more := size - g.lead.bytes - g.charge; more > 0 {
		if !g.held.TryTake(documents.HeldBytes(more)) {
			g.disband()
			return
		}
		g.charge += more
	}
}

// errPanicked means that a member of a group panicked while it was planned.
var errPanicked = errors.New("commit: a member of a group panicked")

// groupPlan is the plan of one attempt of a group.
type groupPlan struct {
	next    documents.Document // the base itself if nothing changes
	carried []*edition         // built into next
	refused []*edition         // these fail on top of the edits before them; see edition.err
	lists   []storage.File     // manifest lists named in next, one for each moved edit
}

// plan plans the members of g one on top of another, starting from base. found is the pointer to
// base. It returns only errors of the leading edit.
func (g *group) plan(ctx context.Context, found *directory.Found, base documents.Document) (*groupPlan, error) {
	ctx, stop := g.writing(ctx)
	defer stop()
	ground := Ground{found, base, envOf(g.now(), found), g.held}
	if len(g.others) > 0 || g.lead.moves(ctx, ground) {
		planned, err := g.planTogether(ctx, ground)
		if err == nil {
			return planned, nil
		}
		// The members failed together, but each may succeed alone.
		g.standAlone()
	}
	planned := &groupPlan{next: base}
	switch {
	case g.lead.ended:
		return planned, nil
	case g.lead.replays(base):
		g.lead.end(VersionOf(found, g.lead.Ident, base), nil)
		return planned, nil
	}
	built, err := nextVersion(g.now(), found, base, g.lead.Edit)
	if err != nil {
		return nil, err
	}
	planned.next, planned.carried = built, []*edition{g.lead}
	return planned, nil
}

// planTogether plans several members. An error means that they cannot share a document.
func (g *group) planTogether(ctx context.Context, ground Ground) (planned *groupPlan, err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // when planned alone, its culprit panics again
			planned, err = nil, errPanicked
		}
	}()
	found, base := ground.Found, ground.Base
	chain := g.lead.Edit.(Shared).Begin(ground)
	planned = &groupPlan{}
	name := directory.NameKey(found.Pointer.Identifier())
	join := func(e *edition) (stays bool) {
		// After a rename, an edit that follows the name may be for another table.
		if e != g.lead && (found.Pointer.ID != g.turn.pointer || !e.pinned && directory.NameKey(e.Ident) != name) {
			return false
		}
		if e != g.lead { // the leading edit was checked when found was read
			if err := e.authorize(ctx, g.directory, found); err != nil {
				e.end(nil, err)
				return true
			}
		}
		if e.replays(base) {
			e.end(VersionOf(found, e.Ident, base), nil)
			return true
		}
		joining, err := chain.Add(ctx, e.Edit)
		switch {
		case joining == metadata.Joined:
			planned.carried = append(planned.carried, e)
		case joining == metadata.Refused && len(planned.carried) == 0:
			e.end(nil, err)
		case joining == metadata.Refused:
			e.err = err
			planned.refused = append(planned.refused, e)
		default:
			return false
		}
		return true
	}
	if !g.lead.ended {
		join(g.lead)
	}
	var stay, apart []*turn
	for _, other := range g.others {
		if join(other.edition) {
			stay = append(stay, other)
		} else {
			apart = append(apart, other)
		}
	}
	if planned.next, planned.lists, err = chain.Finish(); err != nil {
		return nil, err
	}
	g.others = stay
	for _, other := range apart {
		g.queue.giveBack(other)
	}
	return planned, nil
}

// change begins the change record of the carried commits. The record has the first commit, and a
// list of all commits if there are several.
func (p *groupPlan) change(ctx context.Context, l *ledger.Ledger, ident moorage.Identifier) (registry.Change, error) {
	first := p.carried[0]
	change, err := first.change(ctx, l, ident)
	change.RequestID, change.TraceID = first.member.RequestID, first.member.TraceID
	for _, e := range p.carried {
		if len(p.carried) > 1 {
			change.Group = append(change.Group, e.member)
		}
	}
	return change, err
}

// works returns the intents of the carried edits.
func (p *groupPlan) works() []*work {
	works := make([]*work, len(p.carried))
	for i, e := range p.carried {
		works[i] = e.work
	}
	return works
}

// actions returns the updates of the carried edits, in their order.
func (p *groupPlan) actions() []string {
	var actions []string
	for _, e := range p.carried {
		actions = append(actions, e.Edit.Actions()...)
	}
	return actions
}

// effects returns the intents of the carried edits with their answers.
func (p *groupPlan) effects(version func(*edition) *Version) []effect {
	effects := make([]effect, len(p.carried))
	for i, e := range p.carried {
		effects[i] = effect{e.work, Outcome{Version: version(e)}}
	}
	return effects
}

// settle ends all members of an attempt that succeeded.
func (g *group) settle(planned *groupPlan, version func(*edition) *Version) {
	g.applying = nil
	for _, e := range planned.carried {
		e.end(version(e), nil)
	}
	for _, e := range planned.refused {
		e.end(nil, e.err)
	}
	g.answer()
}

// writing returns the context for a group's reads and for the write of its file. If the group has
// several members, the context also ends after the duration of a turn.
func (g *group) writing(ctx context.Context) (context.Context, context.CancelFunc) {
	if len(g.others) == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, turnMax)
}

// unwritten handles an attempt whose file could not be written, so that no Apply was sent. It lets
// the other members wait for their own turns. It returns ledger.ErrRetry if the write failed only
// because the turn ended, and the leading edit still has time.
func (g *group) unwritten(ctx, writing context.Context, err error) error {
	if len(g.others) == 0 && !g.lead.ended {
		return err
	}
	g.disband()
	g.alone = true
	if g.lead.ended || writing.Err() != nil && ctx.Err() == nil {
		return ledger.ErrRetry
	}
	return err
}

// failed handles an Apply that failed with err. It ends the members whose result err determines. It
// returns ledger.ErrRetry if the other members must be planned again.
func (g *group) failed(ctx context.Context, planned *groupPlan, err error) error {
	g.applying = nil
	answered, isAnswered := errors.AsType[*ledger.AnsweredError](err)
	kind := moorage.KindOf(err)
	switch {
	case errors.Is(err, ledger.ErrRetry):
		return err
	case len(planned.carried) == 1 && len(g.others) == 0:
		return err
	case isAnswered:
		g.endAnswered(ctx, planned, answered)
		g.answer()
		return ledger.ErrRetry
	case kind == moorage.KindUnavailable || kind == moorage.KindCommitUnknown:
		for _, e := range planned.carried {
			e.end(nil, err)
		}
		g.answer()
		return err
	}
	g.standAlone() // together they may be too large for the store
	return ledger.ErrRetry
}

// endAnswered ends the members whose keys already have outcomes. first is the outcome that the
// Apply found.
func (g *group) endAnswered(ctx context.Context, planned *groupPlan, first *ledger.AnsweredError) {
	var keyed []*edition
	var keys []registry.Key
	for _, e := range planned.carried {
		if e.key != nil {
			keyed, keys = append(keyed, e), append(keys, e.key.Record)
		}
	}
	records, err := g.ledger.Get(ctx, keys...)
	for i, e := range keyed {
		if e.key == first.Key || err == nil && records[i].Exists() {
			e.end(nil, &ledger.AnsweredError{Key: e.key})
		}
	}
}

// answer releases the members that have ended.
func (g *group) answer() {
	g.others = slices.DeleteFunc(g.others, func(other *turn) bool {
		if other.edition.ended {
			g.queue.answered(other)
		}
		return other.edition.ended
	})
}

// disband sends each unfinished member back to wait for its own turn. If the leading edit panicked
// during an Apply, the outcome of the carried edits is unknown.
func (g *group) disband() {
	for _, e := range g.applying {
		e.end(nil, moorage.Errorf(moorage.KindCommitUnknown,
			"It is not known whether the commit happened: the server failed while it was carried out"))
	}
	g.applying = nil
	g.answer()
	for _, other := range g.others {
		g.queue.giveBack(other)
	}
	g.others = nil
}

// standAlone disbands the group. From then on, each member gets its own version.
func (g *group) standAlone() {
	for _, other := range g.others {
		other.edition.shares = false
	}
	g.alone = true
	g.disband()
}
