package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/registry"
)

// Options are what a store is made of. The zero value is usable.
type Options struct {
	Random io.Reader // source of ETags; default crypto/rand.Reader
	// AcquireTimeout bounds how long a call waits for a free connection; then it is
	// ErrUnavailable. Default 5 s.
	AcquireTimeout time.Duration
}

// Store keeps records in a database. It is safe for concurrent use.
type Store struct {
	pool           *pgxpool.Pool
	acquireTimeout time.Duration

	randomMu sync.Mutex // guards random; leaf
	random   io.Reader

	closed atomic.Bool
	calls  sync.WaitGroup // entered by every call that uses the pool
	enter  sync.RWMutex   // orders entering calls and closing; leaf, held over no I/O
}

var (
	_ registry.Store         = (*Store)(nil)
	_ registry.HealthChecker = (*Store)(nil)
)

// warned is the key in a connection's custom data under which a warning of the server is noted.
const warned = "moorage warned"

// Open connects to the database that dsn names, a connection string of libpq (URL or key=value)
// that may list several hosts; only one that accepts writes is used. The tables must be there
// (Migrate makes them): ErrSchema if they are not, or are older or newer than this package.
func Open(ctx context.Context, dsn string, options Options) (*Store, error) {
	config, err := newConfig(dsn)
	if err != nil {
		return nil, err
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.AcquireTimeout == 0 {
		options.AcquireTimeout = 5 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &Store{pool: pool, acquireTimeout: options.AcquireTimeout, random: options.Random}
	if err := s.checkSchema(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// newConfig reads dsn and sets what the store relies on.
func newConfig(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.ConnConfig.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.SeverityUnlocalized == "WARNING" {
			conn.CustomData()[warned] = notice
		}
	}
	return config, nil
}

// Close implements registry.Store.
func (s *Store) Close() error {
	s.enter.Lock()
	s.closed.Store(true)
	s.enter.Unlock()
	s.calls.Wait()
	s.pool.Close()
	return nil
}

// Healthy asks the server whether it accepts writes.
func (s *Store) Healthy(ctx context.Context) error {
	var readOnly string
	err := s.read(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, "SHOW transaction_read_only").Scan(&readOnly)
	})
	if err == nil && readOnly != "off" {
		return fmt.Errorf("%w: the server accepts no writes", registry.ErrUnavailable)
	}
	return err
}

// with calls do with a connection. Nothing was sent if it returns ErrClosed or ErrUnavailable
// without having called do.
func (s *Store) with(ctx context.Context, do func(*pgxpool.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.enter.RLock()
	if s.closed.Load() {
		s.enter.RUnlock()
		return registry.ErrClosed
	}
	s.calls.Add(1)
	s.enter.RUnlock()
	defer s.calls.Done()
	acquireCtx, cancel := context.WithTimeout(ctx, s.acquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(acquireCtx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: no connection: %w", registry.ErrUnavailable, err)
	}
	defer conn.Release()
	return do(conn)
}

// tableName returns the name of a table in SQL.
func tableName(table registry.Table) string {
	switch table {
	case registry.TableUUID:
		return "moorage_table_uuid"
	default:
		return "moorage_" + table.String()
	}
}

// row is a record as a table has it.
type row struct {
	key   []byte
	etag  [16]byte
	state int16
	value []byte
}

func (r row) record(table registry.Table) registry.Record {
	return registry.Record{
		Key:   registry.Key{Table: table, ID: string(r.key)},
		ETag:  registry.ETag(r.etag),
		State: registry.State(r.state),
		Value: r.value,
	}
}

// collect reads all rows of a result of five columns, the first of which is the table.
func collect(rows pgx.Rows, visit func(registry.Record)) error {
	defer rows.Close()
	for rows.Next() {
		var table int16
		var r row
		if err := rows.Scan(&table, &r.key, &r.etag, &r.state, &r.value); err != nil {
			return err
		}
		visit(r.record(registry.Table(table)))
	}
	return rows.Err()
}
