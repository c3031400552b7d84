package claims

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Ending describes how a pointer gives up its locations.
type Ending struct {
	How string    // registry.EndedPurge or another constant of its group
	Now time.Time // the present time by the store's clock
	// ReachableUntil is the time until which engines may hold credentials for the locations. It is
	// zero if engines hold no credentials.
	ReachableUntil time.Time
	// Lasting is true if files may be left at the locations. Then only an operator can clear the
	// tombstones.
	Lasting bool
}

// tombstoneOf returns the tombstone of a pointer that gives up a location.
func tombstoneOf(pointer registry.Pointer, ending Ending) registry.Tombstone {
	return registry.Tombstone{
		Pointer: pointer.ID, Table: pointer.Identifier(), TableUUID: pointer.TableUUID,
		WarehouseID: pointer.WarehouseID, Ended: ending.Now, How: ending.How, Lasting: ending.Lasting,
		ReachableUntil: ending.ReachableUntil, MetadataLocation: pointer.MetadataLocation,
		Trims: registry.FencedTrims(pointer.Trims, ending.Now),
	}
}

// TombstoneOf returns the tombstone that a table or view left at a location when it ended. It is
// zero if there is no tombstone, or only the tombstone of another table or view.
func TombstoneOf(record registry.Record, tableUUID string) (registry.Tombstone, error) {
	own, err := isOwn(record, Claimant{TableUUID: tableUUID})
	if err != nil || !own {
		return registry.Tombstone{}, err
	}
	return ledger.Decode[registry.Tombstone](record)
}

// isOwn reports whether record is the tombstone of the claimant's table. record may be missing.
func isOwn(record registry.Record, claimant Claimant) (bool, error) {
	if !record.Exists() || claimant.TableUUID == "" {
		return false, nil
	}
	tombstone, err := ledger.Decode[registry.Tombstone](record)
	return strings.EqualFold(tombstone.TableUUID, claimant.TableUUID), err
}

// mayResettle returns nil if the claimant may live at, above or below the tombstone of record, or
// if record is missing. First it calls claimant.MayResettle, and returns its error. Then it returns
// *TakenError while engines may hold credentials, which would reach the claimant's files. So a
// claimant without the right to resettle does not learn when the credentials end.
func (c *Claims) mayResettle(ctx context.Context, record registry.Record, claimant Claimant) error {
	if !record.Exists() {
		return nil
	}
	tombstone, err := ledger.Decode[registry.Tombstone](record)
	if err != nil {
		return err
	}
	ends := !tombstone.Lasting && !tombstone.ReachableUntil.IsZero()
	if claimant.MayResettle != nil && !ends {
		if err := claimant.MayResettle(ctx, tombstone); err != nil {
			return err
		}
	}
	if tombstone.ReachableUntil.IsZero() {
		return nil
	}
	now, err := c.ledger.Time(ctx)
	if err == nil && now.Before(tombstone.ReachableUntil) {
		err = &TakenError{At: record.Key.ID, Own: StillReached, Until: tombstone.ReachableUntil}
	}
	return err
}

// emptied sets the record of a folder to state dropping and returns it, if the claimant may claim
// the folder as its location. It requires that nothing below the folder is claimed, and that the
// claimant may live above the tombstones below it.
//
// Conditions cannot cover a range, such as the locations below a folder. So emptied first marks the
// folder's record with this state, as the sweep of folders does, and then scans the range. If a
// claim below the folder was planned before the mark, its Apply fails because of the mark. A claim
// that is planned later removes the mark. So if an Apply that requires the marked version succeeds,
// the result of the scan is still correct.
//
// The error is *TakenError if the location is taken, and ledger.ErrRetry if the record has changed.
func (c *Claims) emptied(ctx context.Context, folder registry.Record, claimant Claimant) (registry.Record, error) {
	if err := c.lookBeneath(ctx, folder.Key, claimant); err != nil || folder.State == registry.StateDropping {
		return folder, err
	}
	value := registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](folder)}
	writes, err := ledger.Encode(ledger.Put(folder.Key, registry.StateDropping, value))
	if err != nil {
		return folder, err
	}
	etags, err := c.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(folder)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return folder, ledger.ErrRetry
	}
	if err != nil { // if a mark was left, the sweep removes it
		return folder, moorage.E("claims.emptied", folder.Key.ID, moorage.KindUnavailable, err)
	}
	folder.State, folder.ETag = registry.StateDropping, etags[0]
	return folder, c.lookBeneath(ctx, folder.Key, claimant)
}

// lookBeneath returns *TakenError if any location below location is claimed. If there is a
// tombstone below, it returns the error of mayResettle. It reads the claims before the tombstones:
// a claim that ends in between leaves a tombstone, which the second read finds.
func (c *Claims) lookBeneath(ctx context.Context, location registry.Key, claimant Claimant) error {
	var taken *TakenError
	err := c.ledger.Scan(ctx, registry.TableLocation, location.ID+"/", "", func(record registry.Record) (bool, error) {
		if record.State != registry.StateOwner {
			return true, ctx.Err()
		}
		taken = &TakenError{At: location.ID}
		if held, err := ledger.Decode[registry.LocationClaim](record); err == nil && held.Pointer == claimant.Pointer {
			taken.Own = AroundOwn
		}
		return taken.Own == AroundOwn, ctx.Err() // one other owner is enough
	})
	if err != nil || taken != nil {
		return cmp.Or(err, error(taken))
	}
	return c.ledger.Scan(ctx, registry.TableTombstone, location.ID+"/", "", func(record registry.Record) (bool, error) {
		return true, c.mayResettle(ctx, record, claimant)
	})
}

// Release returns the conditions and writes that give up the pointer's remaining claims. ending
// describes how. The record of a location that keeps a tombstone, or has claims or tombstones below
// it, becomes a folder record.
func (c *Claims) Release(ctx context.Context, pointer registry.Pointer, ending Ending) (
	[]registry.Condition, []registry.Write, error) {
	records, err := c.ledger.Get(ctx, claimKeys(pointer)...)
	if err != nil {
		return nil, nil, err
	}
	return c.release(ctx, pointer, ending, records)
}

// claimKeys returns the keys of the records that Release reads.
func claimKeys(pointer registry.Pointer) []registry.Key {
	keys := []registry.Key{registry.UUIDKey(pointer.TableUUID)}
	for _, location := range pointer.Claims {
		keys = append(keys, registry.LocationKey(location), registry.TombstoneKey(location))
	}
	return keys
}

// release is Release, given records, which were read at claimKeys.
func (c *Claims) release(ctx context.Context, pointer registry.Pointer, ending Ending, records []registry.Record) (
	conditions []registry.Condition, writes []registry.Write, err error) {
	if record := records[0]; record.Exists() {
		held, err := ledger.Decode[registry.TableUUIDClaim](record)
		if err != nil {
			return nil, nil, err
		}
		if held.Pointer == pointer.ID {
			conditions = append(conditions, ledger.Unchanged(record))
			writes = append(writes, registry.Delete(record.Key))
		}
	}
	for i := range pointer.Claims {
		record, tombstone := records[1+2*i], records[2+2*i]
		if record.State != registry.StateOwner {
			continue
		}
		held, err := ledger.Decode[registry.LocationClaim](record)
		if err != nil {
			return nil, nil, err
		}
		if held.Pointer != pointer.ID {
			continue
		}
		conditions = append(conditions, ledger.Unchanged(record))
		more, left, err := c.leave(ctx, pointer, record, tombstone, ending)
		if err != nil {
			return nil, nil, err
		}
		conditions, writes = append(conditions, more...), append(writes, left...)
	}
	return conditions, writes, nil
}

// leave plans the tombstone that pointer leaves at a location, if any. record is the pointer's
// claim of the location. before is a tombstone that another table left there earlier. leave keeps
// that tombstone, because the files of that other table may still be there.
func (c *Claims) leave(ctx context.Context, pointer registry.Pointer, record, before registry.Record,
	ending Ending) (conditions []registry.Condition, writes []registry.Write, err error) {
	var puts []ledger.Write
	below := before.Exists()
	if ending.Lasting || ending.Now.Before(ending.ReachableUntil) || before.Exists() {
		tombstone := tombstoneOf(pointer, ending)
		if before.Exists() {
			earlier, err := ledger.Decode[registry.Tombstone](before)
			if err != nil {
				return nil, nil, err
			}
			tombstone.Unknown = earlier.Unknown
			if tombstone.ReachableUntil.Before(earlier.ReachableUntil) {
				tombstone.ReachableUntil = earlier.ReachableUntil
			}
			if earlier.Lasting && !ending.Lasting {
				earlier.ReachableUntil = tombstone.ReachableUntil
				tombstone = earlier
			}
		}
		key := registry.TombstoneKey(record.Key.ID)
		conditions = append(conditions, ledger.AsRead(before, key))
		puts, below = append(puts, ledger.Put(key, registry.StateNone, tombstone)), true
	}
	if !below {
		for _, table := range []registry.Table{registry.TableLocation, registry.TableTombstone} {
			beneath, err := c.ledger.ListKeys(ctx, table, record.Key.ID+"/", "", 1)
			if err != nil {
				return nil, nil, err
			}
			below = below || len(beneath) > 0
		}
	}
	if !below {
		return conditions, []registry.Write{registry.Delete(record.Key)}, nil
	}
	folder := registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](record)}
	writes, err = ledger.Encode(append(puts, ledger.Put(record.Key, registry.StateBelow, folder))...)
	return conditions, writes, err
}

// Left is a tombstone and its location.
type Left struct {
	Location string
	registry.Tombstone
}

// Tombstones returns at most limit of the tombstones below one of roots, in the order of their
// locations. It begins behind the location in the parameter after, or with the first location if
// that parameter is empty. To get the next page, pass next as after. next is empty on the last
// page.
//
// Its errors come from the store.
func (c *Claims) Tombstones(ctx context.Context, roots []string, after string, limit int) (
	all []Left, next string, err error) {
	folders, err := parseAll(roots)
	if err != nil {
		return nil, "", err
	}
	err = c.ledger.Scan(ctx, registry.TableTombstone, "", after, func(record registry.Record) (bool, error) {
		at, err := storage.Parse(record.Key.ID)
		if err != nil || !slices.ContainsFunc(folders, func(root storage.Location) bool { return root.Contains(at) }) {
			return true, nil // this location is outside the roots
		}
		if len(all) == limit {
			next = all[limit-1].Location
			return false, nil
		}
		tombstone, err := ledger.Decode[registry.Tombstone](record)
		all = append(all, Left{record.Key.ID, tombstone})
		return true, err
	})
	return all, next, err
}

func parseAll(roots []string) ([]storage.Location, error) {
	var parsed []storage.Location
	for _, root := range roots {
		at, err := storage.Parse(root)
		if err != nil {
			return nil, moorage.E("claims.parseAll", root, moorage.KindInternal, err)
		}
		parsed = append(parsed, at)
	}
	return parsed, nil
}

// Clear removes the tombstone at a location below one of roots, and returns it. While engines may
// hold credentials for the location, Clear does not remove the tombstone.
//
// Errors: KindBadRequest for a malformed location; KindNotFound if there is no tombstone or the
// location is outside the roots; KindUnavailable.
func (c *Claims) Clear(ctx context.Context, roots []string, location string) (left Left, err error) {
	at, err := storage.Parse(location)
	if err != nil {
		return left, moorage.Errorf(moorage.KindBadRequest, "Malformed location: %s", location)
	}
	folders, err := parseAll(roots)
	if err != nil {
		return left, err
	}
	left.Location = at.String()
	missing := moorage.Errorf(moorage.KindNotFound, "No table or view left a tombstone at %s", location)
	if !slices.ContainsFunc(folders, func(root storage.Location) bool { return root.Contains(at) }) {
		return left, missing
	}
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := c.ledger.Get(ctx, registry.TombstoneKey(left.Location))
		if err != nil {
			return err
		}
		if !records[0].Exists() {
			return missing
		}
		if left.Tombstone, err = ledger.Decode[registry.Tombstone](records[0]); err != nil {
			return err
		}
		now, err := c.ledger.Time(ctx)
		if err != nil {
			return err
		}
		writes := []registry.Write{registry.Delete(records[0].Key)}
		if now.Before(left.ReachableUntil) {
			ending := left.Tombstone
			ending.Lasting = false
			if writes, err = ledger.Encode(ledger.Put(records[0].Key, registry.StateNone, ending)); err != nil {
				return err
			}
		}
		_, err = c.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{ledger.Unchanged(records[0])}, Writes: writes,
		})
		if _, failed := registry.FailedCondition(err); failed {
			return ledger.ErrRetry
		}
		return ledger.StepError("claims.Clear", err)
	})
	return left, err
}
