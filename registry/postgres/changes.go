package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

// numberingsMax bounds how often a reader of changes tries to number them: each time it fails another
// reader has succeeded, or the server has undone it.
const numberingsMax = 100

// Changes implements registry.Store.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	var changes []registry.PositionedChange
	err := s.read(ctx, func(conn *pgxpool.Conn) error {
		if err := number(ctx, conn); err != nil {
			return err
		}
		rows, err := conn.Query(ctx, "SELECT position, key, etag, state, value FROM moorage_change "+
			"WHERE position > $1::bigint ORDER BY position LIMIT $2::bigint", int64(after), limit)
		if err != nil {
			return err
		}
		changes, err = pgx.CollectRows(rows, scanChange)
		return err
	})
	return changes, err
}

func scanChange(rows pgx.CollectableRow) (registry.PositionedChange, error) {
	var position int64
	var r row
	if err := rows.Scan(&position, &r.key, &r.etag, &r.state, &r.value); err != nil {
		return registry.PositionedChange{}, err
	}
	change, err := registry.Decode[registry.Change](r.record(registry.TableChange))
	return registry.PositionedChange{Position: registry.Position(position), Change: change}, err
}

// number gives a place to every change that awaits one.
func number(ctx context.Context, conn *pgxpool.Conn) error {
	var err error
	for range numberingsMax {
		err = numberOnce(ctx, conn)
		switch stateOf(err) {
		case stateDivisionByZero, stateSerializationFailure, stateDeadlockDetected:
		default:
			return err
		}
	}
	return fmt.Errorf("number the changes: gave up after %d tries: %w", numberingsMax, err)
}

// numberOnce reads the head, then all changes that await a place, and publishes their places together with
// the new head if the head is as it was read; a division by zero if it is not.
func numberOnce(ctx context.Context, conn *pgxpool.Conn) error {
	var head int64
	if err := conn.QueryRow(ctx, "SELECT last FROM moorage_change_head").Scan(&head); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, "SELECT key, reads, wrote FROM moorage_change WHERE awaits ORDER BY at, key")
	if err != nil {
		return err
	}
	waiting, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (unplaced, error) {
		var u unplaced
		err := row.Scan(&u.key, &u.reads, &u.wrote)
		return u, err
	})
	if err != nil || len(waiting) == 0 {
		return err
	}
	sorted := sortUnplaced(waiting)
	keys, positions := make([][]byte, len(sorted)), make([]int64, len(sorted))
	for i, u := range sorted {
		keys[i], positions[i] = u.key, head+int64(i)+1
	}
	return publish(ctx, conn, head, keys, positions)
}

// publish writes the places in one transaction.
func publish(ctx context.Context, conn *pgxpool.Conn, head int64, keys [][]byte, positions []int64) error {
	batch := &pgx.Batch{}
	batch.Queue("SELECT last FROM moorage_change_head FOR UPDATE")
	batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM moorage_change_head WHERE last = $1::bigint) THEN 1 ELSE 0 END)", head)
	batch.Queue("UPDATE moorage_change_head SET last = $1::bigint", positions[len(positions)-1])
	batch.Queue("UPDATE moorage_change AS t SET awaits = false, position = new.position, reads = NULL, wrote = NULL "+
		"FROM unnest($1::bytea[], $2::bigint[]) AS new (key, position) WHERE t.key = new.key AND t.awaits", keys, positions)
	return conn.SendBatch(ctx, batch).Close()
}

// unplaced is a change that awaits a place.
type unplaced struct {
	key   []byte
	reads [][16]byte // versions that its batch found
	wrote [][16]byte // versions that its batch made
}

// visit is a change on the path of sortUnplaced, whose predecessors are still to be looked at from next on.
type visit struct{ index, next int }

// sortUnplaced returns waiting, which is in the order of the times at which its changes were written, with every
// change behind those whose versions it found. Among changes that do not depend on each
// other the times decide.
func sortUnplaced(waiting []unplaced) []unplaced {
	madeBy := make(map[[16]byte]int, len(waiting))
	for i, u := range waiting {
		for _, etag := range u.wrote {
			madeBy[etag] = i
		}
	}
	sorted := make([]unplaced, 0, len(waiting))
	placed := make([]bool, len(waiting))
	for start := range waiting {
		for path := []visit{{index: start}}; len(path) > 0; {
			top := &path[len(path)-1]
			u := waiting[top.index]
			switch {
			case placed[top.index]:
				path = path[:len(path)-1]
			case top.next < len(u.reads):
				before, ok := madeBy[u.reads[top.next]]
				top.next++
				if ok && !placed[before] && before != top.index {
					path = append(path, visit{index: before})
				}
			default:
				placed[top.index] = true
				sorted = append(sorted, u)
				path = path[:len(path)-1]
			}
		}
	}
	return sorted
}
