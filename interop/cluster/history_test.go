package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/metadata"
	"moorage/testkit/histories"
	"moorage/testkit/servers"
)

const (
	clientsCount = 48
	// groupsCount is the number of groups of names that the clients work on at a time. They move to
	// new groups after every epoch, so that each group's history stays short enough to search.
	// Calls in progress complete in the old groups.
	groupsCount = 12
	epoch       = 10 * time.Second
	// commitsMin is the minimum number of acknowledged commits for a meaningful history. On a
	// machine that is too slow for that, or for the faults, the clients continue for up to
	// historyMore.
	commitsMin  = 100
	historyMore = 3 * time.Minute
)

// TestHistory has clients work on servers that are killed, paused and cut off.
func TestHistory(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	script := newScript(rand.New(rand.NewPCG(seed, 0)), *durationFlag,
		[]fault{faultKill, faultKill, faultCut, faultStall, faultHiccup, faultPassedOver, faultLongStop}, 3*time.Second)
	for _, s := range script {
		t.Log(s)
	}
	c := newCluster(t, nodesCount)
	recorder := &histories.Recorder{}
	c.study(t, recorder, seed, *durationFlag, func(ctx context.Context) error {
		if err := c.play(ctx, script); err != nil {
			return err
		}
		return c.meet(ctx, recorder)
	})
	if recorder.Unknown() == 0 {
		t.Error("no outcome is unknown, so no fault met a request")
	}
}

// meet kills servers until a fault has hit a request, if no fault of the script has. It kills at
// most startsMax times.
func (c *cluster) meet(ctx context.Context, recorder *histories.Recorder) error {
	for i := 0; i < startsMax && recorder.Unknown() == 0; i++ {
		if err := c.suffer(ctx, step{node: i % nodesCount, fault: faultKill}); err != nil {
			return err
		}
	}
	return nil
}

// study has clients work on the cluster for the duration, and on until disturb has returned and
// there are enough commits. disturb disturbs the cluster and heals it again. recorder records what
// the clients see, and study judges it.
func (c *cluster) study(t *testing.T, recorder *histories.Recorder, seed uint64, duration time.Duration, disturb func(context.Context) error) {
	t.Helper()
	groups := groupsCount * int((duration+epoch-1)/epoch)
	makeNamespaces(t, c, groups)
	var disturbed error
	over := make(chan struct{})
	go func() {
		defer close(over)
		disturbed = disturb(t.Context())
	}()
	work(t.Context(), c, recorder, seed, duration, over)
	if <-over; disturbed != nil {
		t.Fatal(disturbed)
	}
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t.Context(), c, recorder, seed, groups)
	verifyNames(t, c, groups)
	c.reportForwards(t)
	c.stop(t)

	history := recorder.History()
	if history.Failure != nil {
		t.Error(history.Failure)
	}
	t.Log(history.Summary())
	verifyHistory(t, c, history, groups)
}

// reportForwards prints the outcomes of the commits that the current server processes chose to
// forward.
func (c *cluster) reportForwards(t *testing.T) {
	t.Helper()
	for i, n := range c.nodes {
		lines, err := patientClient(n).Metrics(t.Context(), "moorage_forwarded_total")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("node %d: %s", i, strings.Join(lines, ", "))
	}
}

// makeNamespaces creates the namespaces for all groups.
func makeNamespaces(t *testing.T, c *cluster, groups int) {
	t.Helper()
	var clients []*servers.Client
	for _, n := range c.nodes {
		clients = append(clients, patientClient(n))
	}
	for group := range groups {
		if a := clients[group%nodesCount].CreateNamespace(t.Context(), namespaceOf(group)); a.Outcome != servers.Acknowledged {
			t.Fatalf("create namespace: %d %s", a.Status, a.Text)
		}
	}
}

// patientClient returns a client with a long timeout for the current process of a server.
func patientClient(n *node) *servers.Client { return servers.NewClient(n.process.URI, patience) }

// newClient returns a client that starts with one of the servers.
func newClient(ctx context.Context, c *cluster, recorder *histories.Recorder, number int, seed uint64, stays bool) *histories.Client {
	calls := &caller{
		cluster: c, recorder: recorder, node: number % nodesCount, stays: stays,
		random: rand.New(rand.NewPCG(seed, uint64(number)<<32)),
	}
	return histories.NewClient(number, seed, histories.Habits{Moves: true, Namespaces: true}, recorder,
		func(call histories.Call) histories.Answer { return calls.ask(ctx, call) })
}

// work has the clients work for the duration. They continue in the last groups until over is closed
// and there are enough commits.
func work(ctx context.Context, c *cluster, recorder *histories.Recorder, seed uint64, duration time.Duration, over <-chan struct{}) {
	began := time.Now()
	goesOn := func(now time.Duration) bool {
		select {
		case <-over:
			return now < duration || now < duration+historyMore && recorder.Commits() < commitsMin
		default:
			return now < duration+historyMore
		}
	}
	var group sync.WaitGroup
	for number := range clientsCount {
		client := newClient(ctx, c, recorder, number, seed, false)
		group.Go(func() {
			for now := time.Duration(0); ctx.Err() == nil && goesOn(now); now = time.Since(began) {
				first := int(min(now, duration-1)/epoch) * groupsCount
				client.Write(first + client.IntN(groupsCount))
			}
		})
	}
	group.Wait()
}

// settle reads the final state of all groups from each server.
func settle(ctx context.Context, c *cluster, recorder *histories.Recorder, seed uint64, groups int) {
	var group sync.WaitGroup
	for i := range nodesCount {
		client := newClient(ctx, c, recorder, clientsCount+(nodesCount-clientsCount%nodesCount)%nodesCount+i, seed, true)
		group.Go(func() {
			for g := range groups {
				client.Settle(g)
			}
		})
	}
	group.Wait()
}

// verifyNames fails the test if two names refer to one table.
func verifyNames(t *testing.T, c *cluster, groups int) {
	t.Helper()
	client := patientClient(c.nodes[0])
	names := map[string]string{}
	for group := range groups {
		namespace := namespaceOf(group)
		for n := range histories.Names {
			name := histories.TableName(n)
			a := client.Load(t.Context(), namespace, name)
			if a.Outcome != servers.Acknowledged {
				continue // settle saw it, and the model knows whether it may be gone
			}
			if other, twice := names[a.Table.Metadata.UUID]; twice {
				t.Errorf("%s and %s.%s are the same table", other, namespace, name)
			}
			names[a.Table.Metadata.UUID] = namespace + "." + name
		}
	}
}

// verifyHistory judges all groups, one per processor at a time.
func verifyHistory(t *testing.T, c *cluster, history histories.History, groups int) {
	t.Helper()
	events := make([][]histories.Event, groups)
	commits := 0
	for _, event := range history.Events {
		events[event.Call.Group] = append(events[event.Call.Group], event)
		if event.Committed() {
			commits++
		}
	}
	if commits < commitsMin {
		t.Errorf("%d versions of tables were acknowledged, want %d", commits, commitsMin)
	}
	began := time.Now()
	var judges errgroup.Group
	judges.SetLimit(runtime.GOMAXPROCS(0))
	for group, seen := range events {
		judges.Go(func() error { return verifyGroup(t, c, group, seen) })
	}
	report(t, judges.Wait())
	t.Logf("judged in %s", time.Since(began).Round(time.Millisecond))
}

// verifyGroup judges a group.
func verifyGroup(t *testing.T, c *cluster, group int, seen []histories.Event) error {
	files, err := readMetadata(filepath.Join(c.warehouse(), namespaceOf(group)))
	if err != nil {
		return err
	}
	checker, err := histories.NewChecker(files, true)
	if err != nil {
		return err
	}
	checker.Check(t, seen)
	for _, problem := range walk(files, seen) {
		t.Errorf("group %d: %s", group, problem)
	}
	return nil
}

// readMetadata returns all metadata files below folder, by their locations.
func readMetadata(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".metadata.json") {
			return err
		}
		files["file://"+path], err = os.ReadFile(path)
		return err
	})
	if os.IsNotExist(err) {
		return files, nil // no table was created there
	}
	return files, err
}

// walk follows every table that exists at the end back to its first version, and returns the
// problems with its commits. Each acknowledged commit of the table must occur once, and no refused
// one. One version may contain several commits.
func walk(files map[string][]byte, events []histories.Event) (problems []string) {
	last := map[histories.Version]bool{}
	for _, event := range events {
		if event.Call.Client >= clientsCount && event.Answer.Err == nil && event.Call.Action == histories.Load {
			last[event.Answer.Version] = true
		}
	}
	for version := range last {
		made, err := countMade(files, version.Location)
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, event := range events {
			found := made[event.Call.ID]
			acknowledged := event.Committed() && event.Answer.Table == version.Table
			refused := event.Answer.Err != nil && moorage.KindOf(event.Answer.Err) != moorage.KindCommitUnknown
			switch {
			case acknowledged && found != 1, refused && found > 0, found > 1:
				problems = append(problems, fmt.Sprintf("the history of %s holds %d times %s", version.Table, found, event))
			}
		}
	}
	return problems
}

// countMade counts the versions that each call made, from the first version to the one at last.
func countMade(files map[string][]byte, last string) (made map[string]int, err error) {
	made = map[string]int{}
	document, err := metadata.Parse(files[last])
	for location := last; err == nil; {
		base, before := histories.Found(location, document).Base, (*metadata.Document)(nil)
		if base != "" {
			if before, err = metadata.Parse(files[base]); err != nil {
				return made, fmt.Errorf("%s: %w", base, err)
			}
		}
		for _, author := range histories.Authors(before, document) {
			made[author]++
		}
		if base == "" {
			return made, nil
		}
		location, document = base, before
	}
	return made, fmt.Errorf("%s: %w", last, err)
}
