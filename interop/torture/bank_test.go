package torture

import (
	"context"
	"fmt"
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
	bankTables  = 12
	bankWriters = 8
	bankReaders = 2
	// recoveryTimeout bounds the time in which a started server undoes its predecessor's unfinished
	// transactions.
	recoveryTimeout = 3 * time.Minute
	// lookEvery is the polling interval for conditions without a signal.
	lookEvery = 10 * time.Millisecond
)

// bank is a bank in which clients move amounts between tables over several restarts of the server.
type bank struct {
	*transfers.Bank
	writers []*transfers.Client
	readers []*transfers.Client
	client  *servers.Client // of the current server process

	// torn are files that the last server process left. No transfer that is known to have happened
	// wrote any of them.
	torn []string
}

// openBank creates a bank with the given number.
func openBank(t *testing.T, client *servers.Client, data string, number int, seed uint64) *bank {
	t.Helper()
	namespace := fmt.Sprintf("bank%d", number)
	opened, err := transfers.Open(t.Context(), client, namespace, filepath.Join(data, "warehouse", namespace), bankTables)
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{Bank: opened, client: client}
	for n := range bankWriters + bankReaders {
		c := transfers.NewClient(transfers.Config{
			Number: number*(bankWriters+bankReaders) + n, Seed: seed, Bank: opened,
			Nodes: func() []*servers.Client { return []*servers.Client{b.client} },
			Keyed: 50 + 50*(number%2), Impatient: 10, // each second bank sees requests with keys only
		})
		if n < bankWriters {
			b.writers = append(b.writers, c)
		} else {
			b.readers = append(b.readers, c)
		}
	}
	return b
}

// work has the clients work until ctx ends, and calls transferred for each answered transfer.
func (b *bank) work(ctx context.Context, transferred func()) {
	var group sync.WaitGroup
	for _, c := range b.writers {
		group.Go(func() {
			for ctx.Err() == nil {
				if c.Transfer(ctx) {
					transferred()
				}
			}
		})
	}
	for _, c := range b.readers {
		group.Go(func() {
			for ctx.Err() == nil {
				c.Sweep(ctx)
			}
		})
	}
	group.Wait()
}

// settle judges what happened under the last server process. The current one must first undo its
// predecessor's unfinished transactions.
func (b *bank) settle(t *testing.T, tally *tally) {
	t.Helper()
	for _, c := range b.writers {
		c.Resolve(t.Context())
	}
	for _, c := range b.readers {
		c.Sweep(t.Context())
	}
	if err := b.Read(t.Context(), b.client); err != nil {
		t.Fatal(err)
	}
	b.awaitRecovery(t)
	history := b.Recorder.Take()
	for _, problem := range transfers.Judge(b.Book.Chains(), history) {
		t.Error(problem)
	}
	tally.count(b, history)
	b.Book.Forget()
}

// awaitRecovery waits until nothing is left of transactions that did not happen.
func (b *bank) awaitRecovery(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recoveryTimeout)
	defer cancel()
	for {
		unfinished, err := b.client.Unfinished(ctx)
		if err != nil {
			t.Fatal(err)
		}
		left := b.leftovers(t)
		if len(unfinished) == 0 && len(left) == 0 {
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			t.Errorf("after %s there still are the transactions %v and the files %s", recoveryTimeout, unfinished, strings.Join(left, ", "))
			return
		}
	}
}

// leftovers returns the leftovers of transactions.
func (b *bank) leftovers(t *testing.T) []string {
	t.Helper()
	left, err := b.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// tally counts the cases that occurred at kills.
type tally struct {
	kills     int
	torn      int // kills that left files of transactions to undo
	happened  int // transfers that happened without an answer
	vanished  int // transfers without an answer that did not happen
	transfers int // acknowledged
}

func (a *tally) count(b *bank, history transfers.History) {
	there := map[string]bool{}
	for _, chain := range b.Book.Chains() {
		for _, v := range chain[1:] {
			there[v.Transfer] = true
		}
	}
	for _, event := range history.Events {
		switch {
		case event.Outcome == servers.Acknowledged:
			a.transfers++
		case event.Outcome == servers.Unknown && there[event.ID]:
			a.happened++
		case event.Outcome == servers.Unknown:
			a.vanished++
		}
	}
	if slices.ContainsFunc(b.torn, func(location string) bool { return !b.Book.Knows(location) }) {
		a.torn++
	}
	b.torn = nil
}

// String returns a summary of the counts.
func (a *tally) String() string {
	return fmt.Sprintf("%d kills, %d of them with files to be undone; %d transfers acknowledged, %d happened unanswered, %d did not",
		a.kills, a.torn, a.transfers, a.happened, a.vanished)
}
