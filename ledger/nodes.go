package ledger

import (
	"context"
	"strings"

	"moorage"
	"moorage/registry"
)

// RefuseBehind returns an error that names the nodes that use the store now and know no format as
// new as format: they would not heed what the store is about to hold.
//
// Errors: KindIllegalArgument, KindUnavailable.
func (l *Ledger) RefuseBehind(ctx context.Context, format int) error {
	store, ok := registry.Find[registry.Nodes](l.store)
	if !ok {
		return nil // no other process uses it
	}
	behind, err := store.Behind(ctx, format)
	switch {
	case err != nil:
		return StepError("ledger.RefuseBehind", err)
	case len(behind) > 0:
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Nodes run whose version is too old for this: stop or upgrade them first: %s", strings.Join(behind, ", "))
	}
	return nil
}
