package pgserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const (
	// After NearWraparound, oldXID is the oldest transaction id, and newXID the next one. With
	// fewer than 40 million ids left, the server logs a warning for each new id.
	oldXID, newXID = 716, 2_107_490_000
	// xidsPerSegment and segmentBytes describe a file of pg_xact, which has two bits for each
	// transaction id.
	xidsPerSegment, segmentBytes = 1 << 20, 1 << 18
)

// NearWraparound restarts s as a server that has used almost all of its transaction ids. An
// abandoned replication slot prevents it from reusing old ids. s needs wal_level=logical.
func (s *Server) NearWraparound(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')")
	_ = conn.Close(ctx)
	if err != nil {
		return fmt.Errorf("make a replication slot: %w", err)
	}
	if err := s.Shutdown(); err != nil {
		return err
	}
	reset := s.command("pg_resetwal", "--pgdata", s.data(), "--next-transaction-id", strconv.Itoa(newXID),
		"--oldest-transaction-id", strconv.Itoa(oldXID))
	if out, err := reset.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_resetwal: %w: %s", err, out)
	}
	segment := filepath.Join(s.data(), "pg_xact", fmt.Sprintf("%04X", newXID/xidsPerSegment))
	if err := os.WriteFile(segment, make([]byte, segmentBytes), 0o600); err != nil {
		return err
	}
	if s.owner != nil {
		if err := os.Chown(segment, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return err
		}
	}
	return s.Restart()
}

// Shutdown ends the server normally, so that its files need no recovery. It closes connections, and
// waits until the server has ended.
func (s *Server) Shutdown() error {
	if err := s.process.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	err := s.process.Wait()
	s.process = nil
	return err
}
