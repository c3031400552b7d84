package catalog

import (
	"context"
	"time"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// MaintenanceEdit is a maintenance commit of the server to one table, which is identified by its
// pointer's id.
type MaintenanceEdit struct {
	Verb gate.Verb // gate.Expire
	// Plan returns the updates to apply to base. It returns no updates if there is nothing to do.
	// It must be a pure function. Each attempt calls it with the table's present version, so it
	// sees all earlier commits. now is the store's time when the edit began.
	Plan func(base *metadata.Document, now time.Time) ([]metadata.Update, error)
	// Beside returns changes for the same Apply that moves the table's pointer; see
	// commit.Accompanied. It may be nil.
	Beside func(ctx context.Context, before, next *Version) (Beside, error)
}

// Version is one version of a table, before or after a maintenance edit.
type Version = commit.Version

// Beside holds changes for the same Apply that moves a table's pointer.
type Beside = commit.Beside

// ErrBeside means that a condition of a Beside is not met.
var ErrBeside = commit.ErrBeside

// Tables is the interface of the catalog for maintenance, which identifies tables by ID. It is safe
// for concurrent use.
type Tables struct {
	catalog   *Catalog // submits edits, as its caller
	pipeline  *commit.Pipeline
	directory *directory.Directory
	documents *documents.Documents
	ledger    *ledger.Ledger
}

// Tables returns the tables of c, as its caller.
func (c *Catalog) Tables() *Tables { return &Tables{c, c.pipeline, c.directory, c.documents, c.ledger} }

// Maintain commits a maintenance edit to the table with this id, as the caller of t. It returns the
// version of the table, and whether Maintain created that version. Other writers are not disturbed:
// Maintain retries after a conflict, and takes no lock before it has had several conflicts.
//
// Errors: the errors of Catalog.Commit; the errors of Plan and Beside; ErrBeside. After
// KindCommitUnknown, the outcome of the changes of Beside is unknown, too.
func (t *Tables) Maintain(ctx context.Context, pointer registry.ID, asked MaintenanceEdit) (
	version *Version, changed bool, err error) {
	const op = "catalog.Maintain"
	now, err := t.ledger.Time(ctx)
	if err != nil {
		return nil, false, moorage.Annotate(op, pointer.String(), err)
	}
	found, err := t.directory.FindPointer(ctx, pointer)
	if err != nil {
		return nil, false, moorage.Annotate(op, pointer.String(), err)
	}
	edit := &maintenanceEdit{asked: asked, now: now}
	ident := found.Pointer.Identifier()
	outcome, err := t.catalog.submit(ctx, commit.Intent{
		Verb: asked.Verb, On: []moorage.Identifier{ident},
		Edits: []commit.Target{{Kind: directory.Table(), Ident: ident, Pointer: pointer, Edit: edit}},
	})
	return outcome.Version, err == nil && edit.changes, moorage.Annotate(op, ident.String(), err)
}

// Former is the result of TrimFormer.
type Former = documents.Former

// TrimFormer deletes old metadata files of the live table with this id. A file is deleted if it
// left the table's metadata log longer ago than kept; see documents.TrimFormer. No file is deleted
// once allows returns an error for the table's present version. It creates no version.
//
// Errors: KindNoSuchTable; the errors of documents.TrimFormer.
func (t *Tables) TrimFormer(ctx context.Context, pointer registry.ID, kept time.Duration,
	allows func(ctx context.Context, present *Version) error) (former Former, err error) {
	const op = "catalog.TrimFormer"
	now, err := t.ledger.Time(ctx)
	if err != nil {
		return former, moorage.Annotate(op, pointer.String(), err)
	}
	err = t.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		found, err := t.directory.FindPointer(ctx, pointer)
		if err == nil && found.Pointer.Frozen != "" {
			err = gate.FrozenObject(found.Pointer.Identifier(), found.Pointer.Frozen)
		}
		if err != nil {
			return err
		}
		former, err = t.documents.TrimFormer(ctx, found, now, kept,
			func(ctx context.Context, table *directory.Found, document *metadata.Document) error {
				return allows(ctx, commit.VersionOf(table, table.Pointer.Identifier(), document))
			})
		return err
	})
	return former, moorage.Annotate(op, pointer.String(), err)
}

// TableByID returns the present version of the live table with this id. It also returns the table's
// pointer, with the id of the warehouse filled in.
//
// Errors: KindNoSuchTable; the errors of Catalog.LoadTable.
func (t *Tables) TableByID(ctx context.Context, pointer registry.ID) (*Version, registry.Pointer, error) {
	version, table, err := t.byID(ctx, pointer, t.documents.Current)
	return version, table, moorage.Annotate("catalog.TableByID", pointer.String(), err)
}

// GlanceByID returns the same version as TableByID, but does not cache the metadata. It is for
// callers that read many tables once.
func (t *Tables) GlanceByID(ctx context.Context, pointer registry.ID) (*Version, error) {
	version, _, err := t.byID(ctx, pointer, t.documents.Glance)
	return version, moorage.Annotate("catalog.GlanceByID", pointer.String(), err)
}

func (t *Tables) byID(ctx context.Context, pointer registry.ID,
	read func(context.Context, *directory.Found) (documents.Document, error)) (
	version *Version, table registry.Pointer, err error) {
	err = t.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		found, err := t.directory.FindPointer(ctx, pointer)
		if err != nil {
			return err
		}
		document, err := read(ctx, found)
		if err != nil {
			return err
		}
		version = commit.VersionOf(found, found.Pointer.Identifier(), document)
		table = found.Pointer
		table.WarehouseID = found.Warehouse
		return nil
	})
	return version, table, err
}

// Find returns the id of the live table called ident.
//
// Errors: KindNoSuchTable.
func (t *Tables) Find(ctx context.Context, ident moorage.Identifier) (registry.ID, error) {
	found, err := t.directory.Find(ctx, directory.Table(), ident)
	if err != nil {
		return registry.ID{}, moorage.Annotate("catalog.Find", ident.String(), err)
	}
	return found.Pointer.ID, nil
}

// WarehouseLocation returns the location where a warehouse creates its tables, and a storage that
// reaches it.
func (t *Tables) WarehouseLocation(ctx context.Context, warehouse string) (string, storage.Store, error) {
	path, err := t.directory.Path(ctx, warehouse, nil)
	if err != nil {
		return "", nil, moorage.Annotate("catalog.WarehouseLocation", warehouse, err)
	}
	return path.Warehouse.Location, path.Storage, nil
}

// WithDropped calls do with the last version of a dropped table. pointer is the table's pointer,
// and state is the state of the pointer's record. WithDropped reads the files with the storage that
// the warehouse had at the drop. The warehouse may have another name now, or be gone.
//
// Errors: the errors of do; the errors of a load; KindNotFound if the table's metadata file is
// gone.
func (t *Tables) WithDropped(ctx context.Context, pointer registry.Pointer, state registry.State,
	do func(*Version) error) error {
	const op = "catalog.WithDropped"
	files, giveBack, err := t.documents.StorageOf(ctx, pointer, state)
	if err != nil {
		return moorage.Annotate(op, pointer.ID.String(), err)
	}
	defer giveBack()
	document, err := t.documents.ReadMetadata(ctx, pointer, files)
	if err != nil {
		return moorage.Annotate(op, pointer.ID.String(), err)
	}
	found := &directory.Found{Pointer: pointer, Storage: files}
	return do(commit.VersionOf(found, pointer.Identifier(), document))
}

// Unregistered returns the table that the metadata file at location describes. The table need not
// be in the catalog. It returns nil if the file describes a view. It reads the file with the
// storage of warehouse.
//
// Errors: KindNotFound; KindNoSuchWarehouse; the error of metadata.Parse.
func (t *Tables) Unregistered(ctx context.Context, warehouse, location string) (*metadata.Document, error) {
	const op = "catalog.Unregistered"
	path, err := t.directory.Path(ctx, warehouse, nil)
	if err != nil {
		return nil, moorage.Annotate(op, warehouse, err)
	}
	read := func(k *directory.Kind) (documents.Document, error) {
		return t.documents.Read(ctx, k, warehouse, path.Storage, location)
	}
	document, err := read(directory.Table())
	if err == nil {
		return document.(*metadata.Document), nil
	}
	if _, viewErr := read(directory.View()); viewErr == nil {
		return nil, nil
	}
	return nil, moorage.Annotate(op, location, err)
}

// Waiting reports whether commits to the table with this id are waiting on this node for an earlier
// commit to end.
func (t *Tables) Waiting(pointer registry.ID) bool {
	return t.pipeline.Waiting(pointer)
}

// maintenanceEdit implements commit.Edit for a MaintenanceEdit.
type maintenanceEdit struct {
	asked   MaintenanceEdit
	now     time.Time
	changes bool // whether the last attempt created a version
	updates []metadata.Update
}

func (e *maintenanceEdit) Check(document) error { return nil }

func (e *maintenanceEdit) Next(base document, env metadata.Env) (document, error) {
	e.changes = false
	table := base.(*metadata.Document)
	updates, err := e.asked.Plan(table, e.now)
	if err != nil || len(updates) == 0 {
		return base, err
	}
	e.updates = updates
	return table.Apply(updates, env)
}

func (e *maintenanceEdit) Asks() bool            { return true }
func (e *maintenanceEdit) Actions() []string     { return textsOf(e.updates) }
func (e *maintenanceEdit) Replays(document) bool { return false }
func (e *maintenanceEdit) Pins() bool            { return true }

// Beside implements commit.Accompanied.
func (e *maintenanceEdit) Beside(ctx context.Context, found *directory.Found, base, next document) (Beside, error) {
	e.changes = true
	if e.asked.Beside == nil {
		return Beside{}, nil
	}
	ident := found.Pointer.Identifier()
	after := commit.VersionOf(found, ident, next)
	after.Location = "" // the next version has no file yet
	return e.asked.Beside(ctx, commit.VersionOf(found, ident, base), after)
}
