package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// Transactions over tables with a constant stream of commits are not refused: from its second try
// on, a transaction gets ahead of the waiting commits. The long form of the test matches the stated
// goal.
func TestTransactionsOnHotTables(t *testing.T) {
	t.Parallel()
	tables, perTable, transactions, duration := 4, 8, 4, 2*time.Second
	if *longFlag {
		tables, perTable, transactions, duration = 10, 32, 8, time.Minute
	}
	f, _ := newDiskCatalog(t, func(config *catalog.Config) { config.TransactionWait = catalog.TransactionWaitMax })
	createTables(f, tables)
	ctx, stop := context.WithTimeout(f.Ctx, duration)
	defer stop()
	var group sync.WaitGroup
	var commits, done, refused atomic.Int64
	for client := range tables * perTable {
		request := catalogkit.SetProperty(t, fmt.Sprintf("p%d", client), "yes")
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := f.Commit(ctx, ident(fmt.Sprintf("t%d", client%tables)), request)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				commits.Add(1)
			}
		})
	}
	for client := range transactions {
		var changes []catalog.TableChange
		for table := range tables {
			changes = append(changes, catalogkit.On(fmt.Sprintf("t%d", table), catalogkit.SetProperty(t, fmt.Sprintf("txn%d", client), "yes")))
		}
		group.Go(func() {
			for ctx.Err() == nil {
				if err := f.CommitTransaction(f.Ctx, catalogkit.Warehouse, changes); err != nil {
					refused.Add(1)
					t.Errorf("a transaction was refused: %v", err)
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	t.Logf("%d transactions of %d tables, %d refused; %d commits beside them", done.Load(), tables, refused.Load(), commits.Load())
	if done.Load() == 0 || commits.Load() == 0 {
		t.Error("nothing was done")
	}
}
