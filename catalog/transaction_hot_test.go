package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage/catalog"
	"moorage/testkit/catalogkit"
)

// Transactions over tables with a constant stream of commits are not refused: from its second try
// on, a transaction gets ahead of the waiting commits. The test runs with fake time, in which each
// write of a file takes putDelay, so the speed of the machine does not matter. The long form of the
// test matches the stated goal, on a real disk.
func TestTransactionsOnHotTables(t *testing.T) {
	t.Parallel()
	patient := func(config *catalog.Config) { config.TransactionWait = catalog.TransactionWaitMax }
	if *longFlag {
		f, _ := newDiskCatalog(t, patient)
		transactOnHotTables(f, 10, 32, 8, time.Minute)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t, lastingWrites, patient, func(config *catalog.Config) { config.Now = time.Now })
		transactOnHotTables(f, 4, 8, 4, 2*time.Second)
	})
}

// transactOnHotTables runs perTable clients that commit to each of the tables, and other clients
// that run transactions over all tables.
func transactOnHotTables(f *catalogkit.Fixture, tables, perTable, transactions int, duration time.Duration) {
	t := f.T
	t.Helper()
	createTables(f, tables)
	ctx, stop := context.WithTimeout(f.Ctx, duration)
	defer stop()
	var group sync.WaitGroup
	var commits, done, refused atomic.Int64
	for client := range tables * perTable {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				request := catalogkit.SetProperty(t, fmt.Sprintf("p%d", client), fmt.Sprint(n))
				_, err := f.Commit(ctx, ident(fmt.Sprintf("t%d", client%tables)), request)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				commits.Add(1)
			}
		})
	}
	for client := range transactions {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var changes []catalog.TableChange
				for table := range tables {
					change := catalogkit.SetProperty(t, fmt.Sprintf("txn%d", client), fmt.Sprint(n))
					changes = append(changes, catalogkit.On(fmt.Sprintf("t%d", table), change))
				}
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
