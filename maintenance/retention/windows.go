package retention

import (
	"context"
	"time"

	"moorage/catalog/claims"
	"moorage/ledger"
	"moorage/registry"
)

// operationEndWindow is the name that change records have for the end of a window.
const operationEndWindow = "end-undrop-window"

// windows ends the pointers that were dropped longer ago than the undrop window and have no purge
// to wait for. The table or view can no longer come back, and its claims are free. Its files stay.
// So it is with those whose purge had begun and was called off longer ago.
type windows struct {
	ledger *ledger.Ledger
	claims *claims.Claims
	window time.Duration
	scan   scan
}

func (w *windows) run(ctx context.Context) error {
	now, err := w.ledger.Time(ctx)
	if err != nil {
		return err
	}
	limit := now.Add(-w.window)
	over := func(state registry.State, pointer registry.Pointer) bool {
		return state.IsDropped() && pointer.Since.Before(limit) && pointer.Task.IsZero()
	}
	return w.scan.next(ctx, func(record registry.Record) error {
		if !record.State.IsDropped() {
			return nil
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		if err == nil && over(record.State, pointer) {
			err = w.claims.End(ctx, operationEndWindow, pointer.ID, over)
		}
		return err
	})
}
