package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/testkit/storetest"
)

// waitingChanges returns how many changes in a database are waiting for a position.
func waitingChanges(t *testing.T, conn *pgx.Conn) (count int) {
	t.Helper()
	must(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM moorage_change WHERE awaits").Scan(&count))
	return count
}

// Each change soon has a position even if no client reads the order of changes. That holds with one
// live node, if the node with the assignment has died, and if that node stops.
func TestChangesGetPlacesUnread(t *testing.T) {
	t.Parallel()
	dsn := stores.NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	f := newFixture(t, func(c *retention.Config) {
		c.Store = storetest.OpenPostgres(t, dsn)
		c.Now = time.Now
	})
	if waitingChanges(t, conn) == 0 {
		t.Fatal("no change waits before a worker runs")
	}
	// wantSoon adds changes, one after another, until one gets its position soon. On a busy
	// machine, some positions are late. The time limit is half the life of a dead node's claim, so
	// a wait for the end of that claim fails the test.
	n := 0
	wantSoon := func(when string) {
		t.Helper()
		const soon, patience = time.Second, retention.NumberingLife / 2
		end, fastest := time.Now().Add(patience), patience
		for fastest > soon {
			n++
			f.addChanges(n, n)
			begun := time.Now()
			for waitingChanges(t, conn) > 0 {
				if time.Now().After(end) {
					t.Fatalf("%s: a change got its place after %v at best", when, fastest)
				}
				time.Sleep(10 * time.Millisecond) // the database sends no signal
			}
			fastest = min(fastest, time.Since(begun))
		}
	}
	claim := registry.AssignmentKey(retention.NumberingName)
	dead, err := registry.Encode(registry.Assignment{Owner: registry.ID{9}, Until: time.Now().Add(retention.NumberingLife)})
	must(t, err)
	f.write(registry.Put(claim, registry.StateNone, dead))
	f.Start()
	wantSoon("with the claim of a node that died")
	f.Stop()
	f.write(registry.Delete(claim))
	f.Start()
	other := f.other(storetest.OpenPostgres(t, dsn))
	other.Start()
	defer other.Stop()
	wantSoon("with two nodes")
	f.Stop()
	wantSoon("when one has stopped")
}

// brokenNumberer is a store that always fails to give positions.
type brokenNumberer struct {
	registry.Store
	calls int
}

var errBroken = errors.New("broken")

func (b *brokenNumberer) Number(context.Context, time.Duration) (bool, error) {
	b.calls++
	return false, errBroken
}

// An unavailable store is tried in each round, and reported only occasionally.
func TestNumberReportsFailuresSeldom(t *testing.T) {
	t.Parallel()
	broken := new(brokenNumberer)
	f := newFixture(t, func(c *retention.Config) { broken.Store, c.Store = c.Store, broken })
	reported := 0
	const rounds = 81
	for range rounds {
		if err := f.Number(f.ctx); errors.Is(err, errBroken) {
			reported++
		}
		f.clock.Advance(retention.NumberInterval)
	}
	if broken.calls != rounds || reported != 3 {
		t.Errorf("%d calls, %d of them reported", broken.calls, reported)
	}
}

// waitsNumberer records its calls, and ends the test after two of them.
type waitsNumberer struct {
	registry.Store
	asked []time.Duration
	end   context.CancelFunc
}

func (w *waitsNumberer) Number(_ context.Context, waited time.Duration) (bool, error) {
	if w.asked = append(w.asked, waited); len(w.asked) == 2 {
		w.end()
	}
	return false, nil
}

// A node gives positions to late changes before it requests the assignment, because that request
// may hang.
func TestLateChangesBeforeTheClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := &waitsNumberer{end: cancel}
	f := newFixture(t, func(c *retention.Config) { asked.Store, c.Store = c.Store, asked })
	if err := f.Number(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if len(asked.asked) != 2 || asked.asked[0] != retention.NumberLate || asked.asked[1] != 0 {
		t.Errorf("it asked for changes that have waited for %v, want late ones first", asked.asked)
	}
}
