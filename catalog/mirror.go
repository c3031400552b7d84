package catalog

import (
	"context"
	"errors"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Mirrors has the verbs on mirrors, for one caller: see Catalog.Mirrors. A mirror is a table or
// view that follows the one of another catalog while an import is under way. Commits, renames,
// drops and purges of it are refused, maintenance does not touch it, and only Put moves it.
//
// It promises that nothing but Put changes a mirror, and that nothing deletes its files, until End:
// TestMirrorRefuses, TestMirrorsAreNotMaintained. Nodes that do not know mirrors have ended when
// the first Put returns: TestMirrorRaisesFormat. It is safe for concurrent use.
type Mirrors struct{ catalog *Catalog }

// Mirrors returns the verbs on mirrors, for the caller of c and the key of its request.
func (c *Catalog) Mirrors() Mirrors { return Mirrors{c} }

// Load returns the name of the catalog that a table or view mirrors. It is empty if the
// object is no mirror.
//
// Errors: KindNoSuchTable, KindNoSuchView; KindForbidden.
func (m Mirrors) Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (string, error) {
	by := m.catalog.asker(gate.LoadMirror)
	found, err := m.catalog.readProtecting(ctx, by, kind, ident)
	if err != nil {
		return "", moorage.Annotate("catalog.Load", ident.String(), err)
	}
	return found.found.Pointer.Frozen, nil
}

// Put makes a mirror of source from a metadata file, or moves the mirror to that file. It registers
// the file: see RegisterTable. A dropped table or view with the same uuid comes back as a mirror.
//
// Errors: the errors of RegisterTable. KindAlreadyExists also if the name belongs to another table
// or view, to one that is no mirror, or to a mirror of another catalog. The first mirror in a store
// raises the version that the store needs: nodes that do not know mirrors end. The first Put by a
// process waits until they have. Durable when it returns.
func (m Mirrors) Put(ctx context.Context, kind access.Kind, ident moorage.Identifier, source, location string) error {
	c := m.catalog
	request := RegisterRequest{MetadataLocation: location, Overwrite: true, mirrorOf: source}
	k := tableKind
	if kind == access.View {
		k = viewKind
	}
	_, err := c.submit(ctx, c.register(c.asker(gate.PutMirror), k, ident, request))
	return moorage.Annotate("catalog.Put", ident.String(), err)
}

// Register makes an ordinary table or view from a metadata file, if requires permits it. It
// registers the file: see RegisterTable.
//
// Errors: the errors of RegisterTable and of requires. Durable when it returns.
func (m Mirrors) Register(ctx context.Context, kind access.Kind, ident moorage.Identifier, location string,
	requires Requires) error {
	k := tableKind
	if kind == access.View {
		k = viewKind
	}
	request := RegisterRequest{MetadataLocation: location, requires: requires}
	_, err := m.catalog.submit(ctx, m.catalog.register(m.catalog.asker(gate.Register), k, ident, request))
	return moorage.Annotate("catalog.Register", ident.String(), err)
}

// End makes a mirror an ordinary table or view, if its metadata file is still the one at location.
// An ordinary one stays as it is.
//
// Errors: KindNoSuchTable, KindNoSuchView; KindForbidden; KindCommitFailed if the mirror has moved.
// Durable when it returns.
func (m Mirrors) End(ctx context.Context, kind access.Kind, ident moorage.Identifier, location string) error {
	c, by := m.catalog, m.catalog.asker(gate.EndMirror)
	_, err := c.submit(ctx, commit.Intent{
		Verb: gate.EndMirror, On: []moorage.Identifier{ident}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			_, err := c.readProtecting(ctx, by, kind, ident)
			return commit.Scope{}, err
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (protecting, error) {
			return c.readProtecting(ctx, by, kind, ident)
		}, func(attempt *commit.Attempt, mirror protecting) (*commit.Plan, error) {
			return mirror.planEnd(attempt, location)
		}),
	})
	return moorage.Annotate("catalog.End", ident.String(), err)
}

// planEnd plans that f is no mirror any more.
func (f protecting) planEnd(attempt *commit.Attempt, location string) (*commit.Plan, error) {
	before, after := f.found.Pointer, f.found.Pointer
	switch {
	case before.Frozen == "":
		return &commit.Plan{Empty: true}, nil
	case before.MetadataLocation != location:
		return nil, moorage.Errorf(moorage.KindCommitFailed, "%s has moved to %s: compare it with %s again", f.ident,
			before.MetadataLocation, before.Frozen)
	}
	after.Frozen = ""
	after.Last = after.Written(registry.StateLive, attempt.Change, before.LastIn(registry.StateLive).Summary)
	item := registry.PointerItem(before, after)
	item.Actions = []string{"end-mirror"}
	writes, err := ledger.Encode(ledger.Replace(f.found.Record, registry.StateLive, after))
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(f.found.Record)}, Writes: writes,
		Items: []registry.Item{item},
	}, err
}

// Fitness is how a metadata file fits a name.
type Fitness string

// The values of Fitness.
const (
	FitsNew     Fitness = "new"              // the name and the uuid are free
	FitsSame    Fitness = "same"             // the name has this file
	FitsMoved   Fitness = "moved"            // the name is a mirror, with another file of the same uuid
	FitsChanged Fitness = "changed-here"     // the name has the uuid with another file, and is no mirror
	UUIDTaken   Fitness = "uuid-taken"       // the uuid is in use under another name, or is being purged
	NameTaken   Fitness = "name-taken"       // the name has another uuid
	IsOutside   Fitness = "location-outside" // outside the locations of the warehouse
	IsNested    Fitness = "location-nested"  // at, above or below the location of another table or view
	Unreadable  Fitness = "unreadable"       // there is no such file, or it has no table or view of that kind
)

// Checked is what a register of a metadata file would meet.
type Checked struct {
	Fitness Fitness
	Why     string // a sentence; empty for FitsNew, FitsSame and FitsMoved
	// Mirror is the Frozen of the present table or view of the name; empty if there is none.
	Mirror string
	// Document is nil if it cannot be read, and for UUIDTaken and NameTaken.
	Document document
}

// CheckRequest is a question what a register of a metadata file would meet.
type CheckRequest struct {
	MetadataLocation string
	// NewNamespace means that the namespace will be made first. Then its records do not count, and
	// the warehouse is the container.
	NewNamespace bool
}

// Check returns what a register as ident would meet now. It changes nothing.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace; KindForbidden; KindBadRequest for a malformed
// name; errors of the store and of a storage that does not answer.
func (m Mirrors) Check(ctx context.Context, kind access.Kind, ident moorage.Identifier, request CheckRequest) (
	Checked, error) {
	var checked Checked
	err := m.catalog.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		checked, err = m.check(ctx, kind, ident, request)
		return err
	})
	return checked, moorage.Annotate("catalog.Check", ident.String(), err)
}

func (m Mirrors) check(ctx context.Context, kind access.Kind, ident moorage.Identifier, request CheckRequest) (
	checked Checked, err error) {
	c, by, location := m.catalog, m.catalog.asker(gate.CheckRegister), request.MetadataLocation
	if err := ident.Validate(); err != nil {
		return checked, err
	}
	container := ident
	if request.NewNamespace {
		container = moorage.Identifier{Warehouse: ident.Warehouse}
	}
	path, err := c.directory.PathFor(ctx, by, by.Verb.Needs(gate.OfContainer, gate.Always), container)
	if err != nil {
		return checked, err
	}
	k := tableKind
	if kind == access.View {
		k = viewKind
	}
	r := &registration{kind: k, ident: ident, location: location, parent: parentAt(path)}
	if !request.NewNamespace {
		if r.entry, err = c.directory.ReadEntry(ctx, path, ident.Name); err != nil {
			return checked, err
		}
	}
	if _, err = storage.Parse(location); err != nil {
		err = documents.FileError(location, err)
	} else {
		r.document, err = c.documents.Read(ctx, k.Kind, ident.Warehouse, path.Storage, location)
	}
	switch kind := moorage.KindOf(err); {
	case err != nil && (kind == moorage.KindUnavailable || kind == moorage.KindTooManyRequests):
		return checked, err
	case errors.Is(err, storage.ErrOutside):
		return Checked{Fitness: IsOutside, Why: moorage.MessageOf(err)}, nil
	case err != nil:
		return Checked{Fitness: Unreadable, Why: moorage.MessageOf(tellFile(location, err))}, nil
	case !storage.IsMetadataFile(location):
		return Checked{Fitness: Unreadable, Why: "The name of a metadata file ends in .json or .json.gz"}, nil
	case len(r.document.UUID()) == 0, len(r.document.UUID()) > uuidBytesMax:
		return Checked{Fitness: Unreadable, Why: "The file has no uuid, or one that is too long"}, nil
	}
	own := []string{r.document.Location()}
	if err := c.readHolders(ctx, r); err != nil {
		return checked, err
	}
	if r.holder.Exists() {
		holder, err := ledger.Decode[registry.Pointer](r.holder)
		if err != nil {
			return checked, err
		}
		own = append(own, holder.Claims...)
	}
	if err := c.mayName(ctx, by, ident.Warehouse, registry.ID{}, own, placesIn(r.document)); err != nil {
		return checked, err
	}
	checked, err = c.fitnessOf(ctx, by, r)
	if checked.Fitness != UUIDTaken && checked.Fitness != NameTaken { // the file may be of a hidden table
		checked.Document = r.document
	}
	if err != nil || request.NewNamespace || checked.Why == "" {
		return checked, err
	}
	// A register between the reads of the name and of the uuid looks as if another name had the
	// uuid.
	now, err := c.directory.ReadEntry(ctx, path, ident.Name)
	if err == nil && now.Record.ETag != r.entry.Record.ETag {
		err = ledger.ErrRetry
	}
	return checked, err
}

// fitnessOf returns how the file of r fits its name. The records of r have been read.
func (p *parts) fitnessOf(ctx context.Context, by directory.Asker, r *registration) (Checked, error) {
	if r.occupant.Exists() {
		occupant, err := ledger.Decode[registry.Pointer](r.occupant)
		switch {
		case err != nil:
			return Checked{}, err
		case r.entry.Record.State != r.kind.State:
			return Checked{Fitness: NameTaken, Why: "A " + nounOf(occupant) + " has the name"}, nil
		case r.holder.Key != r.occupant.Key:
			return Checked{Fitness: NameTaken, Why: "Another " + nounOf(occupant) + " has the name, with the uuid " +
				occupant.TableUUID}, nil
		case occupant.MetadataLocation == r.location:
			return Checked{Fitness: FitsSame, Mirror: occupant.Frozen}, nil
		case occupant.Frozen != "":
			return Checked{Fitness: FitsMoved, Mirror: occupant.Frozen}, nil
		}
		return Checked{Fitness: FitsChanged, Why: "It is no mirror, and has the metadata file " +
			occupant.MetadataLocation}, nil
	}
	err := p.readPointer(r)
	if moorage.KindOf(err) == moorage.KindAlreadyExists && err != nil {
		return Checked{Fitness: UUIDTaken, Why: moorage.MessageOf(err)}, nil
	}
	if err != nil {
		return Checked{}, err
	}
	who := claims.Claimant{
		Pointer: r.pointer.ID, TableUUID: r.document.UUID(), MayTake: p.directory.Taking(by),
	}
	_, err = p.claims.Plan(ctx, r.parent.warehouse.Roots(), r.document.Location(), who)
	if taken, ok := errors.AsType[*claims.TakenError](err); ok {
		why := claims.Refusal(taken, r.document.Location())
		return Checked{Fitness: IsNested, Why: moorage.MessageOf(why)}, nil
	}
	if moorage.KindOf(err) == moorage.KindBadRequest && err != nil {
		return Checked{Fitness: IsOutside, Why: moorage.MessageOf(err)}, nil
	}
	return Checked{Fitness: FitsNew}, err
}

// MetadataFile is a metadata file in a listing.
type MetadataFile struct {
	Location string // normalised
	Bytes    int64
	Modified time.Time
}

// filesScanned is how many files one call of Files looks at.
const filesScanned = 5000

// Files returns a page of the metadata files below a folder, in no order. They may belong to tables
// of another catalog. A page may be empty before the last: next is the token of the next page,
// empty on the last one.
//
// Errors: KindNoSuchWarehouse; KindForbidden; KindBadRequest if the folder is outside the locations
// of the warehouse; KindUnsupported if its storage cannot list.
func (m Mirrors) Files(ctx context.Context, warehouse, folder, after string) (
	files []MetadataFile, next string, err error) {
	files, next, err = m.files(ctx, warehouse, folder, after)
	return files, next, moorage.Annotate("catalog.Files", warehouse, err)
}

func (m Mirrors) files(ctx context.Context, warehouse, folder, after string) (
	files []MetadataFile, next string, err error) {
	c, by := m.catalog, m.catalog.asker(gate.ListFiles)
	on := moorage.Identifier{Warehouse: warehouse}
	path, err := c.directory.PathFor(ctx, by, by.Verb.Needs(gate.OfObject, gate.Always), on)
	if err != nil {
		return nil, "", err
	}
	if err := claims.CheckFolder(path.Warehouse.Roots(), folder); err != nil {
		return nil, "", err
	}
	lister, ok := path.Storage.(storage.Lister)
	if !ok {
		return nil, "", moorage.Errorf(moorage.KindUnsupported,
			"The storage of warehouse %s cannot list files", warehouse)
	}
	page, err := lister.List(ctx, folder, after, filesScanned)
	if err != nil {
		return nil, "", err
	}
	for _, file := range page.Files {
		if strings.HasSuffix(strings.TrimSuffix(file.Location, ".gz"), ".metadata.json") {
			files = append(files, MetadataFile{file.Location, file.Bytes, file.Modified})
		}
	}
	return files, page.Next, nil
}
