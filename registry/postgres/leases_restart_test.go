package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/locks"
)

// role is a user of the test's server whose connections can be ended and refused.
type role struct {
	conn *pgx.Conn // of another user
	name string
}

// newRole returns a role, and a connection string of the role to the tables of dsn.
func newRole(t *testing.T, dsn string) (r *role, ownDSN string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	r = &role{conn, "role_" + strings.ToLower(rand.Text())}
	r.exec(t, "CREATE ROLE "+r.name+" SUPERUSER LOGIN")
	return r, strings.Replace(dsn, "//moorage@", "//"+r.name+"@", 1)
}

func (r *role) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := r.conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// sendAway ends the role's connections, and refuses new ones.
func (r *role) sendAway(t *testing.T) {
	t.Helper()
	r.exec(t, "ALTER ROLE "+r.name+" NOLOGIN")
	r.exec(t, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = $1", r.name)
}

func (r *role) letBack(t *testing.T) {
	t.Helper()
	r.exec(t, "ALTER ROLE "+r.name+" LOGIN")
}

// A node returns an error at once while the database is unreachable, continues by itself when it is
// reachable again, and leaves nothing there when it ends.
func TestNodeWhileDatabaseIsAway(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	database, ownDSN := newRole(t, dsn)
	leases := openLeases(t, ownDSN)
	node := locks.NewCoalesced(locks.NewDistributed(locks.DistributedConfig{Leases: leases, Jitter: mathrand.New(mathrand.NewPCG(1, 1))}))
	t.Cleanup(node.Close)
	acquire := func(shard uint8) (locks.Hold, error) {
		request := locks.Request{Writes: []locks.Path{locks.Warehouse("wh").Namespace("ns").Shard(shard)}}
		return node.Acquire(t.Context(), request, locks.Options{})
	}
	held, err := acquire(1)
	if err != nil {
		t.Fatal(err)
	}

	database.sendAway(t)
	for range leaseConnectionsMax + 1 { // more often than there are stale connections
		if _, err := acquire(2); !errors.Is(err, locks.ErrUnavailable) {
			t.Errorf("while the database is away: got %v, want ErrUnavailable", err)
		}
	}
	held.Release()

	database.letBack(t)
	for shard := range uint8(locks.Shards) {
		hold, err := acquire(shard)
		if err != nil {
			t.Fatalf("when the database is back: %v", err)
		}
		hold.Release()
	}

	node.Close()
	for _, table := range []string{"moorage_lease_session", "moorage_lease", "moorage_lease_want"} {
		var left int
		if err := database.conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&left); err != nil || left != 0 {
			t.Errorf("%s after Close: got %d rows, error %v, want none", table, left, err)
		}
	}
}
