package catalog

import (
	"cmp"
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// claim is what a batch must require and write so that a table or view may live at a location: no other
// live one lives there, above or beneath.
//
// One record stands for one URI. The claim of L makes L's record "owner", and makes each
// folder above it "below", or requires the version of its record that says so. Two
// claims of which one lies within the other meet on one record, which cannot be both.
type claim struct {
	normalised string
	conditions []registry.Condition
	puts       []ledger.Write
}

// claimsMax bounds how many locations one table or view keeps. All of them are given up in the one Apply that ends it, of which
// registry.BatchItemsMax bounds the items, and each load reads the record that lists them.
const claimsMax = 1000

// withClaim returns the locations that a pointer has claimed, the one that it claims now as the last. KindBadRequest if that is one too many.
func withClaim(claims []string, normalised string) ([]string, error) {
	all := append(slices.DeleteFunc(slices.Clone(claims), func(kept string) bool { return kept == normalised }), normalised)
	if len(all) > claimsMax && len(all) > len(claims) {
		return nil, moorage.Errorf(moorage.KindBadRequest, "A table or view keeps the locations that it had, at most %d: one more is not possible", claimsMax)
	}
	return all, nil
}

// claimant is who claims a location.
type claimant struct {
	pointer  registry.ID
	fresh    bool        // the pointer is new, and has claimed nothing
	replaces registry.ID // a pointer that is dropped in the same Apply; zero if none
}

// errTaken says that a location cannot be claimed because of a live table or view.
type errTaken struct {
	at  string
	own taking // what is in the way
}

// taking is what takes a location: another table or view, or, by how it lies to the location, the
// claimant itself.
type taking int

const (
	takenByAnother taking = iota
	withinOwn
	aroundOwn
	awaitsPurge // a dropped table has it, and a purge deletes, or will delete, files there
)

func (e *errTaken) Error() string { return "catalog: location is taken at " + e.at }

// planClaim reads the records of location and of the folders above it, and says what claiming it for
// who takes. A claim that a dropped pointer holds passes on, unless the drop was with a purge. *errTaken if it
// cannot be had; KindBadRequest if the location is malformed or outside the warehouse's roots.
func (c *Catalog) planClaim(ctx context.Context, roots []string, location string, who claimant) (claim, error) {
	normalised, folders, err := c.claimPath(roots, location)
	if err != nil {
		return claim{}, err
	}
	keys := []registry.Key{registry.LocationKey(normalised)}
	for _, folder := range folders {
		keys = append(keys, registry.LocationKey(folder))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return claim{}, err
	}
	planned := claim{normalised: normalised}
	if err := c.planOwner(ctx, &planned, keys[0], records[0], who); err != nil {
		return claim{}, err
	}
	for i, record := range records[1:] {
		key := keys[i+1]
		switch {
		case !record.Exists():
			planned.conditions = append(planned.conditions, registry.Absent(key))
			planned.puts = append(planned.puts, ledger.Put(key, registry.StateBelow, registry.LocationClaim{}))
		case record.State == registry.StateBelow:
			planned.conditions = append(planned.conditions, ledger.Unchanged(record))
		case record.State == registry.StateDropping: // about to be removed, see sweepFolders
			planned.conditions = append(planned.conditions, ledger.Unchanged(record))
			planned.puts = append(planned.puts, ledger.Put(key, registry.StateBelow, registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](record)}))
		default:
			return claim{}, takenAbove(record, who)
		}
	}
	return planned, nil
}

// planOwner plans the record of the location itself.
func (c *Catalog) planOwner(ctx context.Context, planned *claim, key registry.Key, record registry.Record, who claimant) error {
	owner := registry.LocationClaim{Pointer: who.pointer}
	if !record.Exists() {
		planned.conditions = append(planned.conditions, registry.Absent(key))
		planned.puts = append(planned.puts, ledger.Put(key, registry.StateOwner, owner))
		return nil
	}
	if record.State != registry.StateOwner {
		return c.takenBeneath(ctx, key, who)
	}
	held, err := ledger.Decode[registry.LocationClaim](record)
	if err != nil {
		return err
	}
	if held.Pointer == who.pointer { // claimed before, and kept since
		planned.conditions = append(planned.conditions, registry.ETagIs(key, record.ETag))
		return nil
	}
	holder := registry.PointerKey(held.Pointer)
	records, err := c.ledger.Get(ctx, holder)
	if err != nil {
		return err
	}
	if records[0].Exists() && held.Pointer != who.replaces {
		if taken := takenBy(records[0]); taken != nil {
			taken.at = key.ID
			return taken
		}
		planned.conditions = append(planned.conditions, ledger.Unchanged(records[0]))
	}
	owner.Unknown = held.Unknown
	planned.conditions = append(planned.conditions, registry.ETagIs(key, record.ETag))
	planned.puts = append(planned.puts, ledger.Put(key, registry.StateOwner, owner))
	return nil
}

// takenBy returns why a location of holder does not pass on, or nil if it does. A purge deletes all
// that the dropped table named there, so nobody may come to live in its files' place before it is
// over. The claim must require that holder stays unchanged: the table may come back, and be dropped
// with a purge then.
func takenBy(holder registry.Record) *errTaken {
	pointer, err := registry.Decode[registry.Pointer](holder)
	switch {
	case !holder.State.IsDropped(), err != nil: // one that cannot be read may await a purge
		return &errTaken{}
	case holder.State == registry.StatePurging, !pointer.Task.IsZero():
		return &errTaken{own: awaitsPurge}
	}
	return nil
}

// takenAbove says that somebody lives in a folder above the location.
func takenAbove(folder registry.Record, who claimant) *errTaken {
	taken := &errTaken{at: folder.Key.ID}
	if held, err := ledger.Decode[registry.LocationClaim](folder); err == nil && held.Pointer == who.pointer {
		taken.own = withinOwn
	}
	return taken
}

// takenBeneath says that somebody lives beneath the location; it looks who. What it finds is for the message only.
func (c *Catalog) takenBeneath(ctx context.Context, location registry.Key, who claimant) error {
	taken := &errTaken{at: location.ID}
	if who.fresh {
		return taken
	}
	err := c.ledger.Scan(ctx, registry.TableLocation, location.ID+"/", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateOwner {
			return true, ctx.Err()
		}
		taken.own = takenByAnother
		if held, err := ledger.Decode[registry.LocationClaim](record); err == nil && held.Pointer == who.pointer {
			taken.own = aroundOwn
		}
		return taken.own == aroundOwn, ctx.Err()
	})
	return cmp.Or[error](err, taken)
}

// planKept plans that who goes on to hold, or gets back, the locations that it claimed before; *errTaken if one
// cannot be had, KindBadRequest if one that is to be claimed anew is outside the warehouse's roots.
func (c *Catalog) planKept(ctx context.Context, planned *claim, roots, locations []string, who claimant) error {
	for _, location := range locations {
		if location == planned.normalised {
			continue
		}
		key := registry.LocationKey(location)
		if slices.ContainsFunc(planned.puts, func(p ledger.Write) bool { return p.Key == key }) {
			return &errTaken{location, withinOwn} // it was given up, and lies above the one that is planned
		}
		records, err := c.ledger.Get(ctx, key)
		switch {
		case err != nil:
		case records[0].Exists(): // and with it the folders above
			err = c.planOwner(ctx, planned, key, records[0], who)
		default:
			err = c.planAnew(ctx, planned, roots, location, who)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planAnew plans the claim of one more location. Whoever had it, while who was dropped, has given it up, after which the records of the
// folders above may be gone as well.
func (c *Catalog) planAnew(ctx context.Context, planned *claim, roots []string, location string, who claimant) error {
	more, err := c.planClaim(ctx, roots, location, who)
	if err != nil {
		return err
	}
	for _, condition := range more.conditions {
		if !slices.Contains(planned.conditions, condition) {
			planned.conditions = append(planned.conditions, condition)
		}
	}
	for _, p := range more.puts {
		i := slices.IndexFunc(planned.puts, func(other ledger.Write) bool { return other.Key == p.Key })
		switch {
		case i < 0:
			planned.puts = append(planned.puts, p)
		case planned.puts[i].State != p.State: // the one that is planned is a folder above it
			return &errTaken{location, aroundOwn}
		}
	}
	return nil
}

// claimPath returns the normalised form of location and the folders above it, the nearest first, up to the highest of its disk or
// bucket: roots may lie within those of other warehouses, or be other ones after the next start, and so may the tables in them.
// The location must be below one of roots. A root cannot be claimed, be it within another one or not.
func (c *Catalog) claimPath(roots []string, location string) (normalised string, folders []string, err error) {
	place, err := storage.Parse(location)
	if err != nil {
		return "", nil, moorage.Errorf(moorage.KindBadRequest, "Malformed location: %s", location)
	}
	normalised = place.String()
	if len(normalised) > registry.KeyBytesMax {
		return "", nil, moorage.Errorf(moorage.KindBadRequest, "Location of %d bytes is too long, at most %d are allowed", len(normalised), registry.KeyBytesMax)
	}
	within := false
	for _, root := range roots {
		top, err := storage.Parse(root)
		if err != nil || !top.Contains(place) {
			continue
		}
		if top == place {
			return "", nil, moorage.Errorf(moorage.KindBadRequest, "Location is a folder for tables and views, not for one of them: %s", location)
		}
		within = true
	}
	if !within {
		return "", nil, moorage.Errorf(moorage.KindBadRequest, "Location is outside of those that the warehouse allows (--allow-location): %s", location)
	}
	for _, folder := range place.Ancestors() { // nothing can live in the highest of all, which lies below no root
		folders = append(folders, folder.String())
	}
	return normalised, folders, nil
}

// explicitTaken turns *errTaken into the answer for a location that the client chose.
func explicitTaken(err error, location string) error {
	taken, ok := err.(*errTaken)
	switch {
	case !ok:
		return err
	case taken.own == withinOwn:
		return moorage.Errorf(moorage.KindBadRequest, "Location lies within %s, where the table or view lives, or lived, itself: %s", taken.at, location)
	case taken.own == aroundOwn:
		return moorage.Errorf(moorage.KindBadRequest, "Location contains one where the table or view lives, or lived, itself: %s", location)
	case taken.own == awaitsPurge:
		return moorage.Errorf(moorage.KindUnavailable,
			"The files of a dropped table at %s are still being purged; nothing was changed. Repeat the request later, or choose another location",
			location)
	}
	return moorage.Errorf(moorage.KindBadRequest, "Location is, contains or lies within the location of another table or view: %s", location)
}

// release returns the conditions and deletes that give up those of the pointer's claims that it still
// holds.
func (c *Catalog) release(ctx context.Context, pointer registry.Pointer) ([]registry.Condition, []registry.Write, error) {
	keys := []registry.Key{registry.UUIDKey(pointer.TableUUID)}
	for _, location := range pointer.Claims {
		keys = append(keys, registry.LocationKey(location))
	}
	records, err := c.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, nil, err
	}
	var conditions []registry.Condition
	var writes []registry.Write
	for _, record := range records {
		if !record.Exists() || record.Key.Table == registry.TableLocation && record.State != registry.StateOwner {
			continue
		}
		held, err := ledger.Decode[registry.LocationClaim](record) // a table-uuid's claim has the same member
		if err != nil {
			return nil, nil, err
		}
		if held.Pointer == pointer.ID {
			conditions = append(conditions, registry.ETagIs(record.Key, record.ETag))
			writes = append(writes, registry.Delete(record.Key))
		}
	}
	return conditions, writes, nil
}
