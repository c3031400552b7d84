package transfers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"moorage/testkit/servers"
)

const (
	// tablesMin and tablesMax limit the number of tables in a transfer.
	tablesMin, tablesMax = 2, 5
	// changeMax is the maximum amount that one transfer moves into or out of a table.
	changeMax = 9
	// sendsMax is the maximum number of times that a transfer with a key is sent, whatever the
	// answers are.
	sendsMax = 3
	// repeatDelayMax is the maximum time before a transfer is sent again.
	repeatDelayMax = 40 * time.Millisecond
	// impatience is the maximum time that an impatient client waits for an answer.
	impatience = 30 * time.Millisecond
	// resolvesMax is the maximum number of times that Resolve sends a transfer. resolveDelay is the
	// time between two of these requests.
	resolvesMax  = 200
	resolveDelay = 100 * time.Millisecond
)

// singleSuffix ends the id of each transfer that changes only one table.
const singleSuffix = ".single"

// Config configures a Client.
type Config struct {
	Number int // no other client has this number
	Seed   uint64
	Bank   *Bank
	Nodes  func() []*servers.Client // the present servers; at least one

	Keyed     int  // percentage of transfers that are sent with a key, up to three times and to several servers
	Impatient int  // percentage of requests whose answer the client does not wait for
	Faults    bool // servers may be unavailable or may not know the outcome
}

// Client makes transfers. It is not safe for concurrent use.
type Client struct {
	Config
	random    *rand.Rand
	transfers int
	open      []*attempt   // transfers with a key whose outcome is not known yet
	silent    map[int]bool // the servers that did not answer the last request
}

// attempt is a transfer that the client sends, with the answers.
type attempt struct {
	Transfer
	from    int64
	mu      sync.Mutex // guards the fields below; no other lock is taken under it
	done    string     // an answer that means that the transfer has happened
	refused string     // an answer that means that the transfer has not happened and will not
	unsure  bool       // an answer is missing
}

// NewClient returns a client. The seed determines its random choices.
func NewClient(config Config) *Client {
	return &Client{Config: config, random: rand.New(rand.NewPCG(config.Seed, uint64(config.Number))),
		silent: map[int]bool{}}
}

// Sweep loads all tables, one at a time, and reports whether every load was answered.
func (c *Client) Sweep(ctx context.Context) bool {
	sweep := Sweep{c.Number, map[string]string{}}
	for _, i := range c.random.Perm(len(c.Bank.Tables)) {
		loaded, ok := c.load(ctx, c.Bank.Tables[i])
		if !ok {
			return false
		}
		sweep.Tables[c.Bank.Tables[i]] = loaded.Location
	}
	c.Bank.Recorder.note(func(h *History) { h.Sweeps = append(h.Sweeps, sweep) })
	return true
}

// load loads a table from any server.
func (c *Client) load(ctx context.Context, table string) (servers.Loaded, bool) {
	number, node := c.node()
	from := c.Bank.Recorder.Now()
	a := node.Load(ctx, c.Bank.Namespace, table)
	to := c.Bank.Recorder.Now()
	c.silent[number] = a.Status == 0
	if a.Outcome == servers.Acknowledged {
		c.Bank.Recorder.note(func(h *History) {
			h.Loads = append(h.Loads, Load{c.Number, table, a.Table.Location, from, to})
		})
		return a.Table, true
	}
	if a.Status != 0 && !c.mayFail(a) {
		c.Bank.Recorder.fail("load %s: %d %s", table, a.Status, a.Text)
	}
	return servers.Loaded{}, false
}

// silentAsked is the probability, in percent, that a drawn server gets a request although it did
// not answer the last one.
const silentAsked = 5

// node draws a server. It avoids paused servers, because waiting for them would leave too little
// time for transfers.
func (c *Client) node() (number int, node *servers.Client) {
	nodes := c.Nodes()
	var answering []int
	for i := range nodes {
		if !c.silent[i] {
			answering = append(answering, i)
		}
	}
	number = c.random.IntN(len(nodes))
	if c.silent[number] && len(answering) > 0 && c.random.IntN(100) >= silentAsked {
		number = answering[c.random.IntN(len(answering))]
	}
	return number, nodes[number]
}

// mayFail reports whether, under faults, servers may give this answer without refusing the transfer
// itself.
func (c *Client) mayFail(a servers.Answer) bool {
	return c.Faults && (a.Status == http.StatusServiceUnavailable || a.Status == http.StatusInternalServerError)
}

// Transfer makes one transfer, and reports whether a server answered.
func (c *Client) Transfer(ctx context.Context) bool {
	t, ok := c.plan(ctx)
	if !ok {
		return false
	}
	made := &attempt{Transfer: t, from: c.Bank.Recorder.Now()}
	answered := c.send(ctx, made)
	c.conclude(made)
	return answered
}

// plan loads some tables, and draws a random transfer between them.
func (c *Client) plan(ctx context.Context) (Transfer, bool) {
	c.transfers++
	t := Transfer{ID: fmt.Sprintf("%d.%d", c.Number, c.transfers)}
	if c.random.IntN(100) < c.Keyed {
		t.Key = c.newUUID()
	}
	kind := c.random.IntN(10)
	count := tablesMin + c.random.IntN(tablesMax-tablesMin+1)
	if t.Single = kind == 0; t.Single {
		t.ID += singleSuffix
		count = 1
	}
	sum := 0
	for n, i := range c.random.Perm(len(c.Bank.Tables))[:count] {
		p := Part{Table: c.Bank.Tables[i]}
		switch {
		case kind <= 1:
			p.Mode = Stamps
		case kind == 2 && n == count-1 && count > 2:
			p.Mode = Requires
		case kind == 3 && n == count-1:
			// The new table gets no amount, because readers do not load it.
			p.Mode, p.Table = Creates, fmt.Sprintf("made-%d-%d", c.Number, c.transfers)
		default:
			p.Change = 1 + c.random.IntN(changeMax)
			sum += p.Change
		}
		t.Parts = append(t.Parts, p)
	}
	t.Parts[0].Change -= sum
	folder := ""
	for n := range t.Parts {
		p := &t.Parts[n]
		if p.Mode == Creates {
			p.planCreate(t.ID, c.newUUID(), folder+"/"+p.Table)
			continue
		}
		base, ok := c.load(ctx, p.Table)
		if !ok {
			return t, false
		}
		if err := p.plan(t.ID, base, int64(c.Number+1)<<32|int64(c.transfers)); err != nil {
			c.Bank.Recorder.fail("%v", err)
			return t, false
		}
		folder = strings.TrimSuffix(base.Metadata.Location, "/"+p.Table)
	}
	return t, true
}

// newUUID draws a UUID.
func (c *Client) newUUID() string {
	high, low := c.random.Uint64(), c.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>52, low&(1<<48-1))
}

// sending describes when a request is sent, and to which server.
type sending struct {
	node    *servers.Client
	delay   time.Duration
	timeout time.Duration // 0 means only the client's usual timeout
}

func (c *Client) draw() sending {
	_, node := c.node()
	s := sending{node: node, delay: time.Duration(c.random.Int64N(int64(repeatDelayMax)))}
	if c.random.IntN(100) < c.Impatient {
		s.timeout = time.Duration(1 + c.random.Int64N(int64(impatience)))
	}
	return s
}

// send sends a transfer. A transfer with a key is sent up to sendsMax times, one at a time or all
// at once. send reports whether a server answered.
func (c *Client) send(ctx context.Context, made *attempt) (answered bool) {
	sends := 1
	if made.Key != "" {
		sends += c.random.IntN(sendsMax)
	}
	drawn := make([]sending, sends)
	for i := range drawn {
		drawn[i] = c.draw()
	}
	drawn[0].delay = 0
	if sends > 1 && c.random.IntN(3) == 0 {
		answers := make([]bool, sends)
		var group sync.WaitGroup
		for i, s := range drawn {
			group.Go(func() { answers[i] = c.sendOnce(ctx, made, s) })
		}
		group.Wait()
		for _, a := range answers {
			answered = answered || a
		}
		return answered
	}
	for _, s := range drawn {
		answered = c.sendOnce(ctx, made, s) || answered
	}
	return answered
}

// sendOnce sends a transfer, records the answer, and reports whether there was one. It is safe for
// concurrent use.
func (c *Client) sendOnce(ctx context.Context, made *attempt, s sending) (answered bool) {
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
	}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	target, body := made.request(c.Bank.Namespace)
	a := s.node.SendOnce(ctx, made.Key, http.MethodPost, target, body)
	made.mu.Lock()
	defer made.mu.Unlock()
	text := fmt.Sprintf("%d %s", a.Status, a.Text)
	switch {
	case a.Outcome == servers.Acknowledged:
		made.done = text
	case a.Status == http.StatusConflict:
		made.refused = text
	case a.Status == 0:
		made.unsure = made.unsure || made.Key != "" || !unsent(a)
		return errors.Is(a.Err, context.DeadlineExceeded) && s.timeout > 0
	case c.mayFail(a):
		made.unsure = made.unsure || a.Outcome == servers.Unknown
	default:
		c.Bank.Recorder.fail("%s: %s", made.Transfer, text)
	}
	return true
}

// unsent reports whether it is certain that a request without a key has not reached a server. For a
// request with a key, this is not certain: package net/http considers it idempotent, and may have
// sent it a second time.
func unsent(a servers.Answer) bool {
	var operation *net.OpError
	return errors.As(a.Err, &operation) && operation.Op == "dial"
}

// conclude records the outcome of a transfer, or keeps it for Resolve.
func (c *Client) conclude(made *attempt) {
	outcome := servers.Refused
	switch {
	case made.done != "" && made.refused != "":
		c.Bank.Recorder.fail("%s was answered %q and %q", made.Transfer, made.done, made.refused)
		outcome = servers.Unknown
	case made.done != "":
		outcome = servers.Acknowledged
	case made.refused != "":
	case made.unsure && made.Key != "":
		c.open = append(c.open, made)
		return
	case made.unsure:
		outcome = servers.Unknown
	}
	event := Event{Transfer: made.Transfer, Outcome: outcome, From: made.from, To: c.Bank.Recorder.Now()}
	c.Bank.Recorder.note(func(h *History) { h.Events = append(h.Events, event) })
}

// Resolve repeats every transfer with a key and an unknown outcome until it gets an answer. A
// transfer that had not happened yet happens now. The servers must be running.
func (c *Client) Resolve(ctx context.Context) {
	open := c.open
	c.open = nil
	for _, made := range open {
		for n := 0; made.done == "" && made.refused == "" && n < resolvesMax && ctx.Err() == nil; n++ {
			_, node := c.node()
			s := sending{node: node}
			if n > 0 {
				s.delay = resolveDelay
			}
			c.sendOnce(ctx, made, s)
		}
		if made.done == "" && made.refused == "" {
			c.Bank.Recorder.fail("%s is not answered", made.Transfer)
		}
		c.conclude(made)
	}
}
