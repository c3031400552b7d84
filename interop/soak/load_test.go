package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/servers"
	"moorage/testkit/transfers"
)

// The load, which is constant. It leaves processor time for the faults on a small machine.
const (
	writersCount = 4
	writerEvery  = 250 * time.Millisecond // each makes one change or load
	ownedCount   = 5                      // tables of a writer
	readersCount = 3
	readerEvery  = 100 * time.Millisecond // each makes one load or list

	bankTables     = 6
	bankWriters    = 2
	bankEvery      = time.Second // each makes one transaction
	bankSweepEvery = 2 * time.Second

	singleEvery = 100 * time.Millisecond // one commit to the node over an embedded store
)

const (
	// epochMax is the time for which the load uses the same tables. After that they are judged, and
	// dropped with their files.
	epochMax = 5 * time.Minute
	// orphanedEpochs is the number of epochs for which a bank's folder is kept. Its tables have
	// more versions than their metadata logs list, so a purge leaves files. An operator would
	// remove those.
	orphanedEpochs = 4
	// answerTimeout bounds the time for which a request is repeated until it is answered. It
	// exceeds the length of any fault.
	answerTimeout = 90 * time.Second
	// repeatPause is the time before a request is sent again.
	repeatPause = 200 * time.Millisecond
	// openTries bounds the attempts to open a bank while faults interrupt that.
	openTries = 20
)

// tally counts the operations of the load, and records violations. It is safe for concurrent use.
type tally struct {
	acknowledged, refused, unknown, reads atomic.Int64

	mu       sync.Mutex // guards problems; a leaf
	problems []string
}

// problemsMax bounds the number of recorded problems.
const problemsMax = 50

func (y *tally) fail(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.problems) < problemsMax {
		y.problems = append(y.problems, fmt.Sprintf("%s: ", time.Now().Format(time.TimeOnly))+fmt.Sprintf(format, args...))
	}
}

// load is all clients.
type load struct {
	world *world
	seed  uint64
	tally *tally
	epoch int
}

// run runs epoch after epoch until done is closed.
func (l *load) run(ctx context.Context, t *testing.T, done <-chan struct{}) {
	t.Helper()
	var closing sync.WaitGroup
	var banks []string // the namespaces of all epochs
	for over := false; !over && ctx.Err() == nil; l.epoch++ {
		ending, cancel := context.WithTimeout(ctx, epochMax)
		go func() {
			select {
			case <-done:
				cancel()
			case <-ending.Done():
			}
		}()
		e := l.open(ctx, t)
		banks = append(banks, e.bank.Namespace)
		if over := len(banks) - orphanedEpochs; over >= 0 {
			if err := os.RemoveAll(l.world.folder("warehouse", banks[over])); err != nil {
				l.tally.fail("remove orphaned files: %v", err)
			}
		}
		e.work(ctx, ending)
		cancel()
		closing.Go(func() { e.close(ctx, t) })
		select {
		case <-done:
			over = true
		default:
		}
	}
	closing.Wait()
}

// random returns a random source for a client. No two clients may draw the same keys, including the
// clients of package transfers.
func (l *load) random(client int) *rand.Rand { return rand.New(rand.NewPCG(^l.seed, uint64(client))) }

// The numbers of clients begin at these.
const (
	openers = 1 << 40
	readers = 2 << 40
	writers = 3 << 40
)

// epoch is a period with one set of tables and their clients.
type epoch struct {
	*load
	number    int
	namespace string
	writers   []*writer
	bank      *transfers.Bank
	clients   []*transfers.Client
}

// open creates the namespaces and tables of an epoch.
func (l *load) open(ctx context.Context, t *testing.T) *epoch {
	t.Helper()
	e := &epoch{load: l, number: l.epoch, namespace: fmt.Sprintf("load%d", l.epoch)}
	e.keyed(ctx, l.random(openers+l.epoch), http.MethodPost, "namespaces", servers.Object{"namespace": []string{e.namespace}})
	var err error
	for try := range openTries {
		name := fmt.Sprintf("bank%dtry%d", l.epoch, try)
		e.bank, err = transfers.Open(ctx, l.world.nodes[try%nodesCount].client, name, l.world.folder("warehouse", name), bankTables)
		if err == nil || pause(ctx, time.Second) != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for number := range writersCount {
		e.writers = append(e.writers, newWriter(e, number))
	}
	for number := range bankWriters + 1 {
		e.clients = append(e.clients, transfers.NewClient(transfers.Config{
			Number: number, Seed: l.seed + uint64(l.epoch), Bank: e.bank, Nodes: l.clients, Keyed: 50, Impatient: 2, Faults: true,
		}))
	}
	return e
}

// clients returns one client per node.
func (l *load) clients() (clients []*servers.Client) {
	for _, n := range l.world.nodes {
		clients = append(clients, n.client)
	}
	return clients
}

// work has all clients work at their rates until ending is over. Requests in progress then complete
// under ctx.
func (e *epoch) work(ctx context.Context, ending context.Context) {
	var group sync.WaitGroup
	each := func(period time.Duration, do func()) {
		group.Go(func() {
			ticker := time.NewTicker(period)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					do()
				case <-ending.Done():
					return
				}
			}
		})
	}
	for _, w := range e.writers {
		each(writerEvery, func() { w.work(ctx) })
	}
	for number := range readersCount {
		random := e.random(readers + e.number*readersCount + number)
		each(readerEvery, func() { e.read(ctx, random) })
	}
	for number, c := range e.clients {
		if number < bankWriters {
			each(bankEvery, func() { c.Transfer(ctx) })
		} else {
			each(bankSweepEvery, func() { c.Sweep(ctx) })
		}
	}
	group.Wait()
}

// read makes one load or list, on any node.
func (e *epoch) read(ctx context.Context, random *rand.Rand) {
	client := e.world.nodes[random.IntN(nodesCount)].client
	var a servers.Answer
	switch random.IntN(6) {
	case 0:
		a = client.Send(ctx, http.MethodGet, servers.TablesPath(e.namespace), nil)
	case 1:
		a = client.Send(ctx, http.MethodGet, "namespaces", nil)
	default:
		a = client.Load(ctx, e.bank.Namespace, e.bank.Tables[random.IntN(len(e.bank.Tables))])
	}
	e.tally.reads.Add(1)
	if a.Status != 0 && a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
		e.tally.fail("a read was answered %d %s", a.Status, a.Text)
	}
}

// close judges what the clients saw, and drops all tables with their files.
func (e *epoch) close(ctx context.Context, t *testing.T) {
	t.Helper()
	began := time.Now()
	for _, c := range e.clients {
		c.Resolve(ctx)
	}
	for _, w := range e.writers {
		w.verify(ctx)
	}
	e.judgeNames(ctx)
	e.judgeBank(ctx)
	judged := time.Since(began)
	for _, namespace := range []string{e.namespace, e.bank.Namespace} {
		if err := e.world.clear(ctx, namespace); err != nil {
			e.tally.fail("%v", err)
		}
	}
	t.Logf("epoch %d: judged in %s, dropped after %s", e.number, judged.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// judgeNames records problems with the names of the writers' tables.
func (e *epoch) judgeNames(ctx context.Context) {
	want := []string{}
	for _, w := range e.writers {
		for _, table := range w.tables {
			want = append(want, table.name)
		}
	}
	slices.Sort(want)
	var names []string
	err := await(ctx, answerTimeout, func(ctx context.Context) (err error) {
		names, err = e.world.nodes[0].client.List(ctx, e.namespace)
		return err
	})
	if err != nil || !slices.Equal(names, want) {
		e.tally.fail("%s has the tables %q, want %q; %v", e.namespace, names, want, err)
	}
}

// judgeBank judges the transactions.
func (e *epoch) judgeBank(ctx context.Context) {
	err := await(ctx, answerTimeout, func(ctx context.Context) error {
		return e.bank.Read(ctx, e.world.nodes[0].client)
	})
	if err != nil {
		e.tally.fail("read the bank: %v", err)
		return
	}
	e.tally.acknowledged.Add(int64(e.bank.Recorder.Acknowledged()))
	for _, problem := range transfers.Judge(e.bank.Book.Chains(), e.bank.Recorder.Take()) {
		e.tally.fail("transactions: %s", problem)
	}
}

// clear drops all tables of a namespace with their files, and then the namespace. A late
// transaction may create a table meanwhile.
func (w *world) clear(ctx context.Context, namespace string) error {
	return await(ctx, answerTimeout, func(ctx context.Context) error {
		client := w.nodes[0].client
		if client.Send(ctx, http.MethodGet, "namespaces/"+namespace, nil).Status == http.StatusNotFound {
			return nil
		}
		names, err := client.List(ctx, namespace)
		if err != nil {
			return err
		}
		for _, name := range names {
			if a := client.Drop(ctx, namespace, name, true); a.Status >= 300 && a.Status != http.StatusNotFound || a.Status == 0 {
				return fmt.Errorf("drop %s.%s: %d %s", namespace, name, a.Status, a.Text)
			}
		}
		if a := client.Send(ctx, http.MethodDelete, "namespaces/"+namespace, nil); a.Status != http.StatusNoContent && a.Status != http.StatusNotFound {
			return fmt.Errorf("drop %s: %d %s", namespace, a.Status, a.Text)
		}
		return nil
	})
}

// decided reports whether an answer gives the outcome of a request with a key.
func decided(a servers.Answer) bool {
	return a.Outcome == servers.Acknowledged || a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests
}

// keyed sends a request with a key to one node after the other until it gets an answer.
func (l *load) keyed(ctx context.Context, random *rand.Rand, method, path string, body servers.Object) servers.Answer {
	key := newUUID(random)
	var sent any
	if body != nil {
		sent = body
	}
	var a servers.Answer
	began := time.Now()
	for node := random.IntN(nodesCount); ctx.Err() == nil && time.Since(began) < answerTimeout; node++ {
		a = l.world.nodes[node%nodesCount].client.SendOnce(ctx, key, method, path, sent)
		if decided(a) {
			return a
		}
		_ = pause(ctx, repeatPause) // the loop checks ctx
	}
	l.tally.fail("%s %s was not answered in %s: %d %s", method, path, time.Since(began), a.Status, a.Text)
	return a
}

// newUUID returns a random UUID.
func newUUID(random *rand.Rand) string {
	high, low := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>52, low&(1<<48-1))
}

// workOnSingle commits to the node over an embedded store at a fixed rate until done is closed.
// Then it checks that all acknowledged commits are there.
func (l *load) workOnSingle(ctx context.Context, done <-chan struct{}) {
	const namespace, name = "alone", "t"
	client := l.world.single.client
	for _, a := range []servers.Answer{client.CreateNamespace(ctx, namespace), client.Create(ctx, namespace, name, fewVersions())} {
		if a.Outcome != servers.Acknowledged {
			l.tally.fail("the embedded store: %d %s", a.Status, a.Text)
			return
		}
	}
	last, ticker := 0, time.NewTicker(singleEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
		case <-done:
			err := await(ctx, answerTimeout, func(ctx context.Context) error {
				var got int
				a := client.Load(ctx, namespace, name)
				if _, err := fmt.Sscan(a.Table.Metadata.Properties["n"], &got); err != nil || got < last {
					return fmt.Errorf("it was acknowledged commit %d, and holds %d: %d %w", last, got, a.Status, err)
				}
				return nil
			})
			if err != nil {
				l.tally.fail("the embedded store: %v", err)
			}
			return
		}
		if a := client.Set(ctx, namespace, name, map[string]string{"n": fmt.Sprint(n)}); a.Outcome == servers.Acknowledged {
			last = n
			l.tally.acknowledged.Add(1)
		}
	}
}

// fewVersions returns properties with which a table keeps few versions, so that its files do not
// accumulate.
func fewVersions() map[string]string {
	return map[string]string{"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "5"}
}
