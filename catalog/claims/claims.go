package claims

import (
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Claim holds the conditions and writes of a batch that gives a location to a table or view.
type Claim struct {
	Normalised string // the location in normalised spelling
	Conditions []registry.Condition
	Puts       []ledger.Write
	Deletes    []registry.Write // deletes the claimant's own tombstones
}

// Writes returns the writes of puts, then the writes of the claim.
func (c Claim) Writes(puts ...ledger.Write) ([]registry.Write, error) {
	writes, err := ledger.Encode(slices.Concat(puts, c.Puts)...)
	return append(writes, c.Deletes...), err
}

// Max is the maximum number of locations that one table or view keeps. When the table ends, one
// Apply releases all of them, and registry.BatchItemsMax bounds the items of an Apply. Each load
// reads the record that lists the locations.
const Max = 1000

// With returns the locations that a pointer has claimed, followed by a newly claimed one. It
// returns KindBadRequest if that makes more than Max locations.
func With(claims []string, normalised string) ([]string, error) {
	others := slices.DeleteFunc(slices.Clone(claims), func(kept string) bool { return kept == normalised })
	all := append(others, normalised)
	if len(all) > Max && len(all) > len(claims) {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"A table or view keeps the locations that it had, at most %d: one more is not possible", Max)
	}
	return all, nil
}

// Claimant is the table or view that claims a location.
type Claimant struct {
	Pointer  registry.ID
	Fresh    bool        // the pointer is new, and has claimed nothing
	Replaces registry.ID // a pointer that is dropped in the same Apply; zero if none
	// ReplacedUntil is the time until which engines may hold credentials for the replaced table, if
	// it is dropped now. It is zero if they hold no credentials.
	ReplacedUntil time.Time
	// TableUUID is the UUID of the table if it may have lived at the location before, otherwise
	// empty.
	TableUUID string
	// MayTake returns nil if the claimant may take over the claim of another table's dropped
	// pointer. Otherwise it returns the error with which the claim fails. If MayTake is nil, every
	// claimant may take over.
	MayTake func(ctx context.Context, dropped registry.Pointer) error
	// MayResettle returns nil if the claimant may live at, above or below a tombstone. Otherwise it
	// returns the error with which the claim fails. It is not called for the claimant's own
	// tombstone. If MayResettle is nil, every claimant may live there.
	MayResettle func(ctx context.Context, tombstone registry.Tombstone) error
	// Forward begins the waiting purge of a dropped table that has the location. It returns false
	// if the claimant lacks the right to begin the purge. If Forward is nil, the claimant has no
	// such right.
	Forward func(ctx context.Context, dropped registry.Pointer) (begun bool, err error)
	// FromMemory means that Plan uses remembered records of the folders above the location. If such
	// a record is outdated, the Apply fails on a condition. So set it only for a first attempt that
	// the caller repeats without it.
	FromMemory bool
}

// TakenError reports that a location is not available.
type TakenError struct {
	At  string
	Own Taking // the reason
	// Until is the time when the credentials of other tables end, for StillReached and
	// ReplacedReached. For PurgeWaits it is the time when the purge begins.
	Until time.Time
}

// Taking is the reason why a location is taken.
type Taking int

// The reasons why a location is taken.
const (
	ByAnother       Taking = iota // it overlaps the location of another table or view
	WithinOwn                     // it lies within a location that the claimant has or had
	AroundOwn                     // it contains a location that the claimant has or had
	AwaitsPurge                   // a dropped table has it; a purge deletes, or will soon delete, files there
	PurgeWaits                    // a dropped table has it; that table can be restored until its purge begins
	StillReached                  // an ended table had it, and engines may hold credentials for it
	ReplacedReached               // the replaced table has it, and engines may hold credentials for it
)

// Error names the location that is taken.
func (e *TakenError) Error() string { return "catalog: location is taken at " + e.At }

// Plan reads the records of location and of the folders above it, and returns the conditions and
// writes of the claim. The claim of a dropped pointer passes to claimant, unless the drop requested
// a purge. A location at, above or below a tombstone is available if claimant.MayResettle returns
// nil and the credentials that reach it have ended. The error is *TakenError if the location is not
// available, and KindBadRequest if it is malformed or outside the warehouse's roots.
//
// If the claimed location has a folder record, but no claims exist below it, Plan marks the record
// in the store: see emptied.
func (c *Claims) Plan(ctx context.Context, roots []string, location string, claimant Claimant) (Claim, error) {
	normalised, folders, err := claimPath(roots, location)
	if err != nil {
		return Claim{}, err
	}
	key := registry.LocationKey(normalised)
	places, err := c.read(ctx, key, folders, claimant.FromMemory)
	if err != nil {
		return Claim{}, err
	}
	planned := Claim{Normalised: normalised}
	for _, place := range places[1:] {
		switch key := place.record.Key; {
		case !place.record.Exists():
			planned.Conditions = append(planned.Conditions, registry.Absent(key))
			planned.Puts = append(planned.Puts, ledger.Put(key, registry.StateBelow, registry.LocationClaim{}))
		case place.record.State == registry.StateBelow:
			planned.Conditions = append(planned.Conditions, ledger.Unchanged(place.record))
		case place.record.State == registry.StateDropping: // about to be removed, see retention.Folders
			planned.planBelow(place.record)
		default:
			return Claim{}, c.takenAbove(place.record, claimant)
		}
		// The table that left this tombstone lived at the folder above, so the tombstone cannot be
		// the claimant's own.
		if err := c.mayResettle(ctx, place.tombstone, claimant); err != nil {
			return Claim{}, err
		}
	}
	if err := c.planOwner(ctx, &planned, places[0].record, claimant); err != nil {
		return Claim{}, err
	}
	return planned, nil
}

// IsFree reports whether a normalised location, and every location above or below it, is unclaimed
// and has no tombstone.
func (c *Claims) IsFree(ctx context.Context, location string) (bool, error) {
	place, err := storage.Parse(location)
	if err != nil {
		return false, nil
	}
	keys := []registry.Key{registry.LocationKey(location)}
	for _, folder := range place.Ancestors() {
		keys = append(keys, registry.LocationKey(folder.String()), registry.TombstoneKey(folder.String()))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil || records[0].Exists() { // even if only for claims or tombstones below
		return false, err
	}
	return !slices.ContainsFunc(records, func(record registry.Record) bool {
		return record.Exists() && (record.State == registry.StateOwner || record.Key.Table == registry.TableTombstone)
	}), nil
}

// planBelow plans that a folder's record has state below, whatever its state is now.
func (c *Claim) planBelow(record registry.Record) {
	below := registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](record)}
	c.Conditions = append(c.Conditions, ledger.Unchanged(record))
	c.Puts = append(c.Puts, ledger.Put(record.Key, registry.StateBelow, below))
}

// planOwner plans the record of the location itself. If the location has no record, record still
// has its key. A location without a record has no tombstone either.
func (c *Claims) planOwner(ctx context.Context, planned *Claim, record registry.Record, claimant Claimant) error {
	key, at := record.Key, place{record: record}
	if record.Exists() {
		records, err := c.ledger.Get(ctx, registry.TombstoneKey(key.ID))
		if err != nil {
			return err
		}
		at = placeOf(key, record, records[0])
		if record.State != registry.StateOwner {
			if record, err = c.emptied(ctx, record, claimant); err != nil {
				return err
			}
		}
	}
	var held registry.LocationClaim
	if record.State == registry.StateOwner {
		var err error
		if held, err = ledger.Decode[registry.LocationClaim](record); err != nil {
			return err
		}
		if held.Pointer == claimant.Pointer { // the claimant has this claim already
			planned.Conditions = append(planned.Conditions, registry.ETagIs(key, record.ETag))
			return nil
		}
		if err := c.takeOver(ctx, planned, at, held, claimant); err != nil {
			return err
		}
	}
	own, err := isOwn(at.tombstone, claimant)
	if err != nil {
		return err
	}
	switch {
	case !own:
		err = c.mayResettle(ctx, at.tombstone, claimant)
	case held.Pointer.IsZero(): // otherwise takeOver writes the holder's tombstone
		planned.Conditions = append(planned.Conditions, ledger.Unchanged(at.tombstone))
		planned.Deletes = append(planned.Deletes, registry.Delete(at.tombstone.Key))
	}
	if err != nil {
		return err
	}
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return err
	}
	owner := registry.LocationClaim{
		Unknown: ledger.UnknownOf[registry.LocationClaim](record), Pointer: claimant.Pointer, Since: now,
	}
	if record.Exists() {
		planned.Conditions = append(planned.Conditions, registry.ETagIs(key, record.ETag))
	} else {
		planned.Conditions = append(planned.Conditions, registry.Absent(key))
	}
	planned.Puts = append(planned.Puts, ledger.Put(key, registry.StateOwner, owner))
	return nil
}

// takeOver plans the transfer of a location from its holder to the claimant. The holder must be
// dropped, and gets a tombstone at the location.
func (c *Claims) takeOver(ctx context.Context, planned *Claim, at place, held registry.LocationClaim,
	claimant Claimant) error {
	records, err := c.ledger.Get(ctx, registry.PointerKey(held.Pointer))
	if err != nil {
		return err
	}
	var taken *TakenError
	holder := records[0]
	switch {
	case !holder.Exists(): // only in a damaged store
		if at.tombstone.Exists() {
			planned.Conditions = append(planned.Conditions, ledger.Unchanged(at.tombstone))
		}
		return nil
	case held.Pointer != claimant.Replaces:
		taken, err = c.takenBy(ctx, holder, claimant)
		planned.Conditions = append(planned.Conditions, ledger.Unchanged(holder))
	case !claimant.ReplacedUntil.IsZero():
		taken = &TakenError{Own: ReplacedReached, Until: claimant.ReplacedUntil}
	}
	if err != nil {
		return err
	}
	if taken != nil {
		taken.At = at.record.Key.ID
		return taken
	}
	pointer, err := ledger.Decode[registry.Pointer](holder)
	if err != nil {
		return err
	}
	now, err := c.ledger.Time(ctx)
	if err != nil {
		return err
	}
	tombstone := tombstoneOf(pointer, Ending{How: registry.EndedTakeover, Now: now, Lasting: true})
	tombstone.Unknown = ledger.UnknownOf[registry.Tombstone](at.tombstone)
	key := registry.TombstoneKey(at.record.Key.ID)
	planned.Conditions = append(planned.Conditions, ledger.AsRead(at.tombstone, key))
	planned.Puts = append(planned.Puts, ledger.Put(key, registry.StateNone, tombstone))
	return nil
}

// takenBy returns why a location of holder does not pass to the claimant, or nil if it does. A
// purge deletes all files that the dropped table named there, so no other table may move in before
// the purge has finished. Engines may also hold credentials for the dropped table. No other table
// may move in until these have ended, because they would reach its files. The claim must require
// that the record holder is unchanged, because the dropped table may be restored and then dropped
// with a purge. Errors come from the store or from claimant.MayTake.
func (c *Claims) takenBy(ctx context.Context, holder registry.Record, claimant Claimant) (*TakenError, error) {
	pointer, err := registry.Decode[registry.Pointer](holder)
	switch {
	case !holder.State.IsDropped(), err != nil: // an unreadable pointer may await a purge
		return &TakenError{}, nil
	case holder.State == registry.StatePurging, !pointer.Task.IsZero() && !pointer.PurgeWaits():
		return &TakenError{Own: AwaitsPurge}, nil
	case pointer.PurgeWaits():
		return c.takenByWaiting(ctx, pointer, claimant)
	}
	if claimant.MayTake != nil {
		if err := claimant.MayTake(ctx, pointer); err != nil {
			return nil, err
		}
	}
	if pointer.ReachableUntil.IsZero() {
		return nil, nil
	}
	now, err := c.ledger.Time(ctx)
	if err == nil && now.Before(pointer.ReachableUntil) {
		return &TakenError{Own: StillReached, Until: pointer.ReachableUntil}, nil
	}
	return nil, err
}

// takenByWaiting returns why the location of a dropped table with a waiting purge does not pass to
// the claimant, or nil if it does. If the claimant may begin that purge, takenByWaiting begins it.
// Errors come from the store or from claimant.Forward.
func (c *Claims) takenByWaiting(ctx context.Context, pointer registry.Pointer, claimant Claimant) (*TakenError, error) {
	if claimant.Forward != nil {
		begun, err := claimant.Forward(ctx, pointer)
		if err != nil {
			return nil, err
		}
		if begun {
			return &TakenError{Own: AwaitsPurge}, nil
		}
	}
	return &TakenError{Own: PurgeWaits, Until: pointer.PurgeAt()}, nil
}

// takenAbove returns why a location below the claimed folder is taken.
func (c *Claims) takenAbove(folder registry.Record, claimant Claimant) *TakenError {
	taken := &TakenError{At: folder.Key.ID}
	held, err := ledger.Decode[registry.LocationClaim](folder)
	if err == nil && held.Pointer == claimant.Pointer {
		taken.Own = WithinOwn
	}
	return taken
}

// PlanKept plans that the claimant keeps or gets back the given locations. The claimant claimed all
// of them before. The error is *TakenError if a location is not available. It is KindBadRequest if
// a location must be claimed again but is outside the warehouse's roots.
func (c *Claims) PlanKept(ctx context.Context, planned *Claim, roots, locations []string, claimant Claimant) error {
	for _, location := range locations {
		if location == planned.Normalised {
			continue
		}
		key := registry.LocationKey(location)
		if slices.ContainsFunc(planned.Conditions, func(c registry.Condition) bool { return c.Key == key }) {
			return &TakenError{At: location, Own: WithinOwn} // given up, and above the planned location
		}
		records, err := c.ledger.Get(ctx, key)
		switch {
		case err != nil:
		case records[0].State == registry.StateOwner: // so the records of the folders above exist
			err = c.planOwner(ctx, planned, records[0], claimant)
		default:
			err = c.planAnew(ctx, planned, roots, location, claimant)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planAnew plans the claim of one more location, which the claimant had before it was dropped. In
// the meantime, another table may have claimed the location and given it up. Then the records of
// the folders above it may be gone too.
func (c *Claims) planAnew(ctx context.Context, planned *Claim, roots []string, location string,
	claimant Claimant) error {
	more, err := c.Plan(ctx, roots, location, claimant)
	if err != nil {
		return err
	}
	for _, condition := range more.Conditions {
		if !slices.Contains(planned.Conditions, condition) {
			planned.Conditions = append(planned.Conditions, condition)
		}
	}
	planned.Deletes = append(planned.Deletes, more.Deletes...)
	for _, p := range more.Puts {
		i := slices.IndexFunc(planned.Puts, func(other ledger.Write) bool { return other.Key == p.Key })
		switch {
		case i < 0:
			planned.Puts = append(planned.Puts, p)
		case planned.Puts[i].State != p.State: // the planned location lies above this one
			return &TakenError{At: location, Own: AroundOwn}
		}
	}
	return nil
}

// ownFolder is the folder of a warehouse in which the server keeps its own files (package
// maintenance/jobs). No table or namespace gets a folder of this name.
const ownFolder = "~moorage"

// CheckFolder returns KindBadRequest if a table or view cannot live directly in folder. The folder
// must be below one of roots.
func CheckFolder(roots []string, folder string) error {
	_, _, err := claimPath(roots, storage.Join(folder, "t"))
	return err
}

// rootsShown is the maximum number of allowed locations named in a refusal.
const rootsShown = 5

// claimPath returns the normalised form of location and the folders above it. The nearest folder is
// first, and the top of the disk or bucket is last. The folders above the root are included because
// one warehouse's root may lie within another's, and roots can change. The location must be below
// one of roots. A root cannot be claimed, even within another root.
func claimPath(roots []string, location string) (normalised string, folders []string, err error) {
	place, err := storage.Parse(location)
	if err != nil {
		return "", nil, moorage.Errorf(moorage.KindBadRequest, "Malformed location: %s", location)
	}
	if strings.Contains(place.Path+"/", "/"+ownFolder+"/") {
		return "", nil, moorage.Errorf(moorage.KindBadRequest,
			"Location is in a folder that the server keeps for itself: %s", location)
	}
	normalised = place.String()
	if len(normalised) > registry.KeyBytesMax {
		return "", nil, moorage.Errorf(moorage.KindBadRequest,
			"Location of %d bytes is too long, at most %d are allowed", len(normalised), registry.KeyBytesMax)
	}
	within := false
	for _, root := range roots {
		top, err := storage.Parse(root)
		if err != nil || !top.Contains(place) {
			continue
		}
		if top == place {
			return "", nil, moorage.Errorf(moorage.KindBadRequest,
				"Location is the root of tables and views, choose a folder below it: %s", location)
		}
		within = true
	}
	if !within {
		return "", nil, moorage.Errorf(moorage.KindBadRequest,
			"Location is outside the warehouse locations (add one with moorage warehouse change --allow-location): "+
				"%s; allowed are %s", location, strings.Join(roots[:min(len(roots), rootsShown)], ", "))
	}
	for _, folder := range place.Ancestors() { // no table can live in the topmost folder
		folders = append(folders, folder.String())
	}
	return normalised, folders, nil
}

// Refusal turns a *TakenError into the error for a client that chose the location. It returns other
// errors unchanged.
func Refusal(err error, location string) error {
	taken, ok := err.(*TakenError)
	switch {
	case !ok:
		return err
	case taken.Own == WithinOwn:
		return moorage.Errorf(moorage.KindBadRequest,
			"Location is within %s, another location of the same table or view: %s", taken.At, location)
	case taken.Own == AroundOwn:
		return moorage.Errorf(moorage.KindBadRequest,
			"Location contains another location of the same table or view: %s", location)
	case taken.Own == AwaitsPurge:
		return moorage.Errorf(moorage.KindUnavailable, "The files of a dropped table at %s are still being purged; "+
			"nothing was changed. Repeat the request later, or choose another location", location)
	case taken.Own == PurgeWaits:
		return moorage.Errorf(moorage.KindCommitFailed, "A dropped table has the location %s. Its files are kept "+
			"until %s, so that it can be restored, and purged then; nothing was changed. Choose another "+
			"location, or register the last metadata file of the dropped table to restore it", location,
			taken.Until.UTC().Format(time.RFC3339))
	case taken.Own == StillReached:
		return moorage.Errorf(moorage.KindCommitFailed, "A former table was at, above or below %s, and "+
			"engines may hold credentials for its files until %s. Repeat the request then, or choose another "+
			"location", location, taken.Until.UTC().Format(time.RFC3339))
	case taken.Own == ReplacedReached:
		return moorage.Errorf(moorage.KindCommitFailed, "The table to replace is at %s, and engines "+
			"may hold credentials for its files. Drop it now, and repeat the request after %s", taken.At,
			taken.Until.UTC().Format(time.RFC3339))
	}
	return moorage.Errorf(moorage.KindBadRequest,
		"Location is, contains or lies within the location of another table or view: %s", location)
}
