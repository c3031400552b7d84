package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

const (
	// numberingsMax bounds how often a reader of changes loses the race to number them: each time another reader has
	// numbered some.
	numberingsMax = 100
	// numberedMax is how many changes are numbered at once. A reader must not hold all that ever waited.
	numberedMax = 4096
	// versionsMax bounds the versions that are held for that; the change with which they become more is the last.
	versionsMax = 1 << 18
	// levelsMax bounds how often addMissing looks for what is missing.
	levelsMax = 4
)

// Changes implements registry.Store. Its page is read when every change that was there at its begin has a place, or
// is full.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	lost, all := 0, false
	for {
		found, err := s.look(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		if all || len(found.page) == limit || len(found.waiting) == 0 {
			return found.page, nil
		}
		published, err := s.publish(ctx, found)
		switch {
		case err != nil:
			return nil, err
		case published:
			lost, all = 0, !found.more
			continue
		case lost == numberingsMax:
			return nil, fmt.Errorf("%w: number the changes: gave up after %d tries", registry.ErrUnavailable, lost)
		}
		lost++
		if err := s.pause(ctx, lost); err != nil {
			return nil, err
		}
	}
}

// looked is what a reader of changes finds.
type looked struct {
	head    int64      // the place that was given away last
	waiting []unplaced // changes that await a place, oldest first
	more    bool       // there may be others
	page    []registry.PositionedChange
}

// look reads the head, then changes that await a place, and then a page: in this order, so that nothing is numbered that was
// numbered since, and nothing is missed that was.
func (s *Store) look(ctx context.Context, after registry.Position, limit int) (found looked, err error) {
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		found = looked{}
		batch := &pgx.Batch{}
		batch.Queue("SELECT last FROM moorage_change_head WHERE one").QueryRow(func(row pgx.Row) error { return row.Scan(&found.head) })
		batch.Queue("SELECT key, reads, wrote FROM moorage_change WHERE awaits ORDER BY at, key LIMIT $1::bigint", numberedMax).
			Query(func(rows pgx.Rows) error {
				found.waiting, found.more, err = collectUnplaced(rows)
				return err
			})
		batch.Queue("SELECT position, key, etag, state, value FROM moorage_change WHERE position > $1::bigint ORDER BY position LIMIT $2::bigint",
			int64(min(after, math.MaxInt64)), limit).Query(func(rows pgx.Rows) error {
			found.page, err = pgx.CollectRows(rows, scanChange)
			return err
		})
		return conn.SendBatch(ctx, batch).Close()
	})
	return found, err
}

func scanChange(rows pgx.CollectableRow) (registry.PositionedChange, error) {
	var position int64
	var r row
	if err := rows.Scan(&position, &r.key, &r.etag, &r.state, &r.value); err != nil {
		return registry.PositionedChange{}, err
	}
	return registry.PlacedChange(registry.Position(position), r.record(registry.TableChange)), nil
}

// unplaced is a change that awaits a place.
type unplaced struct {
	key   []byte
	reads [][16]byte // versions that its batch found
	wrote [][16]byte // versions that its batch made
}

// collectUnplaced returns the first changes of rows, and whether there may be more.
func collectUnplaced(rows pgx.Rows) (waiting []unplaced, more bool, err error) {
	defer rows.Close()
	versions := 0
	for rows.Next() {
		var u unplaced
		if err := rows.Scan(&u.key, &u.reads, &u.wrote); err != nil {
			return nil, false, err
		}
		waiting = append(waiting, u)
		if versions += len(u.reads) + len(u.wrote); versions >= versionsMax {
			return waiting, true, nil
		}
	}
	return waiting, len(waiting) >= numberedMax, rows.Err()
}

// publish gives places to what was found waiting, and tells whether it did: not if another reader was faster.
func (s *Store) publish(ctx context.Context, found looked) (bool, error) {
	if found.more {
		if err := s.addMissing(ctx, &found); err != nil {
			return false, err
		}
		if len(found.waiting) == 0 { // when all that wait were looked for, none did any more
			return false, nil
		}
	}
	sorted := sortUnplaced(found.waiting)
	keys, positions := make([][]byte, len(sorted)), make([]int64, len(sorted))
	for i, u := range sorted {
		keys[i], positions[i] = u.key, found.head+int64(i)+1
	}
	batch := func() *pgx.Batch {
		batch := &pgx.Batch{}
		batch.Queue("SELECT last FROM moorage_change_head WHERE one FOR UPDATE")
		keepPrepared(batch, batch.Queue("SELECT 1 / (CASE WHEN EXISTS (SELECT 1 FROM moorage_change_head WHERE one AND last = $1::bigint) THEN 1 ELSE 0 END)", found.head))
		batch.Queue("UPDATE moorage_change_head SET last = $1::bigint WHERE one", positions[len(positions)-1])
		batch.Queue("UPDATE moorage_change AS t SET awaits = false, position = new.position, reads = NULL, wrote = NULL "+
			"FROM unnest($1::bytea[], $2::bigint[]) AS new (key, position) WHERE t.key = new.key AND t.key = ANY($1::bytea[]) AND t.awaits", keys, positions)
		return batch
	}
	published := false
	// Not in time: one that waits for a standby would go on to wait on the server, and the next beside it.
	err := s.read(ctx, func(conn *pgxpool.Conn) error {
		err := conn.SendBatch(ctx, batch()).Close()
		published = err == nil
		if stateOf(err) == stateDivisionByZero {
			return nil
		}
		return err
	})
	return published, err
}

// addMissing adds to a part of the changes that wait the others on which it depends. The part is the oldest by the server's
// clock, so that there are none, unless that clock was set back between the two or another server took over. Then one may
// depend on another and so on: after levelsMax looks all that wait are taken, which are none if another reader was faster.
func (s *Store) addMissing(ctx context.Context, found *looked) error {
	here := make(map[string]bool, len(found.waiting))
	made := make(map[[16]byte]bool)
	added := found.waiting
	for level := 0; len(added) > 0; level++ {
		if level == levelsMax {
			var err error
			found.waiting, err = s.unplaced(ctx, "TRUE")
			return err
		}
		for _, u := range added {
			here[string(u.key)] = true
			for _, etag := range u.wrote {
				made[etag] = true
			}
		}
		var missing []pgtype.UUID
		for _, u := range added {
			for _, etag := range u.reads {
				if !made[etag] {
					missing = append(missing, uuid(etag))
				}
			}
		}
		makers, err := s.makers(ctx, missing)
		if err != nil {
			return err
		}
		added = slices.DeleteFunc(makers, func(u unplaced) bool { return here[string(u.key)] })
		found.waiting = append(found.waiting, added...)
	}
	return nil
}

// makers returns the changes among those that wait whose batches made one of versions.
func (s *Store) makers(ctx context.Context, versions []pgtype.UUID) ([]unplaced, error) {
	if len(versions) == 0 {
		return nil, nil
	}
	return s.unplaced(ctx, "c.key IN (SELECT m.key FROM moorage_change AS m CROSS JOIN LATERAL unnest(m.wrote) AS w (etag) "+
		"JOIN unnest($1::uuid[]) AS r (etag) ON w.etag = r.etag WHERE m.awaits)", versions)
}

// unplaced returns the changes that wait and are as where says, oldest first.
func (s *Store) unplaced(ctx context.Context, where string, args ...any) (waiting []unplaced, err error) {
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, "SELECT c.key, c.reads, c.wrote FROM moorage_change AS c WHERE c.awaits AND "+where+" ORDER BY c.at, c.key", args...)
		if err != nil {
			return err
		}
		waiting, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (unplaced, error) {
			var u unplaced
			err := row.Scan(&u.key, &u.reads, &u.wrote)
			return u, err
		})
		return err
	})
	return waiting, err
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
