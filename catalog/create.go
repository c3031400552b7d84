package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"moorage"
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

// suffixBytes is the length of the random part of a unique location.
const suffixBytes = 4

// CreateTable creates a table. If request.Stage is true, it only builds the table: it stores
// nothing, and the answer has no MetadataLocation. A later Commit with assert-create creates the
// table.
//
// Errors: KindNoSuchNamespace; KindAlreadyExists; KindBadRequest, KindIllegalArgument or
// KindValidation for a request that can never succeed, or for a location that is taken or not
// allowed; KindUnavailable; KindCommitUnknown. Durable when it returns. Source: REST specification,
// createTable.
func (c *Catalog) CreateTable(ctx context.Context, ident moorage.Identifier, request CreateTableRequest) (
	*Table, error) {
	by := c.asker(gate.CreateTable)
	if request.Stage {
		by = c.asker(gate.StageTable)
	}
	outcome, err := c.submit(ctx, c.create(by, ident, creation{
		kind: tableKind, location: request.Location, properties: request.Properties, stage: request.Stage,
		build: func(location string, env metadata.Env) (document, error) {
			return request.build(location, env)
		},
	}))
	table := tableOf(outcome.Version)
	if err == nil && outcome.IsStaged() {
		err = c.reachStaged(ctx, table, outcome.Version, request.Location != "")
	}
	return table, moorage.Annotate("catalog.CreateTable", ident.String(), err)
}

// build returns the document of the new table at location.
func (r CreateTableRequest) build(location string, env metadata.Env) (*metadata.Document, error) {
	return metadata.Create(metadata.CreateTable{
		Location:      location,
		Schema:        r.Schema,
		PartitionSpec: r.PartitionSpec,
		WriteOrder:    r.WriteOrder,
		Properties:    r.Properties,
	}, env)
}

// creation is a request to create a table or view.
type creation struct {
	kind     *kind
	location string // if empty, the server chooses
	// properties are the properties that build sets.
	properties map[string]string
	stage      bool // build the table without storing it
	build      func(location string, env metadata.Env) (document, error)
}

// create returns the intent to create the requested table or view.
func (p *parts) create(by directory.Asker, ident moorage.Identifier, asked creation) commit.Intent {
	intent := commit.Intent{
		Verb: asked.kind.create, On: []moorage.Identifier{ident},
		Look: func(ctx context.Context) (commit.Scope, error) {
			if err := ident.Validate(); err != nil {
				return commit.Scope{}, err
			}
			scope := commit.Scope{Warehouse: ident.Warehouse, Names: []moorage.Identifier{ident}}
			if _, known := p.directory.Known(ident); !known && !asked.stage && !p.guarded {
				return scope, nil // the name is probably free; the plan checks that
			}
			return scope, p.checkFree(ctx, by, gate.Always, asked.kind, ident)
		},
		Plan: commit.Plans(func(ctx context.Context, attempt *commit.Attempt) (newborn, error) {
			return p.readCreation(ctx, by, attempt, ident, asked)
		}, planCreation),
	}
	if asked.stage {
		intent.Verb = gate.StageTable
		intent.Plan = commit.Plans(func(ctx context.Context, _ *commit.Attempt) (newborn, error) {
			return p.readStaged(ctx, by, ident, asked)
		}, planStaged)
	}
	return intent
}

// checkFree returns nil if a table or view of kind k can be created at ident, and otherwise the
// error. It takes no locks.
func (p *parts) checkFree(ctx context.Context, by directory.Asker, met gate.When, k *kind,
	ident moorage.Identifier) error {
	path, found, err := p.directory.PathAndEntry(ctx, ident)
	if err != nil {
		return p.directory.Missing(ctx, by, ident.Warehouse, err)
	}
	if err := p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfContainer, met), path, ident); err != nil {
		return err
	}
	return k.CheckFree(found, ident)
}

// mayCreate returns nil if the caller may create a table or view with properties at a location in
// the namespace of path. The server chooses the location if it is empty. No further privilege is
// needed for a location that the server might choose: one below the folder of the namespace,
// without a record.
func (p *parts) mayCreate(ctx context.Context, by directory.Asker, path *directory.Path, ident moorage.Identifier,
	location string, properties map[string]string) error {
	met := gate.IfCreating
	for name := range properties {
		if gate.IsPathProperty(name) {
			met |= gate.IfLocated
		}
	}
	if location != "" && p.guarded {
		folder := folderOf(path, ident.Namespace)
		normalised, err := storage.Normalise(storage.Trim(location))
		home, homeErr := storage.Normalise(folder)
		own := err != nil || homeErr != nil || folder == path.Warehouse.Location ||
			!strings.HasPrefix(normalised, home+"/")
		if !own {
			records, err := p.ledger.Get(ctx, registry.LocationKey(normalised))
			if err != nil {
				return err
			}
			own = records[0].Exists()
		}
		if own {
			met |= gate.IfLocated
		}
	}
	return p.directory.MayAt(ctx, by, by.Verb.Needs(gate.OfContainer, met), path, ident)
}

// newborn is a table or view that will be created, with the records that were read for it. One
// Apply creates its entry, pointer and claims.
type newborn struct {
	kind     *kind
	ident    moorage.Identifier
	id       registry.ID // the id of the new pointer
	parent   parent
	place    storage.Place
	claim    claims.Claim
	document document
	file     documents.File
	creator  string
	makers   gate.MakerRecords // they let creator see the path to the object
}

// readCreation reads the records for a create, and chooses the location. It returns ledger.ErrRetry
// if a record changed between the reads.
func (p *parts) readCreation(ctx context.Context, by directory.Asker, attempt *commit.Attempt,
	ident moorage.Identifier, asked creation) (newborn, error) {
	path, found, err := p.directory.LivePathAndEntry(ctx, ident)
	if err != nil {
		return newborn{}, p.directory.Missing(ctx, by, ident.Warehouse, err)
	}
	if err := p.mayCreate(ctx, by, path, ident, asked.location, asked.properties); err != nil {
		return newborn{}, err
	}
	if err := asked.kind.CheckFree(found, ident); err != nil {
		return newborn{}, err
	}
	id, err := p.ledger.NewID()
	if err != nil {
		return newborn{}, err
	}
	claimant := claims.Claimant{
		Pointer: id, Fresh: true, FromMemory: attempt.Number == 0, MayTake: p.taking(by, asked.location),
		MayResettle: p.resettling(by, path, ident, asked.location),
		Forward:     p.forwarding(by, ident, asked.location, p.buildable(path, asked)),
	}
	location, claim, err := p.chooseLocation(ctx, path, ident, asked, claimant)
	if err != nil {
		return newborn{}, p.unlessTaken(ctx, ident, err)
	}
	if err := vending.CheckPaths(path.Warehouse.Delegation, asked.properties, location); err != nil {
		return newborn{}, err
	}
	err = p.mayName(ctx, by, ident.Warehouse, id, []string{location}, placesOf(asked.properties))
	if err != nil {
		return newborn{}, err
	}
	env, err := p.newEnv()
	if err != nil {
		return newborn{}, err
	}
	document, err := asked.build(location, env)
	if err != nil {
		return newborn{}, err
	}
	creator, err := p.guard.Creator(ctx, by.Caller)
	if err != nil {
		return newborn{}, err
	}
	if view, ok := document.(*metadata.ViewDocument); ok {
		made := registry.Pointer{ID: id, View: true, Creator: creator}
		change := viewChange{by: by, ident: ident, pointer: made, above: path.Above(), next: view}
		if _, err := change.owned(ctx, p); err != nil {
			return newborn{}, err
		}
	}
	makers, err := p.guard.MakerRecords(ctx, creator, path.Above())
	if err != nil {
		return newborn{}, err
	}
	return p.name(newborn{
		kind: asked.kind, ident: ident, id: id, parent: parentAt(path), document: document, claim: claim,
		creator: creator, makers: makers,
	})
}

// name chooses the name of b's first metadata file.
func (p *parts) name(b newborn) (newborn, error) {
	var err error
	b.place = p.directory.PlaceOf(b.parent.warehouse)
	b.file, err = p.documents.Name(b.kind.Kind, documents.File{
		Warehouse: b.parent.warehouse.ID, Pointer: b.id, Document: b.document, Storage: b.parent.storage,
	}, documents.File{})
	return b, err
}

// chooseLocation returns the location of a new table or view, and claimant's claim of it. The
// location is the one in the request. If the request names none, it is the first free one of
// defaultLocations.
func (p *parts) chooseLocation(ctx context.Context, path *directory.Path, ident moorage.Identifier, asked creation,
	claimant claims.Claimant) (string, claims.Claim, error) {
	locations := []string{storage.Trim(asked.location)}
	if asked.location == "" {
		var err error
		if locations, err = p.defaultLocations(path, ident); err != nil {
			return "", claims.Claim{}, err
		}
		// Do not use the first location, which has no random suffix. A staged table has no claim of
		// it until its commit. Credentials for the table must not reach files that an earlier table
		// of the same name left there.
		if asked.stage || len(path.Warehouse.Delegation) > 0 {
			locations = locations[1:]
		}
	}
	var planned claims.Claim
	var err error
	for _, location := range locations {
		planned, err = p.claims.Plan(ctx, path.Warehouse.Roots(), location, claimant)
		if taken := (*claims.TakenError)(nil); !errors.As(err, &taken) {
			return location, planned, err
		}
	}
	return "", claims.Claim{}, claims.Refusal(err, locations[len(locations)-1])
}

// buildable returns a function that checks whether the requested object can be built in the
// namespace of path, whatever its location.
func (p *parts) buildable(path *directory.Path, asked creation) func() error {
	return func() error {
		if err := vending.CheckPaths(path.Warehouse.Delegation, asked.properties, asked.location); err != nil {
			return err
		}
		env, err := p.newEnv()
		if err != nil {
			return err
		}
		_, err = asked.build(asked.location, env)
		return err
	}
}

// defaultLocations returns the possible locations of a table or view if the request names none,
// best first:
//
//	<home>/<namespace, level by level>/<name>
//	the same with a random suffix, if the name is or was in use
//	<home>/<name with a random suffix>
//
// Home is the location of the nearest namespace that has one, or of the warehouse. The levels are
// the namespaces below the one with that location.
//
// The last location is for two cases. A namespace on the path may have the name of a table or view,
// and the location of that object would contain this one. Or the path may be longer than
// defaultFolderBytesMax. The result has at least two locations, because staged tables do not get
// the first.
func (p *parts) defaultLocations(path *directory.Path, ident moorage.Identifier) ([]string, error) {
	var random [suffixBytes]byte
	if _, err := io.ReadFull(p.random, random[:]); err != nil {
		return nil, moorage.E("catalog.defaultLocations", "", moorage.KindInternal, err)
	}
	suffix := "-" + hex.EncodeToString(random[:])
	home, _ := path.Home()
	name := storage.EscapeBelow(home, ident.Name)
	folder := folderOf(path, ident.Namespace)
	last := storage.Join(home, name+suffix)
	if folder == path.Warehouse.Location {
		return []string{last, last}, nil
	}
	return []string{storage.Join(folder, name), storage.Join(folder, name+suffix), last}, nil
}

// newEnv returns the time and the new uuid that package metadata needs for a first version.
func (p *parts) newEnv() (metadata.Env, error) {
	uuid, err := p.ledger.NewUUID()
	return metadata.Env{Now: p.now(), NewUUID: func() string { return uuid }}, err
}

// readStaged builds a table that is not stored.
func (p *parts) readStaged(ctx context.Context, by directory.Asker, ident moorage.Identifier, asked creation) (
	newborn, error) {
	path, err := p.directory.Path(ctx, ident.Warehouse, ident.Namespace)
	if err != nil {
		return newborn{}, p.directory.Missing(ctx, by, ident.Warehouse, err)
	}
	if err := p.mayCreate(ctx, by, path, ident, asked.location, asked.properties); err != nil {
		return newborn{}, err
	}
	claimant := claims.Claimant{
		Fresh: true, MayTake: p.taking(by, asked.location),
		MayResettle: p.resettling(by, path, ident, asked.location),
		Forward:     p.forwarding(by, ident, asked.location, p.buildable(path, asked)),
	}
	location, _, err := p.chooseLocation(ctx, path, ident, asked, claimant)
	if err != nil {
		// Another request may have created the table in the meantime, and so have taken its
		// location. Then report that the table exists.
		return newborn{}, cmp.Or(p.checkFree(ctx, by, gate.Always, asked.kind, ident), err)
	}
	if err := vending.CheckPaths(path.Warehouse.Delegation, asked.properties, location); err != nil {
		return newborn{}, err
	}
	err = p.mayName(ctx, by, ident.Warehouse, registry.ID{}, []string{location}, placesOf(asked.properties))
	if err != nil {
		return newborn{}, err
	}
	env, err := p.newEnv()
	if err != nil {
		return newborn{}, err
	}
	document, err := asked.build(location, env)
	return newborn{kind: asked.kind, ident: ident, parent: parentAt(path), document: document}, err
}

// planStaged plans only the folder of b.
func planStaged(_ *commit.Attempt, b newborn) (*commit.Plan, error) {
	version := &commit.Version{Ident: b.ident, Document: b.document, Storage: b.parent.storage}
	folder := storage.Join(b.document.Location(), "metadata")
	return &commit.Plan{Empty: true, Folder: folder, Answer: commit.Outcome{Version: version}}, nil
}

// planCreation plans the entry, the pointer and the claims of b.
func planCreation(attempt *commit.Attempt, b newborn) (*commit.Plan, error) {
	pointer := registry.Pointer{
		ID:               b.id,
		Warehouse:        b.ident.Warehouse,
		Namespace:        b.ident.Namespace,
		Name:             b.ident.Name,
		NamespaceID:      b.parent.id,
		View:             b.kind == viewKind,
		TableUUID:        b.document.UUID(),
		MetadataLocation: b.file.Location,
		Claims:           []string{b.claim.Normalised},
		Since:            attempt.Now,
		ReplayableUntil:  attempt.Until(time.Time{}),
		Creator:          b.creator,
	}
	pointer.Last = pointer.Written(registry.StateLive, attempt.Change, commit.SummaryOf(b.document))
	entryKey, pointerKey := registry.EntryKey(b.parent.id, b.ident.Name), registry.PointerKey(b.id)
	uuidKey := registry.UUIDKey(pointer.TableUUID)
	writes, err := b.claim.Writes(
		ledger.Put(entryKey, b.kind.State, registry.Entry{
			Pointer: b.id, Shard: registry.Shard(b.ident.Name), Creator: b.creator,
		}),
		ledger.Put(pointerKey, registry.StateLive, pointer),
		ledger.Put(uuidKey, registry.StateNone, registry.TableUUIDClaim{Pointer: b.id}),
	)
	return &commit.Plan{
		Conditions: append([]registry.Condition{
			b.parent.unchanged(),
			registry.Absent(entryKey),
			registry.Absent(pointerKey),
			registry.Absent(uuidKey),
		}, slices.Concat(b.claim.Conditions, b.makers.Conditions)...),
		Writes: append(writes, b.makers.Writes...), File: b.file, Place: b.place,
		Items: []registry.Item{registry.PointerItem(registry.Pointer{}, pointer)},
		Answer: commit.Outcome{Version: &commit.Version{
			Ident: b.ident, Pointer: b.id, Location: b.file.Location, Document: b.document, Storage: b.parent.storage,
		}},
	}, err
}

// creationOf plans the table that a commit with assert-create describes.
func (p *parts) creationOf(by directory.Asker, ident moorage.Identifier, steps []metadata.Step) commit.Planner {
	return commit.Plans(func(ctx context.Context, _ *commit.Attempt) (newborn, error) {
		return p.readSteps(ctx, by, ident, steps)
	}, planCreation)
}

// readSteps builds the table that steps describe, and plans its claim. The first step has
// assert-create.
func (p *parts) readSteps(ctx context.Context, by directory.Asker, ident moorage.Identifier,
	steps []metadata.Step) (newborn, error) {
	path, found, err := p.directory.LivePathAndEntry(ctx, ident)
	if err != nil {
		return newborn{}, p.directory.Missing(ctx, by, ident.Warehouse, err)
	}
	asked := by.Verb.Needs(gate.OfContainer, gate.IfCreating)
	if err := p.directory.MayAt(ctx, by, asked, path, ident); err != nil {
		return newborn{}, err
	}
	if found.Record.State == registry.StateTable {
		return newborn{}, moorage.Errorf(moorage.KindCommitFailed, "Requirement failed: table already exists")
	}
	if err := tableKind.CheckFree(found, ident); err != nil {
		return newborn{}, err
	}
	env, err := p.newEnv()
	if err != nil {
		return newborn{}, err
	}
	document, err := metadata.ApplySteps(nil, steps, env)
	if err != nil {
		return newborn{}, err
	}
	if err := p.mayCreate(ctx, by, path, ident, document.Location(), document.Properties()); err != nil {
		return newborn{}, err
	}
	if err := vending.CheckPaths(path.Warehouse.Delegation, document.Properties(), document.Location()); err != nil {
		return newborn{}, err
	}
	err = p.mayName(ctx, by, ident.Warehouse, registry.ID{}, []string{document.Location()}, placesIn(document))
	if err != nil {
		return newborn{}, err
	}
	id, err := p.ledger.NewID()
	if err != nil {
		return newborn{}, err
	}
	if err := p.checkFreeUUID(ctx, document.UUID()); err != nil {
		return newborn{}, p.unlessTaken(ctx, ident, err)
	}
	claimant := claims.Claimant{
		Pointer: id, Fresh: true, MayTake: p.directory.Taking(by),
		MayResettle: p.resettling(by, path, ident, document.Location()),
		Forward:     p.forwarding(by, ident, document.Location(), nil),
	}
	claim, err := p.claims.Plan(ctx, path.Warehouse.Roots(), document.Location(), claimant)
	if err != nil {
		return newborn{}, p.unlessTaken(ctx, ident, claims.Refusal(err, document.Location()))
	}
	creator, err := p.guard.Creator(ctx, by.Caller)
	if err != nil {
		return newborn{}, err
	}
	makers, err := p.guard.MakerRecords(ctx, creator, path.Above())
	if err != nil {
		return newborn{}, err
	}
	return p.name(newborn{
		kind: tableKind, ident: ident, id: id, parent: parentAt(path), document: document, claim: claim,
		creator: creator, makers: makers,
	})
}

// unlessTaken returns err, the reason why a create at ident failed, if the name is still free. It
// returns ledger.ErrRetry if the name is in use now. Then the new object may have caused err, and
// the next attempt reports to the client that the object exists.
func (p *parts) unlessTaken(ctx context.Context, ident moorage.Identifier, err error) error {
	_, found, lookErr := p.directory.PathAndEntry(ctx, ident)
	switch {
	case lookErr != nil:
		return lookErr
	case found.Record.Exists():
		return ledger.ErrRetry
	}
	return err
}

// checkFreeUUID returns KindAlreadyExists if a table or view, live or dropped, has the uuid.
func (p *parts) checkFreeUUID(ctx context.Context, uuid string) error {
	records, err := p.ledger.Get(ctx, registry.UUIDKey(uuid))
	if err == nil && records[0].Exists() {
		err = moorage.Errorf(moorage.KindAlreadyExists, "Table or view with same UUID already exists: %s", uuid)
	}
	return err
}

// parent is the namespace or warehouse of a new object, from one read.
type parent struct {
	record    registry.Record
	id        registry.ID
	warehouse registry.Warehouse
	storage   storage.Store // the warehouse's storage
}

func parentAt(path *directory.Path) parent {
	return parent{path.Record(), path.ID(), path.Warehouse, path.Storage}
}

// unchanged requires that the record of p is as it was read, so p is still live.
func (p parent) unchanged() registry.Condition { return ledger.Unchanged(p.record) }
