package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/testkit/fakecloud"
	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
	"moorage/testkit/servers"
)

const (
	// nodesCount is the number of nodes over the database. The first is never killed, so that its
	// memory is sampled over the whole run.
	nodesCount = 3
	// requestTimeout is the client timeout. A node gives up a change after 30 seconds.
	requestTimeout = 35 * time.Second
	// startsMax bounds the attempts to start a node that ends before it is ready. startPause is the
	// time between them.
	startsMax  = 30
	startPause = time.Second
	// keyLifetime exceeds the time for which a request with a key is repeated. With these short
	// lifetimes, every kind of record expires within an hour: outcomes live 5 minutes longer, and
	// changes 20 minutes.
	keyLifetime     = time.Minute
	undropWindow    = 30 * time.Second
	changeRetention = keyLifetime + 5*time.Minute
	// cacheSize is small, so that the caches are full before anything is compared.
	cacheSize = "16MiB"
)

// world is the environment of the load and the faults.
type world struct {
	binary    string
	data      string // the folder that the nodes share
	hanging   string // for warehouses whose storage hangs; not used otherwise
	store     string // the database
	primary   *pgserver.Server
	standby   *pgserver.Server // synchronous
	wal       *loopback.Proxy  // between the standby and the primary
	s3        *fakecloud.S3Server
	slowS3    *loopback.Proxy // between one warehouse and S3
	countedS3 *countedS3      // between other warehouses and S3
	sql       *pgxpool.Pool   // waits for no standby
	nodes     []*node
	single    *node // with its own embedded store, separate from the others
	http      *http.Client
	random    *rand.Rand // for the faults, which run one after the other
	serial    int        // for the names that faults use
}

// node is one server, across all its restarts, at one address. One goroutine starts and stops it.
type node struct {
	binary  string
	args    []string
	address string
	uri     string
	client  *servers.Client
	process *servers.Node
	pid     atomic.Int64
}

// newWorld starts everything.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		binary: servers.Build(t), s3: fakecloud.StartS3(t), random: rand.New(rand.NewPCG(seed, 1)),
		http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	t.Cleanup(w.http.CloseIdleConnections)
	// The nodes and the commands inherit the environment. t.Setenv does not work in parallel tests.
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": fakecloud.S3AccessKeyID, "AWS_SECRET_ACCESS_KEY": fakecloud.S3SecretAccessKey,
	} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
	w.data, w.hanging = newFolder(t), newFolder(t)
	w.startDatabase(t)
	w.slowS3, w.countedS3 = newProxy(t, w.s3.Endpoint), newCountedS3(t, w.s3.Endpoint)
	args := []string{
		"--store", w.store, "--data", w.data, "--migrate", "--cache-size", cacheSize, "--undrop-window", undropWindow.String(),
		"--idempotency-lifetime", keyLifetime.String(), "--change-retention", changeRetention.String(),
	}
	for range nodesCount {
		w.nodes = append(w.nodes, w.startNode(t, args))
	}
	w.single = w.startNode(t, []string{"--data", newFolder(t), "--cache-size", cacheSize})
	// The load drops tables with their files all the time. The run is flat only if those files are
	// purged.
	name, value, _ := strings.Cut(purgeAtOnce, "=")
	change := servers.Object{"properties": servers.Object{name: value}}
	for _, n := range []*node{w.nodes[0], w.single} {
		if a := n.client.Manage(t.Context(), http.MethodPatch, "warehouses/default", change); a.Outcome != servers.Acknowledged {
			t.Fatalf("have the warehouse purge at once: %d %s", a.Status, a.Text)
		}
	}
	return w
}

// startDatabase starts PostgreSQL with a synchronous standby.
func (w *world) startDatabase(t *testing.T) {
	t.Helper()
	var err error
	if w.primary, err = pgserver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, w.primary.Stop()) })
	w.store = w.primary.DSN()
	w.wal = newProxy(t, w.store)
	through, err := url.Parse(w.store)
	if err != nil {
		t.Fatal(err)
	}
	through.Host = w.wal.Addr()
	if w.standby, err = w.primary.Standby(through.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, w.standby.Stop()) })
	config, err := pgxpool.ParseConfig(w.store)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "local"
	config.ConnConfig.RuntimeParams["application_name"] = applicationName
	if w.sql, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.sql.Close)
}

// applicationName distinguishes the test's own connections from the nodes' connections.
const applicationName = "soak"

// newFolder returns a folder for data. Its name needs no escaping in a location.
func newFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "moorage-soak-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, os.RemoveAll(folder)) })
	return folder
}

// newProxy starts a proxy to the host of a URL.
func newProxy(t *testing.T, target string) *loopback.Proxy {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(parsed.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, proxy.Close()) })
	return proxy
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// startNode starts a node for the first time.
func (w *world) startNode(t *testing.T, args []string) *node {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{binary: w.binary, args: append(slices.Clone(args), "--listen", address), address: address, uri: "http://" + address}
	n.client = servers.NewClient(n.uri, requestTimeout)
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.process.Kill() })
	return n
}

// start starts the server at its address. If the server ends, start retries a bounded number of
// times, as a supervisor would.
func (n *node) start(ctx context.Context) error {
	var failures error
	for range startsMax {
		process, err := servers.Start(n.binary, n.args...)
		if err == nil {
			n.process = process
			n.pid.Store(int64(process.PID()))
			return nil
		}
		failures = errors.Join(failures, err)
		if pause(ctx, startPause) != nil {
			break
		}
	}
	return failures
}

// logTail is the length in bytes of the part of a node's log that is shown if the test fails.
const logTail = 16 << 10

// stop ends all nodes as an operator would, and runs `moorage doctor --deep` on their data.
func (w *world) stop(t *testing.T) {
	t.Helper()
	for i, n := range w.all() {
		if err := n.process.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			text := n.process.Stderr()
			t.Logf("the end of the log of node %d:\n%s", i, text[max(0, len(text)-logTail):])
		}
	}
	report(t, servers.Check(t.Context(), w.binary, w.storeArgs()...))
}

// storeArgs returns the flags for a command on the database.
func (w *world) storeArgs() []string {
	return []string{"--store", w.store, "--data", w.data}
}

// command runs a command of the binary on the database.
func (w *world) command(ctx context.Context, operands []string, flags ...string) error {
	args := append(operands, append(w.storeArgs(), flags...)...)
	out, err := exec.CommandContext(ctx, w.binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("moorage %v: %w: %s", operands, err, out)
	}
	return nil
}

// all returns all nodes, with the one over the embedded store last.
func (w *world) all() []*node { return append(slices.Clone(w.nodes), w.single) }

// closeIdle closes the idle connections that a fault left: each costs a goroutine in a node.
func (w *world) closeIdle() {
	for _, n := range w.all() {
		n.client.CloseIdle()
	}
	w.http.CloseIdleConnections()
}

// get makes a request outside of the Iceberg specification, and returns the status and the body.
func (w *world) get(ctx context.Context, uri string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := w.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// name returns an unused name.
func (w *world) name(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s%d", prefix, w.serial)
}

// folder returns a folder in the nodes' data.
func (w *world) folder(names ...string) string {
	return filepath.Join(append([]string{w.data}, names...)...)
}

// pause returns after d, or with an error when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lookEvery is the polling interval for conditions without a signal.
const lookEvery = 50 * time.Millisecond

// await polls check until it returns nil. After timeout it returns check's last error.
func await(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if pause(ctx, lookEvery) != nil {
			return fmt.Errorf("after %s: %w", timeout, last)
		}
	}
}
