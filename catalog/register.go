package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/registry"
	"moorage/txlog"
)

// RegisterTable makes a table of a metadata file that exists. The table names the file as the
// request does, and no file is written. If the table-uuid belongs to a dropped table, that table
// comes back, with its pointer. With request.Overwrite the file replaces what ident names: the same
// table-uuid moves the pointer, another one drops the old pointer and keeps it.
//
// Errors: KindNoSuchNamespace. KindAlreadyExists if the name is in use, the table-uuid is live
// under another name or being purged, or the dropped table's location has passed to another one.
// KindNotFound if there is no such file. KindUnavailable also while the record of a transaction
// cannot be read, because that transaction may delete the file. The last file of a dropped table is
// accepted even then: nothing deletes it. KindBadRequest, KindIllegalArgument or KindValidation if
// the file is outside the allowed locations or not valid.
// Source: REST specification, registerTable.
func (c *Catalog) RegisterTable(ctx context.Context, ident moorage.Identifier,
	request RegisterRequest) (*Table, error) {
	registered, err := c.register(ctx, aTable, ident, request)
	return registered.table(), moorage.Annotate("catalog.RegisterTable", ident.String(), err)
}

func (c *Catalog) register(ctx context.Context, k *kind, ident moorage.Identifier,
	request RegisterRequest) (registered *version, err error) {
	if err := ident.Validate(); err != nil {
		return nil, err
	}
	operation, scope := k.register, lockScope{warehouse: ident.Warehouse, names: []moorage.Identifier{ident}}
	if !request.Overwrite {
		if err := c.mustBeFree(ctx, k, ident); err != nil {
			return nil, err
		}
	} else if found, err := c.directory.Find(ctx, k.Kind, ident); err == nil {
		operation, scope.pointers = OpRegisterOver, []registry.ID{found.Pointer.ID}
	} else if moorage.KindOf(err) != k.Missing {
		return nil, err
	}
	hold, err := c.lock(ctx, operation, scope)
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		registered, err = c.tryRegister(ctx, k, operation, ident, request)
		return err
	})
	return registered, err
}

// uuidBytesMax bounds the table-uuid or view-uuid of a registered file, which is part of a key.
// Some old writers wrote other texts than UUIDs, but none that is longer.
const uuidBytesMax = 256

// registration is a metadata file about to become a table or view, and what it meets.
type registration struct {
	kind     *kind
	ident    moorage.Identifier
	location string // of the metadata file
	document document
	chain    *directory.Path
	entry    directory.Entry // zero if the name is free
	occupant registry.Record // the pointer that entry names
	claim    registry.Record // of the table-uuid
	holder   registry.Record // the pointer that claim names
}

func (c *Catalog) tryRegister(ctx context.Context, k *kind, operation Operation, ident moorage.Identifier,
	request RegisterRequest) (*version, error) {
	r, err := c.readRegistration(ctx, k, ident, request)
	if err != nil {
		return nil, err
	}
	holderID, err := r.holderID()
	if err != nil {
		return nil, err
	}
	if !r.holder.Exists() {
		id, err := c.ledger.NewID()
		if err != nil {
			return nil, err
		}
		fresh := registry.Pointer{ID: id, View: k == aView}
		return c.registerPointer(ctx, operation, r, fresh, registry.Absent(registry.PointerKey(id)))
	}
	taken := ledger.Unchanged(r.holder)
	pointer, err := ledger.Decode[registry.Pointer](r.holder)
	if err != nil {
		return nil, err
	}
	switch {
	case !k.IsOf(pointer):
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"%s with same UUID already exists, or was dropped and can come back: %s",
			k.Other().Noun, pointer.Identifier())
	case r.holder.State == registry.StatePurging && pointer.Task.IsZero():
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"Table with same UUID is dropped, and a purge that was called off may have deleted some of its files: %s",
			r.document.UUID())
	case r.holder.State == registry.StatePurging:
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"Table with same UUID is being purged: %s", r.document.UUID())
	case r.holder.State == registry.StateLive && r.entry.Value.Pointer != holderID:
		return nil, moorage.Errorf(moorage.KindAlreadyExists,
			"%s with same UUID already exists: %s", k.Noun, pointer.Identifier())
	}
	return c.registerPointer(ctx, operation, r, pointer, taken)
}

func (r *registration) holderID() (registry.ID, error) {
	if !r.claim.Exists() {
		return registry.ID{}, nil
	}
	value, err := ledger.Decode[registry.TableUUIDClaim](r.claim)
	return value.Pointer, err
}

// readRegistration reads the file and all records that a registration depends on. Then it checks
// that the file is still there. A purge that ended before the records were read has deleted the
// file. A purge that ends later has to change the records.
func (c *Catalog) readRegistration(ctx context.Context, k *kind, ident moorage.Identifier,
	request RegisterRequest) (*registration, error) {
	ch, err := c.directory.LivePath(ctx, ident.Warehouse, ident.Namespace)
	if err != nil {
		return nil, err
	}
	r := &registration{kind: k, ident: ident, location: request.MetadataLocation, chain: ch}
	if r.entry, err = c.directory.ReadEntry(ctx, ch, ident.Name); err != nil {
		return nil, err
	}
	if !request.Overwrite || r.entry.Record.State != k.State {
		if err := k.CheckFree(r.entry, ident); err != nil {
			return nil, err
		}
	}
	// Not from the cache: the owner of the file may have written it again since its last
	// registration.
	if r.document, err = c.documents.Read(ctx, k.Kind, ident.Warehouse, ch.Storage, r.location); err != nil {
		return nil, tellFile(r.location, err)
	}
	if n := len(r.document.UUID()); n == 0 || n > uuidBytesMax {
		return nil, moorage.Errorf(moorage.KindIllegalArgument,
			"Cannot register a metadata file with a uuid of %d bytes: %s", n, r.location)
	}
	if err := c.readHolders(ctx, r); err != nil {
		return nil, err
	}
	if err := c.mustBeNoTransactions(ctx, r); err != nil {
		return nil, err
	}
	if _, err := ch.Storage.Stat(ctx, r.location); err != nil {
		return nil, documents.FileError(r.location, err)
	}
	return r, nil
}

// tellFile adds the name of a metadata file to the refusal of its content. Without the name the
// refusal reads as if the request were wrong.
func tellFile(location string, err error) error {
	text := moorage.MessageOf(err)
	if text == "" || strings.Contains(text, location) {
		return err
	}
	text = "Cannot read metadata file " + location + ": " + text
	return &moorage.Error{Kind: moorage.KindOf(err), Message: text, Err: err}
}

// mustBeNoTransactions refuses a file that a transaction under way has written: recovery deletes
// it, unless the transaction commits. A transaction whose record is gone has already deleted its
// files, or published them.
//
// If a transaction's record is unreadable, any file may be its own. Then only a file that the
// pointer of the dropped table names is accepted. Pointers name only published files, and the Apply
// requires that this one has not changed.
func (c *Catalog) mustBeNoTransactions(ctx context.Context, r *registration) error {
	published, err := r.holderNamesIt()
	if err != nil {
		return err
	}
	location, place := r.location, documents.Normalised(r.location)
	named := func(file string) bool { return documents.Normalised(file) == place } // however it is spelled
	var unreadable error
	for entry, err := range c.transactions.All(ctx) {
		switch {
		case err != nil:
			return ledger.StepError("catalog.mustBeNoTransactions", err)
		case entry.Unreadable != nil && published:
		case entry.Unreadable != nil:
			unreadable = unreadableTransaction(entry, location)
		case slices.ContainsFunc(entry.Surplus(), named):
			return moorage.Errorf(moorage.KindBadRequest,
				"Cannot register a metadata file that a transaction under way has written: %s", location)
		}
	}
	return unreadable
}

// unreadableTransaction is the refusal of a register while the record of a transaction cannot be
// read.
func unreadableTransaction(entry txlog.Entry, location string) error {
	const cannot = "A transaction under way may have written %s, " +
		"because the record of transaction %s cannot be read; nothing was changed. "
	if entry.ID.IsZero() {
		return moorage.Errorf(moorage.KindUnavailable,
			cannot+"An operator can have that forgotten, by moorage recover forget: %s",
			location, "without an id", entry.Unreadable)
	}
	return moorage.Errorf(moorage.KindUnavailable,
		cannot+"An operator can have that forgotten: moorage recover forget", location, entry.ID)
}

// holderNamesIt reports whether the pointer that has the table-uuid of r names the file.
func (r *registration) holderNamesIt() (bool, error) {
	if !r.holder.Exists() {
		return false, nil
	}
	holder, err := ledger.Decode[registry.Pointer](r.holder)
	return holder.MetadataLocation == r.location, err
}

// readHolders reads the pointer that has the name, and the claim and the pointer that have the
// table-uuid of r.
func (c *Catalog) readHolders(ctx context.Context, r *registration) error {
	keys := []registry.Key{registry.UUIDKey(r.document.UUID())}
	if r.entry.Record.Exists() {
		keys = append(keys, registry.PointerKey(r.entry.Value.Pointer))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	r.claim = records[0]
	if r.entry.Record.Exists() {
		if r.occupant = records[1]; !r.occupant.Exists() {
			return ledger.ErrRetry
		}
	}
	holderID, err := r.holderID()
	if err != nil || holderID.IsZero() {
		return err
	}
	records, err = c.ledger.Get(ctx, registry.PointerKey(holderID))
	if err == nil {
		r.holder = records[0]
	}
	return err
}

// registerPointer makes pointer live under the name and with the file of r. The pointer is new, was
// dropped, or is the one that the name has. unchanged is the condition that it is as it was read.
func (c *Catalog) registerPointer(ctx context.Context, operation Operation, r *registration,
	pointer registry.Pointer, unchanged registry.Condition) (*version, error) {
	change, err := c.ledger.NewChange(ctx, string(operation), r.ident)
	if err != nil {
		return nil, err
	}
	change.MetadataLocation = r.location
	who := claims.Claimant{Pointer: pointer.ID}
	if r.occupant.Exists() && r.entry.Value.Pointer != pointer.ID {
		who.Replaces = r.entry.Value.Pointer
	}
	claimed, err := c.planRegistration(ctx, r, pointer.Claims, who)
	if err != nil {
		return nil, err
	}
	// before is the cached version of the same file, if its owner wrote the file again.
	before := documents.FileVersion(pointer.MetadataLocation, pointer.Registration)
	pointer.ReplayableUntil, pointer.Registration = c.replayableUntil(pointer.ReplayableUntil), change.ID
	batch, err := c.registerBatch(ctx, r, pointer, unchanged, claimed, who)
	if err != nil {
		return nil, err
	}
	registered := &version{r.ident, pointer.ID, r.location, r.document, r.chain.Storage, change.ID}
	_, err = c.apply(ctx, change, batch, registered.outcome())
	c.documents.Forget(pointer.ID, before) // also if it failed: it may have happened
	if err != nil {
		return nil, ledger.RetryOnConflict(err)
	}
	c.documents.Keep(pointer.ID, documents.FileVersion(r.location, change.ID), r.document)
	return registered, nil
}

// planRegistration plans the claim of the document's location, and that the pointer keeps the
// claims that it made before. If one of those has passed to another table or view since this one
// was dropped, this one cannot come back: each would take the other's files for its own.
func (c *Catalog) planRegistration(ctx context.Context, r *registration, kept []string,
	who claims.Claimant) (claims.Claim, error) {
	roots := c.directory.Roots(r.chain.Warehouse)
	planned, err := c.locations.Plan(ctx, roots, r.document.Location(), who)
	if err == nil {
		err = c.locations.PlanKept(ctx, &planned, roots, kept, who)
	}
	taken, ok := errors.AsType[*claims.TakenError](err)
	if ok && taken.Own == claims.ByAnother && r.holder.State == registry.StateDropped {
		return planned, moorage.Errorf(moorage.KindAlreadyExists,
			"Location of the dropped %s is that of another table or view by now: %s",
			strings.ToLower(r.kind.Noun), taken.At)
	}
	if err = claims.Refusal(err, r.document.Location()); err != nil && !r.entry.Record.Exists() {
		err = c.unlessBorn(ctx, r.ident, err)
	}
	return planned, err
}

func (c *Catalog) registerBatch(ctx context.Context, r *registration, pointer registry.Pointer,
	unchanged registry.Condition, claimed claims.Claim, who claims.Claimant) (registry.Batch, error) {
	parent := r.chain.Record()
	entryKey, uuidKey := registry.EntryKey(r.chain.ID(), r.ident.Name), registry.UUIDKey(r.document.UUID())
	conditions := append([]registry.Condition{ledger.Unchanged(parent), unchanged}, claimed.Conditions...)
	puts := claimed.Puts
	if r.entry.Record.Exists() {
		conditions = append(conditions, ledger.Unchanged(r.entry.Record))
	} else {
		conditions = append(conditions, registry.Absent(entryKey))
	}
	if r.claim.Exists() {
		conditions = append(conditions, ledger.Unchanged(r.claim))
	} else {
		conditions = append(conditions, registry.Absent(uuidKey))
	}
	puts = append(puts, ledger.Put(uuidKey, registry.StateNone, registry.TableUUIDClaim{
		Unknown: ledger.UnknownOf[registry.TableUUIDClaim](r.claim), Pointer: pointer.ID,
	}))
	if !who.Replaces.IsZero() {
		replaced, err := ledger.Decode[registry.Pointer](r.occupant)
		if err != nil {
			return registry.Batch{}, err
		}
		if replaced.Since, err = c.ledger.Time(ctx); err != nil {
			return registry.Batch{}, err
		}
		replaced.Storage, replaced.WarehouseID = r.chain.Warehouse.Storage, r.chain.Warehouse.ID
		conditions = append(conditions, ledger.Unchanged(r.occupant))
		puts = append(puts, ledger.Put(r.occupant.Key, registry.StateDropped, replaced))
	}
	var deletes []registry.Write
	if !pointer.Task.IsZero() { // the drop asked for a purge, which this cancels
		deletes = append(deletes, registry.Delete(registry.TaskKey(pointer.Task)))
	}
	pointer.Warehouse, pointer.Namespace, pointer.Name = r.ident.Warehouse, r.ident.Namespace, r.ident.Name
	pointer.NamespaceID, pointer.TableUUID, pointer.MetadataLocation = r.chain.ID(), r.document.UUID(), r.location
	pointer.Since, pointer.Task = c.now(), registry.ID{}
	pointer.Storage, pointer.WarehouseID = nil, registry.ID{}
	var err error
	if pointer.Claims, err = claims.With(pointer.Claims, claimed.Normalised); err != nil {
		return registry.Batch{}, err
	}
	puts = append(puts,
		ledger.Put(registry.PointerKey(pointer.ID), registry.StateLive, pointer),
		ledger.Put(entryKey, r.kind.State, registry.Entry{
			Unknown: r.entry.Value.Unknown, Pointer: pointer.ID, Shard: registry.Shard(r.ident.Name),
		}),
	)
	writes, err := ledger.Encode(puts...)
	return registry.Batch{Conditions: conditions, Writes: append(writes, deletes...)}, err
}
