package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/pgserver"
	"moorage/testkit/registrytest"
)

// server is the server of all tests of this package; TestMain starts it.
var server *pgserver.Server

func TestMain(m *testing.M) {
	var err error
	// Data loss in a power cut does not matter for a test's server.
	if server, err = pgserver.Start("fsync=off", "synchronous_commit=off", "full_page_writes=off"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newSchema returns a connection string for a new, empty schema.
func newSchema(t testing.TB) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	schema := "test_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	return server.DSN() + "&search_path=" + schema
}

// newStore returns a store in its own schema.
func newStore(t *testing.T, options string) *Store {
	t.Helper()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return openStore(t, dsn+options, Options{})
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"read committed": "",
		"serializable":   "&default_transaction_isolation=serializable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registrytest.Run(t, func(t *testing.T) registry.Store { return newStore(t, options) })
		})
	}
}
