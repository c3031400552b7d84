package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// lastingFiles is a storage in which each write of a file takes putDelay. It is for fake time.
type lastingFiles struct{ storage.Store }

func (f lastingFiles) Create(ctx context.Context, location string, body []byte) error {
	time.Sleep(putDelay)
	return f.Store.Create(ctx, location, body)
}

// lastingWrites makes the storage of a fixture take putDelay for each write.
func lastingWrites(config *catalog.Config) {
	catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return lastingFiles{inner} })
}

// Eight clients run transactions, each over ten of forty tables, with the default of
// --transaction-wait. At least 95 of 100 transactions succeed without a retry by the client,
// although any two of them most likely overlap. Each write of a file takes putDelay of fake time,
// so that only waits count, and not the speed of the machine.
func TestOverlappingTransactionsSucceed(t *testing.T) {
	t.Parallel()
	seed := catalogkit.NewSeed(t)
	synctest.Test(t, func(t *testing.T) { overlapTransactions(t, seed) })
}

func overlapTransactions(t *testing.T, seed uint64) {
	t.Helper()
	const tables, each, clients, perClient, presetWait = 40, 10, 8, 25, 2 * time.Second
	f := catalogkit.New(t, lastingWrites, func(c *catalog.Config) { c.Now, c.TransactionWait = time.Now, presetWait })
	createTables(f, tables)
	var done atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		running.Go(func() {
			for n := range perClient {
				var changes []catalog.TableChange
				for _, table := range random.Perm(tables)[:each] {
					changes = append(changes, catalogkit.On(fmt.Sprintf("t%d", table), catalogkit.SetProperty(t, fmt.Sprint("client", client), fmt.Sprint(n))))
				}
				switch err := f.Transact(changes...); {
				case err == nil:
					done.Add(1)
				case moorage.KindOf(err) != moorage.KindCommitFailed:
					t.Errorf("client %d: %v", client, err)
				}
			}
		})
	}
	running.Wait()
	const all = clients * perClient
	t.Logf("%d of %d transactions succeeded in %s", done.Load(), all, time.Since(began).Round(time.Millisecond))
	if done.Load()*100 < all*95 {
		t.Errorf("%d of %d transactions succeeded, want 95 of 100", done.Load(), all)
	}
	f.WantNoTransactions()
	f.WantClean()
}
