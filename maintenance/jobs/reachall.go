package jobs

import (
	"context"
	"fmt"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/reach"
	"moorage/metadata"
	"moorage/registry"
)

// changesMax is how many changes catchUp reads at a time.
const changesMax = 1000

// reached is what all tables of the store reach, as of a position in the log of changes.
type reached struct {
	jobs     *Jobs
	set      *reach.Set
	cost     reach.Cost
	position registry.Position
}

// reachAll reads what all tables of the store reach: the live ones, and the dropped ones that could
// come back. A table may have files anywhere in a warehouse. What transactions name is in it too.
func reachAll(ctx context.Context, j *Jobs) (*reached, error) {
	r := &reached{jobs: j}
	horizon, err := registry.ReadHorizon(ctx, j.store)
	if err == nil {
		r.position, err = registry.Head(ctx, j.store, horizon.Position)
	}
	if err != nil {
		return nil, ledger.StoreError("jobs.reachAll", err)
	}
	// The size of a set is fixed before it is filled, so lists are read twice.
	err = eachReaching(ctx, j, func(t reaching) error {
		_, cost, err := reach.Manifests(ctx, t.files, t.document, nil)
		r.cost.Lists, r.cost.Manifests = r.cost.Lists+cost.Lists, r.cost.Manifests+cost.Manifests
		r.cost.Bytes, r.cost.Files = r.cost.Bytes+cost.Bytes, r.cost.Files+cost.Files
		return err
	})
	if err != nil {
		return r, err
	}
	r.set = reach.NewSetOfNames(r.cost.Files + r.cost.Manifests)
	if err := eachReaching(ctx, j, func(t reaching) error { return t.addTo(ctx, r.set) }); err != nil {
		return r, err
	}
	return r, addTransactions(ctx, j, r.set)
}

// catchUp adds what tables reach that have changed since the last call. An error has the step begin
// again.
func (r *reached) catchUp(ctx context.Context) error {
	if r.jobs.skip[checkNew] {
		return nil
	}
	changed := make(map[registry.ID]bool)
	for full := true; full; {
		page, err := registry.Follow(ctx, r.jobs.store, r.position, changesMax)
		if err != nil {
			return ledger.StoreError("jobs.catchUp", err)
		}
		for _, each := range page {
			if each.Unreadable != nil {
				return moorage.E("jobs.catchUp", "", moorage.KindUnavailable, each.Unreadable)
			}
			for _, item := range each.Change.Items {
				if item.Kind == registry.ItemTable {
					changed[item.ID] = true
				}
			}
			r.position = each.Position
		}
		full = len(page) == changesMax
	}
	for id := range changed {
		version, _, err := r.jobs.tables.TableByID(ctx, id)
		if moorage.KindOf(err) == moorage.KindNoSuchTable {
			continue // the set has what it reached before
		}
		if err == nil {
			err = reachingOf(r.jobs, version).addTo(ctx, r.set)
		}
		if err != nil {
			return err
		}
	}
	return addTransactions(ctx, r.jobs, r.set)
}

// reaching is a version of a table that reaches files.
type reaching struct {
	files    reach.Reader
	document *metadata.Document
	location string
}

func reachingOf(j *Jobs, version *catalog.Version) reaching {
	return reaching{j.budget.Reader(version.Storage), version.Document.(*metadata.Document), version.Location}
}

func (t reaching) addTo(ctx context.Context, set *reach.Set) error {
	return reach.Live(ctx, t.files, t.document, t.location, set)
}

// eachReaching calls do for each table of the store, also for those that were dropped and could
// come back.
func eachReaching(ctx context.Context, j *Jobs, do func(reaching) error) error {
	return j.ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		pointer, err := ledger.Decode[registry.Pointer](record)
		switch {
		case err != nil:
			return false, &BlockedError{fmt.Sprintf("the pointer %s cannot be read", record.Key.ID)}
		case pointer.View, record.State == registry.StatePurging:
			return true, nil
		}
		version, err := versionFound(ctx, j, record.State, pointer)
		if err != nil || version == nil {
			return err == nil, err
		}
		return true, do(reachingOf(j, version))
	})
}

// versionFound returns the version of a table that pointer names, the present one if it is live. It
// returns nil if the table was dropped and cannot come back.
func versionFound(ctx context.Context, j *Jobs, state registry.State, pointer registry.Pointer) (
	*catalog.Version, error) {
	if state == registry.StateLive {
		version, _, err := j.tables.TableByID(ctx, pointer.ID)
		if moorage.KindOf(err) != moorage.KindNoSuchTable {
			return version, err
		}
	}
	version, err := j.tables.Dropped(ctx, pointer)
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindNoSuchWarehouse:
		return nil, nil
	}
	return version, err
}
