package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"moorage/testkit/servers"
)

const (
	viewsNamespace = "views"
	viewsCount     = 8 // names
	viewsClients   = 12
	// viewsLong is the shortest duration with pauses that exceed the lifetime of a lease.
	viewsLong = 2 * time.Minute
	// viewVersionsMax is the number of versions after which a client drops a view. A client that
	// finds no view creates it again.
	viewVersionsMax = 20
	// viewsMin is the minimum number of acknowledged versions for a meaningful history, and
	// viewsDropsMin that of drops. On a machine that is too slow for that, the clients continue for
	// up to viewsMore.
	viewsMin      = 150
	viewsDropsMin = 1
	viewsMore     = 3 * time.Minute
	// viewsRepeat is the time before a request with a key is sent again. viewsRepeatsMax bounds the
	// repetitions.
	viewsRepeat     = 50 * time.Millisecond
	viewsRepeatsMax = 2000
)

// viewHistory records what all clients saw. It is safe for concurrent use.
type viewHistory struct {
	began    time.Time
	mu       sync.Mutex // guards the fields below; a leaf
	events   []servers.ViewEvent
	problems []string
	versions int // acknowledged
	drops    int // acknowledged
}

// viewClient makes calls about views to servers that are killed and restarted. It is not safe for
// concurrent use.
type viewClient struct {
	cluster *cluster
	history *viewHistory
	number  int
	made    int // versions that it has requested
	node    int
	random  *rand.Rand
	uuids   map[string]string // of the views that it last saw, by name
}

// TestViews has clients create, replace and drop the same few views through different servers.
// Meanwhile the servers are killed, paused and cut off.
func TestViews(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	deck := []fault{faultKill, faultKill, faultHiccup, faultCut}
	if *viewsFlag >= viewsLong {
		deck = append(deck, faultStall, faultLongStop)
	}
	script := newScript(rand.New(rand.NewPCG(seed, 0)), *viewsFlag, deck, 2*time.Second)
	for _, s := range script {
		t.Log(s)
	}
	c := newCluster(t, nodesCount)
	if a := patientClient(c.nodes[0]).CreateNamespace(t.Context(), viewsNamespace); a.Outcome != servers.Acknowledged {
		t.Fatalf("create namespace: %d %s", a.Status, a.Text)
	}
	history := &viewHistory{began: time.Now()}
	disturbed := make(chan error, 1)
	go func() { disturbed <- c.play(t.Context(), script) }()
	workOnViews(t.Context(), c, history, seed, *viewsFlag)
	if err := <-disturbed; err != nil {
		t.Fatal(err)
	}
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := history.client(c, viewsClients, seed)
	for node := range nodesCount {
		for name := range viewsCount {
			last.node = node
			last.call(t.Context(), servers.ViewEvent{Name: viewName(name)}, http.MethodGet, nil)
		}
	}
	c.stop(t)
	t.Logf("%d calls, %d versions and %d drops acknowledged", len(history.events), history.versions, history.drops)
	for _, problem := range append(history.problems, servers.JudgeViews(history.events)...) {
		t.Error(problem)
	}
	if !history.enough() {
		t.Errorf("%d versions and %d drops were acknowledged, want %d and %d", history.versions, history.drops, viewsMin, viewsDropsMin)
	}
}

// viewName returns the name of a view.
func viewName(number int) string { return fmt.Sprintf("v%d", number) }

// client returns a client whose random choices depend on the seed.
func (h *viewHistory) client(c *cluster, number int, seed uint64) *viewClient {
	return &viewClient{
		cluster: c, history: h, number: number, node: number % nodesCount,
		random: rand.New(rand.NewPCG(seed, uint64(number)+1)), uuids: map[string]string{},
	}
}

// enough reports whether enough has happened for a meaningful history.
func (h *viewHistory) enough() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions >= viewsMin && h.drops >= viewsDropsMin
}

// note records an event.
func (h *viewHistory) note(e servers.ViewEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	switch {
	case e.Outcome != servers.Acknowledged:
	case e.Drops:
		h.drops++
	case e.Query != "":
		h.versions++
	}
}

// fail records an answer that no server may give.
func (h *viewHistory) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, err.Error())
}

// workOnViews has the clients work for the duration, and on until enough has happened.
func workOnViews(ctx context.Context, c *cluster, history *viewHistory, seed uint64, duration time.Duration) {
	goesOn := func() bool {
		now := time.Since(history.began)
		return now < duration || now < duration+viewsMore && !history.enough()
	}
	var group sync.WaitGroup
	for number := range viewsClients {
		client := history.client(c, number, seed)
		group.Go(func() {
			for ctx.Err() == nil && goesOn() {
				client.work(ctx)
			}
		})
	}
	group.Wait()
}

// work makes one call. Mostly it replaces a view, regardless of concurrent changes. It creates a
// missing view, and drops one with many versions.
func (c *viewClient) work(ctx context.Context) {
	name := viewName(c.random.IntN(viewsCount))
	known := c.uuids[name]
	if c.random.IntN(5) == 0 {
		c.call(ctx, servers.ViewEvent{Name: name}, http.MethodGet, nil)
		return
	}
	if c.random.IntN(2) == 0 {
		known = "" // any view with that name
	}
	replace := servers.ViewEvent{Name: name, Query: c.query()}
	done := c.call(ctx, replace, http.MethodPost, servers.NewVersion(viewsNamespace, known, replace.Query))
	switch {
	case done.Absent:
		create := servers.ViewEvent{Name: name, Query: c.query(), Creates: true}
		c.call(ctx, create, http.MethodPost, servers.NewView(viewsNamespace, name, create.Query))
	case len(done.Seen.Queries) >= viewVersionsMax:
		c.call(ctx, servers.ViewEvent{Name: name, Drops: true}, http.MethodDelete, nil)
	}
}

// query returns a unique query.
func (c *viewClient) query() string {
	c.made++
	return fmt.Sprintf("SELECT '%d.%d' AS id", c.number, c.made)
}

// call makes a call about a view, records the outcome, and returns it. Half of the changes have a
// key. call repeats such a change until its outcome is known, each time on another server.
func (c *viewClient) call(ctx context.Context, e servers.ViewEvent, method string, body servers.Object) servers.ViewEvent {
	key := ""
	if method != http.MethodGet && c.random.IntN(2) == 0 {
		key = uuid.Must(uuid.NewRandomFromReader(c)).String()
	}
	path := servers.ViewPath(viewsNamespace, e.Name)
	if body["name"] != nil {
		path = servers.ViewsPath(viewsNamespace)
	}
	e.From = time.Since(c.history.began)
	a := c.ask(ctx, key, method, path, body)
	for n := 0; key != "" && n < viewsRepeatsMax && ctx.Err() == nil && servers.Undecided(a); n++ {
		_ = pause(ctx, viewsRepeat) // the loop looks at ctx
		a = c.ask(ctx, key, method, path, body)
	}
	e.To = time.Since(c.history.began)
	err := e.Take(a)
	if err == nil && key != "" && servers.Undecided(a) {
		err = fmt.Errorf("%s: %d %s", e, a.Status, a.Text)
	}
	if err != nil {
		c.history.fail(err)
	}
	if e.Seen.UUID != "" {
		c.uuids[e.Name] = e.Seen.UUID
	}
	c.history.note(e)
	return e
}

// ask sends a request. The next request goes to another server if there is no answer, if a request
// with a key failed, and occasionally at random.
func (c *viewClient) ask(ctx context.Context, key, method, path string, body servers.Object) servers.Answer {
	var sent any
	if body != nil {
		sent = body
	}
	a := c.cluster.nodes[c.node].client.Load().SendOnce(ctx, key, method, path, sent)
	if a.Status == 0 || a.Outcome != servers.Acknowledged && key != "" || c.random.IntN(4) == 0 {
		c.node = (c.node + 1 + c.random.IntN(nodesCount-1)) % nodesCount
	}
	return a
}

// Read fills p with random bytes, for keys.
func (c *viewClient) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c.random.Uint32())
	}
	return len(p), nil
}
