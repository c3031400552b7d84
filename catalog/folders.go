package catalog

import (
	"context"

	"moorage/ledger"
	"moorage/registry"
)

// sweepFolders removes the records of folders beneath which no table or view lives any more: such a folder may be the location of one again.
// A folder goes after those in it, in later rounds.
//
// Whether a folder is empty is a question about a range, which no condition can ask. So it is asked in three steps, as for a namespace:
//
//	below → dropping → a look for what is beneath → gone, or below again
//
// Who claims a location beneath requires the version of the record that it read, and where that is dropping writes it anew, as
// below: what was claimed before the mark is seen by the look, and what comes after takes the mark away, without which
// the folder does not go. A mark whose owner died stays until then, or until the next look.
func (c *Catalog) sweepFolders(ctx context.Context) error {
	return c.sweeps.folders.next(ctx, c, func(record registry.Record) error {
		if record.State != registry.StateBelow && record.State != registry.StateDropping {
			return nil
		}
		return ledger.IgnoreRetry(c.sweepFolder(ctx, record))
	})
}

// sweepFolder removes the record of a folder that is empty; ledger.ErrRetry if somebody wrote it meanwhile.
func (c *Catalog) sweepFolder(ctx context.Context, record registry.Record) error {
	marked := record.State == registry.StateDropping
	empty, err := c.isEmptyFolder(ctx, record)
	if err != nil || !empty && !marked {
		return err
	}
	if !marked {
		if record, err = c.writeFolder(ctx, record, registry.StateDropping); err != nil {
			return err
		}
		if empty, err = c.isEmptyFolder(ctx, record); err != nil {
			return err
		}
	}
	if !empty {
		_, err := c.writeFolder(ctx, record, registry.StateBelow)
		return err
	}
	_, err = c.applyFolder(ctx, record, registry.Delete(record.Key))
	return err
}

// isEmptyFolder tells whether nothing is claimed beneath a folder.
func (c *Catalog) isEmptyFolder(ctx context.Context, folder registry.Record) (bool, error) {
	beneath, err := c.ledger.List(ctx, registry.TableLocation, folder.Key.ID+"/", "", 1)
	return len(beneath) == 0, ledger.StoreError("catalog.isEmptyFolder", err)
}

// writeFolder gives the record of a folder another state, and returns it as it is then.
func (c *Catalog) writeFolder(ctx context.Context, folder registry.Record, state registry.State) (registry.Record, error) {
	writes, err := ledger.Encode(ledger.Put(folder.Key, state, registry.LocationClaim{Unknown: ledger.UnknownOf[registry.LocationClaim](folder)}))
	if err != nil {
		return folder, err
	}
	etag, err := c.applyFolder(ctx, folder, writes[0])
	folder.State, folder.ETag = state, etag
	return folder, err
}

// applyFolder writes the record of a folder if it is the version that was read, else ledger.ErrRetry. What becomes of a write
// that is lost does not matter: a later round looks anew.
func (c *Catalog) applyFolder(ctx context.Context, folder registry.Record, write registry.Write) (registry.ETag, error) {
	etags, err := c.ledger.Step(ctx, registry.Batch{Conditions: []registry.Condition{ledger.Unchanged(folder)}, Writes: []registry.Write{write}})
	if _, failed := registry.FailedCondition(err); failed {
		return registry.ETag{}, ledger.ErrRetry
	}
	if err != nil {
		return registry.ETag{}, ledger.StoreError("catalog.applyFolder", err)
	}
	return etags[0], nil
}
