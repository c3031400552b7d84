package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
)

// memberReadsMax is the maximum number of times that one call reads the members. It reads them
// again if another node has raised the number of the view.
const memberReadsMax = 4

// member has the type of cluster.Member.
type member = struct {
	Session string
	Address string
	Version string
}

// Join records the address where the node of session answers other nodes. An empty address
// withdraws the node. Join has the contract of cluster.Sessions.
func (l *Leases) Join(ctx context.Context, session, address string) error {
	return l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue("UPDATE moorage_lease_session SET peer = nullif($2::text, '') WHERE session = $1::text AND "+
			"coalesce(peer, '') <> $2::text AND "+dontSync+" IS NOT NULL", session, address)
	})
}

// Members returns the sessions of nodes that answer other nodes, and the number of the view. It has
// the contract of cluster.Sessions.
//
// Sessions end in several ways, and binaries that do not know the view may end them. So the view's
// row has a hash of the sessions at its number. The first reader that finds sessions that do not
// match the hash raises the number, on condition that the number has not changed.
func (l *Leases) Members(ctx context.Context) (number int64, members []member, err error) {
	for range memberReadsMax {
		number, hash, members, err := l.readMembers(ctx)
		if err != nil {
			return 0, nil, err
		}
		present := hashMembers(members)
		if bytes.Equal(hash, present) {
			return number, members, nil
		}
		raised, err := l.raiseView(ctx, number, present)
		if raised || err != nil {
			return number + 1, members, err
		}
	}
	return 0, nil, fmt.Errorf("%w: the members changed during %d reads", registry.ErrUnavailable, memberReadsMax)
}

// readMembers reads the view and the sessions as of one moment.
func (l *Leases) readMembers(ctx context.Context) (number int64, hash []byte, members []member, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		number, hash, members = -1, nil, nil
		batch.Queue(`SELECT v.number, v.members, coalesce(s.session, ''), coalesce(s.peer, ''), coalesce(s.version, '')
			FROM moorage_lease_view AS v LEFT JOIN moorage_lease_session AS s ON s.peer IS NOT NULL
			WHERE v.id = 1 ORDER BY s.session`).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var m member
				if err := rows.Scan(&number, &hash, &m.Session, &m.Address, &m.Version); err != nil {
					return err
				}
				if m.Session != "" {
					members = append(members, m)
				}
			}
			return rows.Err()
		})
	})
	if err == nil && number < 0 {
		err = fmt.Errorf("%w: moorage_lease_view has no row", registry.ErrUnavailable)
	}
	return number, hash, members, err
}

// raiseView increments the number of the view if it still equals number.
func (l *Leases) raiseView(ctx context.Context, number int64, hash []byte) (raised bool, err error) {
	err = l.call(ctx, func(batch *pgx.Batch) {
		batch.Queue("UPDATE moorage_lease_view SET number = $1::bigint + 1, members = $2::bytea "+
			"WHERE id = 1 AND number = $1::bigint AND "+dontSync+" IS NOT NULL", number, hash).
			Exec(affected(func(rows int64) { raised = rows > 0 }))
	})
	return raised, err
}

// hashMembers returns a hash that distinguishes lists of members in the order of their sessions.
func hashMembers(members []member) []byte {
	var all []byte
	for _, m := range members {
		for _, text := range []string{m.Session, m.Address} {
			all = append(binary.AppendUvarint(all, uint64(len(text))), text...)
		}
	}
	sum := sha256.Sum256(all)
	return sum[:]
}
