package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/servers"
)

// round is the lifetime of one server process. It starts on the data of its predecessor and ends
// with the kill.
type round struct {
	number       int
	seed         uint64
	binary, data string
	world        *world
	answers      int64         // number of answers before the kill
	delay        time.Duration // from the last of them to the kill
}

func (r *round) run(t *testing.T) {
	server := servers.MustStart(t, r.binary, "--data", r.data)
	defer server.Kill()
	client := servers.NewClient(server.URI, requestTimeout)
	r.world.verify(t, client)
	r.world.prepare(t, client, r.number)
	if t.Failed() {
		return
	}

	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	enough := make(chan struct{})
	var answered atomic.Int64
	count := func() {
		if answered.Add(1) == r.answers {
			close(enough)
		}
	}
	writers := make([]*writer, writersCount)
	var group sync.WaitGroup
	for i := range writers {
		writers[i] = &writer{
			number: i, round: r.number, client: client, own: r.world.own[i], answered: count,
			viewsBegan: r.world.views.began, sights: map[string]viewSight{},
			random: rand.New(rand.NewPCG(r.seed, uint64(r.number)<<32|uint64(i+1))),
		}
		group.Go(func() { writers[i].work(ctx) })
	}
	select {
	case <-enough:
		<-time.After(r.delay)
	case <-server.Ended():
		t.Errorf("the server ended by itself: %s\n%s", server.State(), server.Stderr())
	case <-ctx.Done():
		t.Errorf("only %d answers in %s", answered.Load(), roundTimeout)
	}
	server.Kill()
	group.Wait()
	for _, w := range writers {
		r.world.take(t, w)
	}
	t.Logf("round %d: killed after %d answers and %s; %s", r.number, r.answers, r.delay, r.world.summary())
	if err := servers.Check(t.Context(), r.binary, "--data", r.data); err != nil {
		t.Error(err)
	}
}

// commit is a writer's commit to a common table.
type commit struct {
	id       string // "3.5.17": round, writer, call; the value of property propWriter in its version
	writer   int
	outcome  servers.Outcome
	table    string
	location string // of the acknowledged version
	snapshot int64  // the appended one, 0 if none
}

// propWriterPrefix is the prefix of the properties that identify the commits in a version.
const propWriterPrefix = "writer-"

func propWriter(number int) string { return fmt.Sprintf("%s%d", propWriterPrefix, number) }

// writer makes one request after the other until one gets no answer.
type writer struct {
	number, round int
	client        *servers.Client
	own           *owner
	random        *rand.Rand
	answered      func()

	calls      int
	commits    []commit
	shared     sharedCount
	viewsBegan time.Time
	sights     map[string]viewSight // of views, by name, in this round
	views      []servers.ViewEvent
	problems   []string
}

// work makes requests until the server is dead.
func (w *writer) work(ctx context.Context) {
	for ctx.Err() == nil {
		var last servers.Answer
		switch n := w.random.IntN(100); {
		case n < 50:
			last = w.commit(ctx)
		case n < 70:
			last = w.workOnOwn(ctx)
		case n < 85:
			last = w.workOnViews(ctx)
		default:
			last = w.workOnShared(ctx)
		}
		if last.Outcome == servers.Unknown && last.Status == 0 {
			return // the connection broke, as expected at the kill
		}
		if last.Status >= 500 {
			w.problems = append(w.problems, fmt.Sprintf("a healthy server answered %d: %s", last.Status, last.Text))
			return
		}
		w.answered()
	}
}

// commit makes one commit to one of the common tables.
func (w *writer) commit(ctx context.Context) servers.Answer {
	namespace, table := commonNamespace(w.round), commonTables()[w.random.IntN(len(commonTables()))]
	w.calls++
	made := commit{id: fmt.Sprintf("%d.%d.%d", w.round, w.number, w.calls), writer: w.number, table: table}
	properties := map[string]string{propWriter(w.number): made.id}
	var a servers.Answer
	if w.random.IntN(2) == 0 {
		a = w.client.Set(ctx, namespace, table, properties)
	} else {
		base := w.client.Load(ctx, namespace, table)
		if base.Outcome != servers.Acknowledged {
			return base
		}
		made.snapshot = int64(w.round+1)<<40 | int64(w.number+1)<<32 | int64(w.calls)
		a = w.client.Append(ctx, namespace, table, base.Table.Metadata, made.snapshot, properties)
	}
	made.outcome, made.location = a.Outcome, a.Table.Location
	w.commits = append(w.commits, made)
	if a.Outcome == servers.Refused && made.snapshot == 0 {
		w.problems = append(w.problems, fmt.Sprintf("a commit that requires nothing was refused: %d %s", a.Status, a.Text))
	}
	return a
}

// sharedCount counts the tables in the namespace in which all writers create, drop and rename the
// same names.
type sharedCount struct {
	live                  int // acknowledged creates minus acknowledged drops
	maybeMore, maybeFewer int // creates and drops whose outcome is unknown
}

func (c *sharedCount) add(other sharedCount) {
	c.live += other.live
	c.maybeMore += other.maybeMore
	c.maybeFewer += other.maybeFewer
}

const sharedNamespace = "shared"

// workOnShared creates, drops or renames one of a few names for which all writers compete.
func (w *writer) workOnShared(ctx context.Context) (a servers.Answer) {
	names := []string{"s0", "s1", "s2"}
	w.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	switch w.random.IntN(3) {
	case 0:
		a = w.client.Create(ctx, sharedNamespace, names[0], nil)
		if a.Outcome == servers.Acknowledged {
			w.shared.live++
		} else if a.Outcome == servers.Unknown {
			w.shared.maybeMore++
		}
	case 1:
		a = w.client.Drop(ctx, sharedNamespace, names[0], w.random.IntN(2) == 0)
		if a.Outcome == servers.Acknowledged {
			w.shared.live--
		} else if a.Outcome == servers.Unknown {
			w.shared.maybeFewer++
		}
	default:
		a = w.client.Rename(ctx, sharedNamespace, names[0], names[1])
	}
	return a
}
