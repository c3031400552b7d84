package catalog

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/metadata"
)

// ListViews returns the names of the views in a namespace, sorted. To get the next page, pass next
// as page.After. next is empty on the last page.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace. Source: REST specification, listViews.
func (c *Catalog) ListViews(ctx context.Context, warehouse string, ns moorage.Namespace, page moorage.Page) (
	names []string, next string, err error) {
	names, next, err = c.listEntries(ctx, viewKind, warehouse, ns, page)
	return names, next, moorage.Annotate("catalog.ListViews", ns.String(), err)
}

// CreateView creates a view. Like a table, it has a name and a location of its own.
//
// Errors: the errors of CreateTable. Durable when it returns. Source: REST specification,
// createView.
func (c *Catalog) CreateView(ctx context.Context, ident moorage.Identifier, request CreateViewRequest) (*View, error) {
	outcome, err := c.submit(ctx, c.create(c.asker(gate.CreateView), ident, creation{
		kind: viewKind, location: request.Location, properties: request.Properties,
		build: func(location string, env metadata.Env) (document, error) {
			return request.build(location, env)
		},
	}))
	return viewOf(outcome.Version), moorage.Annotate("catalog.CreateView", ident.String(), err)
}

// build returns the document of the new view at location.
func (r CreateViewRequest) build(location string, env metadata.Env) (*metadata.ViewDocument, error) {
	return metadata.NewView(metadata.CreateView{
		Location: location, Schema: r.Schema, Version: r.Version, Properties: r.Properties,
	}, env)
}

// LoadView returns the current version of a view. It takes no locks. If the view was loaded before,
// it reads the store only once.
//
// Errors: KindNoSuchView, also if the namespace is missing or a table has that name; KindNotFound
// if the metadata file is missing; KindInternal if the metadata file cannot be read. through has
// the same meaning as in LoadTable, and does not include the view itself. Source: REST
// specification, loadView.
func (c *Catalog) LoadView(ctx context.Context, ident moorage.Identifier, through ...moorage.Identifier) (
	*View, error) {
	loaded, _, err := c.load(ctx, gate.LoadView, ident, through)
	view := viewOf(loaded)
	if err == nil {
		view.Labels, err = c.labels.textOf(ctx, loaded.Pointer, loaded.Labels)
	}
	return view, moorage.Annotate("catalog.LoadView", ident.String(), err)
}

// ViewExists returns nil if the view exists, and otherwise the error that LoadView would return. It
// does not read the metadata file.
func (c *Catalog) ViewExists(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.resolve(ctx, gate.ViewExists, ident)
	return moorage.Annotate("catalog.ViewExists", ident.String(), err)
}

// ReplaceView changes one view, like Commit for a table. Concurrent replaces are applied one after
// the other, as long as their requirements hold. The specification has only one requirement: the
// view-uuid.
//
// Errors: KindNoSuchView; otherwise the errors of Commit. Durable when it returns. Source: REST
// specification, replaceView.
func (c *Catalog) ReplaceView(ctx context.Context, ident moorage.Identifier, request ReplaceViewRequest) (
	*View, error) {
	edit := viewEdit{request, c.parts, c.asker(gate.Replace)}
	outcome, err := c.submit(ctx, c.replacement(ident, request.Updates, edit))
	return viewOf(outcome.Version), moorage.Annotate("catalog.ReplaceView", ident.String(), err)
}

// replacement returns the intent of an edit of a view with these updates.
func (c *Catalog) replacement(ident moorage.Identifier, updates []metadata.ViewUpdate, edit commit.Edit) commit.Intent {
	return commit.Intent{
		Verb: gate.Replace, On: []moorage.Identifier{ident},
		Edits: []commit.Target{{
			Kind: directory.View(), Ident: ident, Edit: edit,
			Asks:   gate.Replace.NeedsFor(gate.OfObject, gate.ForUpdates, askedByView(updates)),
			Admits: c.checkPathUpdates(c.asker(gate.Replace), ident, pathsIn(updates)),
		}},
	}
}

// viewEdit is the edit of a view.
type viewEdit struct {
	ReplaceViewRequest
	parts *parts // to plan the owner of the view
	by    directory.Asker
}

func (e viewEdit) Check(base document) error {
	return metadata.CheckView(base.(*metadata.ViewDocument), e.Requirements)
}

func (e viewEdit) Next(base document, env metadata.Env) (document, error) {
	if err := e.Check(base); err != nil {
		return nil, err
	}
	return base.(*metadata.ViewDocument).Apply(e.Updates, env)
}

func (e viewEdit) Asks() bool { return len(e.Updates) > 0 }

// Actions implements commit.Edit.
func (e viewEdit) Actions() []string { return textsOf(e.Updates) }

// Replays returns false. No check is needed, because a version that is added again counts as
// existing (see metadata.ViewDocument.Apply).
func (e viewEdit) Replays(document) bool { return false }

func (e viewEdit) Pins() bool { return metadata.AssertsViewUUID(e.Requirements) }

// DropView removes a view's name, and keeps the pointer and its claims for the undrop window. It
// deletes no files. The metadata file need not exist.
//
// Errors: KindNoSuchView, KindUnavailable, KindCommitUnknown. Durable when it returns. Source: REST
// specification, dropView.
func (c *Catalog) DropView(ctx context.Context, ident moorage.Identifier) error {
	_, err := c.submit(ctx, c.drop(c.asker(gate.DropView), viewKind, ident, DropOptions{}))
	return moorage.Annotate("catalog.DropView", ident.String(), err)
}

// RenameView gives a view another name in the same warehouse. Its pointer and the location of its
// metadata stay the same.
//
// Errors: KindNoSuchView for the source; otherwise the errors of RenameTable. Durable when it
// returns. Source: REST specification, renameView.
func (c *Catalog) RenameView(ctx context.Context, from, to moorage.Identifier) error {
	_, err := c.submit(ctx, c.rename(c.asker(gate.RenameView), viewKind, from, to))
	return moorage.Annotate("catalog.RenameView", from.String(), err)
}

// RegisterView creates a view from an existing metadata file. It stores the location as the request
// spells it, and writes no file. If the view-uuid belongs to a dropped view, that view is restored,
// with its pointer.
//
// Errors: the errors of RegisterTable. Durable when it returns. Source: REST specification,
// registerView.
func (c *Catalog) RegisterView(ctx context.Context, ident moorage.Identifier, metadataLocation string) (*View, error) {
	request := RegisterRequest{MetadataLocation: metadataLocation}
	outcome, err := c.submit(ctx, c.register(c.asker(gate.RegisterView), viewKind, ident, request))
	view := viewOf(outcome.Version)
	if view != nil {
		view.Labels = c.labels.ofMade(ctx, view.pointer, view.Labels)
	}
	return view, moorage.Annotate("catalog.RegisterView", ident.String(), err)
}

// askedByView returns the privileges that updates of a view require.
func askedByView(updates []metadata.ViewUpdate) (asked access.Privileges) {
	for _, update := range updates {
		asked |= gate.OfUpdate(update.Action(), update.Names())
	}
	return asked
}
