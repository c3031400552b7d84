package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/testkit"
	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
	"moorage/testkit/servers"
)

const (
	nodesCount = 3
	namespace  = "chaos"
	duckdb     = "duckdb" // the name of the engine
	// orphansEvery is the number of expiry runs for each orphan run, which lists all files. It
	// shares no factor with the number of tables.
	orphansEvery = 5
	// startsMax bounds the number of attempts to start a node that ends before it is ready.
	startsMax = 20
	// requestTimeout bounds one request of the test's own.
	requestTimeout = 30 * time.Second
)

// world is three nodes over a database, and the engines.
type world struct {
	t       *testing.T
	binary  string
	data    string // the folder that the nodes share
	dsn     string
	nodes   []*node
	store   registry.Store // opened directly, not through the nodes
	direct  *native        // for operations that the engines lack
	engines [2]engine
	pace
	tables []string
	// folder contains the material for debugging a run: the journal of changes and reads, and the
	// logs of nodes and engines.
	folder  string
	journal *log.Logger
}

// pace has the timing of a run. It depends on the engines.
type pace struct {
	// opTimeout bounds one change by an engine, and one attempt to read. An engine may retry a
	// commit for retrySpan.
	opTimeout, retrySpan time.Duration
	// readSpan bounds the retries of a read: its snapshot may expire during the read, or its node
	// may be killed.
	readSpan time.Duration
	// orphanAge is the age at which unreferenced files are removed. It is longer than opTimeout:
	// before that, an engine's files must be committed or abandoned.
	orphanAge time.Duration
	// calm is the mean time between two kills. steerPause is the time between two maintenance runs,
	// and judgePause the time between two checks of the judge.
	calm, steerPause, judgePause time.Duration
}

var (
	// localPace is for engines in this process, which stop at a deadline.
	localPace = pace{
		opTimeout: 6 * time.Second, retrySpan: 6 * time.Second, readSpan: 90 * time.Second,
		orphanAge: 15 * time.Second,
		calm:      3 * time.Second, steerPause: 100 * time.Millisecond, judgePause: 20 * time.Millisecond,
	}
	// remotePace is for engines in separate processes. Their changes take seconds, and no deadline
	// stops them.
	remotePace = pace{
		opTimeout: 4 * time.Minute, retrySpan: time.Minute, readSpan: 10 * time.Minute,
		orphanAge: 5 * time.Minute,
		calm:      8 * time.Second, steerPause: 200 * time.Millisecond, judgePause: 200 * time.Millisecond,
	}
)

// node is one of the servers, across all its restarts, at one address.
type node struct {
	args    []string
	uri     string
	process *servers.Node
	kills   atomic.Int64
	log     *os.File // the output of all its processes
}

// kill ends the node with SIGKILL, as in a crash, and saves its output.
func (n *node) kill() {
	n.process.Kill()
	n.kills.Add(1)
	n.keepLog()
}

func (n *node) keepLog() {
	_, _ = fmt.Fprintf(n.log, "%s\n---- ended %s\n", n.process.Stderr(), time.Now().Format(time.StampMilli)) // for readers
}

func (n *node) start(ctx context.Context, binary string) error {
	var failures error
	for range startsMax {
		process, err := servers.Start(binary, n.args...)
		if err == nil {
			n.process = process
			return nil
		}
		failures = errors.Join(failures, err)
		if sleep(ctx, 200*time.Millisecond) != nil {
			break
		}
	}
	return failures
}

// sleep returns after d, or with an error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var must = testkit.Must

// newWorld starts the nodes. The first one gets the policy before the others start, because nodes
// reload policies only at intervals.
func newWorld(t *testing.T) *world {
	t.Helper()
	database, err := pgserver.Start("fsync=off", "synchronous_commit=off")
	must(t, err)
	t.Cleanup(func() { must(t, database.Stop()) })
	data, err := os.MkdirTemp("", "moorage-chaos-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the tables are in %s; -artifacts keeps the journal and the logs", data)
			return
		}
		must(t, os.RemoveAll(data))
	})
	w := &world{
		t: t, binary: servers.Build(t), data: data, dsn: database.DSN(), pace: localPace, folder: t.ArtifactDir(),
	}
	w.journal = log.New(w.create("journal.log"), "", log.Ltime|log.Lmicroseconds)
	for i := range nodesCount {
		address, err := loopback.FreeAddress()
		must(t, err)
		n := &node{
			uri: "http://" + address, args: []string{"--store", w.dsn, "--data", w.data, "--migrate", "--listen", address},
			log: w.create(fmt.Sprintf("node%d.log", i)),
		}
		must(t, n.start(t.Context(), w.binary))
		t.Cleanup(func() {
			n.process.Kill()
			n.keepLog()
		})
		w.nodes = append(w.nodes, n)
		if i == 0 {
			w.enable()
		}
	}
	w.store, err = postgres.Open(t.Context(), w.dsn, postgres.Options{AcquireTimeout: time.Minute})
	must(t, err)
	t.Cleanup(func() { must(t, w.store.Close()) })
	w.direct, err = newNative(t.Context(), w.uris())
	must(t, err)
	return w
}

// create creates a file in the folder of the run.
func (w *world) create(name string) *os.File {
	w.t.Helper()
	file, err := os.Create(filepath.Join(w.folder, name))
	must(w.t, err)
	w.t.Cleanup(func() { _ = file.Close() })
	return file
}

func (w *world) uris() []string {
	uris := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		uris[i] = n.uri
	}
	return uris
}

// enable sets the policy that deletes everything as early as possible.
func (w *world) enable() {
	w.t.Helper()
	ask := client.New(w.nodes[0].uri, "")
	for of, settings := range map[policy.Type]map[string]string{
		policy.SnapshotManagement: {
			policy.MaxSnapshotAgeHours: "0", policy.DeleteDelayHours: "0", policy.MinSnapshotsToExpire: "1",
		},
		policy.UnreferencedFileRemoval: {
			policy.UnreferencedDays: "0", policy.NonCurrentDays: "0", policy.IncludeOlder: `"true"`,
		},
	} {
		said := client.MaintenanceSettings{}
		for name, value := range settings {
			said[name] = json.RawMessage(value)
		}
		must(w.t, ask.PutMaintenancePolicy(w.t.Context(), client.Object{}, string(of), client.MaintenancePolicy{
			Status: string(policy.Enabled), Unsafe: true,
			Settings: map[string]client.MaintenanceSettings{string(of): said},
		}))
	}
}

// makeTables creates empty tables. Some use merge-on-read, if the engines support it. With DuckDB
// all do, because it refuses to delete in any other way.
func (w *world) makeTables(names []string) {
	w.t.Helper()
	ctx := w.t.Context()
	must(w.t, w.direct.catalogs[0].CreateNamespace(ctx, table.Identifier{namespace}, nil))
	keyed := can(w.engines[0], upserts) || can(w.engines[1], upserts)
	for i, name := range names {
		mode := []string{"copy-on-write", "merge-on-read"}[i%2]
		if w.engines[0].name() == duckdb || w.engines[1].name() == duckdb {
			mode = "merge-on-read"
		}
		_, err := w.direct.catalogs[0].CreateTable(ctx, table.Identifier{namespace, name}, schemaOf(keyed), icebergcatalog.WithProperties(iceberg.Properties{
			"format-version": "2", "write.delete.mode": mode, "write.merge.mode": mode,
			"moorage.maintenance.orphans.unreferenced-ms": fmt.Sprint(w.orphanAge.Milliseconds()),
			"moorage.maintenance.orphans.noncurrent-ms":   "0",
			// Writers of a shared table conflict at each commit.
			"commit.retry.num-retries": "20", "commit.retry.max-wait-ms": "500",
			"commit.retry.total-timeout-ms": fmt.Sprint(w.retrySpan.Milliseconds()),
		}))
		must(w.t, err)
	}
	w.tables = names
}

// disturb kills and restarts nodes, and removes claims, until ctx ends. At the end all nodes run.
func (w *world) disturb(ctx context.Context, random *rand.Rand) error {
	for sleep(ctx, w.calm/2+time.Duration(random.Int64N(int64(w.calm)))) == nil {
		n := w.nodes[random.IntN(len(w.nodes))]
		n.kill()
		// The claims of killed nodes hold for minutes. The claims of running nodes are removed too,
		// as if those nodes had been paused. They notice when they renew their claims.
		if err := w.endClaims(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		if err := n.start(context.WithoutCancel(ctx), w.binary); err != nil {
			return err
		}
	}
	return nil
}

// endClaims removes all claims.
func (w *world) endClaims(ctx context.Context) error {
	claims, err := w.store.List(ctx, registry.TableAssignment, "", "", 1000)
	if err != nil || len(claims) == 0 {
		return err
	}
	var batch registry.Batch
	for _, claim := range claims {
		batch.Writes = append(batch.Writes, registry.Delete(claim.Key))
	}
	_, err = w.store.Apply(ctx, batch)
	return err
}

// steer triggers maintenance of one table after the other, on one node after the other, until ctx
// ends.
func (w *world) steer(ctx context.Context) {
	for turn := 0; sleep(ctx, w.steerPause) == nil; turn++ {
		kind := policy.Snapshots
		if turn%orphansEvery == 0 {
			kind = policy.Orphans
		}
		w.look(ctx, turn, w.tables[turn%len(w.tables)], string(kind))
	}
}

// look triggers maintenance of one kind on a table. It ignores errors: the node may be down, or the
// maintenance may be running already.
func (w *world) look(ctx context.Context, at int, name, kind string) {
	ask := client.New(w.nodes[at%len(w.nodes)].uri, "")
	_, _ = ask.RunMaintenance(ctx, client.MaintenanceByHand{
		Object: client.Object{Warehouse: "default", Namespace: []string{namespace}, Table: name}, Kind: kind,
	})
}

// status returns a node's maintenance status of a table.
func (w *world) status(ctx context.Context, name string, at int) (client.MaintenanceStatus, error) {
	ask := client.New(w.nodes[at].uri, "")
	return ask.MaintenanceStatus(ctx, client.Object{Warehouse: "default", Namespace: []string{namespace}, Table: name})
}

// setRef points a ref to the snapshot of another one.
func (w *world) setRef(ctx context.Context, name, ref string, kind table.RefType, to string, at int) error {
	ident := table.Identifier{namespace, name}
	loaded, err := w.direct.catalogs[at].LoadTable(ctx, ident)
	if err != nil {
		return err
	}
	target := loaded.SnapshotByName(to)
	if target == nil {
		return fmt.Errorf("%w: %s", errNoRef, to)
	}
	var head *int64 // the ref's current snapshot
	if snapshot := loaded.SnapshotByName(ref); snapshot != nil {
		head = &snapshot.SnapshotID
	}
	_, _, err = w.direct.catalogs[at].CommitTable(ctx, ident, []table.Requirement{
		table.AssertTableUUID(loaded.Metadata().TableUUID()), table.AssertRefSnapshotID(ref, head),
	}, []table.Update{table.NewSetSnapshotRefUpdate(ref, target.SnapshotID, kind, 0, 0, 0)})
	return err
}

// dropRef removes a tag or branch.
func (w *world) dropRef(ctx context.Context, name, ref string, at int) error {
	ident := table.Identifier{namespace, name}
	_, _, err := w.direct.catalogs[at].CommitTable(ctx, ident, nil,
		[]table.Update{table.NewRemoveSnapshotRefUpdate(ref)})
	return err
}

// stop ends all nodes as an operator would, and runs `moorage doctor --deep` on their data.
func (w *world) stop() {
	w.t.Helper()
	for i, n := range w.nodes {
		if err := n.process.Stop(); err != nil {
			w.t.Errorf("node %d: %v", i, err)
		}
	}
	if err := servers.Check(w.t.Context(), w.binary, "--store", w.dsn, "--data", w.data); err != nil {
		w.t.Error(err)
	}
}

// output runs a command of the server's binary on the store.
func (w *world) output(words ...string) string {
	command := exec.CommandContext(w.t.Context(), w.binary, append(words, "--store", w.dsn, "--data", w.data)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	_ = command.Run() // the output has the error
	return out.String()
}
