package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/testkit/loopback"
	"moorage/testkit/servers"
)

const (
	// takeoverMax bounds the wait of a request for the locks of a killed server.
	takeoverMax = 5 * time.Second
	// takeoverTries is the number of attempts at it: the machine itself may be slow.
	takeoverTries = 3
	// takeoverClients is the number of clients that work through the server until its kill.
	takeoverClients = 16
	// takeoverDrops is the number of tables that are then dropped through the other server: some in
	// each shard of the namespace.
	takeoverDrops = 64
	// takeoverWork is the time before the kill: long enough for all clients to start.
	takeoverWork = time.Second
	// stopsMax bounds the attempts to stop the server while it holds locks.
	stopsMax = 20
	// announceTimeout bounds the time until a ready server announces itself. Normally that takes no
	// time.
	announceTimeout = time.Minute
	// takeoverPause is the time between two attempts at a refused transaction.
	takeoverPause = 20 * time.Millisecond
)

// newPair starts a database and two servers over it. first are additional arguments for the first
// server.
func newPair(t *testing.T, first ...string) *cluster {
	t.Helper()
	database := newDatabase(t)
	c := &cluster{binary: servers.Build(t), data: newFolder(t), store: database.DSN(), database: database}
	for i := range 2 {
		member := &node{args: []string{"--store", c.store, "--data", c.data, "--migrate"}}
		if i == 0 {
			member.args = append(member.args, first...)
		}
		if err := member.start(t.Context(), c.binary); err != nil {
			t.Fatalf("start node %d: %v", i, err)
		}
		c.nodes = append(c.nodes, member)
		t.Cleanup(func() { member.process.Kill() })
	}
	return c
}

// stop is a way to stop a server, and to bring it back if it held no locks.
type stop struct {
	begin  func() error
	goesOn func() error
}

// killed returns a stop that kills the first server, as in a crash.
func (c *cluster) killed(ctx context.Context) stop {
	return stop{
		begin: func() error {
			c.nodes[0].process.Kill()
			return nil
		},
		goesOn: func() error { return c.nodes[0].start(ctx, c.binary) },
	}
}

// stopHolding stops the first server while clients work through it. It repeats that until the
// server stopped with locks on paths that match pattern. work is one request of a client.
//
// stopHolding returns the names of the sessions with the locks, the time of the stop, and a
// function that waits for the clients. Their last requests may take as long as the stop.
func (c *cluster) stopHolding(
	t *testing.T, s stop, pattern string, work func(client *servers.Client, number int),
) (sessions []string, stopped time.Time, wait func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for range stopsMax {
		client := patientClient(c.nodes[0])
		ended := make(chan struct{})
		var working sync.WaitGroup
		for number := range takeoverClients {
			working.Go(func() {
				for {
					select {
					case <-ended:
						return
					default:
						work(client, number)
					}
				}
			})
		}
		err := pause(t.Context(), takeoverWork)
		stopped = time.Now()
		err = errors.Join(err, s.begin())
		close(ended)
		if err == nil {
			sessions, err = holders(t.Context(), conn, c.nodes[0].process.Pid(), pattern)
		}
		if err == nil && len(sessions) > 0 {
			return sessions, stopped, working.Wait
		}
		err = errors.Join(err, s.goesOn())
		working.Wait()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the server never stopped with locks")
	return nil, stopped, nil
}

// holders returns the sessions of a process that hold a lock in mode W on a path that matches
// pattern.
func holders(ctx context.Context, conn *pgx.Conn, pid int, pattern string) ([]string, error) {
	const held = `SELECT DISTINCT session FROM moorage_lease WHERE mode = 7 AND path LIKE $1
		AND session LIKE '%:' || $2::text || '/%' ORDER BY session`
	rows, err := conn.Query(ctx, held, pattern, fmt.Sprint(pid))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// mustDo fails the test unless the request succeeded.
func mustDo(t *testing.T, what string, a servers.Answer) {
	t.Helper()
	if a.Outcome != servers.Acknowledged {
		t.Fatalf("%s: %d %s", what, a.Status, a.Text)
	}
}

// areShort prints the waits, and reports whether all are below takeoverMax.
func areShort(t *testing.T, what string, waits []time.Duration) bool {
	t.Helper()
	slices.Sort(waits)
	at := func(percent int) time.Duration { return waits[(len(waits)-1)*percent/100].Round(time.Millisecond) }
	t.Logf("%d %s: p50 %s, p90 %s, max %s", len(waits), what, at(50), at(90), at(100))
	return at(100) < takeoverMax
}

// names returns names for n tables.
func names(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

// createTables creates a namespace with tables.
func createTables(t *testing.T, client *servers.Client, namespace string, tables []string) {
	t.Helper()
	mustDo(t, "create the namespace", client.CreateNamespace(t.Context(), namespace))
	for _, table := range tables {
		mustDo(t, "create a table", client.Create(t.Context(), namespace, table, nil))
	}
}

// TestTakeover kills or pauses a server while clients create and drop tables through it, or change
// two at a time. Then other clients call the other server. They must wait less than takeoverMax for
// the first server's locks.
func TestTakeover(t *testing.T) {
	t.Parallel()
	c := newPair(t)
	for _, row := range []struct {
		name string
		test func(t *testing.T, namespace string) (inTime bool)
	}{
		{"drops", c.testDropsAfterKill},
		{"transactions", c.testTransactionsAfterKill},
		{"paused", c.testDropsWhilePaused},
	} {
		t.Run(row.name, func(t *testing.T) {
			inTime := false
			for try := 0; !inTime && try < takeoverTries; try++ {
				inTime = row.test(t, fmt.Sprint(row.name, try))
			}
			if !inTime {
				t.Errorf("the waits were too long each time, want less than %s", takeoverMax)
			}
		})
	}
	c.stop(t)
}

// createAndDrop returns a function that creates and drops a table for one client.
func createAndDrop(t *testing.T, namespace string) func(client *servers.Client, number int) {
	return func(client *servers.Client, number int) {
		name := fmt.Sprintf("c%d", number)
		client.Create(t.Context(), namespace, name, nil)
		client.Drop(t.Context(), namespace, name, false)
	}
}

// dropSoon drops all tables at once through the second server, and reports whether that was in
// time.
func (c *cluster) dropSoon(t *testing.T, namespace string, tables []string) bool {
	t.Helper()
	client := patientClient(c.nodes[1])
	waits := make([]time.Duration, len(tables))
	var dropping sync.WaitGroup
	for i, table := range tables {
		dropping.Go(func() {
			began := time.Now()
			a := client.Drop(t.Context(), namespace, table, false)
			waits[i] = time.Since(began)
			if a.Outcome != servers.Acknowledged {
				t.Errorf("drop: %d %s", a.Status, a.Text)
			}
		})
	}
	dropping.Wait()
	return areShort(t, "drops", waits)
}

func (c *cluster) testDropsAfterKill(t *testing.T, namespace string) (inTime bool) {
	tables := names("t", takeoverDrops)
	createTables(t, patientClient(c.nodes[1]), namespace, tables)
	_, _, wait := c.stopHolding(t, c.killed(t.Context()), "%/"+namespace+"/#%", createAndDrop(t, namespace))
	wait()
	inTime = c.dropSoon(t, namespace, tables)
	report(t, c.nodes[0].start(t.Context(), c.binary))
	return inTime
}

func (c *cluster) testTransactionsAfterKill(t *testing.T, namespace string) (inTime bool) {
	other := patientClient(c.nodes[1])
	tables := names("t", 2*takeoverClients)
	createTables(t, other, namespace, tables)
	change := func(client *servers.Client, number int, value string) servers.Answer {
		return client.Send(t.Context(), http.MethodPost, "transactions/commit", setInBoth(namespace, tables[2*number:2*number+2], value))
	}
	_, killed, wait := c.stopHolding(t, c.killed(t.Context()), "%/@%", func(client *servers.Client, number int) { change(client, number, "before") })
	wait()
	waits := make([]time.Duration, takeoverClients)
	var changing sync.WaitGroup
	for number := range takeoverClients {
		changing.Go(func() {
			for {
				a := change(other, number, "after")
				if a.Outcome == servers.Acknowledged {
					break
				}
				if a.Status != http.StatusConflict || pause(t.Context(), takeoverPause) != nil {
					t.Errorf("transaction: %d %s", a.Status, a.Text)
					break
				}
			}
			waits[number] = time.Since(killed)
		})
	}
	changing.Wait()
	inTime = areShort(t, "transactions, since the server was killed,", waits)
	for _, table := range tables {
		if got := other.Load(t.Context(), namespace, table).Table.Metadata.Properties["both"]; got != "after" {
			t.Errorf("table %s has the value %q, want the last", table, got)
		}
	}
	report(t, c.nodes[0].start(t.Context(), c.binary))
	return inTime
}

// testDropsWhilePaused resumes the first server when others have its locks. Requests in progress
// must end, and the server must work again.
func (c *cluster) testDropsWhilePaused(t *testing.T, namespace string) (inTime bool) {
	tables := names("t", takeoverDrops)
	createTables(t, patientClient(c.nodes[1]), namespace, tables)
	first := c.nodes[0].process
	paused := stop{begin: first.Pause, goesOn: first.Resume}
	_, stopped, wait := c.stopHolding(t, paused, "%/"+namespace+"/#%", createAndDrop(t, namespace))
	inTime = c.dropSoon(t, namespace, tables)
	// Changes to the clients' own tables take over the remaining locks.
	other := patientClient(c.nodes[1])
	for number := range takeoverClients {
		createAndDrop(t, namespace)(other, number)
	}
	report(t, pause(t.Context(), passedOverSpan-time.Since(stopped)))
	report(t, first.Resume())
	wait()
	client := patientClient(c.nodes[0])
	mustDo(t, "create", client.Create(t.Context(), namespace, "later", nil))
	mustDo(t, "drop", client.Drop(t.Context(), namespace, "later", false))
	return inTime
}

// setInBoth returns a transaction that sets a property of the tables.
func setInBoth(namespace string, tables []string, value string) servers.Object {
	var changes []servers.Object
	for _, table := range tables {
		changes = append(changes, servers.Object{
			"identifier":   servers.Object{"namespace": []string{namespace}, "name": table},
			"requirements": []servers.Object{},
			"updates":      []servers.Object{{"action": "set-properties", "updates": map[string]string{"both": value}}},
		})
	}
	return servers.Object{"table-changes": changes}
}

// TestTakeoverByAddress kills a server and restarts it at its address. The session of the killed
// process, which held locks, must end at once. Others need not wait until the session has been
// silent for the allowed time.
func TestTakeoverByAddress(t *testing.T) {
	t.Parallel()
	address, err := loopback.FreeAddress() // no other connection gets it while the server is dead
	if err != nil {
		t.Fatal(err)
	}
	c := newPair(t, "--listen", address)
	other := patientClient(c.nodes[1])
	mustDo(t, "create the namespace", other.CreateNamespace(t.Context(), "ns"))
	conn, err := pgx.Connect(t.Context(), c.store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	c.awaitSessions(t, conn, nil)
	killed := c.killed(t.Context())
	starts := killed.goesOn
	killed.goesOn = func() error {
		err := starts()
		if err == nil {
			c.awaitSessions(t, conn, nil)
		}
		return err
	}
	dead, _, wait := c.stopHolding(t, killed, "%/ns/#%", createAndDrop(t, "ns"))
	wait()
	if err := c.nodes[0].start(t.Context(), c.binary); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	sessions := c.awaitSessions(t, conn, dead)
	t.Logf("the session was ended %s after the server was ready", time.Since(began).Round(time.Millisecond))
	var addresses []string
	for _, s := range sessions {
		if s.version == "" {
			t.Errorf("the session %+v does not say which build its node runs", s)
		}
		addresses = append(addresses, s.address)
	}
	at := func(uri string) func(string) bool {
		return func(said string) bool { return strings.HasSuffix(said, "/"+strings.TrimPrefix(uri, "http://")) }
	}
	for _, n := range c.nodes {
		if !slices.ContainsFunc(addresses, at(n.process.URI)) {
			t.Errorf("the sessions have the addresses %q, none of them is %s", addresses, n.process.URI)
		}
	}
	c.stop(t)
}

// liveSession is a session as stored in the database.
type liveSession struct{ name, address, version string }

// awaitSessions waits until the sessions in gone have ended and each server has announced its own.
// It returns all sessions.
func (c *cluster) awaitSessions(t *testing.T, conn *pgx.Conn, gone []string) (sessions []liveSession) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), announceTimeout)
	defer cancel()
	for {
		// The test sends heartbeats for the sessions in gone, so that no server ends them for
		// silence.
		if _, err := conn.Exec(ctx, "UPDATE moorage_lease_session SET renewed = clock_timestamp() WHERE session = ANY($1)", gone); err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(ctx, "SELECT session, coalesce(address, ''), coalesce(version, '') FROM moorage_lease_session")
		if err == nil {
			sessions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s liveSession, err error) {
				return s, row.Scan(&s.name, &s.address, &s.version)
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		isGone := func(s liveSession) bool { return slices.Contains(gone, s.name) }
		isAnnounced := func(n *node) bool {
			its := fmt.Sprintf(":%d/", n.process.Pid())
			return slices.ContainsFunc(sessions, func(s liveSession) bool { return s.address != "" && strings.Contains(s.name, its) })
		}
		isSilent := func(n *node) bool { return !isAnnounced(n) }
		if !slices.ContainsFunc(sessions, isGone) && !slices.ContainsFunc(c.nodes, isSilent) {
			return sessions
		}
		if pause(ctx, lookEvery) != nil {
			t.Fatalf("after %s there are the sessions %+v, and %q should be gone\n%s", announceTimeout, sessions, gone, c.nodes[0].process.Stderr())
		}
	}
}
