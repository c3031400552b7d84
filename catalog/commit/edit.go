package commit

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/registry"
)

// RacesMax is how many times an edit may lose the compare-and-set to other nodes. After that it
// makes one try under the pointer's lock.
const RacesMax = 3

// runEdit changes one table or view. It moves the pointer from the version that was read, by
// compare-and-set, until that succeeds or fails for good. Commits that wait behind it may share its
// version. It may itself share the version of a commit in front of it.
func (p *Pipeline) runEdit(ctx context.Context, w *work) (Outcome, error) {
	e := newEdition(ctx, w, p.now())
	mine := p.turnIfFree(e)
	defer func() {
		if mine != nil {
			p.queue.end(mine)
		}
	}()
	resolving, span := trace.Start(ctx, "resolve")
	found, base, err := p.findTarget(resolving, e)
	span.End(err)
	if err != nil {
		return Outcome{}, err
	}
	// An edit that fails against the present version is refused without waiting for a turn.
	if e.replays(base) {
		return Outcome{Version: VersionOf(found, e.Ident, base)}, nil
	}
	if err := p.leases.check(ctx, w); err != nil {
		return Outcome{}, err
	}
	ground := Ground{Found: found, Base: base, Env: envOf(p.now(), found)}
	_, span = trace.Start(ctx, "requirements")
	refusal := e.Edit.Check(base)
	span.End(refusal)
	if refusal != nil && !e.moves(ctx, ground) {
		return Outcome{}, refusal
	}
	size := len(base.Raw())
	if mine == nil {
		if !e.prepare(ctx, ground) && refusal != nil {
			return Outcome{}, refusal
		}
		ground = Ground{}
		base = nil // frees its memory
		_, span := trace.Start(ctx, "turn.wait")
		waiting, stop := context.WithTimeout(ctx, RequestTimeout) // also ends if the client disconnects
		began := p.now()
		mine, err = p.queue.take(waiting, found.Pointer.ID, e)
		stop()
		span.End(err)
		e.waited = p.now().Sub(began)
		if err != nil {
			return Outcome{}, moorage.E("commit.runEdit", e.Ident.String(), moorage.KindUnavailable, err)
		}
		if mine == nil { // another edit carried it out
			return Outcome{Version: e.answer}, e.err
		}
	}
	ctx, cancel := moorage.Detached(ctx, RequestTimeout)
	defer cancel()
	held := p.documents.Room().Enter(e.Ident.Warehouse) // taken during the turn: waiting commits reserve nothing
	defer held.GiveBack()
	if err := held.Take(ctx, documents.HeldBytes(size)); err != nil {
		return Outcome{}, err
	}
	g := &group{
		ledger: p.ledger, queue: p.queue, max: p.commitGroup, now: p.now,
		turn: mine, lead: e, held: held, directory: p.directory,
	}
	defer g.disband()
	if err := p.contend(ctx, g, found, base); err != nil && !e.ended {
		return Outcome{}, err
	}
	return Outcome{Version: e.answer}, e.err
}

// admit returns nil if an attempt may change found, the pointer of t: it is not a mirror, and
// Admits accepts it. The Apply of the attempt requires that the pointer is unchanged, so the
// attempt changes the version that admit was asked about.
func (t Target) admit(ctx context.Context, found *directory.Found) error {
	switch {
	case found.Pointer.Frozen != "":
		return gate.FrozenObject(t.Ident, found.Pointer.Frozen)
	case t.Admits == nil:
		return nil
	}
	return t.Admits(ctx, found)
}

// findFor returns the pointer of target and its document, if the caller of w has the privileges
// target.Asks. It checks the privileges before it reads the file.
func (p *Pipeline) findFor(ctx context.Context, w *work, target Target) (
	found *directory.Found, base documents.Document, err error) {
	err = p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		found, err = p.directory.FindFor(ctx, w.asker(), target.Asks, target.Kind, target.Ident)
		if err == nil {
			err = target.admit(ctx, found)
		}
		if err == nil {
			base, err = p.documents.Current(ctx, found)
		}
		return err
	})
	return found, base, err
}

// turnIfFree begins a turn of e at its pointer if the node knows that pointer and its queue is
// empty. Otherwise it returns nil. If the edit has its turn before it reads, one read of the
// pointer is enough.
func (p *Pipeline) turnIfFree(e *edition) *turn {
	if !e.Pointer.IsZero() {
		return p.queue.takeIfFree(e.Pointer, e)
	}
	known, ok := p.directory.Known(e.Ident)
	if !ok {
		return nil
	}
	return p.queue.takeIfFree(known.Pointer.ID, e)
}

// contend tries to move the pointer until that succeeds or fails for good. base is the document of
// known if it was read in this turn. Otherwise it is nil.
func (p *Pipeline) contend(ctx context.Context, g *group, known *directory.Found, base documents.Document) error {
	defer func() {
		if g.lost != nil { // no later attempt has deleted the lost file
			p.documents.DeleteLost(ctx, *g.lost)
		}
	}()
	return p.ledger.Retry(ctx, moorage.KindCommitFailed, func(attempt int) error {
		switch {
		case attempt == 0 && base != nil: // read in this turn, or newer
			return p.tryOn(ctx, g, known, base)
		case attempt >= RacesMax:
			return p.tryAlone(ctx, g, known)
		}
		return p.tryAgain(ctx, g, known)
	})
}

// tryAlone calls tryAgain under the lock of the pointer, so that no other edit that lost its races
// runs at the same time.
func (p *Pipeline) tryAlone(ctx context.Context, g *group, known *directory.Found) error {
	g.disband()         // its members need not wait for the lock
	p.queue.end(g.turn) // a transaction may have the lock and wait for the turn
	row := g.lead.row
	hold, err := p.lock(ctx, row, row.Contended, Scope{
		Warehouse: g.lead.Ident.Warehouse, Pointers: []registry.ID{known.Pointer.ID},
	})
	if err != nil {
		return err
	}
	defer hold.Release()
	return p.tryAgain(ctx, g, known) // not the hold's context: losing the lock is harmless
}

// tryAgain reads the pointer again and makes one attempt. It returns ledger.ErrRetry if only the
// pointer's version changed during the attempt. known is the pointer as the edit first found it.
func (p *Pipeline) tryAgain(ctx context.Context, g *group, known *directory.Found) error {
	g.gather() // before the read, which must not be older than a member
	reading, stop := g.writing(ctx)
	defer stop()
	found, err := p.findAgain(reading, g.lead, known)
	var base documents.Document
	if err == nil {
		base, err = p.documents.Current(reading, found)
	}
	switch {
	case err != nil && len(g.others) > 0:
		return g.unwritten(ctx, reading, err)
	case err != nil:
		return err
	}
	if g.lost != nil {
		p.documents.DeleteLostBehind(ctx, *g.lost, found, base)
		g.lost = nil
	}
	return p.tryOn(ctx, g, found, base)
}

// findAgain returns the present pointer of the edit, if its caller still has the privileges.
func (p *Pipeline) findAgain(ctx context.Context, e *edition, known *directory.Found) (*directory.Found, error) {
	if !e.pinned {
		found, err := p.directory.FindFor(ctx, e.asker(), e.Asks, e.Kind, e.Ident)
		if err == nil {
			err = e.admit(ctx, found)
		}
		return found, err
	}
	found, err := p.directory.Reread(ctx, known)
	if err == nil && !found.IsIn(e.Ident.Warehouse) {
		err = p.directory.Missing(ctx, e.asker(), e.Ident.Warehouse, e.Kind.NoSuch(e.Ident))
	}
	if err == nil && e.Pointer.IsZero() { // if Pointer is set, the caller is a job of the server
		err = e.authorize(ctx, p.directory, found)
	}
	if err == nil {
		err = e.admit(ctx, found)
	}
	return found, err
}

// tryOn makes one attempt on base, the document to which found points. It returns ledger.ErrRetry
// if only the pointer's version changed during the attempt.
func (p *Pipeline) tryOn(ctx context.Context, g *group, found *directory.Found, base documents.Document) error {
	building, span := trace.Start(ctx, "build")
	planned, err := g.plan(building, found, base)
	span.End(err)
	if err != nil {
		return err
	}
	file, err := p.name(found, base, planned.next)
	if err != nil {
		return err
	}
	if file.Location == "" {
		g.settle(planned, func(e *edition) *Version { return VersionOf(found, e.Ident, base) })
		return nil
	}
	version := func(e *edition) *Version {
		return &Version{
			Ident: e.Ident, Pointer: found.Pointer.ID, Location: file.Location, Document: file.Document,
			Storage: found.Storage, Labels: found.Pointer.Labels,
		}
	}
	change, err := planned.change(ctx, p.ledger, found.Pointer.Identifier())
	if err != nil {
		return err
	}
	beside, err := g.lead.accompanying(ctx, found, base, planned.next)
	if err != nil {
		return err
	}
	if beside.Grants {
		found = found.Granted()
	}
	by := mover{change, planned.works(), planned.actions()}
	to, plan, err := p.planMove(ctx, by, found, base, file)
	if err != nil {
		beside.end(ctx)
		return err
	}
	beside.addTo(plan)
	writing, stop := g.writing(ctx)
	defer stop()
	writing, span = trace.Start(writing, "write")
	written, err := p.documents.WriteWith(writing, file, planned.lists)
	span.End(err)
	mine := &documents.Lost{File: written, Base: found.Pointer.MetadataLocation, Lists: planned.lists}
	if err != nil {
		beside.end(ctx)
		if documents.MayRemain(err) {
			g.lost = mine
		}
		return g.unwritten(ctx, writing, err)
	}
	if written.Location != file.Location { // the first write took too long
		file = written
		if to, plan, err = p.planMove(ctx, by, found, base, file); err != nil {
			g.lost = mine
			beside.end(ctx)
			return err
		}
		beside.addTo(plan)
	}
	g.applying = planned.carried
	etags, lost, err := p.applyPlan(ctx, change, plan, planned.effects(version)...)
	if lost {
		g.lost = mine
		p.documents.CallOff(plan.Trimmed)
		beside.end(ctx)
	}
	if err != nil {
		err = ledger.RetryOnConflict(beside.translate(err))
		if errors.Is(err, ledger.ErrRetry) {
			p.raceLost(found.Pointer.ID)
		}
		return g.failed(ctx, planned, err)
	}
	if len(etags) > 0 {
		p.directory.RememberMove(to, plan.Writes[0], etags[0])
	}
	g.settle(planned, version)
	p.carried(len(planned.carried))
	p.moved(len(planned.lists))
	plan.Trimmed.Table = directory.Latest(found, to)
	p.documents.DeleteTrimmed(ctx, p.now(), []documents.Trimmed{plan.Trimmed})
	return nil
}

// name chooses the location of the file of document, which follows base. found is the pointer to
// base. The location is empty if document is base.
func (p *Pipeline) name(found *directory.Found, base, document documents.Document) (documents.File, error) {
	if document == base {
		return documents.File{Document: base}, nil
	}
	before := documents.File{Location: found.Pointer.MetadataLocation, Document: base}
	next := documents.File{
		Warehouse: found.Warehouse, Pointer: found.Pointer.ID, Document: document, Storage: found.Storage,
	}
	return p.documents.Name(directory.KindOf(found.Pointer), next, before)
}

// mover is a change that moves a pointer.
type mover struct {
	change  registry.Change // without its items
	works   []*work         // the intents that it carries out
	actions []string        // their updates; see Edit.Actions
}

// planMove plans the move of a pointer to next, and the deletion of files after it. next was built
// on base, the current version. The first write of the plan moves the pointer, and the first item
// is the pointer's. to is the pointer after the move, without its record.
func (p *Pipeline) planMove(ctx context.Context, by mover, found *directory.Found, base documents.Document,
	next documents.File) (to *directory.Found, plan *Plan, err error) {
	moved := *found
	to = &moved
	to.Record = registry.Record{} // known after the write
	pointer := &to.Pointer
	pointer.MetadataLocation, pointer.Registration = next.Location, registry.ID{}
	pointer.Last = pointer.Written(registry.StateLive, by.change, SummaryOf(next.Document))
	for _, w := range by.works {
		pointer.ReplayableUntil = w.until(pointer.ReplayableUntil)
	}
	conditions := []registry.Condition{ledger.Unchanged(found.Record)}
	var claimed claims.Claim
	if next.Document.Location() != base.Location() {
		moved, err := p.claimMove(ctx, found, next.Document.Location(), by.works)
		if err != nil {
			return nil, nil, err
		}
		conditions, claimed = append(conditions, moved.Conditions...), moved
		if pointer.Claims, err = claims.With(pointer.Claims, moved.Normalised); err != nil {
			return nil, nil, err
		}
	}
	trimmed, err := p.documents.Announce(pointer, base, next, p.now())
	if err != nil {
		return nil, nil, err
	}
	writes, err := claimed.Writes(ledger.Replace(found.Record, registry.StateLive, pointer))
	item := registry.PointerItem(found.Pointer, *pointer)
	item.Actions = registry.Actions(by.actions)
	return to, &Plan{
		Conditions: conditions, Writes: writes, File: next, Items: []registry.Item{item}, Trimmed: trimmed,
	}, err
}

// claimMove plans the claim of location, which comes from a set-location update, on behalf of
// works. The table or view also keeps the claim of its old location.
func (p *Pipeline) claimMove(ctx context.Context, found *directory.Found, location string, works []*work) (
	claims.Claim, error) {
	path, err := p.directory.Path(ctx, found.Pointer.Warehouse, nil)
	if err != nil {
		return claims.Claim{}, err
	}
	claimant := claims.Claimant{Pointer: found.Pointer.ID}
	for _, w := range works { // only one: an edit that moves a table shares no version
		claimant.MayTake = p.directory.Taking(w.asker())
	}
	planned, err := p.claims.Plan(ctx, path.Warehouse.Roots(), location, claimant)
	return planned, claims.Refusal(err, location)
}
