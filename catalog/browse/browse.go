// Package browse has the verbs for looking at objects. They describe one object, list a container,
// search names for words, and judge the state of a table. A list or search reads only records;
// metadata documents and manifests are read for one object at a time. Package browse changes
// nothing.
package browse

import (
	"cmp"
	"context"
	"io"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

// Config holds the parts of a Browse. All fields but Guard are required.
type Config struct {
	Ledger    *ledger.Ledger
	Directory *directory.Directory
	Documents *documents.Documents
	// Guard decides about requests. If it is nil, every caller sees everything.
	Guard *gate.Guard
	// Activity holds this node's memory of recent commits.
	Activity *activity.Activity
	// Store is the store under the ledger. It gives access to the order of changes.
	Store  registry.Store
	Now    func() time.Time
	Random io.Reader
}

// Browse has the verbs for looking at objects, as one caller: see As. It is safe for concurrent
// use.
//
// Errors of all verbs: the errors for missing and hidden objects; KindForbidden; KindUnavailable.
type Browse struct {
	*parts
	caller moorage.Caller
}

// parts holds the parts shared by all Browses from one call of New.
type parts struct {
	ledger    *ledger.Ledger
	directory *directory.Directory
	documents *documents.Documents
	guard     *gate.Guard
	random    io.Reader
	now       func() time.Time
	activity  *activity.Activity
	names     *names
	counts    *counts
	deep      chan struct{} // a semaphore: each deep look in progress holds one element
}

// New returns a Browse over the parts of config. It has no caller yet: see As.
func New(config Config) *Browse {
	return &Browse{parts: &parts{
		ledger: config.Ledger, directory: config.Directory, documents: config.Documents, guard: config.Guard,
		random: config.Random, now: config.Now, activity: config.Activity, names: newNames(config.Ledger, config.Store),
		counts: newCounts(config.Ledger, config.Now), deep: make(chan struct{}, deepAtOnce),
	}}
}

// As returns the verbs, as caller.
func (b *Browse) As(caller moorage.Caller) *Browse { return &Browse{b.parts, caller} }

// Row is an object in a list.
type Row struct {
	Kind  access.Kind
	Ident moorage.Identifier // without Name for a warehouse or namespace
	// Details are nil if the caller sees the object, but may not describe it. They are also nil if
	// the record of the object cannot be read.
	Details *Details
}

// Details are the parts of a Row that require access.Describe.
type Details struct {
	ID       registry.ID
	UUID     string // of a table or view
	Creator  string // empty if unknown
	Labelled bool
	// Protected means that the object, or a container of it, is protected from drops.
	Protected bool
	// Mirror names the catalog that a mirror follows. It is empty for other objects.
	Mirror string
	// Last is the change that wrote the present version. For a table or view, it includes the
	// summary. It is zero if unknown.
	Last registry.Last
}

// detailsOf returns the details of a table or view.
func detailsOf(pointer registry.Pointer) *Details {
	return &Details{
		ID: pointer.ID, UUID: pointer.TableUUID, Creator: moorage.NameOf(pointer.Creator),
		Labelled: !pointer.Labels.IsZero(), Protected: pointer.Protected, Mirror: pointer.Frozen,
		Last: pointer.LastIn(registry.StateLive),
	}
}

// Column is a field of a table or view.
type Column = metadata.Column

// Object is one object, with everything that the catalog knows about it.
type Object struct {
	Row
	Owner      string // empty if the object has no owner
	Properties map[string]string
	Location   string
	// The fields below are set only for a table or view.
	MetadataLocation string
	Columns          []Column
	Labels           registry.Labels
}

// Object returns the object at a path of names in a warehouse: the warehouse itself, a namespace, a
// table or a view. A table or view wins over a namespace of the same name. The caller needs
// access.Describe on the object.
//
// Errors: KindNotFound if no object of that name is visible to the caller.
func (b *Browse) Object(ctx context.Context, warehouse string, path []string) (Object, error) {
	const op = "browse.Object"
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: path}
	if err := moorage.ValidateWarehouse(warehouse); err != nil {
		return Object{}, moorage.Annotate(op, warehouse, err)
	}
	if len(path) > 1 {
		named := moorage.Identifier{Warehouse: warehouse, Namespace: path[:len(path)-1], Name: path[len(path)-1]}
		found, there, err := b.named(ctx, named)
		if err != nil || there {
			return found, moorage.Annotate(op, named.String(), err)
		}
	}
	found, err := b.container(ctx, ident)
	if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
		err = moorage.Errorf(moorage.KindNotFound, "Nothing in the warehouse %s is called %s", warehouse,
			ident.Namespace)
	}
	return found, moorage.Annotate(op, ident.String(), err)
}

// named returns the table or view called ident. If none is visible to the caller, there is false.
func (b *Browse) named(ctx context.Context, ident moorage.Identifier) (object Object, there bool, err error) {
	if ident.Validate() != nil {
		return object, false, nil
	}
	path, entry, err := b.directory.PathAndEntry(ctx, ident)
	kind := directory.Table()
	switch {
	case moorage.KindOf(err) == moorage.KindNoSuchNamespace && err != nil, err == nil && !entry.Record.Exists():
		return object, false, nil
	case moorage.KindOf(err) == moorage.KindNoSuchWarehouse && err != nil:
		return object, false, nil // looking up the namespace fails in the same way
	case err != nil:
		return object, false, err
	case entry.Record.State == registry.StateView:
		kind = directory.View()
	}
	asked := gate.LoadObject.Needs(gate.OfObject, gate.Always)
	found, err := b.directory.FindFor(ctx, b.asker(gate.LoadObject), asked, kind, ident)
	switch moorage.KindOf(err) {
	case kind.Missing, moorage.KindNoSuchWarehouse:
		if err != nil {
			return object, false, nil
		}
	}
	if err != nil {
		return object, false, err
	}
	pointer := found.Pointer
	object = Object{
		Row:              Row{Kind: found.Object(ident).Kind(), Ident: ident, Details: detailsOf(pointer)},
		MetadataLocation: pointer.MetadataLocation,
	}
	_, within := path.Protection()
	object.Details.Protected = within || pointer.Protected
	if object.Owner, object.Labels, err = b.besides(ctx, pointer); err != nil {
		return object, false, err
	}
	document, err := b.documents.Glance(ctx, found)
	if err != nil {
		return object, false, err
	}
	described := document.(interface {
		Properties() map[string]string
		Columns() []metadata.Column
	})
	object.Properties, object.Columns = described.Properties(), described.Columns()
	object.Location = document.Location()
	return object, true, nil
}

// besides returns the owner and the labels of a table or view.
func (b *Browse) besides(ctx context.Context, pointer registry.Pointer) (
	owner string, labels registry.Labels, err error) {
	var keys []registry.Key
	if pointer.Granted {
		keys = append(keys, registry.GrantsKey(pointer.ID))
	}
	if !pointer.Labels.IsZero() {
		keys = append(keys, registry.LabelKey(pointer.ID))
	}
	owner = pointer.Creator
	if len(keys) == 0 {
		return moorage.NameOf(owner), labels, nil
	}
	records, err := b.ledger.Get(ctx, keys...)
	if err != nil {
		return "", labels, err
	}
	for _, record := range records {
		switch {
		case !record.Exists(): // it was removed in the meantime
		case record.Key.Table == registry.TableLabel:
			// Labels that cannot be read are left out, as in loads: they hide no table.
			labels, _ = ledger.Decode[registry.Labels](record)
		default:
			grants, err := ledger.Decode[registry.Grants](record)
			if err != nil {
				return "", labels, err
			}
			owner = cmp.Or(grants.Owner, owner)
		}
	}
	return moorage.NameOf(owner), labels, nil
}

// container returns the warehouse or namespace of ident.
func (b *Browse) container(ctx context.Context, ident moorage.Identifier) (object Object, err error) {
	if len(ident.Namespace) > 0 {
		if err := ident.Namespace.Validate(); err != nil {
			return object, err
		}
	}
	asked := gate.LoadObject.Needs(gate.OfObject, gate.Always)
	path, err := b.directory.PathFor(ctx, b.asker(gate.LoadObject), asked, ident)
	if err != nil {
		return object, err
	}
	above := path.Above()[0]
	object = Object{Row: Row{Kind: above.Kind, Ident: ident}, Location: path.Warehouse.Location}
	object.Details = &Details{ID: path.ID(), Creator: moorage.NameOf(above.Creator)}
	object.Owner = object.Details.Creator
	_, object.Details.Protected = path.Protection()
	granted, properties := path.Warehouse.Granted, path.Warehouse.Properties
	last := path.Warehouse.LastIn(path.Record().State)
	if above.Kind == access.Namespace {
		namespace, err := ledger.Decode[registry.Namespace](path.Record())
		if err != nil {
			return object, err
		}
		granted, properties = namespace.Granted, namespace.Properties
		last = namespace.LastIn(path.Record().State)
		object.Location, _ = path.Home()
	}
	object.Properties, object.Details.Last = properties, last
	if !granted {
		return object, nil
	}
	records, err := b.ledger.Get(ctx, registry.GrantsKey(path.ID()))
	if err != nil || !records[0].Exists() {
		return object, err
	}
	grants, err := ledger.Decode[registry.Grants](records[0])
	if err == nil && grants.Owner != "" {
		object.Owner = moorage.NameOf(grants.Owner)
	}
	return object, err
}

// asker returns the Asker for the caller of b and v.
func (b *Browse) asker(v gate.Verb) directory.Asker {
	return directory.Asker{Caller: b.caller, Verb: v}
}
