package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Horizon finds the objects that prevent the server from removing old versions of rows: open
// transactions, prepared transactions, and slots of replicas. Each commit to a table leaves such
// versions, so until they can be removed, a table with many commits becomes slow. It is not safe
// for concurrent use.
type Horizon struct {
	store *Store
	seen  map[string]time.Time // the time since which a holder has had the same transaction ID
}

// Holder is the session, transaction or slot that has been preventing the removal of old versions
// for the longest time.
type Holder struct {
	// Age is how long the holder has prevented the removal, as far as this process could observe.
	// It is 0 if there is no holder.
	Age time.Duration
	// What describes the holder: "process 4711 of user backup (pg_dump)".
	What string
}

// Connections counts the connections of a Store to its database.
type Connections struct{ Used, Idle, Max int }

// Connections returns the present number of connections.
func (s *Store) Connections() Connections {
	pool := s.pool.Stat()
	return Connections{Used: int(pool.AcquiredConns()), Idle: int(pool.IdleConns()), Max: int(pool.MaxConns())}
}

// Horizon returns a Horizon of the database.
func (s *Store) Horizon() *Horizon { return &Horizon{store: s, seen: make(map[string]time.Time)} }

// holders selects the sessions, prepared transactions and slots that prevent the removal of old
// versions of rows. A role without pg_monitor cannot see how long sessions of other roles have been
// open.
const holders = `SELECT 'process ' || pid || coalesce(' of user ' || usename, '') ||
       coalesce(' (' || nullif(application_name, '') || ')', ''),
       pid || ' ' || backend_xmin::text, coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8
  FROM pg_stat_activity
 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)
UNION ALL
SELECT 'the prepared transaction ' || gid, gid || ' ' || transaction::text,
       extract(epoch FROM clock_timestamp() - prepared)::float8
  FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL
SELECT 'the replication slot ' || slot_name, slot_name || ' ' || xmin::text, 0::float8
  FROM pg_replication_slots WHERE xmin IS NOT NULL`

// Oldest queries the server. If the server does not report how old a holder is, its age is the time
// since Oldest first saw it. If the server does not have these lists, the result has no holder. It
// returns the errors of Store.Get.
func (h *Horizon) Oldest(ctx context.Context) (oldest Holder, err error) {
	type row struct {
		what, key string
		seconds   float64
	}
	var rows []row
	err = h.store.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		found, err := conn.Query(ctx, holders)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (one row, err error) {
			err = r.Scan(&one.what, &one.key, &one.seconds)
			return one, err
		})
		return err
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(refused.Code, "42") {
		return Holder{}, nil // the server is not PostgreSQL, but speaks its protocol
	}
	if err != nil {
		return Holder{}, err
	}
	now, seen := h.store.now(), make(map[string]time.Time, len(rows))
	for _, one := range rows {
		since, known := h.seen[one.key]
		if !known {
			since = now
		}
		seen[one.key] = since
		age := max(now.Sub(since), time.Duration(one.seconds*float64(time.Second)))
		if age > oldest.Age {
			oldest = Holder{Age: age, What: one.what}
		}
	}
	h.seen = seen
	return oldest, nil
}
