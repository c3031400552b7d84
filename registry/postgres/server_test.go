package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/pgserver"
)

// TestServer tests, one after the other on its own server, a standby that never appears and a
// crash.
func TestServer(t *testing.T) {
	t.Parallel()
	own, err := pgserver.Start("synchronous_standby_names=nobody", "synchronous_commit=local", "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := Migrate(t.Context(), own.DSN()); err != nil {
		t.Fatal(err)
	}
	store := openStore(t, own.DSN(), Options{})
	t.Run("warnings", func(t *testing.T) {
		got, err := store.Warnings(t.Context())
		if text := strings.Join(got, "\n"); err != nil || len(got) != 2 || !strings.Contains(text, "fsync = off") || !strings.Contains(text, "synchronous_commit = local") {
			t.Errorf("warnings: %q, %v", got, err)
		}
	})
	role, _ := newRole(t, own.DSN())
	role.exec(t, "ALTER ROLE "+role.name+" SET synchronous_commit = on")
	bounced := strings.Replace(newBouncer(t, own.DSN()).DSN(), "//moorage@", "//"+role.name+"@", 1) + execMode
	for i, tt := range []struct{ name, signal, dsn string }{
		{"cancelled", "pg_cancel_backend", own.DSN() + "&synchronous_commit=on&client_min_messages=error"},
		{"terminated", "pg_terminate_backend", own.DSN() + "&synchronous_commit=on&client_min_messages=error"},
		{"cancelled behind a proxy", "pg_cancel_backend", bounced},
		{"terminated behind a proxy", "pg_terminate_backend", bounced},
	} {
		t.Run("standby not waited for, "+tt.name, func(t *testing.T) {
			waiting := openStore(t, tt.dsn+"&application_name="+fmt.Sprint("waiting", i), Options{})
			var applyErr error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, applyErr = waiting.Apply(t.Context(), put(i))
			}()
			endWait(t, own, tt.signal, fmt.Sprint("waiting", i), ended)
			<-ended
			if !errors.Is(applyErr, registry.ErrUnknown) {
				t.Errorf("the server did not wait for its standby: %v, want ErrUnknown", applyErr)
			}
			if records, err := store.Get(t.Context(), registry.PointerKey(faultID(i))); err != nil || !records[0].Exists() {
				t.Errorf("the commit is on the disk, but %v, %v", records, err)
			}
		})
	}
	t.Run("sweep of leases waits for no standby", func(t *testing.T) {
		leases, err := OpenLeases(t.Context(), own.DSN()+"&synchronous_commit=on")
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Close()
		conn := connect(t, own.DSN())
		if _, err := conn.Exec(t.Context(), "INSERT INTO moorage_lease VALUES ('gone', 1, 'p', 'p', 1, now()); "+
			"INSERT INTO moorage_lease_want VALUES ('gone', 1, 'p', 1, 'p', now())"); err != nil {
			t.Fatal(err)
		}
		bounded, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if _, err := leases.Reap(bounded, time.Minute); err != nil {
			t.Error(err)
		}
		var left int
		if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM moorage_lease) + (SELECT count(*) FROM moorage_lease_want)").Scan(&left); err != nil || left > 0 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
	numbered := []int{0, 1, 2, 3}
	t.Run("numbering waits for its standby", func(t *testing.T) {
		waiting := openStore(t, own.DSN()+"&synchronous_commit=on&client_min_messages=error&application_name=numbering", Options{})
		// It also reads, which may take longer on a slow machine. In that case, it is repeated with
		// another change and more time.
		var err error
		for waiting.readTimeout = 500 * time.Millisecond; waiting.readTimeout < readTimeout; waiting.readTimeout *= 2 {
			numbered = append(numbered, 10+len(numbered))
			if _, err := store.Apply(t.Context(), put(numbered[len(numbered)-1])); err != nil {
				t.Fatal(err)
			}
			if err = numberWithoutStandby(t, own, store, waiting, len(numbered)); !errors.Is(err, registry.ErrUnavailable) {
				break
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("restart", func(t *testing.T) {
		if err := store.Healthy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := own.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := store.Healthy(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("the server is away: %v, want ErrUnavailable", err)
		}
		if err := own.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := store.Healthy(t.Context()); err != nil {
			t.Errorf("the server is back: %v", err)
		}
		if _, err := store.Apply(t.Context(), put(7)); err != nil {
			t.Errorf("the server is back: %v", err)
		}
		wantChanges(t, store, 0, append(numbered, 7)...)
	})
}

// numberWithoutStandby makes the store waiting number changes, while commits wait for a missing
// standby, for longer than a read may take. It fails the test if the store gives up in that time,
// or does not find want changes. It returns the error of a read before or afterwards.
func numberWithoutStandby(t *testing.T, own *pgserver.Server, store, waiting *Store, want int) error {
	t.Helper()
	var changes []registry.PositionedChange
	var changesErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		changes, changesErr = waiting.Changes(t.Context(), 0, registry.ListLimitMax)
	}()
	if awaitStandbyWait(t, store, ended) {
		select {
		case <-ended:
			t.Error("it was given up, and goes on on the server")
		case <-time.After(2 * waiting.readTimeout):
		}
		endWait(t, own, "pg_cancel_backend", "numbering", ended)
	}
	if <-ended; changesErr == nil && len(changes) != want {
		t.Errorf("%d changes, want %d", len(changes), want)
	}
	return changesErr
}

// endWait sends a signal to an application's server process when that waits for a standby, unless
// ended is closed first.
func endWait(t *testing.T, own *pgserver.Server, signal, application string, ended <-chan struct{}) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), own.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for sent := false; !sent; {
		select {
		case <-ended:
			return
		default:
		}
		err := conn.QueryRow(t.Context(), "SELECT coalesce(bool_or("+signal+"(pid)), false) FROM pg_stat_activity "+
			"WHERE application_name = $1 AND wait_event = 'SyncRep'", application).Scan(&sent)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWarningsOfSettings(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string]map[string]string{
		"":                         {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"},
		"full_page_writes = off":   {"full_page_writes": "off"},
		"synchronous_commit = off": {"synchronous_commit": "off"},
		"fsync = off":              {"fsync": "off", "synchronous_commit": "local"},
		"enable_seqscan = off":     {"enable_seqscan": "on"},
	} {
		if got := warnings(settings); len(got) != min(1, len(want)) || !strings.Contains(strings.Join(got, ""), want) {
			t.Errorf("%v: %q, want %q", settings, got, want)
		}
	}
}

// At its start, a node is warned that its clock differs from the server's clock.
func TestWarningsOfClocks(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration]string{
		0:                  "",
		8 * 24 * time.Hour: "ahead of",
		-40 * time.Minute:  "behind",
	} {
		store := openStore(t, dsn, Options{Now: func() time.Time { return time.Now().Add(ahead) }})
		got, err := store.Warnings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = slices.DeleteFunc(got, func(warning string) bool { return !strings.Contains(warning, "clock") })
		if len(got) != min(1, len(want)) || !strings.Contains(strings.Join(got, ""), want) {
			t.Errorf("a clock that is %s ahead: %q, want %q", ahead, got, want)
		}
		if want == "" || len(got) == 0 {
			continue
		}
		// The time of the read is deducted.
		_, after, _ := strings.Cut(got[0], "this machine is ")
		text, _, _ := strings.Cut(after, " ")
		if by, err := time.ParseDuration(text); err != nil || by > ahead.Abs() || by < ahead.Abs()-time.Minute {
			t.Errorf("a clock that is %s ahead: %q, %v", ahead, got, err)
		}
	}
	now := time.Now()
	for _, row := range []struct {
		server time.Time
		warns  bool
	}{
		{now.Add(-clockDifferenceMax), false},
		{now.Add(-clockDifferenceMax - time.Second), true},
		{now.Add(time.Minute + clockDifferenceMax), false}, // reading the clock took a minute
		{now.Add(time.Minute + clockDifferenceMax + time.Second), true},
	} {
		if got := clockWarnings(now, row.server, now.Add(time.Minute)); (len(got) > 0) != row.warns {
			t.Errorf("the server's clock is %s ahead, read within a minute: %q", row.server.Sub(now), got)
		}
	}
}
