package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/internal/worker"
)

// standbyName is the name under which a primary knows its standby.
const standbyName = "standby"

// Standby starts a standby of s, which connects to s at dsn (s.DSN(), or the DSN of a proxy). From
// then on s acknowledges a commit only when the standby also has the commit on disk. Stop it with
// Stop. A server has at most one standby.
func (s *Server) Standby(dsn string) (*Server, error) {
	folder, err := os.MkdirTemp("", "moorage-pg-")
	if err != nil {
		return nil, err
	}
	standby := &Server{folder: folder, binary: s.binary, extra: []string{"cluster_name=" + standbyName}}
	err = standby.begin(func() error {
		return run(standby.command("pg_basebackup", "--pgdata", standby.data(), "--dbname", dsn,
			"--write-recovery-conf", "--checkpoint=fast", "--no-sync"))
	})
	if err != nil {
		return nil, err
	}
	if err := s.awaitStandby(); err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

// awaitStandby makes s wait for its standby in every later commit. It returns when that is in
// effect.
func (s *Server) awaitStandby() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + standbyName + "'",
		"SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	for {
		synchronous := false
		const sql = "SELECT EXISTS (SELECT 1 FROM pg_stat_replication " +
			"WHERE application_name = $1 AND sync_state = 'sync')"
		if err := conn.QueryRow(ctx, sql, standbyName).Scan(&synchronous); err != nil {
			return fmt.Errorf("wait for the standby: %w", err)
		}
		if synchronous {
			return nil
		}
		worker.Sleep(ctx, 20*time.Millisecond)
	}
}

// Promote makes a standby a primary, and returns when it accepts writes. The standby's old primary
// must be dead.
func (s *Server) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	promoted := false
	if err := conn.QueryRow(ctx, "SELECT pg_promote(true, $1)",
		int(startTimeout/time.Second)).Scan(&promoted); err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	if !promoted {
		return fmt.Errorf("the standby was not promoted in %s", startTimeout)
	}
	return nil
}
