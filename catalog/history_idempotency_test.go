package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

// Sizes of the history. Each client makes a number of requests, and sends each request at least two
// or three times.
const (
	keyHistoryClients  = 6
	keyHistoryRequests = 60
	keyHistoryNames    = 3
	keyHistorySpaces   = 2
	keyHistorySends    = 300 // more answers of 5xx than this are a failure
)

// Clients send every request two or three times, some at the same time, to nodes that lose or delay
// answers and writes. The change records contain the request's ID. According to them, a request has
// taken effect exactly once if its answer was success, and not at all if it was refused. All
// answers to a request are the same, also later. Tables and views share their names.
func TestKeyHistory(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, *lockedRandom) (clean registry.Store, nodes []registry.Store){
		"memory": func(_ testing.TB, random *lockedRandom) (registry.Store, []registry.Store) {
			store := memoryregistry.New(random)
			return store, []registry.Store{store, store, store}
		},
		"pebble": func(t testing.TB, random *lockedRandom) (registry.Store, []registry.Store) {
			store := storetest.OpenPebble(t, random)
			return store, []registry.Store{store}
		},
		"postgres": func(t testing.TB, random *lockedRandom) (registry.Store, []registry.Store) {
			dsn := stores.NewDatabase(t)
			stores := []registry.Store{storetest.OpenNode(t, dsn, random), storetest.OpenNode(t, dsn, random)}
			return stores[0], stores
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := catalogkit.NewSeed(t)
			random := newLockedRandom(seed)
			clean, nodes := open(t, random)
			h := newKeyHistory(t, clean, nodes, random)
			var group sync.WaitGroup
			for n := range keyHistoryClients {
				client := &keyClient{keyHistory: h, number: n, random: rand.New(rand.NewPCG(seed, uint64(n)))}
				group.Go(client.work)
			}
			group.Wait()
			h.release()
			h.judge()
		})
	}
}

// keyHistory has nodes over stores with faults, and the requests and answers so far.
type keyHistory struct {
	t     *testing.T
	ctx   context.Context
	clock *clock
	clean *catalogkit.Fixture // a node without faults
	nodes []*catalogkit.Instance
	late  []*registrytest.FaultyStore

	mu        sync.Mutex // guards the fields below; a leaf
	locations []string   // of metadata files in answers
	requests  []*keyRequest
}

func newKeyHistory(t *testing.T, clean registry.Store, stores []registry.Store, random *lockedRandom) *keyHistory {
	t.Helper()
	// Each read of the clock advances it, so that dead drops are undone.
	clock := newClock()
	now := func() time.Time {
		clock.Advance(100 * time.Millisecond)
		return clock.Now()
	}
	h := &keyHistory{t: t, ctx: t.Context(), clock: clock}
	h.clean = catalogkit.New(t, func(c *catalog.Config) { c.Store, c.Now, c.Random, c.Locks = clean, now, random, locks.GrantAll{} })
	for _, store := range stores {
		chance := random.Rand()
		faulty := registrytest.Faulty(catalogkit.ClockedStore{Store: store, Now: now}, func(_ int, method string) registrytest.Action {
			switch n := chance.IntN(1000); {
			case n < 10:
				return registrytest.Fail
			case n < 50 && method == registrytest.MethodApply:
				return registrytest.Lose
			case n < 90 && method == registrytest.MethodApply:
				return registrytest.Delay
			}
			return registrytest.Pass
		})
		config := h.clean.Config
		config.Store, config.Locks = faulty, locks.NewLocal(locks.LocalConfig{})
		node, err := catalogkit.NewInstance(config)
		must(t, err)
		h.nodes, h.late = append(h.nodes, node), append(h.late, faulty)
	}
	return h
}

// release lets late writes happen.
func (h *keyHistory) release() {
	for _, store := range h.late {
		store.Release(h.ctx)
	}
}

// keyRequest is one request with a key, and its answers.
type keyRequest struct {
	id   string
	what string
	run  func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)

	mu      sync.Mutex // guards the fields below; a leaf
	answer  string
	success bool
	sends   int
}

// send sends the request to a node and reports whether the answer was definite.
func (r *keyRequest) send(h *keyHistory, node *catalogkit.Instance) bool {
	ctx := moorage.WithRequestID(h.ctx, r.id)
	key := catalogkit.KeyOf(r.what)
	key.ID = r.id
	outcome, err := node.Once(ctx, key, func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) { return r.run(ctx, node) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sends++; err != nil && !moorage.KindOf(err).Final() {
		if r.sends > keyHistorySends {
			h.t.Errorf("%s: %v, after %d attempts", r.what, err, r.sends)
			return true
		}
		return false
	}
	if answer := catalogkit.AnswerText(outcome, err); r.answer == "" {
		r.answer, r.success = answer, err == nil
	} else if r.answer != answer {
		h.t.Errorf("%s is answered\n%s\nand then\n%s", r.what, r.answer, answer)
	}
	switch {
	case err != nil:
	case outcome.Table != nil:
		h.answered(outcome.Table.MetadataLocation)
	case outcome.View != nil:
		h.answered(outcome.View.MetadataLocation)
	}
	return true
}

// answered records the location of a metadata file.
func (h *keyHistory) answered(location string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locations = append(h.locations, location)
}

// judge sends each request again, counts the effects and compares them with the answers.
func (h *keyHistory) judge() {
	h.t.Helper()
	must(h.t, h.clean.Recovery().RunOnce(h.ctx))
	effects := map[string]int{}
	count := func() {
		clear(effects)
		err := h.clean.Ledger.Scan(h.ctx, registry.TableChange, "", "", func(record registry.Record) (bool, error) {
			change, err := ledger.Decode[registry.Change](record)
			if err != nil || record.State == registry.StateVoid || strings.HasSuffix(change.Operation, "-begin") || change.Operation == "put-back" {
				return true, err
			}
			if len(change.Group) == 0 {
				effects[change.RequestID]++
			}
			for _, member := range change.Group { // several requests share one version
				effects[member.RequestID]++
			}
			return true, nil
		})
		must(h.t, err)
	}
	refused := 0
	for _, again := range []bool{false, true} {
		count()
		for _, r := range h.requests {
			if again && !r.send(h, h.clean.Instance) {
				h.t.Errorf("%s: not answered by a node without faults", r.what)
			}
			want := 0
			if r.success {
				want = 1
			} else if !again {
				refused++
			}
			if effects[r.id] != want {
				h.t.Errorf("%s has happened %d times, want %d; answered %.100s", r.what, effects[r.id], want, r.answer)
			}
		}
	}
	if total := len(h.requests); refused < total/10 || refused > total*9/10 {
		h.t.Errorf("%d of %d requests were refused: too few, or too many, to show much", refused, total)
	}
	// A drop with an unknown outcome leaves a mark, which the next user of the namespace removes.
	h.clock.Advance(directory.DroppingStale + time.Second)
	for n := range keyHistorySpaces {
		_, err := h.clean.Directory.LivePath(h.ctx, catalogkit.Warehouse, namespaceOfKeys(n))
		if err != nil && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
			h.t.Error(err)
		}
	}
	h.clean.WantClean()
	h.judgeViews()
}

// namespaceOfKeys returns the nth namespace of a history.
func namespaceOfKeys(n int) moorage.Namespace { return moorage.Namespace{fmt.Sprintf("n%d", n)} }

// keyClient makes requests, one after the other.
type keyClient struct {
	*keyHistory
	number int
	random *rand.Rand
}

func (c *keyClient) work() {
	for n := range keyHistoryRequests {
		r := c.draw(fmt.Sprintf("%d-%d", c.number, n))
		c.mu.Lock()
		c.requests = append(c.requests, r)
		c.mu.Unlock()
		for answered, atOnce := 0, 1+c.random.IntN(3); answered < 2+n%2; atOnce = 1 {
			answers := make([]bool, atOnce)
			var group sync.WaitGroup
			for i := range atOnce {
				node := c.nodes[c.random.IntN(len(c.nodes))]
				group.Go(func() { answers[i] = r.send(c.keyHistory, node) })
			}
			group.Wait()
			for _, answer := range answers {
				if answer {
					answered++
				}
			}
			if c.random.IntN(4) == 0 {
				c.release()
			}
		}
	}
}

func (c *keyClient) table() moorage.Identifier {
	return ident(fmt.Sprintf("t%d", c.random.IntN(keyHistoryNames)))
}

// draw returns a request with a unique effect.
func (c *keyClient) draw(id string) *keyRequest {
	request := func(what string, run func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)) *keyRequest {
		return &keyRequest{id: id, what: id + ": " + what, run: run}
	}
	table, other, ns := c.table(), c.table(), namespaceOfKeys(c.random.IntN(keyHistorySpaces))
	switch c.random.IntN(18) {
	case 0:
		return request("create "+table.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			made, err := c.CreateTable(ctx, table, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return catalogkit.Reply{Table: made}, err
		})
	case 1:
		return request("drop "+table.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropTable(ctx, table, catalog.DropOptions{})
		})
	case 2:
		return request("rename "+table.Name+" to "+other.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.RenameTable(ctx, table, other)
		})
	case 3:
		return request("unregister "+table.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			last, err := c.UnregisterTable(ctx, table)
			return catalogkit.Reply{Table: last}, err
		})
	case 4:
		location := c.location()
		return request("register "+table.Name+" at "+location, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			made, err := c.RegisterTable(ctx, table, catalog.RegisterRequest{MetadataLocation: location})
			return catalogkit.Reply{Table: made}, err
		})
	case 5:
		changes := []catalog.TableChange{{table, catalogkit.SetProperty(c.t, id, "yes")}, {ident("t0"), catalogkit.SetProperty(c.t, id, "too")}}
		return request("commit to "+table.Name+" and t0", func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, changes)
		})
	case 6:
		return request("create "+ns[0], func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			properties, err := c.CreateNamespace(ctx, catalogkit.Warehouse, ns, map[string]string{"by": id})
			return catalogkit.Reply{Properties: properties}, err
		})
	case 7:
		return request("drop "+ns[0], func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			return catalogkit.Reply{}, c.DropNamespace(ctx, catalogkit.Warehouse, ns)
		})
	case 8:
		change := catalogkit.SetProperty(c.t, id, "yes")
		return request("commit to "+table.Name, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			committed, err := c.Commit(ctx, table, change)
			return catalogkit.Reply{Table: committed}, err
		})
	default:
		what, run := c.drawView(id, table, other)
		return request(what, run)
	}
}

// location returns a metadata location of some table, or one that does not exist.
func (c *keyClient) location() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.locations) == 0 {
		return "file:///wh/nothing.metadata.json"
	}
	return c.locations[c.random.IntN(len(c.locations))]
}
