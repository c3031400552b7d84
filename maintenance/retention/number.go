package retention

import (
	"context"
	"errors"
	"time"

	"moorage/ledger"
	"moorage/registry"
)

const (
	// numberInterval is the time between two rounds in which one node gives positions to new
	// changes. Readers of the order see a change once it has a position.
	numberInterval = 250 * time.Millisecond
	// numberLate is the time that a change must have waited before other nodes give it a position
	// too. In that case, the node with the assignment has died or hangs.
	numberLate = 500 * time.Millisecond
	// numberingName is the name of the assignment to give positions. The assignment lasts for
	// numberingLife without a renewal. It need not be short, because of numberLate. Each renewal is
	// a write.
	numberingName = "changes/number"
	numberingLife = time.Minute
	// numberingPause is how long a node without the assignment waits between two attempts to get
	// it.
	numberingPause = 10 * time.Second
	// numberReportPause is the minimum time between two reports of failures. While the store is
	// unavailable, four rounds a second fail.
	numberReportPause = 10 * time.Second
)

// numbering gives positions to changes in a store that does not do so when it writes them.
type numbering struct {
	store    registry.Numberer
	assigner *ledger.Assigner
	now      func() time.Time

	// The times below are by the clock of this node. Zero means never.
	tried    time.Time // when the node last tried to get the assignment
	reported time.Time // when the node last reported a failure
}

func newNumbering(config Config, store registry.Numberer) *numbering {
	return &numbering{store: store, assigner: config.Assigner(), now: config.Now}
}

// run runs one round. It reports a failure only if it has reported none for a while.
func (n *numbering) run(ctx context.Context) error {
	err := n.round(ctx)
	now := n.now()
	if err == nil || !n.reported.IsZero() && now.Sub(n.reported) < numberReportPause {
		return nil
	}
	n.reported = now
	return err
}

// round gives positions to changes that have waited too long. Then, as long as this node has the
// assignment, round gives positions to all new changes. The late changes come first, because taking
// the assignment is a write, which may be slow.
func (n *numbering) round(ctx context.Context) error {
	if err := n.number(ctx, numberLate); err != nil {
		return err
	}
	now := n.now()
	if !n.tried.IsZero() && now.Sub(n.tried) < numberingPause {
		return nil
	}
	n.tried = now
	err := n.assigner.Assign(ctx, numberingName, numberingLife, n.runAssigned)
	if errors.Is(err, ledger.ErrAssigned) {
		return nil
	}
	return err
}

// runAssigned gives positions to changes until ctx ends. A lost assignment is not a failure:
// another node continues.
func (n *numbering) runAssigned(ctx context.Context) error {
	ticker := time.NewTicker(numberInterval)
	defer ticker.Stop()
	for {
		if err := n.number(ctx, 0); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ledger.ErrAssignmentLost) {
				return nil
			}
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// number gives positions to all waiting changes, if the first of them has waited long enough.
func (n *numbering) number(ctx context.Context, waited time.Duration) error {
	for more := true; more; {
		var err error
		if more, err = n.store.Number(ctx, waited); err != nil {
			return ledger.StoreError("retention.number", err)
		}
	}
	return nil
}
