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
	// nodesCount nodes are over the database. The first is never killed, so that what it keeps is
	// seen from the begin to the end.
	nodesCount = 3
	// requestTimeout is how long a client waits for an answer. A node gives a change up after 30
	// seconds.
	requestTimeout = 35 * time.Second
	// startsMax bounds how often a node is started that ends before it is ready, and startPause is
	// the time between.
	startsMax  = 30
	startPause = time.Second
	// keyLifetime is as long as no request with a key is repeated. The short lifetimes let every
	// sort of record come to its end in an hour: outcomes live 5 minutes longer, and changes for 20
	// minutes.
	keyLifetime     = time.Minute
	undropWindow    = 30 * time.Second
	changeRetention = keyLifetime + 5*time.Minute
	// cacheSize is small, so that the caches are full before anything is compared.
	cacheSize = "16MiB"
)

// world is all that the load and the faults work on.
type world struct {
	binary    string
	data      string // the folder that the nodes share
	hanging   string // where warehouses are whose storage hangs: nobody else looks there
	store     string // the database
	primary   *pgserver.Server
	standby   *pgserver.Server // synchronous
	wal       *loopback.Proxy  // on the way of the standby to the primary
	s3        *fakecloud.S3Server
	slowS3    *loopback.Proxy // on the way of one warehouse to S3
	countedS3 *countedS3      // on the way of others
	sql       *pgxpool.Pool   // waits for no standby
	nodes     []*node
	single    *node // over an embedded store of its own, beside the others
	http      *http.Client
	random    *rand.Rand // of the faults, which come one after the other
	serial    int        // of names that faults draw
}

// node is one server, through all its lives, at one address. One goroutine starts and stops it.
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
	// The nodes and the commands inherit the environment. t.Setenv is not for parallel tests.
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
	// The load drops tables with their files without end. It is flat only if those go.
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

// applicationName tells the test's own connections from those of the nodes.
const applicationName = "soak"

// newFolder returns a folder for data whose name needs no escape in a location.
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

// start starts the server at its address, a bounded number of times if it ends, as a supervisor
// would.
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

// logTail is how much of a node's log is shown if the test fails, in bytes.
const logTail = 16 << 10

// stop ends all nodes as an operator does, and has `moorage doctor --deep` look at what they leave.
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

// storeArgs are the flags of a command that works on the database.
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

// all returns all nodes, that over the embedded store last.
func (w *world) all() []*node { return append(slices.Clone(w.nodes), w.single) }

// closeIdle ends the connections to the nodes that a fault left idle: each is a goroutine of a
// node.
func (w *world) closeIdle() {
	for _, n := range w.all() {
		n.client.CloseIdle()
	}
	w.http.CloseIdleConnections()
}

// get makes a request that is none of the specification's, and returns the status and the body.
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

// name returns a name that no fault had before.
func (w *world) name(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s%d", prefix, w.serial)
}

// folder returns a folder in the data of the nodes.
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

// lookEvery is the time between two looks at what has no signal.
const lookEvery = 50 * time.Millisecond

// await looks again and again until check returns nil, and returns its last error after timeout.
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
