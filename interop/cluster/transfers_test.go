package cluster

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/testkit/servers"
	"moorage/testkit/transfers"
)

const (
	bankTables  = 15
	bankWriters = 12
	bankReaders = 4
	// transfersLong is the shortest duration with pauses that exceed the limit for a transaction.
	// Such a run also waits until all transactions of killed servers are undone.
	transfersLong = 3 * time.Minute
	// settleTimeout bounds the time until transactions in progress end. recoveryTimeout bounds the
	// time until transactions of dead coordinators are undone: their deadline, and a scan of the
	// log once a minute.
	settleTimeout   = time.Minute
	recoveryTimeout = 5 * time.Minute
	// transfersMin is the minimum number of transfers for a meaningful history. On a machine that
	// is too slow for that, the clients continue for up to transfersMore.
	transfersMin  = 50
	transfersMore = 3 * time.Minute
)

// TestTransfers has clients move amounts between tables with transactions. Meanwhile their servers
// are killed, paused and cut off.
func TestTransfers(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	duration := *transfersFlag
	deck := []fault{faultKill, faultKill, faultKill, faultHiccup, faultCut}
	if duration >= transfersLong {
		deck = append(deck, faultKill, faultStall, faultPassedOver, faultLongStop, faultDeadline)
	}
	script := newScript(rand.New(rand.NewPCG(seed, 0)), duration, deck, 2*time.Second)
	for _, s := range script {
		t.Log(s)
	}
	c := newCluster(t, nodesCount)
	c.moveAmounts(t, seed, duration, func(ctx context.Context) error { return c.play(ctx, script) })
}

// moveAmounts has clients move amounts for the duration while disturb disturbs the cluster. It then
// judges what they saw.
func (c *cluster) moveAmounts(t *testing.T, seed uint64, duration time.Duration, disturb func(context.Context) error) {
	t.Helper()
	bank, err := transfers.Open(t.Context(), patientClient(c.nodes[0]), "bank", filepath.Join(c.warehouse(), "bank"), bankTables)
	if err != nil {
		t.Fatal(err)
	}
	clients := transferClients(c, bank, seed)
	disturbed := make(chan error, 1)
	go func() { disturbed <- disturb(t.Context()) }()
	transfer(t.Context(), bank, clients, duration)
	if err := <-disturbed; err != nil {
		t.Fatal(err)
	}
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		client.Resolve(t.Context())
	}
	c.awaitRecovery(t, bank, duration >= transfersLong)
	happened := bank.Recorder.Acknowledged()
	history := bank.Recorder.Take()
	t.Log(history.Summary())
	for _, problem := range transfers.Judge(bank.Book.Chains(), history) {
		t.Error(problem)
	}
	if happened < transfersMin {
		t.Errorf("%d transfers were acknowledged, want %d", happened, transfersMin)
	}
	c.stop(t)
}

// transferClients returns the clients, writers first.
func transferClients(c *cluster, bank *transfers.Bank, seed uint64) (clients []*transfers.Client) {
	nodes := func() (present []*servers.Client) {
		for _, n := range c.nodes {
			present = append(present, n.client.Load())
		}
		return present
	}
	for number := range bankWriters + bankReaders {
		clients = append(clients, transfers.NewClient(transfers.Config{
			Number: number, Seed: seed, Bank: bank, Nodes: nodes, Keyed: 50, Impatient: 5, Faults: true,
		}))
	}
	return clients
}

// transfer has the clients work for the duration, and on until enough transfers have happened.
func transfer(ctx context.Context, bank *transfers.Bank, clients []*transfers.Client, duration time.Duration) {
	began := time.Now()
	goesOn := func() bool {
		now := time.Since(began)
		return now < duration || now < duration+transfersMore && bank.Recorder.Acknowledged() < transfersMin
	}
	var group sync.WaitGroup
	for number, client := range clients {
		group.Go(func() {
			for ctx.Err() == nil && goesOn() {
				if number < bankWriters {
					client.Transfer(ctx)
				} else {
					client.Sweep(ctx)
				}
			}
		})
	}
	group.Wait()
}

// awaitRecovery polls the bank until no file is left of transactions that did not happen. With all,
// no unfinished transaction may be left either. Without all, it ignores files of transactions that
// their coordinators may still complete.
func (c *cluster) awaitRecovery(t *testing.T, bank *transfers.Bank, all bool) {
	t.Helper()
	timeout := settleTimeout
	if all {
		timeout = recoveryTimeout
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	client := patientClient(c.nodes[0])
	for {
		unfinished, err := client.Unfinished(ctx)
		report(t, err)
		report(t, bank.Read(ctx, client))
		left, err := bank.Leftovers()
		report(t, err)
		if t.Failed() {
			return
		}
		left = slices.DeleteFunc(left, func(file string) bool {
			return !all && slices.ContainsFunc(unfinished, func(u servers.Unfinished) bool {
				return slices.Contains(u.Files, file) && time.Now().Before(u.Deadline.Add(recoveryTimeout))
			})
		})
		if len(left) == 0 && (!all || len(unfinished) == 0) {
			t.Logf("%d transactions are left for recovery", len(unfinished))
			return
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			t.Errorf("after %s there still are the transactions %v and the files %s", timeout, unfinished, strings.Join(left, ", "))
			return
		}
	}
}
