package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

// numberedMax is the maximum number of changes that get their places in one step. A larger step
// would lock the row of moorage_change_head for longer than a reader should wait.
const numberedMax = 4096

// pageSteps are the step sizes of readers. A reader numbers about as many changes as fit on its
// page. For each size there is a statement with the number in its text, because the server's choice
// of a plan depends on that number.
var pageSteps = [...]int{64, 1024, numberedMax}

// waitingOrder is the order in which changes get their places. A batch draws its seq only after it
// has locked or inserted all of its rows. So its seq is greater than that of every batch that it
// saw, even if the server's clock was set back in between.
//
// A step numbers the first changes that it sees, in this order. If it sees a change, it also sees
// the changes that this one depends on, because they were committed earlier. So every change is
// numbered after all changes that it depends on.
const waitingOrder = "seq"

// planSQL makes the server plan the later statements of the transaction for many waiting changes.
// By default, the server uses the last statistics of the table, according to which usually no
// change waits. With 50,000 waiting changes, it would read all of them to find the first one, and a
// step took 15 s. With sorts disabled, the server uses the index of waitingOrder. With some kinds
// of joins disabled, it uses the keys of the changes. The statement skips settings unknown to the
// server. Unlike planOnce, it makes the server plan for the actual parameters.
const planSQL = "SELECT set_config(name, CASE name WHEN 'plan_cache_mode' THEN 'auto' ELSE 'off' END, true) " +
	"FROM pg_settings WHERE name IN ('enable_sort', 'enable_hashjoin', 'enable_mergejoin', 'plan_cache_mode')"

// numberSQL gives places to the first waiting changes, at most %[1]d of them. IS NOT FALSE prevents
// the server from using the index of waiting changes. With that index, it would search all waiting
// changes for each change.
const numberSQL = "UPDATE moorage_change AS c SET awaits = false, " +
	"position = (SELECT last FROM moorage_change_head WHERE one) + batch.place " +
	"FROM (SELECT key, row_number() OVER (ORDER BY " + waitingOrder + ") AS place FROM " +
	"(SELECT key, seq FROM moorage_change WHERE awaits ORDER BY " + waitingOrder +
	" LIMIT %[1]d) AS first) AS batch " +
	"WHERE c.key = batch.key AND c.awaits IS NOT FALSE"

// headSQL sets the head to the last place that was assigned.
const headSQL = "UPDATE moorage_change_head SET last = top.position " +
	"FROM (SELECT position FROM moorage_change WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1) AS top " +
	"WHERE one AND last < top.position"

// firstWaits selects whether the oldest waiting change has waited for at least $1.
const firstWaits = "SELECT at IS NULL OR at <= clock_timestamp() - $1::interval OR at > clock_timestamp() FROM " +
	"moorage_change " +
	"WHERE awaits ORDER BY " + waitingOrder + " LIMIT 1"

// Changes implements registry.Store. It returns a page once the page is full, or once every change
// that existed when the call began has a place.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	if err := registry.CheckPage(limit); err != nil {
		return nil, err
	}
	begun := int64(-1) // the greatest seq when the call began; -1 until known
	for {
		found, err := s.look(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		if begun < 0 {
			begun = found.drawn
		}
		if len(found.page) == limit || !found.waiting || found.first > begun {
			return found.page, nil
		}
		if _, err := s.step(ctx, stepFor(limit)); err != nil {
			return nil, err
		}
	}
}

// looked is the result of look.
type looked struct {
	drawn   int64 // the last drawn seq
	waiting bool  // whether a change is waiting for its place
	first   int64 // the seq of the first waiting change; 0 if there is none
	page    []registry.PositionedChange
}

// stepFor returns the step size of a reader whose pages have at most limit changes.
func stepFor(limit int) int {
	for _, size := range pageSteps {
		if size >= limit {
			return size
		}
	}
	return numberedMax
}

const (
	drawnSQL   = "SELECT last_value FROM moorage_change_seq"
	firstSQL   = "SELECT seq FROM moorage_change WHERE awaits ORDER BY " + waitingOrder + " LIMIT 1"
	changesSQL = "SELECT position, key, etag, state, value FROM moorage_change WHERE position > $1::bigint ORDER " +
		"BY position LIMIT $2::bigint"
)

// look first checks whether changes are waiting, and then reads a page. In this order, it cannot
// miss a change that gets its place between the two statements.
func (s *Store) look(ctx context.Context, after registry.Position, limit int) (found looked, err error) {
	from := strconv.FormatUint(uint64(min(after, math.MaxInt64)), 10)
	formats := []int16{pgx.BinaryFormatCode}
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		results, err := s.readUnprepared(ctx, conn, func(batch *pgconn.Batch) {
			batch.ExecParams(planSQL, nil, nil, nil, nil)
			batch.ExecParams(drawnSQL, nil, nil, nil, formats)
			batch.ExecParams(firstSQL, nil, nil, nil, formats)
			batch.ExecParams(changesSQL, [][]byte{[]byte(from), []byte(strconv.Itoa(limit))}, nil, nil, formats)
		})
		if err != nil {
			return err
		}
		results = results[1:] // skip the result of planSQL
		found = looked{drawn: bigintOf(results[0].Rows[0][0]),
			page: make([]registry.PositionedChange, len(results[2].Rows))}
		for _, columns := range results[1].Rows {
			found.waiting, found.first = true, bigintOf(columns[0])
		}
		for i, columns := range results[2].Rows {
			found.page[i] = changeOf(columns)
		}
		return nil
	})
	return found, err
}

// bigintOf decodes a bigint sent by the server.
func bigintOf(sent []byte) int64 { return int64(binary.BigEndian.Uint64(sent)) }

// changeOf decodes a row of changesSQL.
func changeOf(columns [][]byte) registry.PositionedChange {
	r := row{key: columns[1], etag: [16]byte(columns[2]), state: int16(binary.BigEndian.Uint16(columns[3])),
		value: columns[4]}
	return registry.PlacedChange(registry.Position(bigintOf(columns[0])), r.record(registry.TableChange))
}

// step numbers at most size of the first waiting changes, and reports whether there may be more.
//
// It locks the row of the head first, in its own statement, because a step that waited for another
// step must see that step's result. A step has no time limit other than ctx. If a step gave up
// while its commit waits for a standby, the commit would still wait on the server, and the next
// step would wait too.
func (s *Store) step(ctx context.Context, size int) (more bool, err error) {
	// This is not the variable more, because after an error the abandoned write may still set it.
	var full bool
	err = s.writeAgain(ctx, func(detached context.Context, conn *pgxpool.Conn) error {
		results, err := sendUnprepared(detached, conn, func(batch *pgconn.Batch) {
			batch.ExecParams(planSQL, nil, nil, nil, nil)
			batch.ExecParams("SELECT last FROM moorage_change_head WHERE one FOR UPDATE", nil, nil, nil, nil)
			batch.ExecParams(fmt.Sprintf(numberSQL, size), nil, nil, nil, nil)
			batch.ExecParams(headSQL, nil, nil, nil, nil)
		})
		if err != nil {
			return err
		}
		full = results[2].CommandTag.RowsAffected() == int64(size)
		return nil
	})
	if err != nil {
		return false, err
	}
	return full, nil
}

// Number implements registry.Numberer. The wait of a change begins at the change's time, by the
// server's clock. A change with a future time was written before the clock was set back. How long
// it has waited is unknown, so it counts as having waited long enough.
func (s *Store) Number(ctx context.Context, waited time.Duration) (more bool, err error) {
	due := false
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		results, err := s.readUnprepared(ctx, conn, func(batch *pgconn.Batch) {
			batch.ExecParams(planSQL, nil, nil, nil, nil)
			batch.ExecParams(firstWaits, [][]byte{[]byte(strconv.FormatInt(waited.Microseconds(), 10) +
				" microseconds")}, nil, nil, nil)
		})
		if err != nil {
			return err
		}
		due = len(results[1].Rows) > 0 && string(results[1].Rows[0][0]) == "t"
		return nil
	})
	if err != nil || !due {
		return false, err
	}
	return s.step(ctx, numberedMax)
}
