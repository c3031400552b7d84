package catalog

import (
	"bytes"
	"context"
	"path"
	"strconv"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/history"
	"moorage/metadata"
)

// ViewVersion is one version of a view: a metadata file.
type ViewVersion struct {
	Location string
	Document *metadata.ViewDocument
}

// LoadViewVersion returns a version of a view: the present one, or an earlier one whose change
// record still exists. The metadata of a view names no earlier files.
//
// Errors: the errors of LoadView; KindBadRequest if name does not name a metadata file;
// KindNotFound if there is no such version, or if its file was deleted.
func (c *Catalog) LoadViewVersion(ctx context.Context, ident moorage.Identifier, name VersionName) (
	ViewVersion, error) {
	versions, err := c.viewVersions(ctx, gate.LoadVersion, ident, name)
	if err != nil {
		return ViewVersion{}, moorage.Annotate("catalog.LoadViewVersion", ident.String(), err)
	}
	return versions[0], nil
}

// ViewDifference describes the difference between two versions of a view.
type ViewDifference struct {
	From ViewVersion `json:"-"`
	To   ViewVersion `json:"-"`
	metadata.ViewDifference
}

// DiffViews returns the difference between two versions of a view. It returns the errors of
// LoadViewVersion.
func (c *Catalog) DiffViews(ctx context.Context, ident moorage.Identifier, from, to VersionName) (
	ViewDifference, error) {
	const op = "catalog.DiffViews"
	versions, err := c.viewVersions(ctx, gate.DiffVersions, ident, from, to)
	if err != nil {
		return ViewDifference{}, moorage.Annotate(op, ident.String(), err)
	}
	found := ViewDifference{From: versions[0], To: versions[1]}
	found.ViewDifference, err = metadata.DiffViews(found.From.Document, found.To.Document)
	return found, moorage.Annotate(op, ident.String(), err)
}

// viewVersions returns the versions of a view with these names, if the caller may use v on the
// view.
func (c *Catalog) viewVersions(ctx context.Context, v gate.Verb, ident moorage.Identifier, names ...VersionName) (
	found []ViewVersion, err error) {
	if err := checkNames(names); err != nil {
		return nil, err
	}
	loaded, err := c.presentVersion(ctx, v, directory.View(), ident)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := c.viewVersionOf(ctx, loaded, name)
		if err != nil {
			return nil, err
		}
		found = append(found, version)
	}
	return found, nil
}

// viewVersionOf returns the version called name of a view whose present version is loaded.
func (p *parts) viewVersionOf(ctx context.Context, loaded *commit.Version, name VersionName) (ViewVersion, error) {
	present := ViewVersion{loaded.Location, loaded.Document.(*metadata.ViewDocument)}
	if name.back == 0 {
		return present, nil
	}
	file, err := p.viewFileOf(ctx, loaded, name)
	if err != nil {
		return ViewVersion{}, err
	}
	if file == present.Location {
		return present, nil
	}
	read, err := p.readFormer(ctx, loaded, name, file)
	if err != nil {
		return ViewVersion{}, err
	}
	return ViewVersion{file, read.(*metadata.ViewDocument)}, nil
}

// viewFileOf returns the metadata file of a version of a view. The pointer named that file, so it
// belongs to the view.
func (p *parts) viewFileOf(ctx context.Context, loaded *commit.Version, name VersionName) (string, error) {
	if name.change != "" {
		return p.fileAfter(ctx, loaded, name)
	}
	file, seen, err := p.history.FindFile(ctx, loaded.Found, func(file history.MadeFile) bool {
		switch {
		case name.back > 0:
			return file.Back == name.back
		case name.file != "":
			return path.Base(file.Location) == name.file
		}
		return !file.Time.After(name.at)
	})
	if err == nil && file == "" {
		err = moorage.Errorf(moorage.KindNotFound,
			"There is no version %s: of the last %d changes of the view, those that are kept made %s", name,
			history.FilesMax, moorage.Counted(seen, "metadata file"))
	}
	return file, err
}

// RolledBackView is the result of RollbackView. Was and View are the versions before and after,
// with the same exceptions as in RolledBack.
type RolledBackView struct {
	metadata.Rollback
	Was, View ViewVersion
}

// RollbackView makes an earlier version of a view the current one. It makes an ordinary commit,
// which fails if another commit happens in between. A rollback deletes nothing, and another
// rollback can undo it.
//
// To is the name of a version, or the id of a version in the view's metadata.
//
// Errors: the errors of LoadViewVersion, of metadata.RollbackView and RollbackViewToID, and of
// ReplaceView. KindBadRequest for a branch. KindCommitFailed if the view has changed in the
// meantime. The caller needs the privileges of each update.
func (c *Catalog) RollbackView(ctx context.Context, ident moorage.Identifier, asked RollbackRequest) (
	RolledBackView, error) {
	result, err := c.rollbackView(ctx, ident, asked)
	return result, moorage.Annotate("catalog.RollbackView", ident.String(), err)
}

func (c *Catalog) rollbackView(ctx context.Context, ident moorage.Identifier, asked RollbackRequest) (
	result RolledBackView, err error) {
	edit, present, err := c.viewStepOf(ctx, ident, asked, &result)
	if asked.DryRun {
		return result, err
	}
	// An earlier attempt with the same key decides the outcome, even if this one would fail or
	// change nothing.
	var outcome commit.Outcome
	switch {
	case err != nil:
		outcome, err = c.submit(ctx, refusal(gate.Replace, ident, err))
	case result.IsEmpty():
		outcome, err = c.submit(ctx, unchanged(gate.Replace, present))
	default:
		outcome, err = c.submit(ctx, c.replacement(ident, edit.Updates, edit))
	}
	if err != nil {
		return result, err
	}
	result.View = ViewVersion{outcome.Version.Location, outcome.Version.Document.(*metadata.ViewDocument)}
	if outcome.IsStored {
		result.Was, result.Rollback = result.View, metadata.NoRollback(
			"An earlier attempt with this Idempotency-Key was carried out. This attempt changed nothing.")
	}
	return result, nil
}

// viewStepOf is like stepOf, for a view.
func (c *Catalog) viewStepOf(ctx context.Context, ident moorage.Identifier, asked RollbackRequest,
	result *RolledBackView) (edit viewRollback, present *commit.Version, err error) {
	present, err = c.presentVersion(ctx, gate.Rollback, directory.View(), ident)
	if err != nil {
		return edit, nil, err
	}
	was := present.Document.(*metadata.ViewDocument)
	result.Was = ViewVersion{present.Location, was}
	result.View = result.Was
	if err := asked.checkFrom(present); err != nil {
		return edit, present, err
	}
	if result.Rollback, err = c.planViewRollback(ctx, present, asked); err != nil {
		return edit, present, err
	}
	edit = viewRollback{viewEdit{parts: c.parts, by: c.asker(gate.Replace)}, was}
	edit.Requirements, edit.Updates, err = result.ViewStep()
	return edit, present, err
}

// planViewRollback returns the commit that carries out a rollback of a view.
func (p *parts) planViewRollback(ctx context.Context, loaded *commit.Version, asked RollbackRequest) (
	metadata.Rollback, error) {
	if asked.Ref != "" || asked.Any {
		return metadata.Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"A view has no branches: leave out ref and any")
	}
	present := loaded.Document.(*metadata.ViewDocument)
	id, unread := strconv.ParseInt(asked.To.text, 10, 32)
	isID := unread == nil && present.HasVersion(int(id))
	if !isID && (asked.To.isFile() || asked.To.change != "") {
		then, err := p.viewVersionOf(ctx, loaded, asked.To)
		if err != nil {
			return metadata.Rollback{}, err
		}
		parts := metadata.RollbackRefs
		if asked.All {
			parts = metadata.RollbackAll
		}
		return metadata.RollbackView(present, then.Document, parts)
	}
	switch {
	case !isID:
		return metadata.Rollback{}, moorage.Errorf(moorage.KindNotFound,
			"%s is no version of the view, nor the id of one", asked.To)
	case asked.All:
		return metadata.Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"A version of a view has no properties: name a metadata file, such as now~1, to roll back all parts")
	}
	return metadata.RollbackViewToID(present, int(id))
}

// viewRollback is the edit of a rollback of a view. A commit of a view can require only a uuid. So
// the edit itself checks that the metadata has not changed since the rollback was planned.
type viewRollback struct {
	viewEdit
	was *metadata.ViewDocument
}

func (e viewRollback) Check(base document) error {
	if !bytes.Equal(base.Raw(), e.was.Raw()) {
		return moorage.Errorf(moorage.KindCommitFailed, "Another commit has changed the view since the rollback began")
	}
	return e.viewEdit.Check(base)
}

func (e viewRollback) Next(base document, env metadata.Env) (document, error) {
	if err := e.Check(base); err != nil {
		return nil, err
	}
	return e.viewEdit.Next(base, env)
}
