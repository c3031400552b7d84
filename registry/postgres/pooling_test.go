package postgres

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"moorage/registry"
)

// TestNothingOutlivesItsTransaction checks the modes for a proxy that pools transactions. Behind
// such a proxy, the next transaction can be on another connection of the server, which does not
// know earlier statements.
func TestNothingOutlivesItsTransaction(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t, server)
			store := openStore(t, proxy.DSN()+migrated(t)+"&default_query_exec_mode="+mode+"&pool_max_conns=1", Options{})
			var mu sync.Mutex // guards the variables below
			parsed, binds, wrong := false, 0, 0
			proxy.Watch(func(m Message) Verdict {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case m.FromServer:
				case m.Type == 'P':
					parsed = true
					if m.Body[0] != 0 {
						wrong++ // a statement with a name
					}
				case m.Type == 'B':
					binds++
					_, statement, _ := bytes.Cut(m.Body, []byte{0}) // after the name of the portal
					if !parsed || statement[0] != 0 {
						wrong++
					}
				case m.Type == 'S':
					parsed = false
				}
				return Forward
			})
			for n := range 3 {
				_, applyErr := store.Apply(t.Context(), put(n, registry.Absent(registry.PointerKey(faultID(n)))))
				_, longErr := store.Apply(t.Context(), registry.Batch{
					Conditions: []registry.Condition{registry.StateIs(registry.PointerKey(faultID(n)), registry.StateLive)},
					Writes:     []registry.Write{registry.Put(registry.LocationKey("l"), registry.StateOwner, nil)},
				})
				_, getErr := store.Get(t.Context(), registry.PointerKey(faultID(n)))
				_, listErr := store.List(t.Context(), registry.TablePointer, "fa", "", 10)
				if err := errors.Join(applyErr, longErr, getErr, listErr, store.Healthy(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			wantChanges(t, store, 0, 0, 1, 2)
			mu.Lock()
			defer mu.Unlock()
			if wrong > 0 || binds < 30 {
				t.Errorf("%d of %d statements counted on a transaction before", wrong, binds)
			}
		})
	}
}

// oneColumn is a result of one column, without rows.
func oneColumn() pgproto3.BackendMessage {
	return &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("x"), DataTypeOID: pgtype.TextOID, DataTypeSize: -1}}}
}

// serveAnswers is a server that admits every user, and answers each statement with the result of
// answer.
func serveAnswers(conn net.Conn, answer func(sql string) []pgproto3.BackendMessage) {
	defer conn.Close()
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte("none")})
	for {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() != nil {
			return
		}
		message, err := backend.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		for _, part := range answer(query.String) {
			backend.Send(part)
		}
	}
}

// A server that does not answer like PostgreSQL is refused. It must not crash the process, in which
// the pool opens connections in its own goroutines.
func TestServerWithoutResults(t *testing.T) {
	t.Parallel()
	off := []pgproto3.BackendMessage{oneColumn(), &pgproto3.DataRow{Values: [][]byte{[]byte("off")}}, &pgproto3.CommandComplete{CommandTag: []byte("SHOW")}}
	empty := []pgproto3.BackendMessage{oneColumn(), &pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")}}
	for name, answers := range map[string][]pgproto3.BackendMessage{
		"no result": nil,
		"no rows":   empty, // like a proxy, which does not execute the statement
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			defer serving.Wait()
			defer listener.Close()
			serving.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					serving.Go(func() {
						serveAnswers(conn, func(sql string) []pgproto3.BackendMessage {
							if strings.EqualFold(sql, "show transaction_read_only") { // sent by the driver
								return off
							}
							return answers
						})
					})
				}
			})
			store, err := Open(t.Context(), "postgres://moorage@"+listener.Addr().String()+"/postgres?sslmode=disable", Options{})
			if err == nil {
				_ = store.Close()
			}
			if !errors.Is(err, errNoResult) {
				t.Errorf("got %v, want errNoResult", err)
			}
		})
	}
}

// TestWhatUndoes checks which answers of servers and proxies mean that the transaction was rolled
// back.
func TestWhatUndoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer pgconn.PgError
		want   bool
	}{
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Severity: "FEHLER", Code: "23505"}, true},
		{pgconn.PgError{Severity: "ERROR", Code: "40001"}, true}, // a server that only sends the English form
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "57014"}, true},
		{pgconn.PgError{Severity: "FEHLER", Code: "23505"}, false},
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40003"}, false},
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "08006"}, false},
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "08007"}, false},
		{pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}, false},
		{pgconn.PgError{SeverityUnlocalized: "PANIC", Code: "XX000"}, false},
	} {
		if got := undone(&tt.answer); got != tt.want {
			t.Errorf("%+v: undone %t, want %t", tt.answer, got, tt.want)
		}
		err := failure(t.Context(), &tt.answer, func(*pgconn.PgError) error { return errSendAgain })
		if errors.Is(err, registry.ErrUnknown) == tt.want {
			t.Errorf("%+v: %v", tt.answer, err)
		}
	}
}
