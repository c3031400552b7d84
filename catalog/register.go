package catalog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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

// RegisterTable creates a table from an existing metadata file. The table uses the file at the
// requested location, and no file is written. If the table-uuid belongs to a dropped table, that
// table is restored, with its pointer. With request.Overwrite, the file replaces the present
// version of the table called ident. If the table-uuid is the same, its pointer moves to the file.
// If the table-uuid is another one, the present table is dropped and can be restored.
//
// Errors: KindNoSuchNamespace. KindAlreadyExists if the name is in use, or if the table with that
// table-uuid is live under another name or being purged. It is also returned if the dropped table's
// location has passed to another table or view. KindNotFound if the file does not exist.
// KindUnavailable also while the record of a transaction cannot be read, because that transaction
// may delete the file. No transaction deletes the last file of a dropped table, so that file is
// accepted even then. KindBadRequest, KindIllegalArgument or KindValidation if the file is outside
// the allowed locations or invalid. Source: REST specification, registerTable.
func (c *Catalog) RegisterTable(ctx context.Context, ident moorage.Identifier,
	request RegisterRequest) (*Table, error) {
	outcome, err := c.submit(ctx, c.register(c.asker(gate.Register), tableKind, ident, request))
	table := tableOf(outcome.Version)
	if table != nil {
		table.Labels = c.labels.ofMade(ctx, table.pointer, table.Labels)
	}
	return table, moorage.Annotate("catalog.RegisterTable", ident.String(), err)
}

// register returns the intent to create a table or view from a file.
func (p *parts) register(by directory.Asker, k *kind, ident moorage.Identifier,
	request RegisterRequest) commit.Intent {
	switch {
	case request.mirrorOf != "":
		by.Verb = gate.PutMirror
	case request.Overwrite:
		by.Verb = gate.RegisterOver
	default:
		by.Verb = k.register
	}
	return commit.Intent{
		Verb: by.Verb, On: []moorage.Identifier{ident},
		Look: func(ctx context.Context) (commit.Scope, error) {
			return p.lookAtRegistered(ctx, by, k, ident, request)
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (*registration, error) {
			return p.readRegistration(ctx, by, k, ident, request)
		}, planRegistration),
	}
}

// lookAtRegistered returns the lock scope of a register. If the register overwrites a pointer, the
// scope includes that pointer.
func (p *parts) lookAtRegistered(ctx context.Context, by directory.Asker, k *kind, ident moorage.Identifier,
	request RegisterRequest) (commit.Scope, error) {
	if err := ident.Validate(); err != nil {
		return commit.Scope{}, err
	}
	scope := commit.Scope{Warehouse: ident.Warehouse, Names: []moorage.Identifier{ident}, Verb: k.register}
	if !request.Overwrite {
		return scope, p.checkFree(ctx, by, gate.Always, k, ident)
	}
	if p.guarded {
		asked := by.Verb.Needs(gate.OfContainer, gate.Always)
		if _, err := p.directory.PathFor(ctx, by, asked, ident); err != nil {
			return commit.Scope{}, err
		}
	}
	found, err := p.directory.Find(ctx, k.Kind, ident)
	if err == nil {
		err = p.directory.May(ctx, by, by.Verb.Needs(gate.OfObject, gate.Always), found, ident)
	}
	switch {
	case err == nil:
		scope.Verb, scope.Pointers = gate.RegisterOver, []registry.ID{found.Pointer.ID}
	case moorage.KindOf(err) != k.Missing:
		return commit.Scope{}, err
	}
	if request.mirrorOf != "" {
		scope.Verb = gate.PutMirror
		return scope, p.raiseFormat(ctx, registry.FormatMirror)
	}
	return scope, nil
}

// uuidBytesMax bounds the table-uuid or view-uuid of a registered file, which is part of a key.
// Some old writers used other texts than UUIDs, but none of these texts is longer.
const uuidBytesMax = 256

// registration is a metadata file that will become a table or view, with the records that the
// registration affects. An undrop is one too: the file is the one that the dropped pointer names.
type registration struct {
	kind     *kind
	ident    moorage.Identifier
	location string // of the metadata file
	document document
	undrops  bool // the pointer keeps its file, its claims and its Registration
	// mirrorOf names the catalog that the pointer mirrors from now on. It is empty for
	// other registrations.
	mirrorOf string
	parent   parent
	// made is the namespace that gets ident, with its missing parents, if the registration also
	// makes the namespace. It is nil if the namespace exists.
	made     *newNamespace
	entry    directory.Entry // zero if the name is free
	occupant registry.Record // the pointer that entry names
	claim    registry.Record // the record of the table-uuid
	holder   registry.Record // the pointer that claim names
	// left is the tombstone that the table or view of the file left at its location when its
	// pointer ended. It is zero if there is no such tombstone. leftRecord is the record of any
	// tombstone at that location.
	left       registry.Tombstone
	leftRecord registry.Record

	pointer   registry.Pointer   // the holder's present pointer, or a new one
	unchanged registry.Condition // requires that the pointer is unchanged
	who       claims.Claimant
	claimed   claims.Claim
	now       time.Time // the present time by the store's clock
	// undropWindow is how long a replaced table can be restored.
	undropWindow time.Duration
	creator      string            // the creator of a new pointer
	policy       ledger.Policy     // moves the pointer's grants to the new namespace
	makers       gate.MakerRecords // let its creator see the new path
	owning       owning            // for a definer view
	// above requires that the containers of the pointer that r replaces are unchanged, and what the
	// request requires.
	above []registry.Condition
}

// checkOccupant returns the error for a registration over the present table or view of the name: it
// may be protected or a mirror. Only a mirror of the same table or view in the same catalog may
// move, and protection does not refuse that. path leads to its namespace.
func (r *registration) checkOccupant(path *directory.Path) error {
	if !r.occupant.Exists() {
		return nil
	}
	occupant, err := ledger.Decode[registry.Pointer](r.occupant)
	switch {
	case err != nil:
	case r.mirrorOf == "":
		r.above, err = unprotected(path, occupant, r.ident)
	case r.holder.Key != r.occupant.Key:
		err = moorage.Errorf(moorage.KindAlreadyExists, "Another table or view has the name %s", r.ident)
	case occupant.Frozen == "":
		err = moorage.Errorf(moorage.KindAlreadyExists, "%s is no mirror: it is written here", r.ident)
	case occupant.Frozen != r.mirrorOf:
		err = moorage.Errorf(moorage.KindAlreadyExists,
			"%s is a mirror of %s, and follows no other catalog: end that mirror first", r.ident, occupant.Frozen)
	}
	return err
}

// readPointer decides which pointer gets the name of r: the pointer with the table-uuid, or a new
// one. It refuses a table-uuid that is in use elsewhere. The error does not name the table that
// uses it, because the caller may not be allowed to see that table.
func (p *parts) readPointer(r *registration) error {
	k := r.kind
	holderID, err := r.holderID()
	if err != nil {
		return err
	}
	if !r.holder.Exists() {
		id, err := p.ledger.NewID()
		r.pointer = registry.Pointer{ID: id, View: k == viewKind, Creator: r.creator, Trims: r.left.Trims}
		r.unchanged = registry.Absent(registry.PointerKey(id))
		return err
	}
	r.unchanged = ledger.Unchanged(r.holder)
	if r.pointer, err = ledger.Decode[registry.Pointer](r.holder); err != nil {
		return err
	}
	switch {
	case !k.IsOf(r.pointer):
		return moorage.Errorf(moorage.KindAlreadyExists,
			"%s with same UUID already exists, or was dropped and can come back: %s",
			k.Other().Noun, r.document.UUID())
	case r.holder.State == registry.StatePurging && r.pointer.Task.IsZero():
		return moorage.Errorf(moorage.KindAlreadyExists,
			"Table with same UUID is dropped, and a purge that was called off may have deleted some of its files: %s",
			r.document.UUID())
	case r.holder.State == registry.StatePurging:
		return moorage.Errorf(moorage.KindAlreadyExists,
			"Table with same UUID is being purged: %s", r.document.UUID())
	case r.holder.State == registry.StateLive && r.entry.Value.Pointer != holderID:
		return moorage.Errorf(moorage.KindAlreadyExists,
			"%s with same UUID already exists: %s", k.Noun, r.document.UUID())
	}
	return nil
}

func (r *registration) holderID() (registry.ID, error) {
	if !r.claim.Exists() {
		return registry.ID{}, nil
	}
	value, err := ledger.Decode[registry.TableUUIDClaim](r.claim)
	return value.Pointer, err
}

// readRegistration reads the file and all records that a registration depends on. Then it checks
// that the file still exists. So no purge or commit can delete the file unnoticed. A purge that
// ended before the records were read has deleted the file already. A purge that ends later changes
// the records. A commit may delete the file because the file leaves the metadata log, but that
// commit changes the pointer.
func (p *parts) readRegistration(ctx context.Context, by directory.Asker, k *kind, ident moorage.Identifier,
	request RegisterRequest) (*registration, error) {
	path, err := p.directory.LivePath(ctx, ident.Warehouse, ident.Namespace)
	if err != nil {
		return nil, p.directory.Missing(ctx, by, ident.Warehouse, err)
	}
	if err := p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfContainer, gate.Always), path, ident); err != nil {
		return nil, err
	}
	creator, err := p.guard.Creator(ctx, by.Caller)
	if err != nil {
		return nil, err
	}
	r := &registration{
		kind: k, ident: ident, location: request.MetadataLocation, parent: parentAt(path), creator: creator,
		undropWindow: p.undropWindow, mirrorOf: request.mirrorOf,
	}
	if r.entry, err = p.directory.ReadEntry(ctx, path, ident.Name); err != nil {
		return nil, err
	}
	if !request.Overwrite || r.entry.Record.State != k.State {
		if err := k.CheckFree(r.entry, ident); err != nil {
			return nil, err
		}
	}
	if _, err := storage.Parse(r.location); err != nil { // engines would parse it in different ways
		return nil, documents.FileError(r.location, err)
	}
	// Do not read it from the cache: the owner of the file may have rewritten it since its last
	// registration.
	if r.document, err = p.documents.Read(ctx, k.Kind, ident.Warehouse, path.Storage, r.location); err != nil {
		return nil, tellFile(r.location, err)
	}
	if !storage.IsMetadataFile(r.location) {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Cannot register %s: the name of a metadata file ends in "+
			".json or .json.gz. Copy it to such a name", r.location)
	}
	if n := len(r.document.UUID()); n == 0 || n > uuidBytesMax {
		return nil, moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot register a metadata file with a uuid of %d bytes: %s", n, r.location)
	}
	if table, ok := r.document.(*metadata.Document); ok {
		if err := table.CheckSpecs(); err != nil {
			return nil, moorage.Errorf(moorage.KindValidation, "Cannot register %s: %w", r.location, err)
		}
	}
	if err := p.readHolders(ctx, r); err != nil {
		return nil, err
	}
	if err := p.mayReplace(ctx, by, path, r); err != nil {
		return nil, err
	}
	if err := r.checkOccupant(path); err != nil {
		return nil, err
	}
	if err := p.refuseTransactions(ctx, r); err != nil {
		return nil, err
	}
	if _, err := path.Storage.Stat(ctx, r.location); err != nil {
		return nil, documents.FileError(r.location, err)
	}
	if err := p.readPointer(r); err != nil {
		return nil, err
	}
	if err := p.refuseDoomed(ctx, r, path); err != nil { // the Apply requires that the pointer is unchanged
		return nil, err
	}
	if view, ok := r.document.(*metadata.ViewDocument); ok {
		change := viewChange{by: by, ident: ident, pointer: r.pointer, above: path.Above(), next: view}
		if r.owning, err = change.owned(ctx, p); err != nil {
			return nil, err
		}
	}
	if r.owning.grants {
		r.pointer.Granted = true
	} else if r.pointer.NamespaceID != path.ID() {
		if r.policy, err = p.moveGrants(ctx, r.pointer, path.Above()); err != nil {
			return nil, err
		}
	}
	if r.pointer.NamespaceID != path.ID() {
		if r.makers, err = p.guard.MakerRecords(ctx, r.pointer.Creator, path.Above()); err != nil {
			return nil, err
		}
	}
	if request.requires != nil {
		conditions, err := request.requires(ctx, r.pointer.ID)
		if err != nil {
			return nil, err
		}
		r.above = append(r.above, conditions...)
	}
	own := append(slices.Clone(r.pointer.Claims), r.document.Location())
	if err := p.mayName(ctx, by, ident.Warehouse, r.pointer.ID, own, placesIn(r.document)); err != nil {
		return nil, err
	}
	return r, p.readClaims(ctx, by, r)
}

// tellFile adds the location of a metadata file to an error about the file's content. Otherwise the
// error would seem to be about the request.
func tellFile(location string, err error) error {
	text := moorage.MessageOf(err)
	if text == "" || strings.Contains(text, location) {
		return err
	}
	text = "Cannot read metadata file " + location + ": " + text
	return &moorage.Error{Kind: moorage.KindOf(err), Message: text, Err: err}
}

// readHolders reads the pointer that has the name of r, the claim of its table-uuid, and the
// pointer that has the table-uuid.
func (p *parts) readHolders(ctx context.Context, r *registration) error {
	keys := []registry.Key{registry.UUIDKey(r.document.UUID())}
	if r.entry.Record.Exists() {
		keys = append(keys, registry.PointerKey(r.entry.Value.Pointer))
	}
	if place, err := storage.Parse(r.document.Location()); err == nil { // otherwise claims refuses it
		keys = append(keys, registry.TombstoneKey(place.String()))
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	r.claim = records[0]
	if last := records[len(records)-1]; last.Key.Table == registry.TableTombstone && !r.claim.Exists() {
		if r.left, err = claims.TombstoneOf(last, r.document.UUID()); err != nil {
			return err
		}
		r.leftRecord = last
	}
	if r.entry.Record.Exists() {
		if r.occupant = records[1]; !r.occupant.Exists() {
			return ledger.ErrRetry
		}
	}
	holderID, err := r.holderID()
	if err != nil || holderID.IsZero() {
		return err
	}
	if r.occupant.Exists() && r.entry.Value.Pointer == holderID {
		// What is checked in the occupant must be what the Apply requires of the holder. A second
		// read could find a mirror that has ended since the first.
		r.holder = r.occupant
		return nil
	}
	records, err = p.ledger.Get(ctx, registry.PointerKey(holderID))
	if err == nil {
		r.holder = records[0]
	}
	return err
}

// readClaims plans the claim of the document's location, and plans that the pointer keeps its
// earlier claims. If one of these claims has passed to another table or view since the drop, the
// table cannot be restored: each of the two would treat the other's files as its own.
func (p *parts) readClaims(ctx context.Context, by directory.Asker, r *registration) error {
	r.who = claims.Claimant{
		Pointer: r.pointer.ID, TableUUID: r.document.UUID(), MayTake: p.directory.Taking(by),
	}
	var err error
	if r.occupant.Exists() && r.entry.Value.Pointer != r.pointer.ID {
		r.who.Replaces = r.entry.Value.Pointer
		if r.now, err = p.ledger.Time(ctx); err != nil {
			return err
		}
		if r.kind == tableKind {
			r.who.ReplacedUntil = vending.ReachableUntil(r.now, r.parent.warehouse.Delegation, r.parent.storage)
		}
	}
	roots := r.parent.warehouse.Roots()
	r.claimed, err = p.claims.Plan(ctx, roots, r.document.Location(), r.who)
	if err == nil {
		err = p.claims.PlanKept(ctx, &r.claimed, roots, r.pointer.Claims, r.who)
	}
	if err == nil && !r.requiresLeft() {
		return ledger.ErrRetry
	}
	taken, ok := errors.AsType[*claims.TakenError](err)
	if ok && taken.Own == claims.ByAnother && r.holder.State == registry.StateDropped {
		return moorage.Errorf(moorage.KindAlreadyExists,
			"Another table or view has the location of the dropped %s: %s",
			strings.ToLower(r.kind.Noun), taken.At)
	}
	if err = claims.Refusal(err, r.document.Location()); err != nil && !r.entry.Record.Exists() {
		err = p.unlessTaken(ctx, r.ident, err)
	}
	return err
}

// requiresLeft reports whether the claim requires the tombstone on which r was decided. In the
// meantime, the table or view may have come back and ended again, with other files to delete.
func (r *registration) requiresLeft() bool {
	if r.claim.Exists() { // then no tombstone counts
		return true
	}
	at := slices.IndexFunc(r.claimed.Conditions, func(c registry.Condition) bool {
		return c.Key.Table == registry.TableTombstone && c.Key.ID == r.claimed.Normalised
	})
	if at < 0 {
		return r.left.TableUUID == ""
	}
	return r.claimed.Conditions[at] == ledger.AsRead(r.leftRecord, r.claimed.Conditions[at].Key)
}

// planRegistration plans that the pointer of r is live, and has the name and the file of r. The
// pointer may be new, may be a dropped one, or may already have the name.
func planRegistration(attempt *commit.Attempt, r *registration) (*commit.Plan, error) {
	conditions, puts, items, err := r.replace(attempt)
	if err != nil {
		return nil, err
	}
	entryKey, uuidKey := registry.EntryKey(r.parent.id, r.ident.Name), registry.UUIDKey(r.document.UUID())
	conditions = append(conditions, r.unchanged,
		ledger.AsRead(r.entry.Record, entryKey), ledger.AsRead(r.claim, uuidKey))
	container := &commit.Plan{Conditions: []registry.Condition{r.parent.unchanged()}}
	if r.made != nil {
		if container, err = planNamespace(attempt, *r.made); err != nil {
			return nil, err
		}
	}
	pointer, err := r.registered(attempt)
	if err != nil {
		return nil, err
	}
	puts = append(puts,
		ledger.Put(uuidKey, registry.StateNone, registry.TableUUIDClaim{
			Unknown: ledger.UnknownOf[registry.TableUUIDClaim](r.claim), Pointer: pointer.ID,
		}),
		ledger.Put(registry.PointerKey(pointer.ID), registry.StateLive, pointer).Over(r.holder),
		ledger.Put(entryKey, r.kind.State, registry.Entry{
			Unknown: r.entry.Value.Unknown, Pointer: pointer.ID, Shard: registry.Shard(r.ident.Name),
			Creator: pointer.Creator,
		}).Over(r.entry.Record),
	)
	writes, err := r.claimed.Writes(puts...)
	if r.holder.State.IsDropped() { // delete the record of its undrop window or waiting purge
		writes = append(writes, registry.Delete(r.pointer.EndKey()),
			registry.Delete(r.pointer.DroppedKey(r.holder.State)))
	}
	return &commit.Plan{
		Conditions: slices.Concat(container.Conditions, conditions, r.above, r.claimed.Conditions,
			r.policy.Conditions, r.makers.Conditions, r.owning.conditions),
		Writes: slices.Concat(container.Writes, writes, r.policy.Writes, r.makers.Writes, r.owning.writes),
		Items: slices.Concat(container.Items, items,
			[]registry.Item{registry.PointerItem(r.pointer, pointer)}, r.owning.items),
		// If the owner has rewritten the file, its cached content is outdated.
		Outdated: commit.Kept{
			Pointer: pointer.ID,
			Version: documents.FileVersion(r.pointer.MetadataLocation, r.pointer.Registration),
		},
		Read: commit.Kept{
			Pointer: pointer.ID, Version: documents.FileVersion(r.location, pointer.Registration), Document: r.document,
		},
		Told: r.told(),
		Answer: commit.Outcome{Version: &commit.Version{
			Ident: r.ident, Pointer: pointer.ID, Location: r.location, Document: r.document,
			Storage: r.parent.storage, Registration: pointer.Registration, Labels: pointer.Labels,
		}},
	}, err
}

// told returns the log line about a registration that restores a dropped table or drops the present
// one.
func (r *registration) told() commit.Told {
	attrs := []slog.Attr{
		slog.String("kind", nounOf(r.pointer)), slog.String("ident", r.ident.String()),
		slog.String("warehouse", r.ident.Warehouse), slog.String("owner", moorage.NameOf(r.pointer.Creator)),
		slog.String("file", r.location),
	}
	switch {
	case !r.who.Replaces.IsZero():
		message := "replaced by a register: what had the name is dropped, and its files stay"
		if r.undrops {
			message = "undropped: what had the name is dropped, and its files stay"
		}
		return commit.Told{
			Message: message,
			Attrs: append(attrs, slog.String("dropped", r.who.Replaces.String()),
				slog.Time("until", r.now.Add(r.undropWindow))),
		}
	case r.undrops:
		return commit.Told{Message: "undropped", Attrs: attrs}
	case r.holder.State.IsDropped():
		return commit.Told{Message: "taken back: a dropped table or view was registered again", Attrs: attrs}
	}
	return commit.Told{}
}

// replace plans the drop of the pointer whose name r takes. It plans nothing if the name is free.
func (r *registration) replace(attempt *commit.Attempt) ([]registry.Condition, []ledger.Write, []registry.Item, error) {
	if r.who.Replaces.IsZero() {
		return nil, nil, nil, nil
	}
	replaced, err := ledger.Decode[registry.Pointer](r.occupant)
	items := []registry.Item{registry.PointerItem(replaced, registry.Pointer{})}
	replaced.Since, replaced.Storage, replaced.WarehouseID = r.now, r.parent.warehouse.Storage, r.parent.warehouse.ID
	replaced.Dropped = r.now
	replaced.Secret, replaced.ReachableUntil = r.parent.warehouse.Secret.ID, r.who.ReplacedUntil
	summary := replaced.LastIn(r.occupant.State).Summary
	replaced.Last = replaced.Written(registry.StateDropped, attempt.Change, summary)
	return []registry.Condition{ledger.Unchanged(r.occupant)}, []ledger.Write{
		ledger.Replace(r.occupant, registry.StateDropped, replaced),
		ledger.Put(replaced.EndKey(), registry.StateNone, registry.Due{}),
		ledger.Put(replaced.DroppedKey(registry.StateDropped), registry.StateDropped,
			replaced.AsDropped(registry.StateDropped, attempt.Change)),
	}, items, err
}

// registered returns the pointer of r after the registration.
func (r *registration) registered(attempt *commit.Attempt) (registry.Pointer, error) {
	pointer := r.pointer
	pointer.ReplayableUntil = attempt.Until(pointer.ReplayableUntil)
	pointer.Warehouse, pointer.Namespace, pointer.Name = r.ident.Warehouse, r.ident.Namespace, r.ident.Name
	pointer.NamespaceID, pointer.TableUUID, pointer.MetadataLocation = r.parent.id, r.document.UUID(), r.location
	pointer.Since, pointer.Task, pointer.PurgeDelay = attempt.Now, registry.ID{}, 0
	pointer.Storage, pointer.WarehouseID, pointer.ReachableUntil = nil, registry.ID{}, time.Time{}
	pointer.Dropped = time.Time{}
	pointer.Secret = registry.ID{}
	if r.undrops {
		summary := r.pointer.LastIn(r.holder.State).Summary
		if summary == nil { // a node of version 0.1.0 dropped it
			summary = commit.SummaryOf(r.document)
		}
		pointer.Last = pointer.Written(registry.StateLive, attempt.Change, summary)
		return pointer, nil
	}
	pointer.Registration, pointer.Frozen = attempt.Change.ID, r.mirrorOf
	pointer.Last = pointer.Written(registry.StateLive, attempt.Change, commit.SummaryOf(r.document))
	var err error
	pointer.Claims, err = claims.With(pointer.Claims, r.claimed.Normalised)
	return pointer, err
}

// mayReplace returns nil if the caller may replace the present table or view, and may restore the
// dropped one, as far as r does that.
func (p *parts) mayReplace(ctx context.Context, by directory.Asker, path *directory.Path, r *registration) error {
	if !p.guarded {
		return nil
	}
	if r.occupant.Exists() {
		asked := by.Verb.Needs(gate.OfObject, gate.Always)
		if err := p.mayTake(ctx, by, asked, r.occupant, path.Above(), r.ident); err != nil {
			return err
		}
	}
	if !r.holder.Exists() || r.holder.Key == r.occupant.Key {
		return nil
	}
	pointer, err := ledger.Decode[registry.Pointer](r.holder)
	if err != nil {
		return err
	}
	above, err := p.directory.AboveOf(ctx, pointer)
	if err != nil {
		return err
	}
	asked := by.Verb.Needs(gate.OfDropped, gate.IfTakingBack)
	if err := p.mayTake(ctx, by, asked, r.holder, above, pointer.Identifier()); err != nil {
		// This error may reveal that the uuid is in use: any refusal of this register does.
		return moorage.Errorf(moorage.KindForbidden, "Not allowed: drop on the table or view that has the UUID %s",
			pointer.TableUUID)
	}
	return nil
}

// mayTake returns nil if the caller has the privileges asked on the pointer of record. above has
// the pointer's containers.
func (p *parts) mayTake(ctx context.Context, by directory.Asker, asked access.Privileges, record registry.Record,
	above []access.Object, ident moorage.Identifier) error {
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return err
	}
	return p.directory.May(ctx, by, asked, &directory.Found{Pointer: pointer, Above: above}, ident)
}
