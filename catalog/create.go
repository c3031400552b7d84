package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"moorage"
	"moorage/catalog/claims"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// suffixBytes is the length of the random part of a location that must be unique.
	suffixBytes = 4
	// defaultFolderBytesMax is the longest folder of a namespace in which its tables live by
	// default. Files lie deeper; file systems end at 4,096 bytes, claims at registry.KeyBytesMax.
	defaultFolderBytesMax = 1024
)

// CreateTable makes a table. With request.Stage it only builds one, which a later Commit with
// assert-create makes: nothing is stored, and the answer has no MetadataLocation.
//
// Errors: KindNoSuchNamespace; KindAlreadyExists; KindBadRequest, KindIllegalArgument or
// KindValidation for a request that can never succeed, also for a location that is taken or not
// allowed; KindUnavailable; KindCommitUnknown. Durable when it returns. Source: REST specification,
// createTable.
func (c *Catalog) CreateTable(ctx context.Context, ident moorage.Identifier, request CreateTableRequest) (
	*Table, error) {
	made, err := c.create(ctx, ident, creation{
		kind: aTable, location: request.Location, stage: request.Stage,
		build: func(location string, env metadata.Env) (document, error) {
			return request.build(location, env)
		},
	})
	return made.table(), moorage.Annotate("catalog.CreateTable", ident.String(), err)
}

// build returns the document of the table that is to live at location.
func (r CreateTableRequest) build(location string, env metadata.Env) (*metadata.Document, error) {
	return metadata.Create(metadata.CreateTable{
		Location:      location,
		Schema:        r.Schema,
		PartitionSpec: r.PartitionSpec,
		WriteOrder:    r.WriteOrder,
		Properties:    r.Properties,
	}, env)
}

// creation is what a request to make a table or view asks for.
type creation struct {
	kind     *kind
	location string // empty: the server chooses
	stage    bool   // build it, store nothing
	build    func(location string, env metadata.Env) (document, error)
}

func (c *Catalog) create(ctx context.Context, ident moorage.Identifier, asked creation) (made *version, err error) {
	if err := ident.Validate(); err != nil {
		return nil, err
	}
	if err := c.mustBeFree(ctx, asked.kind, ident); err != nil {
		return nil, err
	}
	if asked.stage {
		return c.stage(ctx, ident, asked)
	}
	scope := lockScope{warehouse: ident.Warehouse, names: []moorage.Identifier{ident}}
	hold, err := c.lock(ctx, asked.kind.create, scope)
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		made, err = c.tryCreate(ctx, ident, asked)
		return err
	})
	return made, err
}

// mustBeFree returns the error why no table or view of kind k can be made at ident, nil if one can.
// It looks without locks.
func (c *Catalog) mustBeFree(ctx context.Context, k *kind, ident moorage.Identifier) error {
	_, found, err := c.directory.PathAndEntry(ctx, ident)
	if err != nil {
		return err
	}
	return k.CheckFree(found, ident)
}

// tryCreate makes one attempt. It returns ledger.ErrRetry if something changed meanwhile.
func (c *Catalog) tryCreate(ctx context.Context, ident moorage.Identifier, asked creation) (*version, error) {
	ch, found, err := c.directory.LivePathAndEntry(ctx, ident)
	if err != nil {
		return nil, err
	}
	if err := asked.kind.CheckFree(found, ident); err != nil {
		return nil, err
	}
	id, err := c.ledger.NewID()
	if err != nil {
		return nil, err
	}
	location, claim, err := c.chooseLocation(ctx, ch, ident, asked, id)
	if err != nil {
		return nil, c.unlessBorn(ctx, ident, err)
	}
	document, err := c.buildNew(asked, location)
	if err != nil {
		return nil, err
	}
	born := birth{kind: asked.kind, ident: ident, id: id, document: document, claim: claim}
	return c.bear(ctx, asked.kind.create, ch, born)
}

// chooseLocation returns the location of a new table or view, and the claim of it for id. That is
// the location that the request names, or else the first of defaultLocations that is free.
func (c *Catalog) chooseLocation(ctx context.Context, ch *directory.Path, ident moorage.Identifier, asked creation,
	id registry.ID) (string, claims.Claim, error) {
	locations := []string{storage.Trim(asked.location)}
	if asked.location == "" {
		var err error
		if locations, err = c.defaultLocations(ch, ident); err != nil {
			return "", claims.Claim{}, err
		}
		if asked.stage {
			locations = locations[1:] // nothing claims the first for the table until the commit
		}
	}
	claimant := claims.Claimant{Pointer: id, Fresh: true}
	var planned claims.Claim
	var err error
	for _, location := range locations {
		planned, err = c.locations.Plan(ctx, c.directory.Roots(ch.Warehouse), location, claimant)
		if taken := (*claims.TakenError)(nil); !errors.As(err, &taken) {
			return location, planned, err
		}
	}
	return "", claims.Claim{}, claims.Refusal(err, locations[len(locations)-1])
}

// defaultLocations returns where a table or view may live if its request names no location, the
// best first:
//
//	<warehouse>/<namespace, level by level>/<name>
//	the same with a random suffix, if there is or was another of that name
//	<warehouse>/<name with a random suffix>
//
// The last is for a path in which a namespace is called like a table or view, whose location would
// contain this one. It is also for a path longer than defaultFolderBytesMax. The result has at
// least two locations, because staged tables do not get the first.
func (c *Catalog) defaultLocations(ch *directory.Path, ident moorage.Identifier) ([]string, error) {
	var random [suffixBytes]byte
	if _, err := io.ReadFull(c.random, random[:]); err != nil {
		return nil, moorage.E("catalog.defaultLocations", "", moorage.KindInternal, err)
	}
	suffix := "-" + hex.EncodeToString(random[:])
	name := storage.Escape(ident.Name)
	folder := folderOf(ch.Warehouse, ident.Namespace)
	last := storage.Join(ch.Warehouse.Location, name+suffix)
	if folder == ch.Warehouse.Location {
		return []string{last, last}, nil
	}
	return []string{storage.Join(folder, name), storage.Join(folder, name+suffix), last}, nil
}

func (c *Catalog) buildNew(asked creation, location string) (document, error) {
	env, err := c.birthEnv()
	if err != nil {
		return nil, err
	}
	return asked.build(location, env)
}

// birthEnv returns the inputs that package metadata needs for a first version: the time and a uuid.
func (c *Catalog) birthEnv() (metadata.Env, error) {
	uuid, err := c.ledger.NewUUID()
	return metadata.Env{Now: c.now(), NewUUID: func() string { return uuid }}, err
}

// stage builds a table and stores nothing.
func (c *Catalog) stage(ctx context.Context, ident moorage.Identifier, asked creation) (*version, error) {
	ch, err := c.directory.Path(ctx, ident.Warehouse, ident.Namespace)
	if err != nil {
		return nil, err
	}
	location, _, err := c.chooseLocation(ctx, ch, ident, asked, registry.ID{})
	if err != nil {
		// The location may be taken because the table was made since: then that is the answer.
		return nil, cmp.Or(c.mustBeFree(ctx, asked.kind, ident), err)
	}
	document, err := c.buildNew(asked, location)
	if err != nil {
		return nil, err
	}
	if err := c.makeStagedFolder(ctx, ident.Warehouse, ch.Storage, storage.Join(location, "metadata")); err != nil {
		return nil, err
	}
	return &version{ident: ident, document: document, storage: ch.Storage}, nil
}

// makeStagedFolder makes a folder for a staged table where the storage has folders. Some engines
// write there before they commit, and do not make it.
func (c *Catalog) makeStagedFolder(ctx context.Context, warehouse string, store storage.Store, location string) error {
	folders, ok := store.(storage.Folders)
	if !ok {
		return nil
	}
	if err := folders.MakeFolder(ctx, location); err != nil {
		return documents.CreateError(location, err)
	}
	c.stagedFolder(warehouse, folders, location)
	return nil
}

// birth is a table or view about to be made. One Apply makes its entry, pointer and claims.
type birth struct {
	kind     *kind
	ident    moorage.Identifier
	id       registry.ID // of the pointer
	document document
	claim    claims.Claim

	replayableUntil time.Time // see registry.Pointer
}

// bear makes the table or view b. It returns ledger.ErrRetry if something changed meanwhile.
func (c *Catalog) bear(ctx context.Context, operation Operation, ch *directory.Path, b birth) (*version, error) {
	change, err := c.ledger.NewChange(ctx, string(operation), b.ident)
	if err != nil {
		return nil, err
	}
	file, err := c.documents.Name(b.kind.Kind, b.id, ch.Storage, b.document, documents.File{})
	if err != nil {
		return nil, err
	}
	change.MetadataLocation = file.Location
	b.replayableUntil = c.replayableUntil(time.Time{})
	batch, err := c.birthBatch(ch, b, file.Location)
	if err != nil {
		return nil, err
	}
	born := &version{b.ident, b.id, file.Location, b.document, ch.Storage, registry.ID{}}
	_, isUnwanted, err := c.publish(ctx, file, change, batch, born.outcome())
	if isUnwanted {
		c.documents.DeleteLost(ctx, documents.Lost{File: file})
	}
	if err != nil {
		return nil, ledger.RetryOnConflict(err)
	}
	return born, nil
}

// birthBatch returns the conditions and writes of a birth.
func (c *Catalog) birthBatch(ch *directory.Path, b birth, metadataLocation string) (registry.Batch, error) {
	parent := ch.Record()
	pointer := registry.Pointer{
		ID:               b.id,
		Warehouse:        b.ident.Warehouse,
		Namespace:        b.ident.Namespace,
		Name:             b.ident.Name,
		NamespaceID:      ch.ID(),
		View:             b.kind == aView,
		TableUUID:        b.document.UUID(),
		MetadataLocation: metadataLocation,
		Claims:           []string{b.claim.Normalised},
		Since:            c.now(),
		ReplayableUntil:  b.replayableUntil,
	}
	entryKey, pointerKey := registry.EntryKey(ch.ID(), b.ident.Name), registry.PointerKey(b.id)
	uuidKey := registry.UUIDKey(pointer.TableUUID)
	puts := append([]ledger.Write{
		ledger.Put(entryKey, b.kind.State, registry.Entry{Pointer: b.id, Shard: registry.Shard(b.ident.Name)}),
		ledger.Put(pointerKey, registry.StateLive, pointer),
		ledger.Put(uuidKey, registry.StateNone, registry.TableUUIDClaim{Pointer: b.id}),
	}, b.claim.Puts...)
	writes, err := ledger.Encode(puts...)
	return registry.Batch{
		Conditions: append([]registry.Condition{
			registry.ETagIs(parent.Key, parent.ETag),
			registry.Absent(entryKey),
			registry.Absent(pointerKey),
			registry.Absent(uuidKey),
		}, b.claim.Conditions...),
		Writes: writes,
	}, err
}

// commitCreate makes the table that a Commit with assert-create describes. If an earlier attempt of
// the same request made it and the answer was lost, commitCreate returns that table. Source: REST
// specification, updateTable; a failure because the table is there is 409.
func (c *Catalog) commitCreate(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (
	made *version, err error) {
	if err := ident.Validate(); err != nil {
		return nil, err
	}
	hold, err := c.lock(ctx, OpCommitCreate, lockScope{warehouse: ident.Warehouse, names: []moorage.Identifier{ident}})
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		made, err = c.tryCommitCreate(ctx, ident, steps)
		return err
	})
	if moorage.KindOf(err) == moorage.KindCommitFailed && c.key == nil {
		_, current, loadErr := c.load(ctx, aTable, ident)
		if loadErr == nil && current.document.(*metadata.Document).IsBirth(steps) {
			return current, nil
		}
	}
	return made, err
}

func (c *Catalog) tryCommitCreate(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (
	*version, error) {
	ch, born, err := c.planBirth(ctx, ident, steps)
	if err != nil {
		return nil, err
	}
	return c.bear(ctx, OpCommitCreate, ch, born)
}

// planBirth builds the table that steps describe, and plans its claim. The first step has
// assert-create.
func (c *Catalog) planBirth(ctx context.Context, ident moorage.Identifier, steps []metadata.Step) (
	*directory.Path, birth, error) {
	ch, found, err := c.directory.LivePathAndEntry(ctx, ident)
	if err != nil {
		return nil, birth{}, err
	}
	if found.Record.State == registry.StateTable {
		return nil, birth{}, moorage.Errorf(moorage.KindCommitFailed, "Requirement failed: table already exists")
	}
	if err := aTable.CheckFree(found, ident); err != nil {
		return nil, birth{}, err
	}
	env, err := c.birthEnv()
	if err != nil {
		return nil, birth{}, err
	}
	document, err := metadata.ApplySteps(nil, steps, env)
	if err != nil {
		return nil, birth{}, err
	}
	id, err := c.ledger.NewID()
	if err != nil {
		return nil, birth{}, err
	}
	if err := c.mustBeFreeUUID(ctx, document.UUID()); err != nil {
		return nil, birth{}, c.unlessBorn(ctx, ident, err)
	}
	claimant := claims.Claimant{Pointer: id, Fresh: true}
	claim, err := c.locations.Plan(ctx, c.directory.Roots(ch.Warehouse), document.Location(), claimant)
	if err != nil {
		return nil, birth{}, c.unlessBorn(ctx, ident, claims.Refusal(err, document.Location()))
	}
	return ch, birth{kind: aTable, ident: ident, id: id, document: document, claim: claim}, nil
}

// unlessBorn returns err, which says why nothing can be made at ident, while the name is still
// free. It returns ledger.ErrRetry if the name is taken by now. Then err may come from what was
// made there, and the next attempt tells the client so.
func (c *Catalog) unlessBorn(ctx context.Context, ident moorage.Identifier, err error) error {
	_, found, lookErr := c.directory.PathAndEntry(ctx, ident)
	switch {
	case lookErr != nil:
		return lookErr
	case found.Record.Exists():
		return ledger.ErrRetry
	}
	return err
}

// mustBeFreeUUID returns KindAlreadyExists if a table or view, live or dropped, has the uuid.
func (c *Catalog) mustBeFreeUUID(ctx context.Context, uuid string) error {
	records, err := c.ledger.Get(ctx, registry.UUIDKey(uuid))
	if err == nil && records[0].Exists() {
		err = moorage.Errorf(moorage.KindAlreadyExists, "Table or view with same UUID already exists: %s", uuid)
	}
	return err
}
