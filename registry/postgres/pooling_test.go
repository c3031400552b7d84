package postgres

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"moorage/internal/pgtest"
	"moorage/registry"
)

// TestNothingOutlivesItsTransaction holds the modes that are for a proxy that pools transactions against what such a proxy
// does: the next transaction is on another connection of the server, which knows no statement of the last one.
func TestNothingOutlivesItsTransaction(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t, server)
			store := openStore(t, proxy.DSN()+migrated(t)+"&default_query_exec_mode="+mode+"&pool_max_conns=1", Options{})
			var mu sync.Mutex // guards the variables below
			parsed, binds, wrong := false, 0, 0
			proxy.Watch(func(m pgtest.Message) pgtest.Verdict {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case m.FromServer:
				case m.Type == 'P':
					parsed = true
					if m.Body[0] != 0 {
						wrong++ // it has a name
					}
				case m.Type == 'B':
					binds++
					_, statement, _ := bytes.Cut(m.Body, []byte{0}) // behind the name of the portal
					if !parsed || statement[0] != 0 {
						wrong++
					}
				case m.Type == 'S':
					parsed = false
				}
				return pgtest.Forward
			})
			for n := range 3 {
				_, applyErr := store.Apply(t.Context(), put(n, registry.Absent(registry.PointerKey(faultID(n)))))
				_, getErr := store.Get(t.Context(), registry.PointerKey(faultID(n)))
				_, listErr := store.List(t.Context(), registry.TablePointer, "fa", "", 10)
				if err := errors.Join(applyErr, getErr, listErr, store.Healthy(t.Context())); err != nil {
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

// TestWhatUndoes holds the answers of servers, and of proxies before them, against what they say of the transaction.
func TestWhatUndoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer pgconn.PgError
		want   bool
	}{
		{pgconn.PgError{SeverityUnlocalized: "ERROR", Severity: "FEHLER", Code: "23505"}, true},
		{pgconn.PgError{Severity: "ERROR", Code: "40001"}, true}, // a server that says it in English only
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
		err := (&plan{}).failure(t.Context(), &tt.answer, nil)
		if errors.Is(err, registry.ErrUnknown) == tt.want {
			t.Errorf("%+v: %v", tt.answer, err)
		}
	}
}
