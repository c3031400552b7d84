package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Warnings reports a difference of more than clockDifferenceMax between a node's clock and the
// server's clock. Synchronized clocks differ by less, and times in records tolerate that
// difference.
const clockDifferenceMax = 10 * time.Second

// Warnings returns one sentence for each problem with the server's settings, and for a difference
// between this machine's clock and the server's. It returns none if the server never loses an
// acknowledged write and stays fast, and if both clocks agree.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	var settings map[string]string
	var clocks []string
	err := s.readInTime(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		if settings, err = readSettings(ctx, conn); err != nil {
			return err
		}
		var server time.Time
		began := s.now()
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&server); err != nil {
			return err
		}
		clocks = clockWarnings(began, server, s.now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !s.preparesStatements() { // the server plans each statement at every use
		delete(settings, "enable_seqscan")
	}
	return append(warnings(settings), clocks...), nil
}

func readSettings(ctx context.Context, conn *pgxpool.Conn) (map[string]string, error) {
	rows, err := conn.Query(ctx, "SELECT name, setting FROM pg_settings WHERE name IN "+
		"('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'enable_seqscan')")
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	var name, setting string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		settings[name] = setting
		return nil
	})
	return settings, err
}

// warnings returns a sentence for each setting that can make the server lose acknowledged changes
// or become slow.
func warnings(settings map[string]string) []string {
	var found []string
	if settings["fsync"] == "off" {
		found = append(found, "PostgreSQL runs with fsync = off: a power cut can lose or damage acknowledged commits")
	}
	if settings["full_page_writes"] == "off" {
		found = append(found, "PostgreSQL runs with full_page_writes = off: a power cut can damage the database")
	}
	switch commit := settings["synchronous_commit"]; {
	case commit == "off":
		found = append(found, "PostgreSQL runs with synchronous_commit = off: a crash can lose acknowledged commits")
	case commit == "local" && settings["synchronous_standby_names"] != "":
		found = append(found, "PostgreSQL runs with synchronous_commit = local: a failover can lose acknowledged "+
			"commits")
	}
	if settings["enable_seqscan"] == "on" {
		found = append(found, "PostgreSQL runs behind a proxy, where enable_seqscan = off is not set by connections: "+
			"prepared statements can go on to read whole tables when these have grown; ALTER ROLE … SET "+
			"enable_seqscan = off")
	}
	return found
}

// clockWarnings returns a sentence if the server's clock differs. began and ended are the times of
// this machine's clock before and after the read of the server's clock.
func clockWarnings(began, server, ended time.Time) []string {
	// Without monotonic readings, because the server's time has none.
	behind, ahead := server.Sub(ended.Round(0)), began.Round(0).Sub(server)
	what, by := "behind", behind
	if ahead > behind {
		what, by = "ahead of", ahead
	}
	if by <= clockDifferenceMax {
		return nil
	}
	return []string{fmt.Sprintf("the clock of this machine is %s %s that of PostgreSQL: transactions, undrop windows "+
		"and idempotency keys may end too early or too late; synchronise the clocks of all nodes",
		by.Round(time.Second), what)}
}
