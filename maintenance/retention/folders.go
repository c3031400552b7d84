package retention

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// folders removes the records of folders beneath which no table or view lives any more. Then such a
// folder may be the location of one again. A folder goes after those in it, in later rounds.
//
// Whether a folder is empty is a question about a range, which no condition can ask. So the job
// asks it in three steps:
//
//	below → dropping → a look for what is beneath → gone, or below again
//
// A claim of a location beneath requires the version of the record that it read. Where that is
// dropping, the claim writes below. So the look sees what was claimed before the mark. A later
// claim takes the mark away, and without the mark the folder does not go. A mark whose node died
// stays until then, or until the next look.
//
// It also removes the claims that tables left which are gone, once the credentials for them have
// ended.
type folders struct {
	ledger *ledger.Ledger
	scan   scan
}

func (f *folders) run(ctx context.Context) error {
	now, err := f.ledger.Time(ctx)
	if err != nil {
		return err
	}
	return f.scan.next(ctx, func(record registry.Record) error {
		switch record.State {
		case registry.StateBelow, registry.StateDropping:
			return ledger.IgnoreRetry(f.remove(ctx, record))
		case registry.StateOwner:
			return ledger.IgnoreRetry(f.removeLeft(ctx, record, now))
		}
		return nil
	})
}

// removeLeft removes a claim whose table is gone, if no credentials for it are good any more.
func (f *folders) removeLeft(ctx context.Context, record registry.Record, now time.Time) error {
	claim, err := ledger.Decode[registry.LocationClaim](record)
	if err != nil || !claim.IsLeft() || now.Before(claim.ReachableUntil) {
		return err
	}
	holder, err := f.ledger.Get(ctx, registry.PointerKey(claim.Pointer))
	if err != nil || holder[0].Exists() {
		return err
	}
	_, err = f.apply(ctx, record, registry.Delete(record.Key))
	return err
}

// remove removes the record of a folder that is empty; ledger.ErrRetry if another process wrote it
// meanwhile.
func (f *folders) remove(ctx context.Context, record registry.Record) error {
	marked := record.State == registry.StateDropping
	empty, err := f.isEmpty(ctx, record)
	if err != nil || !empty && !marked {
		return err
	}
	if !marked {
		if record, err = f.write(ctx, record, registry.StateDropping); err != nil {
			return err
		}
		if empty, err = f.isEmpty(ctx, record); err != nil {
			return err
		}
	}
	if !empty {
		_, err := f.write(ctx, record, registry.StateBelow)
		return err
	}
	_, err = f.apply(ctx, record, registry.Delete(record.Key))
	return err
}

// isEmpty reports whether nothing is claimed beneath a folder.
func (f *folders) isEmpty(ctx context.Context, folder registry.Record) (bool, error) {
	beneath, err := f.ledger.List(ctx, registry.TableLocation, folder.Key.ID+"/", "", 1)
	return len(beneath) == 0, ledger.StoreError("retention.isEmpty", err)
}

// write gives the record of a folder another state, and returns it as it is then.
func (f *folders) write(ctx context.Context, folder registry.Record, state registry.State) (registry.Record, error) {
	value := registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](folder)}
	writes, err := ledger.Encode(ledger.Put(folder.Key, state, value))
	if err != nil {
		return folder, err
	}
	etag, err := f.apply(ctx, folder, writes[0])
	folder.State, folder.ETag = state, etag
	return folder, err
}

// apply writes the record of a folder if it is the version that was read, else ledger.ErrRetry.
// What becomes of a write whose answer is lost does not matter: a later round looks again.
func (f *folders) apply(ctx context.Context, folder registry.Record, write registry.Write) (registry.ETag, error) {
	etags, err := f.ledger.Step(ctx, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(folder)}, Writes: []registry.Write{write},
	})
	if _, failed := registry.FailedCondition(err); failed {
		return registry.ETag{}, ledger.ErrRetry
	}
	if err != nil {
		return registry.ETag{}, ledger.StoreError("retention.apply", err)
	}
	return etags[0], nil
}
