package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/manifest"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// successorNamesMax bounds how many names are remembered of each table that has taken over a location: about 50 MB.
const successorNamesMax = 1 << 21

// successors tells which files of a table that is being purged must stay. The locations of a dropped table pass to whoever asks for them
// (see planOwner), a table that was made of a copy of its metadata, or that added its files, among them: files that both name belong
// to who is alive. It belongs to one goroutine.
type successors struct {
	*Catalog
	log     *slog.Logger
	dog     *watchdog
	pointer registry.Pointer   // that is being purged
	claims  []storage.Location // of the pointer
	passed  []passed           // what has become of each, as of the last look
	known   map[registry.ID]*successor
	kept    int // files that had to stay
}

// passed is what has become of a location that the pointer claimed. It is zero as long as it is the pointer's, or nobody's.
type passed struct {
	to     *successor
	within []storage.Location // nobody's itself; others live at these, in it
	around bool               // nobody's itself; another one lives around it
}

// keeps tells whether a file at location, which is in that of p, has to stay.
func (p passed) keeps(location storage.Location) bool {
	return p.around || p.to != nil && p.to.keeps(location) ||
		slices.ContainsFunc(p.within, func(other storage.Location) bool { return other.Contains(location) })
}

func newSuccessors(c *Catalog, log *slog.Logger, pointer registry.Pointer, dog *watchdog) (*successors, error) {
	s := &successors{Catalog: c, log: log, dog: dog, pointer: pointer, passed: make([]passed, len(pointer.Claims)), known: make(map[registry.ID]*successor)}
	for _, claim := range pointer.Claims {
		parsed, err := storage.Parse(claim)
		if err != nil {
			return nil, moorage.E("catalog.successors", claim, moorage.KindInternal, err)
		}
		s.claims = append(s.claims, parsed)
	}
	return s, nil
}

// look finds out what is so now: one read as long as no location has passed to anybody, and none of those who have one has changed. errTaskGone if
// the purge is over, or was called off.
func (s *successors) look(ctx context.Context) error {
	keys := []registry.Key{registry.PointerKey(s.pointer.ID)}
	for _, claim := range s.pointer.Claims {
		keys = append(keys, registry.LocationKey(claim))
	}
	var ids []registry.ID
	for id := range s.known {
		ids = append(ids, id)
		keys = append(keys, registry.PointerKey(id))
	}
	records, err := s.ledger.Get(ctx, keys...)
	if err != nil {
		return err
	}
	if err := s.mustBePurging(records[0]); err != nil {
		return err
	}
	locations, records := records[1:1+len(s.claims)], records[1+len(s.claims):]
	pointers := make(map[registry.ID]registry.Record)
	for i, id := range ids {
		pointers[id] = records[i]
	}
	for i, record := range locations {
		if s.passed[i], err = s.lookAt(ctx, s.claims[i], record, pointers); err != nil {
			return err
		}
	}
	return nil
}

// mustBePurging returns errTaskGone unless record, which is the pointer's, says that it is being purged still.
func (s *successors) mustBePurging(record registry.Record) error {
	if record.State != registry.StatePurging {
		return errTaskGone
	}
	now, err := ledger.Decode[registry.Pointer](record)
	if err == nil && now.Task != s.pointer.Task {
		err = errTaskGone // an operator called it off
	}
	return err
}

// lookAt returns what has become of the location claim, whose record is given. pointers are those that were read with it.
func (s *successors) lookAt(ctx context.Context, claim storage.Location, record registry.Record, pointers map[registry.ID]registry.Record) (passed, error) {
	if record.State != registry.StateOwner {
		return s.near(ctx, claim)
	}
	owner, err := ledger.Decode[registry.LocationClaim](record)
	if err != nil || owner.Pointer == s.pointer.ID {
		return passed{}, err
	}
	holder, read := pointers[owner.Pointer]
	if !read {
		records, err := s.ledger.Get(ctx, registry.PointerKey(owner.Pointer))
		if err != nil {
			return passed{}, err
		}
		holder = records[0]
		s.known[owner.Pointer] = newSuccessor(s.claims)
	}
	to := s.known[owner.Pointer]
	return passed{to: to}, s.learn(ctx, to, holder)
}

// near looks for others around and in a location that is nobody's, or has passed to somebody who has given it up since.
func (s *successors) near(ctx context.Context, claim storage.Location) (passed, error) {
	var keys []registry.Key
	for _, folder := range claim.Ancestors() {
		keys = append(keys, registry.LocationKey(folder.String()))
	}
	above, err := s.ledger.Get(ctx, keys...)
	if err != nil {
		return passed{}, err
	}
	beneath, err := s.store.List(ctx, registry.TableLocation, claim.String()+"/", "", ledger.ScanPage)
	if err != nil {
		return passed{}, ledger.StoreError("catalog.successors", err)
	}
	found := passed{around: slices.ContainsFunc(above, isOwned) || !registry.IsLastPage(beneath, ledger.ScanPage)} // with so many in it none is looked at
	for _, record := range beneath {
		if isOwned(record) {
			other, err := storage.Parse(record.Key.ID)
			if err != nil {
				return passed{}, moorage.E("catalog.successors", record.Key.ID, moorage.KindInternal, err)
			}
			found.within = append(found.within, other)
		}
	}
	return found, nil
}

func isOwned(record registry.Record) bool { return record.State == registry.StateOwner }

// learn finds out what the holder of a location names, unless that is known. What is dropped may come back; what is being purged itself may
// not, and what is gone names nothing.
func (s *successors) learn(ctx context.Context, to *successor, holder registry.Record) error {
	if to.over = !holder.Exists() || holder.State == registry.StatePurging; to.over {
		return nil
	}
	pointer, err := ledger.Decode[registry.Pointer](holder)
	if err != nil || editionOf(pointer.MetadataLocation, pointer.Registration) == to.version {
		return err
	}
	store, giveBack, err := s.storageOf(ctx, pointer, holder.State)
	if err != nil {
		return err
	}
	defer giveBack()
	at := placeOfDocument(pointer, s.dog.over(store))
	document := s.keptDocument(ctx, at)
	if document == nil {
		document, err = s.readDocument(ctx, at.kind, at.warehouse, store, at.location)
	}
	if err == nil {
		err = to.read(ctx, at, document)
	}
	untold := isUntold(err)
	if untold { // perhaps only because it has another version by now, or is being purged, and its files go
		if records, readErr := s.ledger.Get(ctx, holder.Key); readErr != nil || records[0].ETag != holder.ETag {
			return cmp.Or(readErr, ledger.ErrRetry)
		}
	}
	if to.all = untold; untold {
		s.log.WarnContext(ctx, "purge leaves all files in the location of another table, because it cannot be told which of them that names",
			"other", pointer.Identifier(), "error", err)
		err = nil
	}
	if err == nil {
		to.version = at.edition
	}
	return err
}

// errUntold says that it cannot be told what a table names, nor will it be as long as that has the same version.
var errUntold = errors.New("catalog: a file cannot be read that names others")

// isUntold tells whether err says that, of a metadata file or of what it leads to.
func isUntold(err error) bool {
	if err == nil {
		return false
	}
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindValidation, moorage.KindBadRequest, moorage.KindIllegalArgument:
		return true
	}
	return errors.Is(err, errUntold)
}

// without returns batch without the files that have to stay, by the last look.
func (s *successors) without(batch []string) []string {
	kept := 0
	for _, path := range batch {
		if s.keeps(path) {
			s.kept++
			continue
		}
		batch[kept] = path
		kept++
	}
	return batch[:kept]
}

func (s *successors) keeps(path string) bool {
	location, err := storage.Parse(path)
	if err != nil {
		return true
	}
	for i, claim := range s.claims {
		if claim.Contains(location) && s.passed[i].keeps(location) {
			return true
		}
	}
	return false
}

// successor is a table or view to which a location has passed, and what it names. A name too many keeps a file too many, which is the
// lesser harm: names are remembered as hashes, and those of earlier versions too.
type successor struct {
	claims  []storage.Location // others are of no interest
	seed    maphash.Seed
	names   map[uint64]struct{}
	met     visited
	version string // the edition of the metadata file that was read last
	all     bool   // it cannot be told what that names
	over    bool   // it is gone, or is being purged
}

func newSuccessor(claims []storage.Location) *successor {
	return &successor{claims: claims, seed: maphash.MakeSeed(), names: make(map[uint64]struct{}), met: newVisited()}
}

func (s *successor) keeps(location storage.Location) bool {
	if s.over || s.all {
		return s.all && !s.over
	}
	_, named := s.names[maphash.Comparable(s.seed, location)]
	return named
}

// read adds what a version names that no earlier one did.
func (s *successor) read(ctx context.Context, at documentPlace, document document) error {
	if err := s.add(at.location); err != nil {
		return err
	}
	table, ok := document.(*metadata.Document)
	if !ok { // a view names nothing
		return nil
	}
	files := namedFiles{at.storage, table, func(_ context.Context, path string, cause error) error {
		return fmt.Errorf("%w: %s: %w", errUntold, path, cause)
	}}
	for _, each := range []func(func(string) error) error{files.eachEarlierMetadata, files.eachStatistics, files.eachList} {
		if err := each(s.add); err != nil {
			return err
		}
	}
	return files.eachManifest(ctx, s.met, func(m manifest.Manifest) error {
		if err := s.add(m.Path()); err != nil {
			return err
		}
		return files.eachFile(ctx, m, s.add)
	})
}

// add adds a file, if it is where the table that is being purged may have some.
func (s *successor) add(path string) error {
	location, err := storage.Parse(path)
	if err != nil || !slices.ContainsFunc(s.claims, func(claim storage.Location) bool { return claim.Contains(location) }) {
		return nil
	}
	s.names[maphash.Comparable(s.seed, location)] = struct{}{}
	if len(s.names) > successorNamesMax {
		return fmt.Errorf("%w: more than %d", errUntold, successorNamesMax)
	}
	return nil
}
