package cluster

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/testkit/servers"
)

const (
	// answerTimeout bounds the time until a server reports that its database is unreachable. It is
	// longer than a server waits for a connection, and much shorter than the limit for a request.
	answerTimeout = 30 * time.Second
	// readyAnswerTimeout bounds the time until a server reports that it is not ready. Probes wait
	// only seconds.
	readyAnswerTimeout = 15 * time.Second
	// patience is the client timeout for requests that must get an answer.
	patience = 3 * time.Minute
	// lookEvery is the polling interval for conditions without a signal.
	lookEvery = 20 * time.Millisecond
)

// newAway starts one server with a table, which has a row in the database. It returns a client with
// a long timeout.
func newAway(t *testing.T) (*cluster, *servers.Client) {
	t.Helper()
	c := newCluster(t, 1)
	client := servers.NewClient(c.nodes[0].process.URI, patience)
	for _, a := range []servers.Answer{client.CreateNamespace(t.Context(), "ns"), client.Create(t.Context(), "ns", "t", nil)} {
		if a.Outcome != servers.Acknowledged {
			t.Fatalf("prepare: %d %s", a.Status, a.Text)
		}
	}
	return c, client
}

// wantUnready fails the test unless the server soon reports that it is not ready.
func wantUnready(t *testing.T, client *servers.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyAnswerTimeout)
	defer cancel()
	if err := client.Ready(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("ready: %v, %v", err, ctx.Err())
	}
}

// callsWithoutStore returns calls of every kind. None of them can succeed without the database.
func callsWithoutStore(client *servers.Client, lost string) map[string]func(context.Context) servers.Answer {
	return map[string]func(context.Context) servers.Answer{
		"load": func(ctx context.Context) servers.Answer { return client.Load(ctx, "ns", "t") },
		"list": func(ctx context.Context) servers.Answer {
			return client.Send(ctx, http.MethodGet, servers.TablesPath("ns"), nil)
		},
		"commit": func(ctx context.Context) servers.Answer {
			return client.Set(ctx, "ns", "t", map[string]string{"lost": lost})
		},
		"create":           func(ctx context.Context) servers.Answer { return client.Create(ctx, "ns", "lost", nil) },
		"drop":             func(ctx context.Context) servers.Answer { return client.Drop(ctx, "ns", "t", false) },
		"rename":           func(ctx context.Context) servers.Answer { return client.Rename(ctx, "ns", "t", "lost") },
		"create namespace": func(ctx context.Context) servers.Answer { return client.CreateNamespace(ctx, "lost") },
		"drop namespace": func(ctx context.Context) servers.Answer {
			return client.Send(ctx, http.MethodDelete, "namespaces/ns", nil)
		},
	}
}

// While its database is unreachable, a server answers soon. It reports that the database is
// unreachable and that nothing has happened. When the database is back, the server works again.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	c, client := newAway(t)
	proxy := c.nodes[0].proxy
	for _, away := range []struct {
		name  string
		begin func()
	}{
		{"cut off", proxy.Cut},
		{"held up", proxy.Stall},
	} {
		t.Run(away.name, func(t *testing.T) {
			away.begin()
			defer proxy.Restore()
			// All calls run at once, because each takes as long as a server waits for a connection.
			// Parallel subtests would also wait for one another, and for other tests.
			var calls sync.WaitGroup
			calls.Go(func() { wantUnready(t, client) })
			for name, call := range callsWithoutStore(client, away.name) {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
					defer cancel()
					a := call(ctx)
					if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
						t.Errorf("%s: %d %s, Retry-After: %q", name, a.Status, a.Text, a.Header.Get("Retry-After"))
					}
				})
			}
			calls.Wait()
			proxy.Restore()
			if err := c.awaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a := client.Set(t.Context(), "ns", "t", map[string]string{"kept": away.name}); a.Outcome != servers.Acknowledged {
				t.Errorf("a commit after it: %d %s", a.Status, a.Text)
			}
			a := client.Load(t.Context(), "ns", "t")
			if got := a.Table.Metadata.Properties; got["kept"] != away.name || got["lost"] != "" {
				t.Errorf("the table has the properties %v", got)
			}
		})
	}
	c.stop(t)
}

// The database becomes unreachable after a server has sent it a commit. The server answers that the
// outcome is unknown, and keeps the commit's file. Here the commit happens after the client got
// that answer.
func TestCommitUnknown(t *testing.T) {
	t.Parallel()
	c, client := newAway(t)
	conn, err := pgx.Connect(t.Context(), c.store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	holder, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "SELECT key FROM moorage_pointer FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan servers.Answer, 1)
	go func() { answered <- client.Set(t.Context(), "ns", "t", map[string]string{"late": "yes"}) }()
	awaitBlocked(t, c.store)
	c.nodes[0].proxy.Cut()
	a := <-answered
	if a.Status != http.StatusInternalServerError || !strings.Contains(a.Text, "CommitStateUnknownException") || a.Header.Get("Retry-After") != "" {
		t.Errorf("%d %s, Retry-After: %q", a.Status, a.Text, a.Header.Get("Retry-After"))
	}
	if err := holder.Rollback(t.Context()); err != nil { // now the database goes on with what it was sent
		t.Fatal(err)
	}
	c.nodes[0].proxy.Restore()
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		now := client.Load(ctx, "ns", "t")
		if now.Table.Metadata.Properties["late"] == "yes" {
			break
		}
		if pause(ctx, lookEvery) != nil {
			t.Fatalf("the commit did not happen: %d %s", now.Status, now.Text)
		}
	}
	files, err := filepath.Glob(filepath.Join(c.warehouse(), "ns", "t*", "metadata", "*.metadata.json"))
	if err != nil || len(files) != 2 {
		t.Errorf("there are the files %q, want 2; %v", files, err)
	}
	c.stop(t)
}

// awaitBlocked waits until a database session waits for a row lock.
func awaitBlocked(t *testing.T, store string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		blocked := false
		const sql = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock')"
		if err := conn.QueryRow(ctx, sql).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
		if blocked {
			return
		}
		if pause(ctx, lookEvery) != nil {
			t.Fatal("nobody waits")
		}
	}
}

// A server whose database is unreachable exits with success on the signal to stop. The same holds
// with a request in progress.
func TestStopWithoutStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		begin func(*node)
		busy  bool // a request is in progress
	}{
		{"cut off", func(n *node) { n.proxy.Cut() }, false},
		{"held up", func(n *node) { n.proxy.Stall() }, false},
		{"held up with a load under way", func(n *node) { n.proxy.Stall() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, client := newAway(t)
			tt.begin(c.nodes[0])
			wantUnready(t, client)
			answered := make(chan servers.Answer, 1)
			if tt.busy {
				go func() { answered <- client.Load(t.Context(), "ns", "t") }()
			}
			began := time.Now()
			report(t, c.nodes[0].process.Stop())
			t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
			if tt.busy {
				if a := <-answered; a.Status != http.StatusServiceUnavailable && a.Status != 0 {
					t.Errorf("the load: %d %s", a.Status, a.Text)
				}
			}
			c.nodes[0].proxy.Restore()
			if _, err := os.Stat(c.warehouse()); err != nil {
				t.Error(err)
			}
			report(t, servers.Check(t.Context(), c.binary, "--store", c.store, "--data", c.data))
		})
	}
}
