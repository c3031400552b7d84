package pgserver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"moorage/internal/worker"
)

// A commit waits for a standby that is gone when the server is killed. No other connection sees it
// while the server's processes end. A process that is left after the main process of PostgreSQL
// stops waiting, which makes its commit visible.
func TestKillShowsNoWaitingCommit(t *testing.T) {
	t.Parallel()
	server := started(t, "fsync=off")
	standby, err := server.Standby(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	execute(t, server, "CREATE TABLE changed (n int)")
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}

	var seen atomic.Int32
	config, err := pgx.ParseConfig(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Message == "seen" {
			seen.Add(1)
		}
	}
	reader, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() {
		_, err := writer.Exec(t.Context(), "INSERT INTO changed VALUES (1)")
		ended <- err
	}()
	watcher, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	awaitSession(t, watcher, "wait_event = 'SyncRep'")
	go func() { // one statement, so that it goes on after the main process has ended
		_, err := reader.Exec(t.Context(), "DO $$ BEGIN LOOP IF EXISTS (SELECT FROM changed) THEN RAISE NOTICE 'seen'; "+
			"END IF; END LOOP; END $$")
		ended <- err
	}()
	awaitSession(t, watcher, "query LIKE 'DO %' AND state = 'active'")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a statement ended although the server was killed")
		}
	}
	if n := seen.Load(); n > 0 {
		t.Errorf("the waiting commit was seen %d times", n)
	}
}

// awaitSession returns when the server of conn has a session with this condition.
func awaitSession(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	for {
		found := 0
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE "+condition).Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		if found > 0 {
			return
		}
		worker.Sleep(t.Context(), time.Millisecond)
	}
}
