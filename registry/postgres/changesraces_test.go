package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
)

// TestChangesOfLives: clients create, change and delete a few keys while two readers follow.
func TestChangesOfLives(t *testing.T) {
	t.Parallel()
	const clients, rounds, keys, followers = 4, 60, 3, 2
	const seed = 1
	t.Logf("seed %d", seed)
	schema := migrated(t)
	store := openStore(t, server.DSN()+schema, Options{})
	var total int
	var mu sync.Mutex // guards total
	finished, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		writers.Go(func() {
			for round := range rounds {
				key := registry.PointerKey(faultID(random.IntN(keys)))
				records, err := store.Get(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				batch := registry.Batch{Change: &registry.Change{ID: faultID(1000 + client*rounds + round)}}
				switch {
				case !records[0].Exists():
					batch.Conditions = []registry.Condition{registry.Absent(key)}
					batch.Writes = []registry.Write{registry.Put(key, registry.StateLive, nil)}
				case random.IntN(2) == 0:
					batch.Conditions = []registry.Condition{registry.ETagIs(key, records[0].ETag)}
					batch.Writes = []registry.Write{registry.Delete(key).Over(records[0])}
				default:
					batch.Conditions = []registry.Condition{registry.ETagIs(key, records[0].ETag)}
					batch.Writes = []registry.Write{registry.Put(key, registry.StateLive, nil).Over(records[0])}
				}
				_, err = store.Apply(t.Context(), batch)
				if _, refused := registry.FailedCondition(err); err != nil && !refused {
					t.Error(err)
					return
				}
				if err == nil {
					mu.Lock()
					total++
					mu.Unlock()
				}
			}
		})
	}
	follow := func() (seen []registry.PositionedChange) {
		var after registry.Position
		for last := false; ; {
			page, err := store.Changes(t.Context(), after, 7)
			if err != nil {
				t.Error(err)
				return seen
			}
			if seen = append(seen, page...); len(page) > 0 {
				after = page[len(page)-1].Position
			} else if last {
				return seen
			}
			last = finished.Err() != nil
		}
	}
	var followed [followers][]registry.PositionedChange
	for i := range followed {
		readers.Go(func() { followed[i] = follow() })
	}
	writers.Wait()
	stop()
	readers.Wait()
	for i, seen := range followed {
		if len(seen) != total {
			t.Errorf("reader %d saw %d changes of %d", i, len(seen), total)
		}
		current := map[registry.Key]registry.ETag{}
		for n, c := range seen[:min(len(seen), len(followed[0]))] {
			if c.Position != followed[0][n].Position || c.Change.ID != followed[0][n].Change.ID {
				t.Fatalf("readers saw different orders at %d", n)
			}
			for _, v := range c.Change.Versions {
				if v.Old != current[v.Key] {
					t.Fatalf("position %d: %s goes from %s to %s, but stood at %s", c.Position, v.Key, v.Old, v.New, current[v.Key])
				}
				current[v.Key] = v.New
			}
		}
	}
}

// awaitLocks waits until count connections of the application wait for a lock, or until ended is
// closed.
func awaitLocks(t *testing.T, application string, count int, ended <-chan struct{}) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for waiting := 0; waiting < count; {
		select {
		case <-ended:
			return
		default:
		}
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'", application).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRowsThatCameBack holds a batch between two of its statements while its row is deleted and
// recreated.
func TestRowsThatCameBack(t *testing.T) {
	t.Parallel()
	key, other := registry.LocationKey("back"), registry.PointerKey(faultID(9))
	tests := []struct {
		name        string
		held        registry.Batch
		first, next string // the batch is held before these: while the row appears, and while it changes
		change      func(etag registry.ETag) registry.Batch
		// wrong decides by the record other, as seen by the author of the change after the change,
		// and by the final record key.
		wrong func(other, key registry.Record, heldErr, changeErr error) bool
	}{
		{
			name: "state", first: "SELECT 1 / (CASE", next: "INSERT",
			held: registry.Batch{
				Conditions: []registry.Condition{registry.StateIs(key, registry.StateOwner)},
				Writes:     []registry.Write{registry.Put(other, registry.StateLive, nil)},
			},
			change: func(registry.ETag) registry.Batch {
				return registry.Batch{Conditions: []registry.Condition{registry.Absent(registry.TaskKey(faultID(1)))}, Writes: []registry.Write{
					registry.Put(key, registry.StateBelow, nil), registry.Put(registry.TaskKey(faultID(1)), registry.StateNone, nil)}}
			},
			// A reader of the row's new state must also have seen the effects that required the old
			// state.
			wrong: func(other, _ registry.Record, heldErr, changeErr error) bool {
				return heldErr == nil && changeErr == nil && !other.Exists()
			},
		},
		{
			name: "unconditional put", first: "INSERT", next: "UPDATE",
			held: registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateBelow, nil), registry.Put(other, registry.StateLive, nil)}},
			change: func(etag registry.ETag) registry.Batch {
				return registry.Batch{Conditions: []registry.Condition{registry.ETagIs(key, etag)}, Writes: []registry.Write{registry.Delete(key)}}
			},
			// A delete of the previous version must not delete the new row.
			wrong: func(_, key registry.Record, heldErr, _ error) bool { return heldErr == nil && !key.Exists() },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := migrated(t)
			proxy := newProxy(t, server)
			application := "back-" + strings.ReplaceAll(tt.name, " ", "-") + strings.TrimPrefix(schema, "&search_path=")
			holding := openStore(t, proxy.DSN()+schema+"&default_query_exec_mode=exec", Options{})
			store := openStore(t, server.DSN()+schema+"&application_name="+application, Options{})
			held, release := holdAt(proxy, parses(tt.first))
			defer release()
			heldEnded := make(chan error, 1)
			go func() {
				_, err := holding.Apply(t.Context(), tt.held)
				heldEnded <- err
			}()
			awaitHeld(t, held, heldEnded)
			etags, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateOwner, nil)}})
			if err != nil {
				t.Fatal(err)
			}
			heldAgain, releaseAgain := holdAt(proxy, parses(tt.next))
			defer releaseAgain()
			release()
			awaitHeld(t, heldAgain, heldEnded)
			var changeErr error
			var seen []registry.Record
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, changeErr = store.Apply(t.Context(), tt.change(etags[0]))
				seen, _ = store.Get(t.Context(), other)
			}()
			awaitLocks(t, application, 1, ended)
			releaseAgain()
			heldErr := <-heldEnded
			<-ended
			last, err := store.Get(t.Context(), key)
			if err != nil || len(seen) == 0 {
				t.Fatal(errors.Join(err, heldErr, changeErr))
			}
			if tt.wrong(seen[0], last[0], heldErr, changeErr) {
				t.Errorf("held: %v, change: %v, which saw %v; at the end %v", heldErr, changeErr, seen, last)
			}
		})
	}
}
