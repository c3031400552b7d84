package cluster

import (
	"bufio"
	"context"
	"encoding/json"
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
	"sync"
	"syscall"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
	"moorage/testkit/registrytest"
	"moorage/testkit/servers"
)

const (
	feedWriters   = 16
	feedTables    = 4 // shared by all writers
	feedNamespace = "fed"
	// feedMin is the minimum number of acknowledged changes for a meaningful run, and feedLivesMin
	// the minimum number of kills of the reader. On a machine that is too slow for that, the
	// writers continue for up to feedMore.
	feedMin      = 100
	feedLivesMin = 3
	feedMore     = 3 * time.Minute
	// readerMin and readerMax bound the lifetime of each reader process.
	readerMin, readerMax = 100 * time.Millisecond, time.Second
	// wakeMax bounds the time from the acknowledgement of a change to the answer of a waiting
	// request on the same server. wakeOtherMax is the bound on another server. Both apply to the
	// median of wakesCounted consecutive changes. On a busy machine the test continues, for at most
	// wakesMax changes.
	wakeMax, wakeOtherMax  = 100 * time.Millisecond, 500 * time.Millisecond
	wakesCounted, wakesMax = 5, 60
	// wakeBegins is the delay from the start of the waiting request to the change.
	wakeBegins = 100 * time.Millisecond
)

// madeChange is an acknowledged change, with the expected values of its event.
type madeChange struct {
	operation string
	name      string
	previous  string // the name before a rename
	location  string // of the version that a create or a commit made
}

// isOf reports whether e is the event of the change.
func (c madeChange) isOf(e client.Event) bool {
	previous := ""
	if e.Previous != nil {
		previous = e.Previous.Name
	}
	return e.Operation == c.operation && e.Name == c.name && previous == c.previous &&
		(c.location == "" || e.MetadataLocation == c.location)
}

// feedWriter changes tables through servers that are killed and restarted.
type feedWriter struct {
	cluster *cluster
	number  int
	random  *rand.Rand
	calls   int
	made    []madeChange // acknowledged changes, in order
}

// work makes one commit to a shared table, or creates, renames and drops a table.
func (w *feedWriter) work(ctx context.Context) {
	w.calls++
	ask := w.cluster.nodes[w.random.IntN(len(w.cluster.nodes))].client.Load()
	note := func(a servers.Answer, c madeChange) bool {
		if a.Outcome == servers.Acknowledged {
			w.made = append(w.made, c)
		}
		return a.Outcome == servers.Acknowledged
	}
	if w.random.IntN(4) > 0 {
		table := fmt.Sprint("shared", w.random.IntN(feedTables))
		a := ask.Set(ctx, feedNamespace, table, map[string]string{fmt.Sprint("writer-", w.number): fmt.Sprint(w.calls)})
		note(a, madeChange{operation: "update-table", name: table, location: a.Table.Location})
		return
	}
	first := fmt.Sprintf("own%d-%d", w.number, w.calls)
	second := first + "-renamed"
	a := ask.Create(ctx, feedNamespace, first, nil)
	if note(a, madeChange{operation: "create-table", name: first, location: a.Table.Location}) &&
		note(ask.Rename(ctx, feedNamespace, first, second), madeChange{operation: "rename-table", name: second, previous: first}) {
		note(ask.Drop(ctx, feedNamespace, second, w.random.IntN(2) == 0), madeChange{operation: "drop-table", name: second})
	}
}

// feedReader is a program that reads the feed, across all its restarts: `moorage changes --follow`
// with a file for its position.
type feedReader struct {
	cluster *cluster
	state   string
	random  *rand.Rand

	lives    int
	repeated int            // repeated events
	events   []client.Event // without the repeated ones
	seen     map[string]bool
}

func newFeedReader(t *testing.T, c *cluster, seed uint64) *feedReader {
	return &feedReader{
		cluster: c, state: filepath.Join(t.TempDir(), "position"), random: rand.New(rand.NewPCG(seed, 1)),
		seen: make(map[string]bool),
	}
}

// command returns a command that runs the program against one of the servers.
func (r *feedReader) command(ctx context.Context, more ...string) *exec.Cmd {
	uri := r.cluster.nodes[r.random.IntN(len(r.cluster.nodes))].client.Load().URI()
	args := append([]string{"changes", "--state", r.state, "-o", "jsonl", "--uri", uri}, more...)
	command := exec.CommandContext(ctx, r.cluster.binary, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

// take reads the events that the program prints. The last line of a killed program may be
// incomplete.
func (r *feedReader) take(from io.Reader) error {
	lines := bufio.NewReader(from)
	for line, ended := lines.ReadBytes('\n'); ended == nil; line, ended = lines.ReadBytes('\n') {
		var event client.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("the reader printed %s: %w", line, err)
		}
		if r.seen[event.ID] {
			r.repeated++
			continue
		}
		r.seen[event.ID] = true
		r.events = append(r.events, event)
	}
	return nil
}

// live runs the program and kills it after a random time.
func (r *feedReader) live(ctx context.Context) error {
	r.lives++
	command := r.command(ctx, "--follow")
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	span := readerMin + time.Duration(r.random.Int64N(int64(readerMax-readerMin)))
	end := time.AfterFunc(span, func() { _ = command.Process.Kill() })
	defer end.Stop()
	err = r.take(out)
	_ = command.Wait() // it was killed
	return err
}

// end reads the rest of the feed.
func (r *feedReader) end(ctx context.Context) error {
	command := r.command(ctx)
	var out, faults strings.Builder
	command.Stdout, command.Stderr = &out, &faults
	if err := command.Run(); err != nil {
		return fmt.Errorf("changes: %w: %s", err, &faults)
	}
	return r.take(strings.NewReader(out.String()))
}

// TestFeed has writers change tables and a program read the feed of changes while servers are
// killed. The program is killed repeatedly and resumes at its saved position. It must see every
// acknowledged change once, in the order in which one uninterrupted reader sees them. If changes
// that it has not read were deleted, it must be told so, and where to continue.
func TestFeed(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) {
		t.Parallel()
		seed := newSeed(t)
		c := &cluster{binary: servers.Build(t), data: newFolder(t)}
		node := &node{args: []string{"--data", c.data}}
		if err := node.start(t.Context(), c.binary); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.process.Kill() })
		c.nodes = append(c.nodes, node)
		random := rand.New(rand.NewPCG(seed, 2))
		c.feed(t, seed, func(ctx context.Context) error {
			for began := time.Now(); time.Since(began) < *feedFlag; {
				_ = pause(ctx, 300*time.Millisecond+time.Duration(random.Int64N(int64(time.Second))))
				if err := c.suffer(ctx, step{fault: faultKill, span: 50 * time.Millisecond}); err != nil {
					return err
				}
			}
			return nil
		}, func(forget func(registry.Store)) {
			report(t, node.process.Stop())
			store, err := pebble.Open(filepath.Join(c.data, "registry"), pebble.Options{})
			if err != nil {
				t.Fatal(err)
			}
			forget(store)
			report(t, store.Close())
			if err := node.start(t.Context(), c.binary); err != nil {
				t.Fatal(err)
			}
		})
		report(t, node.process.Stop())
		report(t, servers.Check(t.Context(), c.binary, "--data", c.data))
	})
	t.Run("memory", func(t *testing.T) { // a killed server loses its data, so only the reader is killed
		t.Parallel()
		c := &cluster{binary: servers.Build(t), data: newFolder(t)}
		node := &node{args: []string{"--store", "memory", "--data", c.data}}
		if err := node.start(t.Context(), c.binary); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.process.Kill() })
		c.nodes = append(c.nodes, node)
		c.feed(t, newSeed(t), func(ctx context.Context) error { return pause(ctx, *feedFlag/2) }, nil)
		report(t, node.process.Stop())
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		seed := newSeed(t)
		c := newCluster(t, nodesCount)
		script := newScript(rand.New(rand.NewPCG(seed, 0)), *feedFlag, []fault{faultKill, faultCut}, 2*time.Second)
		c.feed(t, seed, func(ctx context.Context) error { return c.play(ctx, script) }, func(forget func(registry.Store)) {
			store, err := postgres.Open(t.Context(), c.store, postgres.Options{AcquireTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			forget(store)
			report(t, store.Close())
		})
		c.wantWoken(t)
		c.stop(t)
	})
}

// feed runs writers and a reader while disturb disturbs the servers, and judges the events that the
// reader saw. open calls its argument with the servers' store. It is nil if the store cannot be
// opened.
func (c *cluster) feed(t *testing.T, seed uint64, disturb func(context.Context) error, open func(func(registry.Store))) {
	t.Helper()
	ask := patientClient(c.nodes[0])
	mustDo(t, "create the namespace", ask.CreateNamespace(t.Context(), feedNamespace))
	for n := range feedTables {
		mustDo(t, "create a table", ask.Create(t.Context(), feedNamespace, fmt.Sprint("shared", n), nil))
	}
	began := time.Now()
	disturbed := make(chan error, 1)
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		disturbed <- disturb(t.Context())
	}()
	writers := make([]*feedWriter, feedWriters)
	reader := newFeedReader(t, c, seed)
	isOver := func() bool {
		select {
		case <-quiet:
			return true
		default:
			return false
		}
	}
	var writing, reading sync.WaitGroup
	for n := range writers {
		w := &feedWriter{cluster: c, number: n, random: rand.New(rand.NewPCG(seed, uint64(n)+10))}
		writers[n] = w
		writing.Go(func() {
			goesOn := func() bool { return len(w.made) < feedMin/feedWriters+1 && time.Since(began) < *feedFlag+feedMore }
			for t.Context().Err() == nil && (!isOver() || goesOn()) {
				w.work(t.Context())
			}
		})
	}
	ended := make(chan struct{})
	reading.Go(func() {
		for {
			report(t, reader.live(t.Context()))
			select {
			case <-ended:
				if reader.lives >= feedLivesMin {
					return
				}
			case <-t.Context().Done():
				return
			default:
			}
		}
	})
	writing.Wait()
	close(ended)
	reading.Wait()
	if err := <-disturbed; err != nil {
		t.Fatal(err)
	}
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := reader.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := c.allEvents(t)
	reader.judge(t, writers, all)
	t.Logf("%d events; the reader lived %d times and was given %d events again", len(all), reader.lives, reader.repeated)
	if reader.lives < feedLivesMin {
		t.Error("that shows nothing")
	}
	if open != nil {
		c.forget(t, all, open)
	}
}

// allEvents reads the feed from its beginning, without a pause.
func (c *cluster) allEvents(t *testing.T) (all []client.Event) {
	t.Helper()
	query := url.Values{"limit": {"1000"}}
	for {
		page, err := c.askChanges(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Events...)
		if page.AtEnd {
			return all
		}
		query.Set("after", page.Next)
	}
}

// askChanges asks the first server for a page of the feed.
func (c *cluster) askChanges(ctx context.Context, query url.Values) (page client.ChangesPage, err error) {
	asked := client.Request{Method: http.MethodGet, Path: client.Path("changes"), Query: query}
	err = client.New(c.nodes[0].process.URI, "").Do(ctx, asked, &page)
	return page, err
}

// judge compares the events that the reader saw with all events, and with the writers' acknowledged
// changes.
func (r *feedReader) judge(t *testing.T, writers []*feedWriter, all []client.Event) {
	t.Helper()
	if !slices.EqualFunc(r.events, all, func(a, b client.Event) bool { return a.ID == b.ID }) {
		t.Errorf("the killed reader saw %d events, and %d happened", len(r.events), len(all))
		for i := range min(len(r.events), len(all)) {
			if r.events[i].ID != all[i].ID {
				t.Fatalf("event %d is %+v, want %+v", i, r.events[i], all[i])
			}
		}
	}
	byName := make(map[string][]int) // the positions of the events of a name
	last := make(map[string]string)  // the versions of the tables, by their ids
	for i, e := range r.events {
		byName[e.Name] = append(byName[e.Name], i)
		if e.Kind != registry.ItemTable || strings.HasPrefix(e.Operation, "x-") {
			continue
		}
		if e.PreviousMetadataLocation != last[e.ObjectID] {
			t.Errorf("%s of %s goes on from %q, not from %q", e.Operation, e.Name, e.PreviousMetadataLocation, last[e.ObjectID])
		}
		last[e.ObjectID] = e.MetadataLocation
	}
	acknowledged := 0
	for _, w := range writers {
		acknowledged += len(w.made)
		before := -1 // one event may cover commits of several writers, but not two of one writer
		for _, c := range w.made {
			var at []int
			for _, place := range byName[c.name] {
				if c.isOf(r.events[place]) {
					at = append(at, place)
				}
			}
			if len(at) != 1 || at[0] <= before {
				t.Fatalf("writer %d: %+v is at the places %d, behind %d", w.number, c, at, before)
			}
			before = at[0]
		}
	}
	if acknowledged < feedMin {
		t.Errorf("%d changes were acknowledged, want %d", acknowledged, feedMin)
	}
}

// forget deletes changes as if they were too old, and resumes a reader that had not read them.
func (c *cluster) forget(t *testing.T, all []client.Event, open func(func(registry.Store))) {
	t.Helper()
	early, horizon := all[0].Position, all[len(all)/2].Position
	var position registry.Position
	if _, err := fmt.Sscan(horizon[strings.IndexByte(horizon, '.')+1:], &position); err != nil {
		t.Fatal(err)
	}
	open(func(store registry.Store) {
		records, err := store.Get(t.Context(), registry.HorizonKey())
		if err != nil || records[0].Exists() {
			t.Fatalf("changes were deleted before: %v", err)
		}
		writes, err := ledger.Encode(ledger.Put(registry.HorizonKey(), registry.StateNone, registry.Horizon{Position: position}))
		if err == nil {
			_, err = registrytest.Ledger(store).Step(t.Context(), registry.Batch{Writes: writes})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	_, err := c.askChanges(t.Context(), url.Values{"after": {early}})
	if refused, ok := err.(*client.Error); !ok || refused.Code != http.StatusGone || !strings.HasSuffix(refused.Message, "go on with after="+horizon) {
		t.Fatalf("from a position before changes that were deleted: %v", err)
	}
	reader := newFeedReader(t, c, 1)
	mustSay(t, os.WriteFile(reader.state, []byte(early+"\n"), 0o600))
	refusal := reader.end(t.Context())
	_, on, _ := strings.Cut(fmt.Sprint(refusal), "go on with after=")
	if on = strings.TrimSpace(on); on != horizon {
		t.Fatalf("the program is told %v", refusal)
	}
	mustSay(t, os.WriteFile(reader.state, []byte(on+"\n"), 0o600))
	mustSay(t, reader.end(t.Context()))
	want := slices.DeleteFunc(slices.Clone(all), func(e client.Event) bool { return positionOf(e) <= position })
	if !slices.EqualFunc(reader.events, want, func(a, b client.Event) bool { return a.ID == b.ID }) {
		t.Errorf("from where it was told to go on it sees %d events, want %d", len(reader.events), len(want))
	}
}

func positionOf(e client.Event) (position registry.Position) {
	_, _ = fmt.Sscan(e.Position[strings.IndexByte(e.Position, '.')+1:], &position)
	return position
}

// wantWoken fails the test unless requests that wait for a change are answered soon after the
// change.
func (c *cluster) wantWoken(t *testing.T) {
	t.Helper()
	for through, most := range []time.Duration{wakeMax, wakeOtherMax} {
		var took []time.Duration
		for soon := false; !soon; {
			took = append(took, c.wake(t, through))
			if last := len(took) - wakesCounted; last >= 0 {
				soon = slices.Sorted(slices.Values(took[last:]))[wakesCounted/2] <= most
			}
			if len(took) == wakesMax && !soon {
				t.Errorf("changes through node %d are seen through node 0 after %s, want %s", through, took, most)
				break
			}
		}
		t.Logf("changes through node %d are seen through node 0 after %s", through, took)
	}
}

// wake starts a request that waits on the first server, and makes a change through the server
// given. It returns the time from the change's acknowledgement to the answer of the request.
func (c *cluster) wake(t *testing.T, through int) time.Duration {
	t.Helper()
	page, err := c.askChanges(t.Context(), url.Values{"after": {"end"}})
	mustSay(t, err)
	woken := make(chan time.Time, 1)
	go func() {
		got, err := c.askChanges(t.Context(), url.Values{"after": {page.Next}, "wait": {"60s"}})
		if err != nil || len(got.Events) != 1 {
			t.Errorf("the request that waits is answered %+v, %v", got, err)
		}
		woken <- time.Now()
	}()
	mustSay(t, pause(t.Context(), wakeBegins))
	mustDo(t, "commit", patientClient(c.nodes[through]).Set(t.Context(), feedNamespace, "shared0", map[string]string{"woken": "yes"}))
	acknowledged := time.Now()
	return (<-woken).Sub(acknowledged)
}
