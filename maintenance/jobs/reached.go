package jobs

import (
	"context"
	"crypto/sha256"
	"fmt"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
)

// metMax is the maximum number of read lists and manifests that one value of type reached
// remembers; about 60 MB.
const metMax = 1 << 20

// reached holds the files that the tables and views of the store reach, as of a position in the log
// of changes. Files are never removed from it.
type reached struct {
	jobs      *Jobs
	warehouse string // messages may name only tables of this warehouse
	position  registry.Position
	set       *pathSet
	cost      readCost // of the first reading
	// dropped holds the former locations of dropped tables. A restored table gets its locations
	// back.
	dropped folders
	met     map[[16]byte]bool // lists and manifests that were read to their end
	behind  bool              // a table changed before it was read, so catchUp must read it
}

// newReached returns an empty value of type reached. Its catchUp reads changes made from now on.
func newReached(ctx context.Context, j *Jobs, warehouse string) (*reached, error) {
	r := &reached{jobs: j, warehouse: warehouse, dropped: make(folders), met: make(map[[16]byte]bool)}
	horizon, err := registry.ReadHorizon(ctx, j.store)
	if err == nil {
		r.position, err = registry.Head(ctx, j.store, horizon.Position)
	}
	if err != nil {
		return nil, ledger.StoreError("jobs.newReached", err)
	}
	return r, nil
}

// readAll reads the files of all tables and views of the store, because a table may have files
// anywhere. It includes dropped tables and views that can be restored. It also adds the files that
// transactions refer to. If a file is unreadable, the error is a BlockedError with its name.
func (r *reached) readAll(ctx context.Context) error {
	// Each list is read twice. The first pass only counts, because the size of a set must be known
	// before it is filled.
	err := r.each(ctx, func(record registry.Record) error { return r.visit(ctx, record, r.count) })
	if err != nil {
		return err
	}
	r.set = newLookAlikeSet(r.cost.Files + r.cost.Manifests)
	if err := r.each(ctx, func(record registry.Record) error { return r.read(ctx, record) }); err != nil {
		return err
	}
	return addTransactions(ctx, r.jobs, r.set)
}

// each calls do for the record of each pointer.
func (r *reached) each(ctx context.Context, do func(registry.Record) error) error {
	return r.jobs.ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		return true, do(record)
	})
}

// read adds the files of the table or view of a record. If the object is dropped, read also adds
// the locations that an undrop would give back to it.
func (r *reached) read(ctx context.Context, record registry.Record) error {
	if err := r.visit(ctx, record, r.add); err != nil || !record.State.IsDropped() {
		return err
	}
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return err
	}
	claims := newClaimed(r.jobs)
	wanted := make(map[string]bool, len(pointer.Claims))
	for _, claim := range pointer.Claims {
		wanted[claim] = true
	}
	if err := claims.ask(ctx, wanted); err != nil {
		return err
	}
	for _, claim := range pointer.Claims {
		if !claims.known[claim] {
			r.dropped.addText(claim)
		}
	}
	return nil
}

// reaching is a version of a table, or a view, that reaches files.
type reaching struct {
	files    opener
	document *metadata.Document // nil for a view
	location string             // of the metadata file
	scope    string             // distinguishes its storage from others; usually the warehouse
}

func reachingOf(j *Jobs, version *catalog.Version) reaching {
	return reaching{
		files: j.budget.reader(version.Storage), document: version.Document.(*metadata.Document),
		location: version.Location, scope: version.Ident.Warehouse,
	}
}

// visit calls do with the table or view of a record. It does nothing if the object is being purged.
// It also does nothing if the record has changed since it was read, because the log then contains
// that change.
func (r *reached) visit(ctx context.Context, record registry.Record,
	do func(context.Context, reaching) error) error {
	pointer, err := ledger.Decode[registry.Pointer](record)
	if err != nil {
		return &BlockedError{"the record of a table cannot be read; moorage doctor --deep names it"}
	}
	switch {
	case record.State == registry.StatePurging:
		return nil
	case pointer.View:
		err = do(ctx, reaching{location: pointer.MetadataLocation})
	case record.State == registry.StateLive:
		var version *catalog.Version
		if version, _, err = r.jobs.tables.TableByID(ctx, pointer.ID); err == nil {
			err = do(ctx, reachingOf(r.jobs, version))
		}
	default:
		err = r.jobs.tables.WithDropped(ctx, pointer, record.State, func(version *catalog.Version) error {
			return do(ctx, reachingOf(r.jobs, version))
		})
	}
	if err == nil {
		return nil
	}
	now, readErr := r.jobs.ledger.Get(ctx, record.Key)
	if readErr != nil {
		return readErr
	}
	if now[0].ETag != record.ETag {
		r.behind = true
		return nil
	}
	return r.unreadable(ctx, pointer, err)
}

// unreadable returns a BlockedError, because a report that lacks a table's files would be
// incomplete. Its text does not name a table of another warehouse, since the caller may not be
// allowed to see that table.
func (r *reached) unreadable(ctx context.Context, pointer registry.Pointer, err error) error {
	why := fmt.Sprintf("the files of %s cannot be read: %s", pointer.Identifier(), wordsOf(err))
	if pointer.Warehouse != r.warehouse {
		why = fmt.Sprintf("the files of a table of another warehouse cannot be read; the log names it, as %s",
			pointer.ID)
	}
	r.jobs.log.WarnContext(ctx, "maintenance: the files of a table cannot be read, so no orphans of a warehouse are "+
		"known", "pointer", pointer.ID, "ident", pointer.Identifier(), "error", moorage.OneLine(err.Error()))
	return asBlocked(ctx, err, why)
}

// count adds up the cost of reading a version.
func (r *reached) count(ctx context.Context, of reaching) error {
	if of.document == nil {
		return nil
	}
	_, cost, err := readManifests(ctx, of.files, of.document, nil)
	r.cost.Lists, r.cost.Manifests = r.cost.Lists+cost.Lists, r.cost.Manifests+cost.Manifests
	r.cost.Bytes, r.cost.Files = r.cost.Bytes+cost.Bytes, r.cost.Files+cost.Files
	return err
}

// add adds the files that a version reaches.
func (r *reached) add(ctx context.Context, of reaching) error {
	if of.document == nil {
		r.set.Add(of.location)
		return nil
	}
	eachNamed(of.document, of.location, r.set.Add)
	listed, _, err := readManifests(ctx, of.files, of.document, r.isUnread(of.scope))
	if err != nil {
		return err
	}
	listed = r.unread(of.scope, listed)
	if err := addLive(ctx, of.files, listed, r.set); err != nil {
		return err
	}
	r.meet(of, listed)
	return nil
}

// addUnregistered is like add, for a table that the store does not know. It skips missing files.
func (r *reached) addUnregistered(ctx context.Context, of reaching) error {
	of.scope = "unregistered/" + of.scope // no warehouse has a slash in its name, so this scope is unique
	eachNamed(of.document, of.location, r.set.Add)
	listed, err := readManifestsLeft(ctx, of.files, of.document, r.isUnread(of.scope))
	if err != nil {
		return err
	}
	listed = r.unread(of.scope, listed)
	if err := addLiveLeft(ctx, of.files, listed, r.set); err != nil {
		return err
	}
	r.meet(of, listed)
	return nil
}

// metKey returns the key under which a read list or manifest is remembered.
func metKey(scope, path string) [16]byte {
	sum := sha256.Sum256([]byte(scope + "\x00" + path))
	return [16]byte(sum[:])
}

// isUnread returns a function that reports whether the list of a snapshot has not been read yet. It
// returns true for a snapshot without a list.
func (r *reached) isUnread(scope string) func(metadata.Snapshot) bool {
	return func(s metadata.Snapshot) bool { return s.ManifestList == "" || !r.met[metKey(scope, s.ManifestList)] }
}

// unread returns the manifests that have not been read yet.
func (r *reached) unread(scope string, listed []manifests.Listed) []manifests.Listed {
	left := listed[:0]
	for _, m := range listed {
		if !r.met[metKey(scope, m.Path())] {
			left = append(left, m)
		}
	}
	return left
}

// meet records that the lists and manifests of a version were read. If there are too many, it
// forgets the earlier ones. Those are then read again.
func (r *reached) meet(of reaching, listed []manifests.Listed) {
	if len(r.met) > metMax {
		clear(r.met)
	}
	for _, m := range listed {
		r.met[metKey(of.scope, m.Path())] = true
	}
	for snapshot := range of.document.Snapshots() {
		if snapshot.ManifestList != "" {
			r.met[metKey(of.scope, snapshot.ManifestList)] = true
		}
	}
}
