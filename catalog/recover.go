package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"moorage/catalog/documents"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

const (
	// recoverLockPatience is how long after its deadline a transaction is left alone because the locks of its tables are held.
	recoverLockPatience = 5 * time.Minute
)

// newRecovery returns the worker that ends transactions whose coordinators did not.
func newRecovery(c *Catalog, config Config) (*txlog.Recovery, error) {
	jitter, err := ledger.NewJitter(config.Random)
	if err != nil {
		return nil, err
	}
	recovery := txlog.RecoveryConfig{
		Log: c.transactions, Resolve: c.resolveTransaction, Now: c.now,
		Interval: config.SweepInterval, Jitter: jitter, Logger: c.log,
	}
	if c.abortPending {
		recovery.AbandonedBefore = c.made
	}
	return txlog.NewRecovery(recovery), nil
}

// resolveTransaction brings a transaction whose coordinator is gone to its end:
//
//	PENDING → ABORTED → files that were recorded and not published deleted → record and blocker gone
//	        COMMITTED ↗
//
// It never asks what pointers name. All of it may be done again from any point, and by two nodes at once. It returns
// txlog.ErrBusy, and changes nothing, while the transaction belongs to its coordinator or others hold its tables' locks.
// What became of it since it was read as entry is met here or harmless. The caller must hold no locks.
func (c *Catalog) resolveTransaction(ctx context.Context, entry txlog.Entry) error {
	if entry.State == registry.StatePending {
		var err error
		if entry, err = c.abortAbandoned(ctx, entry); err != nil || !entry.Exists() {
			return err
		}
	}
	if err := c.deleteSurplus(ctx, entry.Transaction); err != nil {
		return err
	}
	return c.transactions.Finish(ctx, entry)
}

// abortAbandoned fences the coordinator of a transaction that is PENDING. The locks only spare one that is slow, and lives, its
// work: on tables so busy that they are never free, the fence goes without them after a while.
func (c *Catalog) abortAbandoned(ctx context.Context, entry txlog.Entry) (txlog.Entry, error) {
	if !c.recovery.Due(entry) {
		return entry, fmt.Errorf("%w: its coordinator has until %s", txlog.ErrBusy, entry.Deadline.UTC().Format(time.RFC3339))
	}
	scope := lockScope{warehouse: entry.Warehouse}
	for _, p := range entry.Participants {
		if !p.Pointer.IsZero() {
			scope.pointers = append(scope.pointers, p.Pointer)
		}
	}
	hold, err := c.locks.Acquire(ctx, lockRequest(OpRecover, scope), locks.Options{NonBlocking: true})
	switch {
	case err == nil:
		defer hold.Release()
	case c.now().Sub(entry.Deadline) < recoverLockPatience:
		if errors.Is(err, locks.ErrConflict) {
			err = fmt.Errorf("%w: %w", txlog.ErrBusy, err)
		}
		return entry, err
	}
	return c.transactions.Abort(ctx, entry)
}

// deleteSurplus deletes the files of a transaction that no pointer names, ever named or will name.
func (c *Catalog) deleteSurplus(ctx context.Context, transaction txlog.Transaction) error {
	surplus := transaction.Surplus()
	if len(surplus) == 0 {
		return nil
	}
	store, giveBack, err := c.directory.Borrow(ctx, storage.Place(transaction.Place))
	if err != nil {
		return err
	}
	defer giveBack()
	return documents.DeleteUnpublished(ctx, store, surplus)
}
