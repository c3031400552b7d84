package jobs

import (
	"context"
	"errors"

	"moorage/ledger"
	"moorage/registry"
)

// changesMax is the number of changes that catchUp reads at a time.
const changesMax = 1000

// catchUp adds the files of tables and views that were created, changed, dropped, restored or
// renamed since the last call, or since the search began. changed reports whether there were any.
// forgotten lists the last metadata files of the warehouse's tables that have since been
// unregistered, because a client may register them again.
func (r *reached) catchUp(ctx context.Context) (changed bool, forgotten []string, err error) {
	r.behind = false
	pointers, err := r.follow(ctx)
	if err != nil {
		return false, nil, err
	}
	for key, last := range pointers {
		records, err := r.jobs.ledger.Get(ctx, key)
		if err != nil {
			return false, nil, err
		}
		switch {
		case records[0].Exists():
			err = r.read(ctx, records[0])
		case last.Kind == registry.ItemTable && last.Ident.Warehouse == r.warehouse:
			forgotten = append(forgotten, last.PreviousMetadataLocation)
		}
		if err != nil {
			return false, nil, err
		}
	}
	return len(pointers) > 0, forgotten, addTransactions(ctx, r.jobs, r.set)
}

// follow reads the log of changes to its end. It returns the changed pointers, each with the item
// for its last change.
func (r *reached) follow(ctx context.Context) (map[registry.Key]registry.Item, error) {
	pointers := make(map[registry.Key]registry.Item)
	for {
		page, err := registry.Follow(ctx, r.jobs.store, r.position, changesMax)
		if errors.Is(err, registry.ErrForgotten) {
			return nil, &BlockedError{"the search took longer than changes are kept (--change-retention)"}
		}
		if err != nil {
			return nil, ledger.StoreError("jobs.follow", err)
		}
		if len(page) == 0 {
			return pointers, nil
		}
		for _, each := range page {
			if each.Unreadable != nil {
				return nil, &BlockedError{"a change that came meanwhile cannot be read; moorage doctor --deep names it"}
			}
			for _, version := range each.Change.Versions {
				if version.Key.Table == registry.TablePointer {
					pointers[version.Key] = registry.Item{}
				}
			}
			for _, item := range each.Change.Items {
				if item.Kind == registry.ItemTable || item.Kind == registry.ItemView {
					pointers[registry.PointerKey(item.ID)] = item
				}
			}
			r.position = each.Position
		}
	}
}
