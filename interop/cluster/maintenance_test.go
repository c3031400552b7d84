package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/storage/file"
	"moorage/testkit/servers"
	"moorage/testkit/tablefiles"
)

const (
	// tendedTables is the number of small tables. Expiring one takes a single step.
	tendedTables = 12
	// tendedSnapshots is the number of snapshots of one more table, with tendedManifests each.
	// Nodes delete so slowly that its job takes seconds.
	tendedSnapshots, tendedManifests = 40, 15
	// tendedSpan bounds the time for another node to finish the work of a killed one.
	tendedSpan = 2 * time.Minute
	// tendedTries is the number of attempts to kill a server while it has work left.
	tendedTries = 3
)

// tended are tables that two servers maintain.
type tended struct {
	*cluster
	t     *testing.T
	store registry.Store // opened directly, not through a server
	names []string
	// histories track the files that each table needs.
	histories map[string]*tablefiles.History
}

// newTended starts a server, sets a policy that makes everything due at once, starts another
// server, and creates the tables. Maintenance is still paused.
func newTended(t *testing.T) *tended {
	t.Helper()
	database := newDatabase(t)
	w := &tended{
		t: t, histories: make(map[string]*tablefiles.History),
		cluster: &cluster{binary: servers.Build(t), data: newFolder(t), store: database.DSN(), database: database},
	}
	w.startNode(t, nil, w.cluster.store)
	ask := w.ask(0)
	mustSay(t, ask.PutMaintenancePolicy(t.Context(), client.Object{}, string(policy.SnapshotManagement), client.MaintenancePolicy{
		Status: string(policy.Enabled), Unsafe: true,
		Settings: map[string]client.MaintenanceSettings{string(policy.SnapshotManagement): {
			policy.MaxSnapshotAgeHours: json.RawMessage("0"), policy.DeleteDelayHours: json.RawMessage("0"),
			policy.MinSnapshotsToExpire: json.RawMessage("1"),
		}},
	}))
	mustSay(t, ask.Do(t.Context(), client.Request{
		Method: http.MethodPost, Path: client.Path("maintenance", "pause"), Body: client.MaintenanceChange{Reason: "the tables are made"},
	}, new(client.MaintenanceChange)))
	w.startNode(t, nil, w.cluster.store)
	store, err := postgres.Open(t.Context(), w.cluster.store, postgres.Options{AcquireTimeout: time.Minute})
	mustSay(t, err)
	t.Cleanup(func() { report(t, store.Close()) })
	w.store = store
	mustDo(t, "create the namespace", patientClient(w.nodes[0]).CreateNamespace(t.Context(), "tended"))
	for n := range tendedTables {
		w.make(fmt.Sprint("small", n), 5, 1)
	}
	w.make("large", tendedSnapshots, tendedManifests)
	return w
}

func mustSay(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask returns a client for the current process of a server.
func (w *tended) ask(at int) *client.Client {
	return client.New(w.nodes[at].process.URI, "")
}

// make creates a table with snapshots that share no file.
func (w *tended) make(name string, snapshots, manifests int) {
	w.t.Helper()
	server := servers.NewClient(w.nodes[0].process.URI, time.Minute)
	made := server.Create(w.t.Context(), "tended", name, nil)
	mustDo(w.t, "create a table", made)
	location := made.Table.Metadata.Location
	files, err := file.New([]string{location})
	mustSay(w.t, err)
	random := rand.New(rand.NewPCG(uint64(len(w.names)), 1))
	history := tablefiles.New(w.t, files, location, random, time.Now().Add(-time.Hour).UnixMilli())
	var updates []json.RawMessage
	for range snapshots {
		for _, update := range history.Replace("main", manifests) {
			updates = append(updates, json.RawMessage(update))
		}
	}
	mustDo(w.t, "commit", server.Send(w.t.Context(), http.MethodPost, servers.TablePath("tended", name), servers.Object{
		"requirements": []any{}, "updates": updates,
	}))
	w.names, w.histories[name] = append(w.names, name), history
}

// present returns the snapshots of a table, or false if no server answers.
func (w *tended) present(name string) (map[int64]bool, bool) {
	for _, n := range w.nodes {
		loaded := n.client.Load().Load(w.t.Context(), "tended", name)
		if loaded.Outcome != servers.Acknowledged {
			continue
		}
		ids := make(map[int64]bool)
		for _, snapshot := range loaded.Table.Metadata.Snapshots {
			ids[snapshot.ID] = true
		}
		return ids, true
	}
	return nil, false
}

// isThere reports whether a file of the history exists on disk. Data files exist only as names.
func isThere(location string) bool {
	_, err := os.Stat(strings.TrimPrefix(location, "file://"))
	return err == nil
}

// judge fails the test unless all files exist that the current snapshots of a table reach. It
// returns the number of other files.
func (w *tended) judge(name string) (snapshots, surplus int) {
	w.t.Helper()
	present, ok := w.present(name)
	if !ok {
		return -1, -1
	}
	history := w.histories[name]
	live := history.Reach(present)
	for _, path := range history.Files {
		switch there := isThere(path); {
		case live[path] && !there:
			w.t.Errorf("%s: the live file %s is gone", name, path)
		case !live[path] && there:
			surplus++
		}
	}
	return len(present), surplus
}

// left returns the number of a table's files that its head does not reach. It asks no server.
func (w *tended) left(name string) (count int) {
	history := w.histories[name]
	live := history.Reach(map[int64]bool{history.Heads["main"].ID: true})
	for _, path := range history.Files {
		if !live[path] && isThere(path) {
			count++
		}
	}
	return count
}

// endClaims removes all claims, as if they had expired: a killed server's claims hold for minutes.
// A running server notices when it renews its claims.
func (w *tended) endClaims() {
	w.t.Helper()
	claims, err := w.store.List(w.t.Context(), registry.TableAssignment, "", "", 1000)
	mustSay(w.t, err)
	var batch registry.Batch
	for _, claim := range claims {
		batch.Writes = append(batch.Writes, registry.Delete(claim.Key))
	}
	if len(batch.Writes) > 0 {
		_, err = w.store.Apply(w.t.Context(), batch)
		mustSay(w.t, err)
	}
}

// await has a server run maintenance on the tables until done returns true.
func (w *tended) await(what string, at int, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(tendedSpan); !done(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not after %s\n%s", what, tendedSpan, w.nodes[at].process.Stderr())
		}
		for _, name := range w.names {
			_, _ = w.ask(at).RunMaintenance(w.t.Context(), client.MaintenanceByHand{ // it may run already
				Object: client.Object{Warehouse: "default", Namespace: []string{"tended"}, Table: name}, Kind: string(policy.Snapshots),
			})
			if done() {
				return
			}
		}
	}
}

// TestMaintenanceTakeover kills the server that plans maintenance after its first jobs, and then
// its successor while that deletes files. Each time the other server must continue. All live files
// must exist all the time, and at the end no other files. It repeats that, with new servers, if the
// first server was so fast that nothing was left for the second.
func TestMaintenanceTakeover(t *testing.T) {
	t.Parallel()
	for range tendedTries {
		if maintenanceTakeover(t) {
			return
		}
	}
	t.Error("that shows nothing")
}

// maintenanceTakeover reports whether work was left at each kill.
func maintenanceTakeover(t *testing.T) (isLeft bool) {
	w := newTended(t)
	isExpired := func(name string) bool {
		snapshots, _ := w.judge(name)
		return snapshots == 1
	}
	small := w.names[:tendedTables]
	mustSay(t, w.ask(0).Do(t.Context(), client.Request{
		Method: http.MethodPost, Path: client.Path("maintenance", "resume"), Body: client.MaintenanceChange{},
	}, new(client.MaintenanceChange)))
	w.await("the first server plans", 0, func() bool { return slices.ContainsFunc(small, isExpired) })
	w.nodes[0].process.Kill()
	w.endClaims()
	atKill := tendedTables - len(slices.DeleteFunc(slices.Clone(small), isExpired))
	w.await("the second server takes over, and deletes", 1, func() bool {
		snapshots, surplus := w.judge("large")
		return snapshots == 1 && surplus < (tendedSnapshots-1)*(tendedManifests+1)
	})
	w.nodes[1].process.Kill()
	w.endClaims()
	left := w.left("large")
	report(t, w.nodes[0].start(t.Context(), w.binary))
	t.Logf("%d of %d tables were expired when the planner was killed; %d files were left when the worker was", atKill,
		tendedTables, left)
	w.await("the first server does the rest", 0, func() bool {
		var page client.MaintenanceJobsPage
		err := w.ask(0).Do(t.Context(), client.Request{Method: http.MethodGet, Path: client.Path("maintenance", "jobs")}, &page)
		if err != nil || len(page.Jobs) > 0 {
			return false
		}
		for _, name := range w.names {
			if snapshots, surplus := w.judge(name); snapshots != 1 || surplus != 0 {
				return false
			}
		}
		return true
	})
	w.wantOneRunEach()
	report(t, w.nodes[1].start(t.Context(), w.binary))
	w.stop(t)
	return atKill < tendedTables && left > 0
}

// wantOneRunEach fails the test unless each table was expired once.
func (w *tended) wantOneRunEach() {
	w.t.Helper()
	for _, name := range w.names {
		status, err := w.ask(0).MaintenanceStatus(w.t.Context(),
			client.Object{Warehouse: "default", Namespace: []string{"tended"}, Table: name})
		mustSay(w.t, err)
		snapshots := int64(0)
		for _, run := range status.Runs {
			snapshots += run.Snapshots
		}
		if len(status.Runs) != 1 || snapshots != int64(len(w.histories[name].Snapshots)-1) {
			w.t.Errorf("%s: %d runs have expired %d snapshots of %d: %+v", name, len(status.Runs), snapshots,
				len(w.histories[name].Snapshots), status.Runs)
		}
	}
}

// TestWorkIsHandedOutOnce has programs ask two servers for work at the same moment. Each work item
// must go to one program, with a unique token.
func TestWorkIsHandedOutOnce(t *testing.T) {
	t.Parallel()
	const tables, takers = 16, 6
	c := newPair(t)
	ask := client.New(c.nodes[0].process.URI, "")
	mustSay(t, ask.PutMaintenancePolicy(t.Context(), client.Object{}, string(policy.Compaction), client.MaintenancePolicy{
		Status: string(policy.Enabled),
	}))
	all := names("t", tables)
	createTables(t, patientClient(c.nodes[0]), "work", all)
	for _, name := range all {
		_, err := ask.RunMaintenance(t.Context(), client.MaintenanceByHand{
			Object: client.Object{Warehouse: "default", Namespace: []string{"work"}, Table: name}, Kind: string(policy.Compact),
		})
		mustSay(t, err)
	}
	var mu sync.Mutex // guards handed
	handed := make(map[string][]string)
	var taking sync.WaitGroup
	for taker := range takers {
		taking.Go(func() {
			server := client.New(c.nodes[taker%len(c.nodes)].process.URI, "")
			for {
				piece, err := server.ClaimWork(t.Context(), client.WorkRequest{
					Kinds: []string{string(policy.Compact)}, Holder: fmt.Sprint("taker ", taker),
				})
				report(t, err)
				if err != nil || piece.Job == "" {
					return
				}
				mu.Lock()
				handed[piece.Name] = append(handed[piece.Name], piece.Lease.Lease)
				mu.Unlock()
				report(t, server.FinishWork(t.Context(), piece.Job, client.WorkEnd{Outcome: "done"}))
			}
		})
	}
	taking.Wait()
	tokens := make(map[string]bool)
	for name, leases := range handed {
		if len(leases) != 1 || tokens[leases[0]] {
			t.Errorf("the work on %s was handed out with the leases %q", name, leases)
		}
		tokens[leases[0]] = true
	}
	if len(handed) != tables {
		t.Errorf("work on %d tables was handed out, want %d", len(handed), tables)
	}
	c.stop(t)
}
