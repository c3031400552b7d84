package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

// readAttemptsMax is the maximum number of times that one read is sent.
const readAttemptsMax = 10

// readTimeout bounds one read. The largest page takes far less time. If the server has not answered
// in that time, the read fails, even if the connection hangs without an error. healthTimeout bounds
// Healthy, which reads a few bytes. Load balancers choose nodes by its result.
const (
	readTimeout   = 15 * time.Second
	healthTimeout = 3 * time.Second
	// The server ends a read serverGrace after the node has stopped waiting for it.
	serverGrace = time.Second
)

// lateError returns the error of a read with a time limit in addition to ctx. If ctx has ended, it
// returns err unchanged, because the server is not at fault. The end of the time limit must not
// look like the end of ctx, so lateError does not wrap its error.
func lateError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer: %v", registry.ErrUnavailable, err)
	}
	return err
}

// Time implements registry.Clock: it returns the server's time.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}

// Get implements registry.Store with one statement, so that all records are as of one moment. The
// same statement may answer other calls too.
func (s *Store) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if err := registry.CheckKeys(keys); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return []registry.Record{}, nil
	}
	return s.gets.get(ctx, keys)
}

// readKeys returns the existing records at keys, with one statement.
func (s *Store) readKeys(ctx context.Context, keys []registry.Key) ([]registry.Record, error) {
	sql, args := getSQL(keys)
	return s.records(ctx, sql, args)
}

// records returns the rows of a statement with five columns: the table, and the parts of a record.
func (s *Store) records(ctx context.Context, sql string, args []any) (records []registry.Record, err error) {
	err = s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		records = nil
		var batch pgx.Batch
		s.limitOnServer(conn, &batch)
		batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			return collect(rows, func(record registry.Record) { records = append(records, record) })
		})
		return conn.SendBatch(ctx, &batch).Close()
	})
	return records, err
}

// readInTime is like read, with the time limit s.readTimeout.
func (s *Store) readInTime(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.readTimeout)
	defer cancel()
	return lateError(ctx, s.read(bounded, func(conn *pgxpool.Conn) error { return do(bounded, conn) }))
}

// read calls the function do, which only reads, with a connection. It calls it again, a bounded
// number of times, if the server rolled back the transaction or the connection broke. When ctx
// ends, the driver cancels the statement on the server. It returns the errors of Store.Get.
func (s *Store) read(ctx context.Context, do func(*pgxpool.Conn) error) error {
	return s.retry(ctx, func() (bool, error) {
		conn, release, err := s.acquire(ctx, s.reads)
		if err != nil {
			return false, err
		}
		defer release()
		return true, do(conn)
	})
}

// retry calls the function try until it succeeds, fails permanently, or has failed readAttemptsMax
// times. connected is true if it had a connection.
func (s *Store) retry(ctx context.Context, try func() (connected bool, err error)) error {
	var err error
	for sends := range readAttemptsMax {
		if err := s.pause(ctx, sends); err != nil {
			return err
		}
		connected, tryErr := try()
		switch {
		case tryErr == nil:
			return nil
		case !connected:
			return tryErr
		case ctx.Err() != nil:
			return ctx.Err()
		case !mayReadAgain(tryErr):
			return fmt.Errorf("%w: %w", registry.ErrUnavailable, explain(tryErr))
		}
		err = fmt.Errorf("%w: gave up after %d tries: %w", registry.ErrUnavailable, readAttemptsMax, tryErr)
	}
	return err
}

// limitSQL makes the server end later statements of the same transaction that take longer than a
// number of milliseconds.
const limitSQL = "SELECT set_config('statement_timeout', $1::text, true)"

// limit returns the parameter of limitSQL: a time after which the node has certainly given up the
// read.
func (s *Store) limit() string {
	return strconv.FormatInt((s.readTimeout + serverGrace).Milliseconds(), 10)
}

// limitOnServer puts limitSQL before the other statements of batch, which only read. Behind a proxy
// nothing else bounds these statements, because the driver cannot cancel them there, and sessions
// have no statement_timeout. It costs no round trip.
func (s *Store) limitOnServer(conn *pgxpool.Conn, batch *pgx.Batch) {
	if behindProxy(conn.Conn()) {
		batch.Queue(limitSQL, s.limit())
	}
}

// sendUnprepared sends the statements that queue adds, in one round trip, as one transaction. The
// server plans each statement when it arrives. For a prepared statement the server could keep a
// plan from a time when the table was empty, which scans the whole table.
func sendUnprepared(ctx context.Context, conn *pgxpool.Conn, queue func(*pgconn.Batch)) ([]*pgconn.Result, error) {
	batch := &pgconn.Batch{}
	queue(batch)
	return conn.Conn().PgConn().ExecBatch(ctx, batch).ReadAll()
}

// readUnprepared is like sendUnprepared, for statements that only read. It also sets the limit of
// limitOnServer.
func (s *Store) readUnprepared(ctx context.Context, conn *pgxpool.Conn, queue func(*pgconn.Batch)) ([]*pgconn.Result,
	error) {
	if !behindProxy(conn.Conn()) {
		return sendUnprepared(ctx, conn, queue)
	}
	results, err := sendUnprepared(ctx, conn, func(batch *pgconn.Batch) {
		batch.ExecParams(limitSQL, [][]byte{[]byte(s.limit())}, nil, nil, nil)
		queue(batch)
	})
	if err != nil {
		return nil, err
	}
	return results[1:], nil
}

// mayReadAgain reports whether a read that failed with err may succeed at once: the server rolled
// back its transaction, or could not answer.
func mayReadAgain(err error) bool {
	switch stateOf(err) {
	case "", stateSerializationFailure, stateDeadlockDetected:
		return true
	}
	var answered *pgconn.PgError
	return errors.As(err, &answered) && (severityOf(answered) == "FATAL" ||
		strings.HasPrefix(answered.Code, classConnection))
}

// getSQL returns the statement that reads keys. Its text depends only on the tables of the keys, so
// there are few different texts.
func getSQL(keys []registry.Key) (sql string, args []any) {
	byTable := map[registry.Table][][]byte{}
	for _, key := range keys {
		byTable[key.Table] = append(byTable[key.Table], []byte(key.ID))
	}
	var parts []string
	for _, table := range registry.Tables() {
		ids, ok := byTable[table]
		if !ok {
			continue
		}
		args = append(args, ids)
		parts = append(parts, fmt.Sprintf("SELECT %d::smallint, key, etag, state, value FROM %s WHERE key = "+
			"ANY($%d::bytea[])",
			table, tableName(table), len(args)))
	}
	return strings.Join(parts, " UNION ALL "), args
}

// List implements registry.Store. The server adds up the lengths of the values without reading the
// values, and sends no more values than fit on a page.
func (s *Store) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record,
	error) {
	page, args, err := pageSQL(table, "value", prefix, after, limit)
	if err != nil {
		return nil, err
	}
	return s.records(ctx, withinBytes(page, len(args)+1), append(args, registry.ListBytesMax))
}

// withinBytes returns a statement that limits the result of the statement page to the maximum bytes
// of a page of List. The limit is parameter n.
func withinBytes(page string, n int) string {
	return fmt.Sprintf("SELECT source, key, etag, state, value FROM "+
		"(SELECT page.*, sum(octet_length(value)) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING) - "+
		"octet_length(value) AS bytes_before FROM (%s) page) counted "+
		"WHERE bytes_before < $%d::bigint ORDER BY key", page, n)
}

// ListKeys implements registry.Store.
func (s *Store) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	page, args, err := pageSQL(table, "NULL::bytea AS value", prefix, after, limit)
	if err != nil {
		return nil, err
	}
	return s.records(ctx, page, args)
}

// pageSQL returns the statement that reads a page of table, with value as the last column.
func pageSQL(table registry.Table, value, prefix, after string, limit int) (sql string, args []any, err error) {
	if err := registry.CheckList(table, limit); err != nil {
		return "", nil, err
	}
	// Begin at prefix, or at the first possible key behind the parameter after. That is after with
	// a byte 0 appended.
	from := []byte(prefix)
	if after != "" && after >= prefix {
		from = append([]byte(after), 0)
	}
	sql = fmt.Sprintf("SELECT %d::smallint AS source, key, etag, state, %s FROM %s WHERE key >= $1::bytea", table,
		value, tableName(table))
	args = []any{from}
	if end := afterPrefix([]byte(prefix)); end != nil {
		args = append(args, end)
		sql += " AND key < $2::bytea"
	}
	args = append(args, limit)
	return sql + fmt.Sprintf(" ORDER BY key LIMIT $%d::bigint", len(args)), args, nil
}

// afterPrefix returns the first key after all keys that start with prefix, or nil if there is none.
func afterPrefix(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
