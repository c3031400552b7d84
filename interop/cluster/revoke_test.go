package cluster

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/servers"
)

var revokesFlag = flag.Int("revokes", 100, "how often a privilege is revoked on one server and asked for on the others")

const (
	// revokeKills is the time between two kills of a server.
	revokeKills = 700 * time.Millisecond
	// revokePause is the time between two attempts at a change whose server is down.
	revokePause = 20 * time.Millisecond
	// revokeTries bounds the attempts at one change. They take longer than any server is down.
	revokeTries = 3000
)

// revokeRun is a test run in which a privilege is granted and revoked repeatedly while servers are
// killed.
type revokeRun struct {
	*cluster
	t              *testing.T
	root, ann, bob string // their keys
	// begun and answered count the changes of the privilege. Odd ones grant it.
	begun, answered          atomic.Uint64
	asked, allowed, commits  atomic.Uint64
	kills, unanswered, again atomic.Uint64
}

// newRevokeRun starts three servers with access control on. ann owns a table on which bob gets a
// grant.
func newRevokeRun(t *testing.T) *revokeRun {
	t.Helper()
	database := newDatabase(t)
	run := &revokeRun{t: t, cluster: &cluster{
		binary: servers.Build(t), data: newFolder(t), store: database.DSN(), database: database,
	}}
	for range nodesCount {
		member := &node{args: []string{"--store", run.store, "--data", run.data, "--migrate", "--keys", "--audit", "off"}}
		if err := member.start(t.Context(), run.binary); err != nil {
			t.Fatal(err)
		}
		run.nodes = append(run.nodes, member)
		t.Cleanup(func() { member.process.Kill() })
	}
	// The first key switches access control on.
	run.root = run.key(t, "root", "--admin")
	run.ann, run.bob = run.key(t, "ann"), run.key(t, "bob")
	run.change(t.Context(), 0, "grant", "key:ann", servers.Object{"warehouse": "default"}, "create")
	owner := patientClient(run.nodes[0]).As(run.ann)
	for _, made := range []servers.Answer{
		owner.CreateNamespace(t.Context(), "n"), owner.Create(t.Context(), "n", "t", nil),
	} {
		if made.Outcome != servers.Acknowledged {
			t.Fatalf("%d %s", made.Status, made.Text)
		}
	}
	return run
}

// key creates an API key for a principal directly in the store.
func (r *revokeRun) key(t *testing.T, principal string, flags ...string) string {
	t.Helper()
	args := append([]string{principal, "--store", r.store, "--data", r.data}, flags...)
	key, err := servers.Key(t.Context(), r.binary, args...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// at returns a client with a key for the current process of a server.
func (r *revokeRun) at(node int, key string) *servers.Client {
	return r.nodes[node].client.Load().As(key)
}

// change changes a grant at a server, or at the next one that answers. It repeats a change whose
// response was lost: that change may have happened, but it cannot happen after a later one.
func (r *revokeRun) change(ctx context.Context, node int, change, grantee string, object servers.Object,
	privilege string) {
	var got servers.Answer
	for try := range revokeTries {
		got = r.at((node+try)%len(r.nodes), r.root).Manage(ctx, http.MethodPost, "grants", servers.Object{
			"changes": []servers.Object{{
				"change": change, "object": object, "grantee": grantee, "privileges": []string{privilege},
			}},
		})
		switch {
		case got.Outcome == servers.Acknowledged:
			return
		case got.Status != 0 && got.Status < 500:
			r.t.Errorf("%s %s: %d %s", change, privilege, got.Status, got.Text)
			return
		}
		r.again.Add(1)
		if pause(ctx, revokePause) != nil {
			return
		}
	}
	r.t.Errorf("%s %s: no server makes it: %d %s", change, privilege, got.Status, got.Text)
}

// look asks a server for the table as bob. If no change is in progress, the answer must match the
// last acknowledged change.
func (r *revokeRun) look(ctx context.Context, node int) {
	before := r.answered.Load()
	got := r.at(node, r.bob).Load(ctx, "n", "t")
	if r.begun.Load() != before {
		return // the request overlaps a change: either answer is right
	}
	switch {
	case got.Status == 0 || got.Status >= 500:
		r.unanswered.Add(1)
		return
	case got.Status == http.StatusOK && before%2 == 0:
		r.t.Errorf("server %d lets a request in that began after revoke %d was acknowledged", node, before/2)
	case got.Status == http.StatusNotFound && before%2 == 1:
		r.t.Errorf("server %d refuses a request that began after grant %d was acknowledged: %s", node, before/2, got.Text)
	case got.Status == http.StatusOK:
		r.allowed.Add(1)
	case got.Status != http.StatusNotFound:
		r.t.Errorf("server %d: %d %s", node, got.Status, got.Text)
	}
	r.asked.Add(1)
}

// commit commits to the table as its owner, at one server after another, until ctx ends.
func (r *revokeRun) commit(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		got := r.at(n%len(r.nodes), r.ann).Set(ctx, "n", "t", map[string]string{"commit": strconv.Itoa(n)})
		switch {
		case got.Outcome == servers.Acknowledged:
			r.commits.Add(1)
		case got.Status == http.StatusUnauthorized, got.Status == http.StatusForbidden, got.Status == http.StatusNotFound:
			r.t.Errorf("commit %d: %d %s", n, got.Status, got.Text)
		}
		_ = pause(ctx, revokePause) // fails only if ctx ends
	}
}

// kill kills one server after another with SIGKILL and restarts it, until ctx ends. At the end all
// servers run.
func (r *revokeRun) kill(ctx context.Context, random *rand.Rand) error {
	for pause(ctx, revokeKills) == nil {
		victim := r.nodes[random.IntN(len(r.nodes))]
		victim.process.Kill()
		r.kills.Add(1)
		if err := victim.start(context.WithoutCancel(ctx), r.binary); err != nil {
			return fmt.Errorf("start a server again: %w", err)
		}
	}
	return nil
}

// TestRevokes changes a privilege through one of three servers. As soon as that is acknowledged, it
// makes requests that need the privilege through all of them. Meanwhile the table's owner commits
// to it, and servers are killed.
func TestRevokes(t *testing.T) {
	random := rand.New(rand.NewPCG(newSeed(t), 0))
	run := newRevokeRun(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var others sync.WaitGroup
	others.Go(func() { run.commit(ctx) })
	killer := rand.New(rand.NewPCG(random.Uint64(), 0))
	others.Go(func() { report(t, run.kill(ctx, killer)) })
	object := servers.Object{"warehouse": "default", "namespace": []string{"n"}, "table": "t"}
	for round := 0; round < *revokesFlag && !t.Failed(); round++ {
		for _, change := range []string{"grant", "revoke"} {
			at := random.IntN(len(run.nodes))
			run.begun.Add(1)
			run.change(ctx, at, change, "key:bob", object, "read")
			run.answered.Add(1)
			var looks sync.WaitGroup
			for node := range run.nodes {
				looks.Go(func() { run.look(ctx, node) })
			}
			looks.Wait()
		}
	}
	end()
	others.Wait()
	t.Logf("%d changes, %d of them tried again; %d commits; %d kills; of %d requests after a change %d were let in, "+
		"%d more had no answer", run.answered.Load(), run.again.Load(), run.commits.Load(), run.kills.Load(),
		run.asked.Load(), run.allowed.Load(), run.unanswered.Load())
	if run.allowed.Load() == 0 || run.allowed.Load() == run.asked.Load() || run.commits.Load() == 0 ||
		run.kills.Load() == 0 {
		t.Error("that shows nothing")
	}
	run.stop(t)
}
