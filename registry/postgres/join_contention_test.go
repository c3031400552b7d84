package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/registry"
)

// In TestJoinedContention, many clients on two nodes increment a few pointers by compare-and-set.
// Their moves are nearly always joined. No increment is lost, and the changes of each pointer are
// in the order of its versions.
func TestJoinedContention(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"read committed": "", "serializable": "&default_transaction_isolation=serializable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := server.DSN() + migrated(t) + options
			joinedContention(t, openStore(t, dsn, Options{}), openStore(t, dsn, Options{}))
		})
	}
	t.Run("behind PgBouncer", func(t *testing.T) {
		t.Parallel()
		dsn, _ := migratedBehind(t, newBouncer(t, server.DSN(), "default_pool_size = 4", "max_db_connections = 32"))
		joinedContention(t, openStore(t, dsn+execMode, Options{}), openStore(t, dsn+execMode, Options{}))
	})
}

// counting is the work of the clients of joinedContention.
type counting struct {
	changes atomic.Int64 // the number of IDs that were used
	counted atomic.Int64
}

func joinedContention(t *testing.T, nodes ...*Store) {
	const clients, rounds, pointers = 10, 15, 6
	withPointers(t, nodes[0], pointers)
	var c counting
	var group sync.WaitGroup
	for _, node := range nodes {
		node.moves.most = 1
		for client := range clients {
			random := rand.New(rand.NewPCG(1, uint64(client))) // the random choices of pointers differ between clients
			group.Go(func() {
				for range rounds {
					if err := c.count(t.Context(), node, random.IntN(pointers)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if t.Failed() {
		return
	}
	sum := 0
	for n := range pointers {
		records, err := nodes[0].Get(t.Context(), pointerKey(n))
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(string(records[0].Value)) // empty before the first increment
		sum += number
	}
	if want := len(nodes) * clients * rounds; sum != want || c.counted.Load() != int64(want) {
		t.Errorf("pointers add up to %d after %d counts that succeeded, want %d", sum, c.counted.Load(), want)
	}
	c.wantOrder(t, nodes[0])
}

// count tries to increment a pointer until it succeeds. Every second increment has a key.
func (c *counting) count(ctx context.Context, node *Store, pointer int) error {
	for {
		records, err := node.Get(ctx, pointerKey(pointer))
		if err != nil {
			return err
		}
		number, _ := strconv.Atoi(string(records[0].Value))
		id := int(c.changes.Add(1))
		conditions := []registry.Condition{registry.ETagIs(pointerKey(pointer), records[0].ETag)}
		if id%2 == 0 {
			conditions = append(conditions, registry.Absent(outcomeKey(id)))
		}
		batch := moving(id, conditions...)
		batch.Writes[0].Value = strconv.AppendInt(nil, int64(number)+1, 10)
		_, err = node.Apply(ctx, batch)
		if err == nil {
			c.counted.Add(1)
			return nil
		}
		var failed *registry.FailedError
		if !errors.As(err, &failed) || failed.Index != 0 {
			return err
		}
	}
}

// wantOrder fails the test unless the changes of each pointer form a chain of versions.
func (c *counting) wantOrder(t *testing.T, store *Store) {
	t.Helper()
	changes, err := store.Changes(t.Context(), 0, registry.ListLimitMax)
	if err != nil || int64(len(changes)) != c.counted.Load() {
		t.Fatalf("%d changes of %d counts (%v)", len(changes), c.counted.Load(), err)
	}
	last := make(map[registry.Key]registry.ETag)
	for _, change := range changes {
		version := change.Change.Versions[0]
		if before, ok := last[version.Key]; ok && before != version.Old {
			t.Fatalf("position %d: %s went from %s, want from %s", change.Position, version.Key, version.Old, before)
		}
		last[version.Key] = version.New
	}
}
