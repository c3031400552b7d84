package pgserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Shared is a server that the tests of a package share. The first test that needs a schema starts
// it. It does not sync its writes to disk, so it is fast, but would lose acknowledged writes in a
// power cut. Main stops it. It is safe for concurrent use.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

func (s *Shared) start() (*Server, error) {
	s.once.Do(func() {
		s.server, s.err = Start("fsync=off", "synchronous_commit=off", "full_page_writes=off")
	})
	return s.server, s.err
}

// Main runs the tests of a package, stops the server, and ends the process. A package's TestMain
// calls it.
func (s *Shared) Main(m *testing.M) {
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Schema creates an empty schema with a random name, and returns a connection string for it.
func (s *Shared) Schema(ctx context.Context) (dsn string, err error) {
	server, err := s.start()
	if err != nil {
		return "", err
	}
	return server.NewSchema(ctx, randomName())
}

func randomName() string { return "test_" + strings.ToLower(rand.Text()) }

// SchemaWithClock is like Schema, but in the schema, clock_timestamp() returns a fixed time: first
// now, then the time that was last passed to set. set panics if the server does not accept the
// time.
func (s *Shared) SchemaWithClock(ctx context.Context, now time.Time) (dsn string, set func(time.Time), err error) {
	server, err := s.start()
	if err != nil {
		return "", nil, err
	}
	name := randomName()
	if dsn, err = server.NewSchema(ctx, name); err != nil {
		return "", nil, err
	}
	// The function is in a separate schema, because migrations refuse a schema with foreign
	// objects.
	clock := pgx.Identifier{name + "_clock"}.Sanitize()
	exec := func(ctx context.Context, sql string, args ...any) error {
		conn, err := pgx.Connect(ctx, server.DSN())
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql, args...)
		return err
	}
	if err := exec(ctx, "CREATE SCHEMA "+clock+"; CREATE TABLE "+clock+".time (now timestamptz NOT NULL); "+
		"INSERT INTO "+clock+".time VALUES ('"+now.UTC().Format(time.RFC3339Nano)+"'); "+
		"CREATE FUNCTION "+clock+".clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "+
		"'SELECT now FROM "+clock+".time'"); err != nil {
		return "", nil, err
	}
	set = func(now time.Time) {
		if err := exec(context.WithoutCancel(ctx), "UPDATE "+clock+".time SET now = $1", now); err != nil {
			panic("pgserver: set the clock of " + name + ": " + err.Error())
		}
	}
	// A function hides the function of the same name in pg_catalog if its schema comes before
	// pg_catalog in the path.
	path := url.QueryEscape(name + "," + name + "_clock,pg_catalog")
	return strings.Replace(dsn, "search_path="+name, "search_path="+path, 1), set, nil
}

// Stop ends the server, if it was started, and removes its files.
func (s *Shared) Stop() error {
	s.once.Do(func() {})
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}
