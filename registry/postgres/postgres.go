package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/internal/worker"
	"moorage/registry"
)

// Defaults of connections, for connection strings without these parameters.
const (
	// connsMax is the default of pool_max_conns. A connection may have to wait for rows that other
	// connections write, so there are more connections than a typical server can run concurrently.
	// With the connections for leases and heartbeats, a node has 24, so three nodes leave room in
	// max_connections = 100.
	connsMax = 17
	// readConnsMax is the maximum number of connections that only read. Up to that maximum, one in
	// readConnsShare connections only reads, but at least one. Few are enough, because calls of Get
	// share statements.
	readConnsMax   = 8
	readConnsShare = 3
	// connectTimeout is the default of connect_timeout: a host that does not answer must leave time
	// to try the next host.
	connectTimeout = 2 * time.Second
	// pingTimeout bounds the check whether a connection that was idle for a second is alive.
	pingTimeout = 2 * time.Second
)

// Pauses between two sends of a rolled-back transaction: none at first, then random up to a limit
// that doubles from pauseMin to pauseMax.
const (
	pauseMin = time.Millisecond
	pauseMax = 64 * time.Millisecond
)

// Options configure a store. The zero value is usable.
type Options struct {
	Random io.Reader // source of ETags and of random waits; default crypto/rand.Reader
	// AcquireTimeout bounds how long a call waits for a connection, free or new. After that time
	// the call fails with ErrUnavailable. Default 5 s.
	AcquireTimeout time.Duration
	Now            func() time.Time // the clock that Warnings compares with the server's; default time.Now
}

// Store keeps records in a database. It is safe for concurrent use.
type Store struct {
	pool           *pgxpool.Pool // for statements that may write, which are never cancelled
	slots          *slots        // of pool
	reads          *pgxpool.Pool // for reads, which may be cancelled; for leases, the same as pool
	lines          *lines        // of both pools
	kept           kept
	gets           *gatherer
	moves          *joiner
	acquireTimeout time.Duration
	readTimeout    time.Duration // the constant readTimeout, except in tests
	now            func() time.Time

	randomMu sync.Mutex // guards random; no lock is taken under it
	random   io.Reader

	closed  atomic.Bool
	closing chan struct{}  // closed when closed is set
	calls   sync.WaitGroup // entered by every call that uses a connection, until it returns the connection
	enter   sync.RWMutex   // orders the beginning of calls and Close; no lock is taken under it; not held over I/O
}

var (
	_ registry.Store         = (*Store)(nil)
	_ registry.HealthChecker = (*Store)(nil)
	_ registry.Numberer      = (*Store)(nil)
)

// Open connects to the database of dsn, a connection string of libpq (URL or key=value). It may
// list several hosts, which are tried in turn. Open uses only a host that accepts writes, whatever
// its target_session_attrs is. The tables must exist (Migrate creates them). Open returns ErrSchema
// if they do not exist, or if they are older or newer than this package. It returns ErrPooling if
// it finds that a proxy mixes up prepared statements.
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
	if options.Now == nil {
		options.Now = time.Now
	}
	lines := newLines()
	config.ConnConfig.DialFunc = lines.dial(config.ConnConfig.DialFunc)
	readConfig := splitConfig(config)
	config.AfterConnect = prepareWriting
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	reads, err := pgxpool.NewWithConfig(ctx, readConfig)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := storeOver(pool, lines, options)
	s.reads = reads
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// storeOver returns a store that reads and writes over pool. options must have their defaults.
func storeOver(pool *pgxpool.Pool, lines *lines, options Options) *Store {
	s := &Store{
		pool: pool, reads: pool, lines: lines, slots: newSlots(int(pool.Config().MaxConns), slotPatience),
		closing:        make(chan struct{}),
		acquireTimeout: options.AcquireTimeout, readTimeout: readTimeout, now: options.Now, random: options.Random,
	}
	s.kept.interval = keptInterval
	s.gets = &gatherer{read: s.readKeys}
	s.moves = &joiner{store: s, most: min(movesMax, int(pool.Config().MaxConns))}
	return s
}

// check returns an error unless the store can be used over its connections.
func (s *Store) check(ctx context.Context) error {
	if err := s.checkPooling(ctx); err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	return s.checkSchema(ctx)
}

// newConfig parses dsn and sets the options that the store relies on.
func newConfig(dsn string) (*pgxpool.Config, error) {
	// The driver's error quotes the string, and may fail to redact the password.
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errConnectionString(err)
	}
	plain, err := pgx.ParseConfig(dsn) // this form still includes the settings of the pool
	if err != nil {
		return nil, errConnectionString(err)
	}
	if _, ok := plain.RuntimeParams["pool_max_conns"]; !ok {
		config.MaxConns = connsMax
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.PingTimeout == 0 {
		config.PingTimeout = pingTimeout
	}
	params := config.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "moorage"
	}
	delete(params, "client_min_messages") // see prepareSession
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.ConnConfig.OnNotice = noteWarning
	config.ConnConfig.DialFunc = dialUncancelled(config.ConnConfig.DialFunc)
	config.AfterConnect = prepareSession
	return config, nil
}

// splitConfig splits the connections of config: it returns a config for the connections that only
// read, and leaves the others in config. Both have at least one connection.
func splitConfig(config *pgxpool.Config) (reads *pgxpool.Config) {
	reads = config.Copy()
	reads.MaxConns = max(1, min(readConnsMax, config.MaxConns/readConnsShare))
	config.MaxConns = max(1, config.MaxConns-reads.MaxConns)
	for _, least := range []struct{ of, ofReads *int32 }{{&config.MinConns, &reads.MinConns},
		{&config.MinIdleConns, &reads.MinIdleConns}} {
		*least.ofReads = min(*least.of/readConnsShare, reads.MaxConns)
		*least.of = min(*least.of-*least.ofReads, config.MaxConns)
	}
	reads.AfterConnect = prepareReading
	return reads
}

// errConnectionString describes the fault of a connection string without quoting it.
func errConnectionString(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return fmt.Errorf("read the connection string: %w", ErrConnectionString)
	}
	return fmt.Errorf("read the connection string: %w", err)
}

// closePatience is how long Close waits for a server that may hang.
const closePatience = 2 * time.Second

// Close implements registry.Store. The connections of calls that have no answer after closePatience
// are cut. The outcome of an Apply among them is ErrUnknown.
func (s *Store) Close() error {
	s.enter.Lock()
	if !s.closed.Swap(true) {
		close(s.closing)
	}
	s.enter.Unlock()
	cut := time.AfterFunc(closePatience, s.lines.cutAll)
	defer cut.Stop()
	s.calls.Wait()
	s.pool.Close()
	s.reads.Close()
	return nil
}

// Healthy implements registry.HealthChecker. It checks whether the server accepts writes.
func (s *Store) Healthy(ctx context.Context) error {
	var readOnly string
	bounded, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	err := lateError(ctx, s.read(bounded, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(bounded, "SHOW transaction_read_only").Scan(&readOnly)
	}))
	if err == nil && readOnly != "off" {
		return fmt.Errorf("%w: the server accepts no writes", registry.ErrUnavailable)
	}
	return err
}

// withConn calls do with a connection that may write. If it returns ErrClosed or ErrUnavailable
// without having called do, nothing was sent.
func (s *Store) withConn(ctx context.Context, do func(*pgxpool.Conn) error) error {
	conn, release, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	defer release()
	return do(conn)
}

// acquire returns a connection of pool, and a function that returns it to the pool. Close waits
// until then. The errors are ErrClosed, ErrUnavailable and the error of ctx.
func (s *Store) acquire(ctx context.Context, pool *pgxpool.Pool) (conn *pgxpool.Conn, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.enter.RLock()
	if s.closed.Load() {
		s.enter.RUnlock()
		return nil, nil, registry.ErrClosed
	}
	s.calls.Add(1)
	s.enter.RUnlock()
	acquireCtx, cancel := context.WithTimeout(ctx, s.acquireTimeout)
	defer cancel()
	conn, err = pool.Acquire(acquireCtx)
	if err != nil {
		s.calls.Done()
		return nil, nil, unconnectedError(ctx, err)
	}
	return conn, func() {
		conn.Release()
		s.calls.Done()
	}, nil
}

// unconnectedError is the error of a call that got no connection in time. It does not wrap err: the
// end of the wait for a connection must not look like the end of ctx.
func unconnectedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: no connection: %v", registry.ErrUnavailable, err)
}

// pause waits before a call is sent again. sends is the number of sends so far. It does not wait
// the first two times, because the cause of the failure has probably ended. It returns the error of
// ctx if ctx ends.
func (s *Store) pause(ctx context.Context, sends int) error {
	if sends < 2 {
		return ctx.Err()
	}
	limit := min(pauseMin<<min(sends-2, 16), pauseMax)
	s.randomMu.Lock()
	var drawn [8]byte
	_, err := io.ReadFull(s.random, drawn[:])
	s.randomMu.Unlock()
	if err != nil {
		return fmt.Errorf("draw a wait: %w", err)
	}
	if !worker.Sleep(ctx, time.Duration(binary.LittleEndian.Uint64(drawn[:])%uint64(limit))) {
		return ctx.Err()
	}
	return nil
}

// tableName returns the name of a table in SQL.
func tableName(table registry.Table) string {
	switch table {
	case registry.TableUUID:
		return "moorage_table_uuid"
	case registry.TablePolicy:
		return "moorage_access_policy"
	case registry.TableMaintenancePolicy:
		return "moorage_maintenance_policy"
	case registry.TableLease:
		return "moorage_table_lease" // the name moorage_lease is used for the leases of locks
	default:
		return "moorage_" + table.String()
	}
}

// row is a record as stored in a table.
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

// collect reads all rows of a result of five columns. The first column is the table.
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
