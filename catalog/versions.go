package catalog

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/history"
	"moorage/metadata"
	"moorage/registry"
)

// versionTextMax bounds the text of a version.
const versionTextMax = 1024

// VersionName is the name of a version of a table or view, in the form that callers write:
//
//	now                      the present version
//	now~N                    N metadata files before the present one
//	00007-….metadata.json    the base name of a metadata file
//	a time                   the version of that time: RFC 3339, or a duration such as 2h, for ago
//	the id of a change       the version after it; at least its first 6 digits
//	a snapshot id, a branch or a tag, where a snapshot is meant
//	the id of a version of a view, where a rollback names one
type VersionName struct {
	text string
	back int       // N of now~N; 0 for now, -1 for other forms
	file string    // the base name of a metadata file; empty for other forms
	at   time.Time // zero for other forms
	// change is the ID of a change, or its first digits. It is empty for other forms. The same text
	// may also name a snapshot, a branch or a tag.
	change string
}

// changeDigitsMin is the minimum number of digits of a change's ID in a name.
const changeDigitsMin = 6

// isChange reports whether text can be the ID of a change, or the beginning of one.
func isChange(text string) bool {
	return len(text) >= changeDigitsMin && len(text) <= 2*len(registry.ID{}) &&
		strings.Trim(text, "0123456789abcdef") == ""
}

// ParseVersion parses the name of a version. A duration in text counts back from the time now.
//
// Errors: KindBadRequest.
func ParseVersion(text string, now time.Time) (VersionName, error) {
	name := VersionName{text: text, back: -1}
	switch {
	case text == "" || len(text) > versionTextMax:
		return name, moorage.Errorf(moorage.KindBadRequest, "Invalid version: it has %d bytes, not 1 to %d",
			len(text), versionTextMax)
	case text == "now":
		name.back = 0
		return name, nil
	case strings.HasSuffix(text, ".metadata.json"), strings.HasSuffix(text, ".metadata.json.gz"):
		if name.file = path.Base(text); name.file != text {
			return name, moorage.Errorf(moorage.KindBadRequest,
				"Invalid version %s: only the base name of a file", text)
		}
		return name, nil
	}
	if digits, ok := strings.CutPrefix(text, "now~"); ok {
		back, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return name, moorage.Errorf(moorage.KindBadRequest, "Invalid version %s: it is not now~N", text)
		}
		name.back = int(back)
		return name, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		name.at = at
	} else if ago, ok := parseAgo(text); ok {
		name.at = now.Add(-ago)
	} else if isChange(text) {
		name.change = text
	}
	return name, nil
}

// parseAgo reads a duration such as 90s, 2h or 3d.
func parseAgo(text string) (time.Duration, bool) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(digits, 10, 16)
		return time.Duration(days) * 24 * time.Hour, err == nil && len(digits) < changeDigitsMin-1
	}
	ago, err := time.ParseDuration(text)
	return ago, err == nil && ago >= 0
}

// String returns the name as it was written.
func (n VersionName) String() string { return n.text }

// Fixed returns a text that means the same version later, as long as the table or view does not
// change: a duration becomes the time that it has meant.
func (n VersionName) Fixed() string {
	if n.at.IsZero() {
		return n.text
	}
	return n.at.UTC().Format(time.RFC3339Nano)
}

// isFile reports whether n names a metadata file, and not only a snapshot.
func (n VersionName) isFile() bool { return n.back >= 0 || n.file != "" || !n.at.IsZero() }

// TableVersion is one version of a table: a metadata file.
type TableVersion struct {
	Location string
	Document *metadata.Document
}

// LoadVersion returns a version of a table: the present one, or an earlier one with a metadata file
// in the table's metadata log.
//
// Only files within the table's own claims are read: the log of a registered file may name files of
// other tables.
//
// Errors: the errors of LoadTable; KindBadRequest if name can only be a snapshot; KindNotFound if
// there is no such version, or if its file was deleted.
func (c *Catalog) LoadVersion(ctx context.Context, ident moorage.Identifier, name VersionName) (TableVersion, error) {
	versions, err := c.versions(ctx, gate.LoadVersion, ident, name)
	if err != nil {
		return TableVersion{}, moorage.Annotate("catalog.LoadVersion", ident.String(), err)
	}
	return versions[0], nil
}

// Difference describes the difference between two versions of a table.
type Difference struct {
	From TableVersion `json:"-"`
	To   TableVersion `json:"-"`
	metadata.Difference
}

// Diff returns the difference between two versions of a table. It returns the errors of
// LoadVersion.
func (c *Catalog) Diff(ctx context.Context, ident moorage.Identifier, from, to VersionName) (Difference, error) {
	const op = "catalog.Diff"
	versions, err := c.versions(ctx, gate.DiffVersions, ident, from, to)
	if err != nil {
		return Difference{}, moorage.Annotate(op, ident.String(), err)
	}
	found := Difference{From: versions[0], To: versions[1]}
	found.Difference, err = metadata.Diff(found.From.Document, found.To.Document)
	return found, moorage.Annotate(op, ident.String(), err)
}

// versions returns the versions of a table with these names, if the caller may use v on the table.
func (c *Catalog) versions(ctx context.Context, v gate.Verb, ident moorage.Identifier, names ...VersionName) (
	found []TableVersion, err error) {
	if err := checkNames(names); err != nil {
		return nil, err
	}
	loaded, err := c.presentVersion(ctx, v, directory.Table(), ident)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := c.versionOf(ctx, loaded, name)
		if err != nil {
			return nil, err
		}
		found = append(found, version)
	}
	return found, nil
}

// checkNames returns an error for the first of names that does not name a metadata file.
func checkNames(names []VersionName) error {
	for _, name := range names {
		if !name.isFile() && name.change == "" {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid version %s: want now, now~N, "+
				"a time, a duration, the name of a metadata file, or the id of a change", name)
		}
	}
	return nil
}

// presentVersion returns the present version of a table or view, if the caller may use v on it. The
// management API has already asked the gate.
func (c *Catalog) presentVersion(ctx context.Context, v gate.Verb, kind *directory.Kind, ident moorage.Identifier) (
	loaded *commit.Version, err error) {
	asked := v.Needs(gate.OfObject, gate.Always)
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		found, err := c.directory.FindFor(ctx, c.asker(v), asked, kind, ident)
		if err != nil {
			return err
		}
		document, err := c.documents.Current(ctx, found)
		if err == nil {
			loaded = commit.VersionOf(found, ident, document)
		}
		return err
	})
	return loaded, err
}

// versionOf returns the version that name identifies. loaded is the table's present version.
func (p *parts) versionOf(ctx context.Context, loaded *commit.Version, name VersionName) (TableVersion, error) {
	present := TableVersion{loaded.Location, loaded.Document.(*metadata.Document)}
	log := present.Document.MetadataLog()
	if name.change != "" {
		return p.versionAfter(ctx, loaded, name)
	}
	at := -1 // the index in log; its length for the present version
	switch {
	case name.back >= 0:
		at = len(log) - name.back
	case name.file != "":
		at = slices.IndexFunc(log, func(entry metadata.MetadataLogEntry) bool {
			return path.Base(entry.MetadataLocation) == name.file
		})
		if path.Base(present.Location) == name.file {
			at = len(log)
		}
	case name.at.UnixMilli() >= present.Document.LastUpdatedMS():
		at = len(log)
	default:
		for i, entry := range log {
			if entry.TimestampMS <= name.at.UnixMilli() {
				at = i
			}
		}
	}
	switch {
	case at < 0:
		return TableVersion{}, moorage.Errorf(moorage.KindNotFound,
			"There is no version %s: the table's metadata log has %d earlier files", name, len(log))
	case at == len(log):
		return present, nil
	}
	file := log[at].MetadataLocation
	if loaded.Found == nil || !documents.WithinClaims(loaded.Found.Pointer.Claims, file) {
		return TableVersion{}, moorage.Errorf(moorage.KindNotFound,
			"The file of version %s is not in a location of the table, so it is not read", name)
	}
	return p.formerVersion(ctx, loaded, name, file)
}

// versionAfter returns the version of a table after the change in name.
func (p *parts) versionAfter(ctx context.Context, loaded *commit.Version, name VersionName) (TableVersion, error) {
	file, err := p.fileAfter(ctx, loaded, name)
	switch {
	case err != nil:
		return TableVersion{}, err
	case file == loaded.Location:
		return TableVersion{loaded.Location, loaded.Document.(*metadata.Document)}, nil
	}
	return p.formerVersion(ctx, loaded, name, file)
}

// fileAfter returns the metadata file of a table or view after the change in name. The pointer
// named that file, so it belongs to the object.
func (p *parts) fileAfter(ctx context.Context, loaded *commit.Version, name VersionName) (string, error) {
	file, err := p.history.FileAfter(ctx, loaded.Found, name.change)
	if err == nil && file == "" {
		err = moorage.Errorf(moorage.KindNotFound,
			"There is no version %s: none of the last %d changes of the %s has an id that begins so", name,
			history.FilesMax, loaded.Found.Pointer.Kind())
	}
	return file, err
}

// formerVersion returns the version called name, whose file is known.
func (p *parts) formerVersion(ctx context.Context, loaded *commit.Version, name VersionName, file string) (
	TableVersion, error) {
	read, err := p.readFormer(ctx, loaded, name, file)
	if err != nil {
		return TableVersion{}, err
	}
	return TableVersion{file, read.(*metadata.Document)}, nil
}

// readFormer returns the document in an earlier metadata file of a table or view. name is the name
// of that version.
//
// Errors: the errors of documents.Read. KindNotFound means that the file was deleted, cannot be
// read, or belongs to another object.
func (p *parts) readFormer(ctx context.Context, of *commit.Version, name VersionName, file string) (
	document, error) {
	ctx, cancel := context.WithTimeout(ctx, commit.RequestTimeout)
	defer cancel()
	read, err := p.documents.Read(ctx, directory.KindOf(of.Found.Pointer), of.Ident.Warehouse, of.Storage, file)
	switch moorage.KindOf(err) {
	case moorage.KindNotFound:
		err = moorage.Errorf(moorage.KindNotFound,
			"The file of version %s was deleted (write.metadata.delete-after-commit.enabled)", name)
	case moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation:
		err = moorage.Errorf(moorage.KindNotFound, "The file of version %s cannot be read", name)
	}
	if err == nil && !strings.EqualFold(read.UUID(), of.Document.UUID()) {
		err = moorage.Errorf(moorage.KindNotFound, "The file of version %s is of another %s", name,
			of.Found.Pointer.Kind())
	}
	return read, err
}

// RollbackRequest is a request to roll a table or view back to an earlier state.
type RollbackRequest struct {
	To VersionName
	// From is the metadata file that must be the present one when the rollback is planned. If it is
	// empty, any file may be. A later commit to a table conflicts only if it changes parts that the
	// rollback replaces. Every later commit to a view conflicts.
	From string
	// Ref is the branch to move. The default is main. It must be empty for a view.
	Ref string
	// Any allows a snapshot that is not an ancestor of the branch's head. It must be false for a
	// view.
	Any bool
	// All also restores the schema, the partition spec, the sort order and the properties. For a
	// view, it also restores the properties. To must then name a metadata file, not only a
	// snapshot.
	All bool
	// If DryRun is true, nothing is changed.
	DryRun bool
}

// RolledBack is the result of Rollback.
type RolledBack struct {
	metadata.Rollback
	// Was and Table are the versions before and after. They are the same after a dry run, and if
	// the table was already in that state. If an earlier attempt with the same key was carried out,
	// both are the version that it returned, and there are no updates.
	Was, Table TableVersion
}

// Rollback rolls a table back to an earlier state. It makes an ordinary commit, with requirements
// that fail if another commit happens in between. A rollback deletes nothing, and another rollback
// can undo it.
//
// If To is a version, the branch moves to its head in that version. If To is a time, main moves to
// its head at that time, according to the snapshot log. If To is a snapshot ID, a branch or a tag,
// the branch moves to that snapshot.
//
// Errors: the errors of LoadVersion, of metadata.RollbackToVersion and RollbackToSnapshot, and of
// Commit. The caller needs the privileges of each update.
func (c *Catalog) Rollback(ctx context.Context, ident moorage.Identifier, asked RollbackRequest) (RolledBack, error) {
	const op = "catalog.Rollback"
	result, err := c.rollback(ctx, ident, asked)
	return result, moorage.Annotate(op, ident.String(), err)
}

func (c *Catalog) rollback(ctx context.Context, ident moorage.Identifier, asked RollbackRequest) (
	result RolledBack, err error) {
	if asked.Ref == "" {
		asked.Ref = metadata.MainBranch
	}
	step, present, err := c.stepOf(ctx, ident, asked, &result)
	if asked.DryRun {
		return result, err
	}
	// An earlier attempt with the same key decides the outcome, even if this one would fail or
	// change nothing.
	var outcome commit.Outcome
	switch {
	case err != nil:
		outcome, err = c.submit(ctx, refusal(gate.Commit, ident, err))
	case result.IsEmpty():
		outcome, err = c.submit(ctx, unchanged(gate.Commit, present))
	default:
		outcome, err = c.commitTable(ctx, ident, []metadata.Step{step}, RebaseOff, false)
	}
	if err != nil {
		return result, err
	}
	result.Table = TableVersion{outcome.Version.Location, outcome.Version.Document.(*metadata.Document)}
	if outcome.IsStored {
		result.Was, result.Rollback = result.Table, metadata.NoRollback(
			"An earlier attempt with this Idempotency-Key was carried out. This attempt changed nothing.")
	}
	return result, nil
}

// unchanged returns the intent of a verb that changes nothing and returns the present version.
func unchanged(v gate.Verb, present *commit.Version) commit.Intent {
	return commit.Intent{
		Verb: v, On: []moorage.Identifier{present.Ident},
		Plan: func(context.Context, *commit.Attempt) (*commit.Plan, error) {
			return &commit.Plan{Empty: true, Answer: commit.Outcome{Version: present}}, nil
		},
	}
}

// stepOf plans a rollback. It sets the fields of result as for a dry run. It returns the step that
// carries out the rollback, and the present version.
func (c *Catalog) stepOf(ctx context.Context, ident moorage.Identifier, asked RollbackRequest, result *RolledBack) (
	step metadata.Step, present *commit.Version, err error) {
	present, err = c.presentVersion(ctx, gate.Rollback, directory.Table(), ident)
	if err != nil {
		return step, nil, err
	}
	result.Was = TableVersion{present.Location, present.Document.(*metadata.Document)}
	result.Table = result.Was
	if err := asked.checkFrom(present); err != nil {
		return step, present, err
	}
	if result.Rollback, err = c.planRollback(ctx, present, asked); err == nil {
		step, err = result.Step()
	}
	return step, present, err
}

// checkFrom returns a conflict if the object has changed since the caller read it.
func (r RollbackRequest) checkFrom(present *commit.Version) error {
	if r.From == "" || r.From == present.Location {
		return nil
	}
	return moorage.Errorf(moorage.KindCommitFailed, "The %s was changed since: its metadata file is %s, not %s",
		present.Found.Pointer.Kind(), present.Location, moorage.Cut(r.From, versionTextMax))
}

// planRollback returns the commit that carries out a rollback of a table.
func (p *parts) planRollback(ctx context.Context, loaded *commit.Version, asked RollbackRequest) (
	metadata.Rollback, error) {
	present := loaded.Document.(*metadata.Document)
	if !asked.To.at.IsZero() && !asked.All {
		if asked.Ref != metadata.MainBranch {
			return metadata.Rollback{}, moorage.Errorf(moorage.KindBadRequest,
				"Only main has a log of its heads: name a version or a snapshot for %s", asked.Ref)
		}
		id, found := present.SnapshotAt(asked.To.at)
		if !found {
			return metadata.Rollback{}, moorage.Errorf(moorage.KindNotFound,
				"The snapshot log of the table begins after %s", asked.To.at.UTC().Format(time.RFC3339))
		}
		return metadata.RollbackToSnapshot(present, asked.Ref, id, true)
	}
	_, isSnapshot := present.SnapshotCalled(asked.To.text)
	if asked.To.isFile() || asked.To.change != "" && !isSnapshot {
		then, err := p.versionOf(ctx, loaded, asked.To)
		if err != nil {
			return metadata.Rollback{}, err
		}
		parts := metadata.RollbackRefs
		if asked.All {
			parts = metadata.RollbackAll
		}
		return metadata.RollbackToVersion(present, then.Document, asked.Ref, parts)
	}
	id, found := present.SnapshotCalled(asked.To.text)
	switch {
	case !found:
		return metadata.Rollback{}, moorage.Errorf(moorage.KindNotFound,
			"%s is no version, snapshot, branch or tag of the table", asked.To)
	case asked.All:
		return metadata.Rollback{}, moorage.Errorf(moorage.KindBadRequest,
			"A snapshot has only rows: name a version, such as now~1, to roll back all parts")
	}
	return metadata.RollbackToSnapshot(present, asked.Ref, id, asked.Any)
}

// filesOf implements history.Config.Files: it returns the metadata files named in the present
// document of a table. The table may be dropped.
func (p *parts) filesOf(ctx context.Context, found *directory.Found) ([]history.File, error) {
	if found.Pointer.View {
		return nil, nil
	}
	var present *metadata.Document
	if found.Record.State == registry.StateLive {
		document, err := p.documents.Current(ctx, found)
		if err != nil {
			return nil, err
		}
		present = document.(*metadata.Document)
	} else {
		files, giveBack, err := p.directory.StorageOf(ctx, found.Pointer, found.Record.State)
		if err != nil {
			return nil, err
		}
		defer giveBack()
		if present, err = p.documents.ReadMetadata(ctx, found.Pointer, files); err != nil {
			return nil, err
		}
	}
	files := []history.File{{
		Location: found.Pointer.MetadataLocation, Time: time.UnixMilli(present.LastUpdatedMS()).UTC(),
	}}
	for _, entry := range slices.Backward(present.MetadataLog()) {
		files = append(files, history.File{
			Location: entry.MetadataLocation, Time: time.UnixMilli(entry.TimestampMS).UTC(),
		})
	}
	return files, nil
}
