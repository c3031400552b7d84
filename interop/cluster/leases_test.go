package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage/testkit/servers"
)

const (
	leaseKills   = 4 // of servers, before the failover
	leaseTakers  = 4 // concurrent clients that take leases
	leaseCalm    = 700 * time.Millisecond
	leaseTTLSecs = 60
	leasesLeast  = 50 // leases that the clients take at least
)

// granted is a lease as its client got it.
type granted struct {
	token       uint64
	began, told time.Time
}

// takeLeases takes and releases leases on one table until ctx ends, each time from a different
// server. It adds their number to count.
func takeLeases(ctx context.Context, c *cluster, taker int, count *atomic.Int64) (all []granted, err error) {
	holder := fmt.Sprint("taker ", taker)
	for turn := 0; ctx.Err() == nil; turn++ {
		client := c.nodes[(taker+turn)%len(c.nodes)].client.Load()
		began := time.Now()
		answer := client.Manage(ctx, http.MethodPost, "leases", servers.Object{
			"warehouse": "default", "namespace": []string{"leased"}, "name": "t", "holder": holder,
			"scope": fmt.Sprintf("part:%x", taker), "ttl-seconds": leaseTTLSecs,
		})
		if answer.Outcome != servers.Acknowledged {
			// The server may be down, or a lease whose response was lost may block this one.
			client.Manage(ctx, http.MethodDelete, "leases?holder=taker+"+fmt.Sprint(taker), nil)
			if pause(ctx, 20*time.Millisecond) != nil {
				break
			}
			continue
		}
		var lease struct {
			Lease string `json:"lease"`
			Token uint64 `json:"token"`
		}
		if err := json.Unmarshal([]byte(answer.Text), &lease); err != nil {
			return all, fmt.Errorf("%s: %w", answer.Text, err)
		}
		all = append(all, granted{lease.Token, began, time.Now()})
		count.Add(1)
		client.Manage(ctx, http.MethodDelete, "leases/"+lease.Lease, nil)
	}
	return all, nil
}

// TestLeaseTokens takes leases while servers are killed with SIGKILL and the database fails over to
// its standby. No token may be issued twice, and a token that was requested later must be greater.
func TestLeaseTokens(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(newSeed(t), 7))
	primary := newDatabase(t)
	standby := newStandby(t, primary)
	c := &cluster{binary: servers.Build(t), data: newFolder(t), store: bothHosts(t, primary, standby)}
	for range 2 {
		c.startNode(t, nil, c.store)
	}
	client := patientClient(c.nodes[0])
	mustDo(t, "create the namespace", client.CreateNamespace(t.Context(), "leased"))
	mustDo(t, "create the table", client.Create(t.Context(), "leased", "t", nil))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var takers sync.WaitGroup
	var count atomic.Int64
	taken := make([][]granted, leaseTakers)
	for taker := range taken {
		takers.Go(func() {
			var err error
			taken[taker], err = takeLeases(ctx, c, taker, &count)
			report(t, err)
		})
	}
	for range leaseKills {
		report(t, pause(ctx, leaseCalm))
		n := c.nodes[random.IntN(len(c.nodes))]
		n.process.Kill()
		report(t, n.start(ctx, c.binary))
	}
	report(t, primary.Kill())
	report(t, standby.Promote())
	report(t, c.awaitReady(ctx))
	report(t, pause(ctx, 2*leaseCalm))
	for deadline := time.Now().Add(patience); count.Load() < leasesLeast && time.Now().Before(deadline); {
		report(t, pause(ctx, lookEvery))
	}
	end()
	takers.Wait()
	met := make(map[uint64]bool)
	var all []granted
	for _, some := range taken {
		for _, lease := range some {
			if met[lease.token] {
				t.Errorf("the token %d was given out twice", lease.token)
			}
			met[lease.token] = true
		}
		all = append(all, some...)
	}
	for _, a := range all {
		for _, b := range all {
			if a.told.Before(b.began) && a.token >= b.token {
				t.Errorf("the token %d was given out before %d", a.token, b.token)
			}
		}
	}
	if len(all) < leasesLeast {
		t.Errorf("only %d leases were given out", len(all))
	}
	c.store = standby.DSN()
	c.stop(t)
}
