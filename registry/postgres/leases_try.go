package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// asked is the SQL of a table with the leases that a Try requests. In every statement $1 is the
// session and $7 is the ticket.
const asked = `unnest($2::bigint[], $3::bytea[], $4::text[], $5::smallint[], $6::integer[])
	AS asked (id, place, path, mode, n)`

// unavailableLeases selects the unavailable elements of asked. A lease blocks an element if it has
// the same place, excludes the element's mode, and belongs to another session that is not silent. A
// session is silent after its own limit, or after $8 microseconds if it has no limit. A want of
// another session's older ticket blocks an element too.
const unavailableLeases = `SELECT asked.n FROM ` + asked + `
	WHERE EXISTS (
		SELECT 1 FROM moorage_lease AS l JOIN moorage_lease_session AS s ON s.session = l.session
		WHERE l.place = asked.place AND (l.mode | asked.mode) = 7 AND l.session <> $1::text
		AND s.renewed >= clock_timestamp() - coalesce(s.silence, $8::bigint * interval '1 microsecond')
	) OR EXISTS (
		SELECT 1 FROM moorage_lease_want AS w JOIN moorage_lease_session AS s ON s.session = w.session
		WHERE w.place = asked.place AND (w.mode | asked.mode) = 7 AND w.session <> $1::text
		AND s.renewed >= clock_timestamp() - coalesce(s.silence, $8::bigint * interval '1 microsecond')
		AND (w.since, w.session, w.ticket) < (` + ticketSince + `, $1::text, $7::bigint)
	)`

// ticketSince is the time of the ticket's first want. If the ticket has no wants yet, it is
// infinity, so that every other ticket is older.
const ticketSince = `coalesce((SELECT min(mine.since) FROM moorage_lease_want AS mine
	WHERE mine.session = $1::text AND mine.ticket = $7::bigint), 'infinity'::timestamptz)`

// granted is true after insertLeases if that statement inserted rows.
const granted = `EXISTS (SELECT 1 FROM moorage_lease AS got 
	WHERE got.session = $1::text AND got.id = ($2::bigint[])[1])`

const (
	lockStripes = "SELECT " + dontSync + " FROM (SELECT stripe FROM moorage_lease_stripe WHERE stripe = " +
		"ANY($1::smallint[]) ORDER BY stripe FOR UPDATE) AS locked"

	selectSession = "SELECT session FROM moorage_lease_session WHERE session = $1::text"

	// judge reads the state that Try's decision is based on, before insertLeases.
	judge = `SELECT EXISTS (` + selectSession + `),
		(SELECT min(blocked.n) FROM (` + unavailableLeases + `) AS blocked),
		EXISTS (SELECT 1 FROM ` + asked + ` JOIN moorage_lease AS l ON l.place = asked.place
			WHERE (l.mode | asked.mode) = 7 AND l.session <> $1::text),
		EXISTS (SELECT 1 FROM moorage_lease_want AS has WHERE has.session = $1::text AND has.ticket = $7::bigint),
		EXISTS (SELECT 1 FROM ` + asked + ` WHERE NOT EXISTS (` + itsWant + `))`

	insertLeases = `INSERT INTO moorage_lease (session, id, place, path, mode, since)
		SELECT $1::text, asked.id, asked.place, asked.path, asked.mode, clock_timestamp() FROM ` + asked + `
		WHERE EXISTS (` + selectSession + `) AND NOT EXISTS (` + unavailableLeases + `)`

	itsWant = `SELECT 1 FROM moorage_lease_want AS has
		WHERE has.session = $1::text AND has.ticket = $7::bigint AND has.place = asked.place AND has.mode = asked.mode`

	insertWants = `INSERT INTO moorage_lease_want (session, ticket, place, mode, path, since)
		SELECT $1::text, $7::bigint, asked.place, asked.mode, asked.path,
			least(` + ticketSince + `, (SELECT clock_timestamp())) FROM ` + asked + `
		WHERE EXISTS (` + selectSession + `) AND NOT EXISTS (` + itsWant + `)`

	deleteWants = "DELETE FROM moorage_lease_want WHERE session = $1::text AND ticket = $2::bigint AND " + dontSync +
		" IS NOT NULL"

	// If leases were granted although other leases exclude them, the other leases belong to silent
	// sessions.
	deletePassedOver = `DELETE FROM moorage_lease AS l USING ` + asked + `
		WHERE l.place = asked.place AND (l.mode | asked.mode) = 7 AND l.session <> $1::text
		AND ` + granted + " AND " + dontSync + " IS NOT NULL"
)

// verdict is the result of judge.
type verdict struct {
	alive    bool
	blocked  *int32 // the first unavailable element of asked
	overlaps bool   // other leases exclude some of asked; if asked is available, they belong to silent sessions
	waits    bool   // the ticket has wants
	lacks    bool   // some of asked are missing in the ticket's wants
}

// Try takes all locks in leases, or none of them. If no lease or want blocks them, that takes one
// round trip. A second round trip records the wants of a newly blocked ticket, or deletes the wants
// and silent sessions' leases after a grant.
func (l *Leases) Try(ctx context.Context, session string, ticket int64, leases []lease,
	silence time.Duration) (blocked int, alive bool, err error) {
	r := newLeaseRows(leases)
	those := []any{session, r.ids, r.places, r.paths, r.modes, r.numbers}
	for {
		inserted, found, err := l.tryOnce(ctx, r, append(slices.Clone(those), ticket, silence.Microseconds()))
		switch {
		case err != nil || !found.alive:
			return -1, false, err
		case inserted == len(leases):
			return -1, true, l.endPassed(ctx, found, ticket, those)
		case found.blocked != nil:
			return int(*found.blocked), true, l.leaveWants(ctx, found, ticket, r, those)
		}
		// Leases that judge found available could not be taken, because a silent session was
		// renewed, or the session of this Try has ended. The next attempt shows which. Neither can
		// happen twice to a session.
	}
}

// tryOnce reads whether the requested leases are available, and takes them if they are still
// available when it inserts them.
func (l *Leases) tryOnce(ctx context.Context, r leaseRows, judged []any) (inserted int, found verdict, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		inserted, found = 0, verdict{}
		batch.Queue(lockStripes, r.stripes)
		batch.Queue(judge, judged...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&found.alive, &found.blocked, &found.overlaps, &found.waits, &found.lacks)
		})
		batch.Queue(insertLeases, judged...).Exec(affected(func(rows int64) { inserted = int(rows) }))
	})
	return inserted, found, err
}

// leaveWants records the wants of a newly blocked ticket.
func (l *Leases) leaveWants(ctx context.Context, found verdict, ticket int64, r leaseRows, those []any) error {
	if ticket == 0 || !found.lacks {
		return nil
	}
	return l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue(lockStripes, r.stripes)
		batch.Queue(insertWants, append(slices.Clone(those), ticket)...)
	})
}

// endPassed deletes the wants of a granted ticket, and the leases that it passed over.
func (l *Leases) endPassed(ctx context.Context, found verdict, ticket int64, those []any) error {
	if !found.overlaps && !found.waits {
		return nil
	}
	return l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue(deleteWants, those[0], ticket)
		batch.Queue(deletePassedOver, those...)
	})
}

// leaseRows holds leases, column by column.
type leaseRows struct {
	ids     []int64
	places  [][]byte
	paths   []string
	modes   []int16
	numbers []int32
	stripes []int16
}

func newLeaseRows(leases []lease) leaseRows {
	var r leaseRows
	for i, l := range leases {
		place, stripe := place(l.Path)
		r.ids = append(r.ids, l.ID)
		r.places = append(r.places, place)
		r.paths = append(r.paths, l.Path)
		r.modes = append(r.modes, int16(l.Mode))
		r.numbers = append(r.numbers, int32(i))
		r.stripes = append(r.stripes, stripe)
	}
	return r
}

// affected returns a function that calls report with the number of rows that a statement wrote.
func affected(report func(rows int64)) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		report(tag.RowsAffected())
		return nil
	}
}
