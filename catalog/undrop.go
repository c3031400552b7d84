package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// UndropRequest is a request to restore a dropped table or view.
type UndropRequest struct {
	DroppedName
	// As is the new namespace and name, in the same warehouse. If nil, the object gets its last
	// name back.
	As *moorage.Identifier
	// If Replace is true, the live table or view with the name is dropped without a purge. It must
	// be of the same kind.
	Replace bool
	// If MakeNamespace is true, Undrop creates the namespace if it is gone.
	MakeNamespace bool
}

// Undropped is a restored table or view.
type Undropped struct {
	Kind             access.Kind
	Ident            moorage.Identifier
	ID               registry.ID
	UUID             string
	MetadataLocation string
	Summary          *registry.Summary
	// Warnings lists in sentences what was not restored. It is empty in the answer to a repeated
	// request.
	Warnings []string
}

// Undrop restores a dropped table or view, with its files, grants, labels and maintenance, in one
// Apply. It cancels a waiting purge. Files of maintenance jobs that the purge would have deleted
// stay with the jobs. If the object is already live, Undrop changes nothing.
//
// Errors: KindNotFound if there is no such object, if it has ended, or if its metadata file or its
// warehouse is gone; KindNoSuchNamespace; KindForbidden; KindUnavailable; KindCommitUnknown. The
// error is KindAlreadyExists if a live object has the name, if another table has the location, or
// if a purge has begun. When Undrop returns without an error, the result is durable.
func (d Dropped) Undrop(ctx context.Context, request UndropRequest) (Undropped, error) {
	undropped, err := d.undrop(ctx, request)
	return undropped, moorage.Annotate("catalog.Undrop", request.Ident.String(), err)
}

func (d Dropped) undrop(ctx context.Context, request UndropRequest) (undropped Undropped, err error) {
	c := d.catalog
	by := c.asker(gate.Undrop)
	found, target, err := c.lookAtUndrop(ctx, by, &request)
	var outcome commit.Outcome
	if err != nil { // an earlier attempt with the same key decides the outcome
		outcome, err = c.submit(ctx, refusal(gate.Undrop, request.Ident, err))
	} else {
		outcome, err = c.submit(ctx, commit.Intent{
			Verb: gate.Undrop, On: []moorage.Identifier{target},
			Look: func(context.Context) (commit.Scope, error) {
				return commit.Scope{
					Warehouse: target.Warehouse, Names: []moorage.Identifier{target}, Pointers: found,
				}, nil
			},
			Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
				u, err := c.readUndrop(ctx, by, request)
				if err != nil {
					return nil, err
				}
				if u.live != nil {
					return &commit.Plan{Empty: true, Answer: commit.Outcome{Version: u.live}}, nil
				}
				undropped.Warnings = u.warnings
				return planRegistration(attempt, u.registration)
			},
		})
	}
	if err != nil {
		return Undropped{}, err
	}
	if outcome.IsStored {
		undropped.Warnings = nil
	}
	version := outcome.Version
	if version == nil { // the key was used by a request without an answer
		return Undropped{}, moorage.Errorf(moorage.KindCommitUnknown, "The answer to the first request is not known")
	}
	undropped.Kind, undropped.Ident, undropped.ID = access.Table, version.Ident, version.Pointer
	undropped.UUID, undropped.MetadataLocation = version.Document.UUID(), version.Location
	undropped.Summary = commit.SummaryOf(version.Document)
	if _, isView := version.Document.(*metadata.ViewDocument); isView {
		undropped.Kind = access.View
	}
	return undropped, nil
}

// lookAtUndrop finds the object of an undrop, and sets its ID and last name in request. It returns
// the pointers to lock, and the object's new name.
func (p *parts) lookAtUndrop(ctx context.Context, by directory.Asker, request *UndropRequest) (
	found []registry.ID, target moorage.Identifier, err error) {
	if request.As != nil {
		if err := request.As.Validate(); err != nil {
			return nil, target, err
		}
	}
	if request.DroppedName, err = p.resolveDropped(ctx, by, request.DroppedName); err != nil {
		return nil, target, err
	}
	asked := by.Verb.Needs(gate.OfDropped, gate.Always)
	d, err := p.droppedByID(ctx, by, asked, request.DroppedName)
	if err != nil {
		return nil, target, err
	}
	request.Ident = d.pointer.Identifier()
	target = request.target()
	found = []registry.ID{d.pointer.ID}
	if request.Replace {
		if occupant, err := p.directory.Find(ctx, kindOf(d.pointer).Kind, target); err == nil {
			found = append(found, occupant.Pointer.ID)
		}
	}
	return found, target, nil
}

// target returns the name that r gives to the object. The object's last name must already be in r.
func (r UndropRequest) target() moorage.Identifier {
	target := r.Ident
	if r.As != nil {
		target.Namespace, target.Name = r.As.Namespace, r.As.Name
	}
	return target
}

// undropping is the undrop of one table or view, with the records that were read for it.
type undropping struct {
	*registration
	live     *commit.Version // set if the object is already live, and nothing is left to do
	warnings []string
}

// readUndrop reads the records that an undrop depends on, and then checks that the metadata file
// still exists. So no purge can delete the file unnoticed: if a purge ended earlier, the file is
// already gone, and if a purge begins later, it changes the pointer.
func (p *parts) readUndrop(ctx context.Context, by directory.Asker, request UndropRequest) (u undropping, err error) {
	asked := by.Verb.Needs(gate.OfDropped, gate.Always)
	d, err := p.droppedByID(ctx, by, asked, request.DroppedName)
	if err != nil {
		return u, err
	}
	pointer, target := d.pointer, request.target()
	switch d.record.State {
	case registry.StateLive:
		u.live, err = p.liveVersion(ctx, d, request)
		return u, err
	case registry.StatePurging:
		return u, p.purgingError(ctx, d)
	}
	r := &registration{
		kind: kindOf(pointer), ident: target, location: pointer.MetadataLocation, undrops: true,
		undropWindow: p.undropWindow, holder: d.record, pointer: pointer, unchanged: ledger.Unchanged(d.record),
	}
	u.registration = r
	path, err := p.readUndropPath(ctx, by, request, d, &u)
	if err != nil {
		return u, err
	}
	if err := p.readUndropName(ctx, by, request, path, r); err != nil {
		return u, err
	}
	records, err := p.ledger.Get(ctx, registry.UUIDKey(pointer.TableUUID))
	if err != nil {
		return u, err
	}
	r.claim = records[0]
	if r.document, err = p.undroppedDocument(ctx, d, path); err != nil {
		return u, err
	}
	if err := p.readUndropClaims(ctx, by, path, d, r); err != nil {
		return u, err
	}
	above := path.Above()
	if r.made != nil {
		above = r.made.above(above)
	}
	if pointer.NamespaceID != r.parent.id {
		if r.policy, err = p.moveGrants(ctx, pointer, above); err != nil {
			return u, err
		}
		if r.makers, err = p.guard.MakerRecords(ctx, pointer.Creator, above); err != nil {
			return u, err
		}
	}
	return u, nil
}

// liveVersion returns the version of an object that is already live, because another undrop or a
// register has restored it.
func (p *parts) liveVersion(ctx context.Context, d droppedPointer, request UndropRequest) (*commit.Version, error) {
	if is := d.pointer.Identifier(); request.As != nil && !is.Equal(request.target()) {
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"%s is not dropped, or it came back as %s: rename it", request.target(), is)
	}
	found, err := p.directory.FindPointer(ctx, d.pointer.ID)
	if moorage.KindOf(err) == moorage.KindNoSuchTable && err != nil {
		return nil, ledger.ErrRetry // it has been dropped again
	}
	if err != nil {
		return nil, err
	}
	document, err := p.documents.Current(ctx, found)
	if err != nil {
		return nil, err
	}
	return commit.VersionOf(found, found.Pointer.Identifier(), document), nil
}

// purgingError returns the error for an object whose purge has begun.
func (p *parts) purgingError(ctx context.Context, d droppedPointer) error {
	since := d.pointer.Since.UTC().Format(time.RFC3339)
	if d.pointer.Task.IsZero() {
		return moorage.Errorf(moorage.KindAlreadyExists, "%s cannot come back: its purge had begun when it was called "+
			"off at %s, so some of its files may be gone", d.pointer.Identifier(), since)
	}
	records, err := p.ledger.Get(ctx, d.pointer.DroppedKey(d.record.State))
	if err != nil {
		return err
	}
	by := ""
	if dropped, err := registry.Decode[registry.Dropped](records[0]); err == nil && dropped.By != "" {
		by = "; " + moorage.NameOf(dropped.By) + " dropped it"
	}
	if began := d.pointer.LastIn(d.record.State).By; began != "" && !gate.IsSystemName(began) {
		by = " for " + moorage.NameOf(began) + by
	}
	return moorage.Errorf(moorage.KindAlreadyExists, "%s cannot come back: its purge began at %s%s",
		d.pointer.Identifier(), since, by)
}

// readUndropPath reads the object's new namespace. If the namespace is gone and the request creates
// it, the result is the path to its nearest existing parent.
func (p *parts) readUndropPath(ctx context.Context, by directory.Asker, request UndropRequest, d droppedPointer,
	u *undropping) (*directory.Path, error) {
	r := u.registration
	path, err := p.directory.LivePath(ctx, r.ident.Warehouse, r.ident.Namespace)
	isGone := moorage.KindOf(err) == moorage.KindNoSuchNamespace && err != nil
	missing := moorage.Errorf(moorage.KindNoSuchNamespace, "Namespace does not exist: %s. The request can make it "+
		"(make-namespace), or give the %s another name (as)", r.ident.Namespace, nounOf(d.pointer))
	switch {
	case moorage.KindOf(err) == moorage.KindNoSuchWarehouse && err != nil,
		(err == nil || isGone) && !isOfWarehouse(d.pointer, path):
		return nil, moorage.Errorf(moorage.KindNotFound, "%s cannot come back: its warehouse %s is gone, or was made "+
			"again. If its files are still there: moorage register %s %s", d.pointer.Identifier(), r.ident.Warehouse,
			moorage.ShellWord(r.ident.PersonName()), moorage.ShellWord(r.location))
	case isGone && request.MakeNamespace:
		return path, p.readUndropNamespace(ctx, by, path, d, u)
	case isGone:
		return nil, p.directory.Missing(ctx, by, r.ident.Warehouse, missing)
	case err != nil:
		return nil, err
	}
	err = p.mayUndropInto(ctx, by, path, d, r.ident)
	switch {
	case moorage.KindOf(err) == moorage.KindNoSuchNamespace && moorage.IsHidden(err):
		return nil, gate.Hide(missing)
	case err != nil:
		return nil, err
	}
	r.parent = parentAt(path)
	return path, nil
}

// isOfWarehouse reports whether a dropped pointer belongs to the warehouse of path, rather than to
// an earlier one of that name.
func isOfWarehouse(pointer registry.Pointer, path *directory.Path) bool {
	return pointer.WarehouseID.IsZero() || pointer.WarehouseID == path.Warehouse.ID
}

// mayUndropInto returns nil if the caller may restore the dropped object as ident, and create
// objects in the namespace of path. path is the existing part of the path to the namespace of
// ident. A namespace that was recreated, or is created by the request, is not the object's former
// namespace, despite the same name: it has its own owner and grants.
func (p *parts) mayUndropInto(ctx context.Context, by directory.Asker, path *directory.Path, d droppedPointer,
	ident moorage.Identifier) error {
	if path.Depth() < len(ident.Namespace) || path.ID() != d.pointer.NamespaceID {
		asked := by.Verb.Needs(gate.OfDropped, gate.IfMoving)
		if err := p.directory.May(ctx, by, asked, d.found(), d.pointer.Identifier()); err != nil {
			return err
		}
	}
	return p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfContainer, gate.Always), path, ident)
}

// readUndropNamespace plans the new namespace of an object whose namespace is gone. path is the
// existing part of the namespace's path. If the log still has the namespace's former properties,
// and the caller was allowed to describe it, the new namespace gets them.
func (p *parts) readUndropNamespace(ctx context.Context, by directory.Asker, path *directory.Path, d droppedPointer,
	u *undropping) error {
	r := u.registration
	ns := moorage.Identifier{Warehouse: r.ident.Warehouse, Namespace: r.ident.Namespace}
	if err := p.mayUndropInto(ctx, by, path, d, ns); err != nil {
		return err
	}
	var levels []map[string]string
	for depth := path.Depth() + 1; depth <= len(ns.Namespace); depth++ {
		properties, known, err := p.formerProperties(ctx, by, d, path.Warehouse.ID, ns.Namespace[:depth])
		if err != nil {
			return err
		}
		lost := "its owner and its grants are lost"
		if !known {
			lost = "its owner, its grants and its properties are lost"
		}
		u.warnings = append(u.warnings, fmt.Sprintf("The namespace %s was made again: %s", ns.Namespace[:depth], lost))
		levels = append(levels, properties)
		if err := p.mayMakeNamespace(ctx, by, path, ns, properties); err != nil {
			return err
		}
	}
	last := len(levels) - 1
	made, err := p.readNewNamespace(ctx, by, ns, ns.Namespace[:path.Depth()], levels[last])
	if err != nil {
		return err
	}
	if made.creator == r.pointer.Creator { // the records of the object's creator include these
		made.makers = gate.MakerRecords{}
	}
	made.parents = levels[:last]
	r.made = &made
	r.parent = parentAt(path)
	r.parent.id = made.ids[last]
	return nil
}

// formerProperties returns the last properties of the dropped object's former namespace ns. known
// is false if the object was not in a namespace of that name, if the log no longer has the
// properties, or if the caller may not describe the namespace.
func (p *parts) formerProperties(ctx context.Context, by directory.Asker, d droppedPointer, warehouse registry.ID,
	ns moorage.Namespace) (properties map[string]string, known bool, err error) {
	ended, found, err := p.formerNamespace(ctx, d, warehouse, ns)
	if err != nil || !found || ended.Change.IsZero() {
		return nil, false, err
	}
	former := &directory.Found{Pointer: registry.Pointer{ID: ended.ID}}
	if former.Above, err = p.aboveEnded(ctx, ended); err != nil {
		return nil, false, err
	}
	err = p.directory.May(ctx, by, seesDropped(), former, ended.Ident)
	if err != nil && (moorage.KindOf(err) == moorage.KindForbidden || moorage.IsHidden(err)) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	records, err := p.ledger.Get(ctx, registry.ChangeKey(ended.Change))
	if err != nil || !records[0].Exists() {
		return nil, false, err
	}
	change, err := registry.DecodeChange(records[0])
	if err != nil {
		return nil, false, nil // the log is damaged; moorage doctor --deep reports it
	}
	for _, version := range change.Versions {
		if version.Key.Table != registry.TableNamespace || !version.New.IsZero() {
			continue
		}
		was, ok, err := version.Earlier(nil)
		var value registry.Namespace
		if err != nil || !ok || json.Unmarshal(was, &value) != nil {
			return nil, false, nil
		}
		return value.Properties, true, nil
	}
	return nil, false, nil
}

// formerNamespace returns the record of the dropped object's former namespace ns, which has ended.
// The object's direct namespace is identified by its ID. A higher namespace is assumed to be the
// first of its name that ended after the drop.
func (p *parts) formerNamespace(ctx context.Context, d droppedPointer, warehouse registry.ID, ns moorage.Namespace) (
	ended registry.Dropped, found bool, err error) {
	depth, isAbove := len(ns), len(ns) <= len(d.pointer.Namespace)
	if !isAbove || !ns.Equal(d.pointer.Namespace[:depth]) {
		return ended, false, nil
	}
	isDirect, dropped := depth == len(d.pointer.Namespace), d.pointer.DroppedAt(d.record.State)
	looked := 0
	prefix := registry.DroppedNamePrefix(warehouse, ns[:depth-1], ns[depth-1])
	err = p.ledger.Scan(ctx, registry.TableDropped, prefix, "", func(record registry.Record) (bool, error) {
		looked++
		value, err := registry.Decode[registry.Dropped](record)
		switch {
		case err != nil || value.Kind != registry.ItemNamespace: // losing a damaged record costs only a hint
			return looked < namesakesMax, nil
		case value.Ended.Before(dropped): // and so are all later ones
			return false, nil
		case !isDirect || value.ID == d.pointer.NamespaceID:
			ended, found = value, true
		}
		return looked < namesakesMax && !(isDirect && found), nil
	})
	return ended, found, err
}

// above returns the containers of an object in n, the new namespace. existing lists the containers
// that already exist.
func (n newNamespace) above(existing []access.Object) []access.Object {
	var made []access.Object
	for _, id := range slices.Backward(n.ids) {
		made = append(made, access.Object{ID: access.ID(id), Kind: access.Namespace, Creator: n.creator})
	}
	return append(made, existing...)
}

// readUndropName reads the record of the object's new name, and the live object that has this name
// now.
func (p *parts) readUndropName(ctx context.Context, by directory.Asker, request UndropRequest, path *directory.Path,
	r *registration) (err error) {
	if r.made != nil {
		return nil
	}
	if r.entry, err = p.directory.ReadEntry(ctx, path, r.ident.Name); err != nil || !r.entry.Record.Exists() {
		return err
	}
	if r.entry.Value.Pointer == r.pointer.ID {
		return ledger.ErrRetry // another request has restored it since its pointer was read
	}
	records, err := p.ledger.Get(ctx, registry.PointerKey(r.entry.Value.Pointer))
	if err != nil {
		return err
	}
	if r.occupant = records[0]; !r.occupant.Exists() {
		return ledger.ErrRetry
	}
	occupant, err := ledger.Decode[registry.Pointer](r.occupant)
	if err != nil {
		return err
	}
	if !request.Replace || kindOf(occupant) != r.kind {
		return p.occupiedError(ctx, by, path, r, occupant)
	}
	asked := by.Verb.Needs(gate.OfObject, gate.IfReplacing)
	if err := p.mayTake(ctx, by, asked, r.occupant, path.Above(), r.ident); err != nil {
		return err
	}
	if err := r.checkOccupant(path); err != nil {
		return err
	}
	r.who.Replaces = occupant.ID
	if r.now, err = p.ledger.Time(ctx); err == nil && r.kind == tableKind {
		r.who.ReplacedUntil = vending.ReachableUntil(r.now, path.Warehouse.Delegation, path.Storage)
	}
	return err
}

// occupiedError returns the error for a name that is already taken by a live object. If the caller
// may describe that object, the error includes the principal that gave it the name.
func (p *parts) occupiedError(ctx context.Context, by directory.Asker, path *directory.Path, r *registration,
	occupant registry.Pointer) error {
	text := fmt.Sprintf("A live %s is called %s", nounOf(occupant), r.ident)
	found := &directory.Found{Pointer: occupant, Above: path.Above()}
	if p.directory.May(ctx, by, seesDropped(), found, r.ident) == nil {
		if made, err := p.namedBy(ctx, occupant); err != nil {
			return err
		} else if !made.ID.IsZero() {
			since, by := made.Time.UTC().Format(time.RFC3339), moorage.NameOf(made.Principal)
			text += fmt.Sprintf(", since %s by %s", since, by)
		}
	}
	advice := "Use another name (as), or replace that one (replace)"
	if kindOf(occupant) != r.kind {
		advice = "Use another name (as)"
	}
	return moorage.Errorf(moorage.KindAlreadyExists, "%s. %s", text, advice)
}

// namedByMax bounds how many of an object's changes are read to find the one that named it.
const namedByMax = 64

// namedBy returns the change that gave a live object its present name. It returns zero if the log
// does not have that change, or if more than namedByMax changes have followed.
func (p *parts) namedBy(ctx context.Context, pointer registry.Pointer) (none registry.Change, err error) {
	key, id := registry.PointerKey(pointer.ID), pointer.LastIn(registry.StateLive).Change
	for range namedByMax {
		if id.IsZero() {
			return none, nil
		}
		records, err := p.ledger.Get(ctx, registry.ChangeKey(id))
		if err != nil || !records[0].Exists() {
			return none, err
		}
		change, err := registry.DecodeChange(records[0])
		if err != nil {
			return none, nil
		}
		at := slices.IndexFunc(change.Versions, func(v registry.Version) bool { return v.Key == key })
		if at < 0 {
			return none, nil
		}
		before := change.Versions[at].Before
		if before == nil || before.State != registry.StateLive {
			return change, nil
		}
		var was struct {
			Name        string        `json:"name"`
			NamespaceID registry.ID   `json:"namespace-id"`
			Last        registry.Last `json:"last"`
		}
		if before.Cut || json.Unmarshal(before.Set, &was) != nil {
			return none, nil
		}
		if was.Name != "" || !was.NamespaceID.IsZero() {
			return change, nil
		}
		id = was.Last.Change
	}
	return none, nil
}

// undroppedDocument returns the document of a dropped object, and checks that its file exists.
func (p *parts) undroppedDocument(ctx context.Context, d droppedPointer, path *directory.Path) (document, error) {
	found, err := p.documents.Of(ctx, documents.RefOf(d.pointer, path.Storage))
	if err == nil {
		_, err = path.Storage.Stat(ctx, d.pointer.MetadataLocation)
		if err != nil {
			err = documents.FileError(d.pointer.MetadataLocation, err)
		}
	}
	switch {
	case errors.Is(err, storage.ErrOutside):
		return nil, moorage.Errorf(moorage.KindForbidden, "Warehouse %s does not allow the location of %s: %s. "+
			"Allow it with: moorage warehouse change %s --allow-location", d.pointer.Warehouse, d.pointer.Identifier(),
			d.pointer.MetadataLocation, moorage.ShellWord(d.pointer.Warehouse))
	case moorage.KindOf(err) == moorage.KindNotFound && err != nil:
		p.documents.Forget(d.pointer.ID, documents.FileVersion(d.pointer.MetadataLocation, d.pointer.Registration))
		return nil, moorage.Errorf(moorage.KindNotFound, "%s cannot come back, and nothing was changed: its metadata "+
			"file is gone, so an engine has deleted its files: %s", d.pointer.Identifier(), d.pointer.MetadataLocation)
	}
	return found, err
}

// readUndropClaims plans that the object keeps its claims. If another table or view has claimed one
// of its locations, the object cannot be restored, because two tables never share files.
func (p *parts) readUndropClaims(ctx context.Context, by directory.Asker, path *directory.Path, d droppedPointer,
	r *registration) error {
	holds := func(context.Context, registry.Pointer) error { return new(claims.TakenError) }
	who := claims.Claimant{
		Pointer: d.pointer.ID, TableUUID: d.pointer.TableUUID, MayTake: holds,
		MayResettle: p.resettling(by, path, r.ident, r.location),
	}
	err := p.claims.PlanKept(ctx, &r.claimed, path.Warehouse.Roots(), d.pointer.Claims, who)
	taken, ok := errors.AsType[*claims.TakenError](err)
	if !ok {
		return err
	}
	holder, err := p.holderOf(ctx, by, d.pointer.ID, append([]string{taken.At}, d.pointer.Claims...))
	if err != nil {
		return err
	}
	return moorage.Errorf(moorage.KindAlreadyExists, "%s cannot come back: %s has its location, and two tables never "+
		"share files. Its rows are in the metadata file %s", d.pointer.Identifier(), holder, d.pointer.MetadataLocation)
}

// holderOf describes the table or view that holds the first location not held by own, if the caller
// may know about it.
func (p *parts) holderOf(ctx context.Context, by directory.Asker, own registry.ID, locations []string) (string, error) {
	const another = "another table or view"
	var keys []registry.Key
	for _, location := range locations {
		if location != "" {
			keys = append(keys, registry.LocationKey(location))
		}
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return "", err
	}
	var id registry.ID
	for _, record := range records {
		claim, err := registry.Decode[registry.LocationClaim](record)
		if err == nil && record.State == registry.StateOwner && claim.Pointer != own {
			id = claim.Pointer
			break
		}
	}
	if records, err = p.ledger.Get(ctx, registry.PointerKey(id)); err != nil || !records[0].Exists() {
		return another, err
	}
	holder, err := p.droppedOf(ctx, records[0])
	if err != nil {
		return "", err
	}
	if p.directory.May(ctx, by, seesDropped(), holder.found(), holder.pointer.Identifier()) != nil {
		return another, nil
	}
	text := nounOf(holder.pointer) + " " + holder.pointer.Identifier().String()
	if holder.record.State.IsDropped() {
		return "the dropped " + text, nil
	}
	return "the " + text, nil
}
