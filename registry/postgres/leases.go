package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

const (
	// leaseConnectionsMax bounds the connections for leases. Few are enough, because calls are
	// short. They are separate from the store's connections, because calls for leases must not wait
	// for commits.
	leaseConnectionsMax = 4
	// heartbeatConnectionsMax bounds the connections for heartbeats. One is used at a time. A
	// second one is opened while an unresponsive connection is being closed, which takes seconds.
	heartbeatConnectionsMax = 3
	// leaseSendsMax is the maximum number of times that one call is sent. It is sent again after a
	// serialization failure or a deadlock, because these certainly changed nothing.
	leaseSendsMax = 10
	// leaseAcquireTimeout bounds how long a call waits for a free connection.
	leaseAcquireTimeout = 5 * time.Second
	// stripes is the number of rows of moorage_lease_stripe.
	stripes = 1024
)

// Leases keeps the leases of a cluster's locks in the same database as the records, but
// independently of them. It has the methods and the contract of the port locks.Leases. It is safe
// for concurrent use.
//
// A Try locks the stripes of its paths in order, so two Trys never read the same path at the same
// time. It decides and writes while it holds the stripes. A stripe is a row to which a hash assigns
// some of the paths. A call that only removes leases needs no stripe. Each statement uses the
// server's clock to determine which sessions are silent. Commits wait neither for the disk nor for
// standbys.
type Leases struct {
	connections *Store // only its connections are used
	heartbeats  *Store // only for Renew, so that waiting calls do not make a node silent
}

// lease has the type of locks.Lease.
type lease = struct {
	ID   int64
	Path string
	Mode uint8
}

// session has the type of locks.Session.
type session = struct {
	Name    string
	Version string
	Address string
	Host    string
	Silence time.Duration
}

// OpenLeases connects to the database of dsn, like Open, but with its own few connections.
func OpenLeases(ctx context.Context, dsn string) (*Leases, error) {
	connections, err := connectLeases(ctx, dsn, leaseConnectionsMax)
	if err != nil {
		return nil, err
	}
	heartbeats, err := connectLeases(ctx, dsn, heartbeatConnectionsMax)
	if err != nil {
		return nil, errors.Join(err, connections.Close())
	}
	l := &Leases{connections, heartbeats}
	if err := connections.check(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// connectLeases returns a pool; most is its maximum number of connections. It opens no connection
// yet.
func connectLeases(ctx context.Context, dsn string, most int32) (*Store, error) {
	config, err := newConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = most
	config.MinConns = min(config.MinConns, most)
	config.MinIdleConns = min(config.MinIdleConns, most)
	config.AfterConnect = prepareCancelled // an abandoned call must not keep a server process busy
	lines := newLines()
	config.ConnConfig.DialFunc = lines.dial(config.ConnConfig.DialFunc)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the store of leases: %w", err)
	}
	return storeOver(pool, lines, Options{Random: rand.Reader, AcquireTimeout: leaseAcquireTimeout, Now: time.Now}), nil
}

// Close waits for calls in progress and closes the connections. Later calls fail with
// registry.ErrClosed.
func (l *Leases) Close() error {
	var beating error
	var closing sync.WaitGroup
	closing.Go(func() { beating = l.heartbeats.Close() }) // concurrently: each may wait for a server that hangs
	err := l.connections.Close()
	closing.Wait()
	return errors.Join(err, beating)
}

// dontSync makes the transaction commit without waiting for the disk or for standbys. It is part of
// the first statements of a transaction, so that it needs no separate statement. If a statement
// does not evaluate dontSync, its transaction writes nothing.
const dontSync = "set_config('synchronous_commit', 'off', true)"

// call makes a call over the connections for calls other than heartbeats.
func (l *Leases) call(ctx context.Context, queue func(*pgx.Batch)) error {
	return callLeases(ctx, l.connections, queue)
}

// callLeases sends statements as one transaction in one pipeline, at most leaseSendsMax times.
// queue adds them to a batch, and must discard the results of an earlier batch.
func callLeases(ctx context.Context, connections *Store, queue func(*pgx.Batch)) error {
	var err error
	for range leaseSendsMax {
		var failed error
		err = connections.withConn(ctx, func(conn *pgxpool.Conn) error {
			var batch pgx.Batch
			// Each statement must see everything that was committed before it began, whatever the
			// server's default isolation level is.
			batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
			queue(&batch)
			batch.Queue("COMMIT")
			failed = conn.SendBatch(ctx, &batch).Close()
			return nil
		})
		switch {
		case err != nil: // no connection
			return err
		case failed == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		err = fmt.Errorf("%w: %w", registry.ErrUnavailable, explain(failed))
		if state := stateOf(failed); state != stateSerializationFailure && state != stateDeadlockDetected {
			return err
		}
	}
	return err
}

// Open begins a session.
func (l *Leases) Open(ctx context.Context, s session) error {
	return l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO moorage_lease_session (session, renewed, version, address, host, silence)
			SELECT $1::text, clock_timestamp(), nullif($2::text, ''), nullif($3::text, ''), nullif($4::text, ''),
			nullif($5::bigint, 0) * interval '1 microsecond' WHERE `+dontSync+" IS NOT NULL",
			s.Name, s.Version, s.Address, s.Host, s.Silence.Microseconds())
	})
}

// Announce records the address where the node of a session listens, and ends the other sessions
// with that address and host.
func (l *Leases) Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue(`UPDATE moorage_lease_session SET address = nullif($2::text, ''), host = nullif($3::text, '')
			WHERE session = $1::text AND `+dontSync+" IS NOT NULL", session, address, host).
			Exec(affected(func(rows int64) { alive = rows > 0 }))
		batch.Queue(`DELETE FROM moorage_lease_session WHERE address = $2::text AND host = $3::text
			AND $2::text <> '' AND $3::text <> ''
			AND session <> $1::text
			AND EXISTS (SELECT 1 FROM moorage_lease_session AS mine WHERE mine.session = $1::text)`,
			session, address, host).Exec(affected(func(rows int64) { ended = int(rows) }))
		queueSweep(batch)
	})
	if err != nil || !alive {
		return 0, false, err
	}
	return ended, true, nil
}

// queueSweep adds the statements that delete the leases and wants of sessions that have ended.
func queueSweep(batch *pgx.Batch) {
	batch.Queue("DELETE FROM moorage_lease AS l WHERE NOT EXISTS (SELECT 1 FROM moorage_lease_session AS s " +
		"WHERE s.session = l.session) AND (SELECT " + dontSync + ") IS NOT NULL")
	batch.Queue("DELETE FROM moorage_lease_want AS w WHERE NOT EXISTS (SELECT 1 FROM moorage_lease_session AS s " +
		"WHERE s.session = w.session) AND (SELECT " + dontSync + ") IS NOT NULL")
}

// Renew records that a session is alive. known lists the IDs of the leases and tickets known to the
// session. Renew deletes other leases and wants of the session that are at least minAge old. lost
// lists the known IDs that no longer exist.
func (l *Leases) Renew(ctx context.Context, session string, known []int64, minAge time.Duration) (
	lost []int64, alive bool, err error,
) {
	var has []int64
	known = slices.Clone(known)
	if known == nil {
		known = []int64{}
	}
	err = callLeases(ctx, l.heartbeats, func(batch *pgx.Batch) {
		batch.Queue("UPDATE moorage_lease_session SET renewed = clock_timestamp() WHERE session = $1::text AND "+
			dontSync+" IS NOT NULL", session).Exec(affected(func(rows int64) { alive = rows > 0 }))
		batch.Queue(`DELETE FROM moorage_lease WHERE session = $1::text AND id <> ALL($2::bigint[])
			AND since <= clock_timestamp() - $3::bigint * interval '1 microsecond'`,
			session, known, minAge.Microseconds())
		batch.Queue(`DELETE FROM moorage_lease_want WHERE session = $1::text AND ticket <> ALL($2::bigint[])
			AND since <= clock_timestamp() - $3::bigint * interval '1 microsecond'`,
			session, known, minAge.Microseconds())
		batch.Queue(`SELECT id FROM moorage_lease WHERE session = $1::text
			UNION SELECT ticket FROM moorage_lease_want WHERE session = $1::text`, session).Query(ids(&has))
	})
	if err != nil || !alive {
		return nil, false, err
	}
	slices.Sort(has)
	lost = slices.DeleteFunc(known, func(id int64) bool {
		_, found := slices.BinarySearch(has, id)
		return found
	})
	return lost, true, nil
}

// Release gives back leases and withdraws tickets.
func (l *Leases) Release(ctx context.Context, session string, ids []int64) error {
	if len(ids) == 0 {
		return ctx.Err()
	}
	return l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue("DELETE FROM moorage_lease WHERE session = $1::text AND id = ANY($2::bigint[]) AND "+
			dontSync+" IS NOT NULL", session, ids)
		batch.Queue("DELETE FROM moorage_lease_want WHERE session = $1::text AND ticket = ANY($2::bigint[]) AND "+
			dontSync+" IS NOT NULL", session, ids)
	})
}

// Wanted returns the ids of a session's leases that block other sessions' tickets.
func (l *Leases) Wanted(ctx context.Context, session string, silence time.Duration) (wanted []int64, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue(`SELECT DISTINCT l.id FROM moorage_lease AS l JOIN moorage_lease_want AS w ON w.place = l.place
			JOIN moorage_lease_session AS s ON s.session = w.session
			WHERE l.session = $1::text AND w.session <> $1::text AND (l.mode | w.mode) = 7
			AND s.renewed >= clock_timestamp() - coalesce(s.silence, $2::bigint * interval '1 microsecond')
			ORDER BY l.id`,
			session, silence.Microseconds()).Query(ids(&wanted))
	})
	return wanted, err
}

// Reap ends silent sessions, and deletes the leases and wants of ended sessions. It takes into
// account that the server's clock may have been set back, or that another server, with another
// clock, may have taken over.
func (l *Leases) Reap(ctx context.Context, ttl time.Duration) (ended int, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue("UPDATE moorage_lease_session SET renewed = clock_timestamp() " +
			"WHERE renewed > clock_timestamp() AND " + dontSync + " IS NOT NULL")
		batch.Queue("DELETE FROM moorage_lease_session WHERE renewed < clock_timestamp() - "+
			"$1::bigint * interval '1 microsecond' AND "+dontSync+" IS NOT NULL", ttl.Microseconds()).
			Exec(affected(func(rows int64) { ended = int(rows) }))
		queueSweep(batch)
	})
	return ended, err
}

// End ends a session.
func (l *Leases) End(ctx context.Context, session string) error {
	return l.call(ctx, func(batch *pgx.Batch) {
		for _, table := range []string{"moorage_lease_session", "moorage_lease", "moorage_lease_want"} {
			batch.Queue("DELETE FROM "+table+" WHERE session = $1::text AND "+dontSync+" IS NOT NULL", session)
		}
	})
}

// place returns the place of a path, and its stripe.
func place(path string) (place []byte, stripe int16) {
	sum := sha256.Sum256([]byte(path))
	return sum[:], int16(binary.BigEndian.Uint16(sum[:]) % stripes)
}

// ids returns a function that reads rows with one column, and appends their numbers to *list.
func ids(list *[]int64) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	}
}
