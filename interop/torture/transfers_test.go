package torture

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/servers"
)

const (
	// bankRounds is the number of server restarts per bank. It keeps the folders of its tables
	// small.
	bankRounds = 25
	// transfersMax bounds the number of transfers before a kill.
	transfersMax = 60
	// aimMax bounds the time from the last of these transfers to the kill. Under load, a
	// transaction needs about that long from its record to its Apply.
	aimMax = 12 * time.Millisecond
	// tornKills is the number of kills after which at least one must have hit a transaction between
	// its record and its Apply.
	tornKills = 50
)

// TestTransfers kills the server repeatedly while clients move amounts between tables with
// transactions.
func TestTransfers(t *testing.T) {
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	binary := servers.Build(t)
	data := filepath.Join(t.ArtifactDir(), "data")
	var seen tally
	var b *bank
	for number := range *killsFlag {
		l := life{binary: binary, data: data, transfers: 1 + random.Int64N(transfersMax), delay: time.Duration(random.Int64N(int64(aimMax)))}
		b = l.run(t, b, number, seed, &seen)
		if t.Failed() {
			t.Fatalf("life %d failed; -artifacts keeps the data", number)
		}
		if (number+1)%bankRounds == 0 {
			t.Log(&seen)
		}
	}
	server := servers.MustStart(t, binary, "--data", data)
	defer server.Kill()
	b.client = servers.NewClient(server.URI, requestTimeout)
	b.settle(t, &seen)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if err := servers.Check(t.Context(), binary, "--data", data); err != nil {
		t.Error(err)
	}
	t.Log(&seen)
	if seen.transfers == 0 || *killsFlag >= tornKills && (seen.torn == 0 || seen.happened == 0 || seen.vanished == 0) {
		t.Error("the kills have not met what they should")
	}
}

// life is the lifetime of one server process, from its start to the kill.
type life struct {
	binary, data string
	transfers    int64         // number of transfers before the kill
	delay        time.Duration // from the last of them to the kill
}

// run settles the bank after the previous life, has the bank's clients work, and kills the server.
// The bank is nil at first. run returns the bank for the next life.
func (l life) run(t *testing.T, b *bank, number int, seed uint64, seen *tally) *bank {
	t.Helper()
	server := servers.MustStart(t, l.binary, "--data", l.data)
	defer server.Kill()
	client := servers.NewClient(server.URI, requestTimeout)
	if b != nil {
		b.client = client
		b.settle(t, seen)
	}
	if number%bankRounds == 0 {
		b = openBank(t, client, l.data, number/bankRounds, seed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	enough := make(chan struct{})
	var count atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.work(ctx, func() {
			if count.Add(1) == l.transfers {
				close(enough)
			}
		})
	}()
	select {
	case <-enough:
		<-time.After(l.delay)
	case <-server.Ended():
		t.Errorf("the server ended by itself: %s\n%s", server.State(), server.Stderr())
	case <-ctx.Done():
		t.Errorf("only %d transfers in %s", count.Load(), roundTimeout)
	}
	server.Kill()
	cancel()
	<-ended
	seen.kills++
	b.torn = b.leftovers(t)
	if err := servers.Check(t.Context(), l.binary, "--data", l.data); err != nil {
		t.Error(err)
	}
	return b
}
