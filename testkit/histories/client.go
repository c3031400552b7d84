package histories

import (
	"fmt"
	"math/rand/v2"

	"moorage"
)

// Client makes calls, one at a time. It is not safe for concurrent use.
type Client struct {
	number   int
	random   *rand.Rand
	recorder *Recorder
	ask      func(Call) Answer
	habits   Habits
	calls    int
	seen     map[place]Answer // the client's last answer for each name
}

// Habits select the calls that a client makes in addition to reads, creates and commits.
type Habits struct {
	Moves      bool // drops, unregisters and renames tables
	Namespaces bool // drops and creates namespaces
}

type place struct{ group, name int }

// NewClient returns a client. No other client may have its number. The seed determines its random
// choices. ask makes a call and returns the answer; recorder records both.
func NewClient(number int, seed uint64, habits Habits, recorder *Recorder, ask func(Call) Answer) *Client {
	return &Client{
		number: number, random: rand.New(rand.NewPCG(seed, uint64(number))), recorder: recorder, ask: ask,
		habits: habits,
		seen:   map[place]Answer{},
	}
}

// IntN returns a random number below n.
func (c *Client) IntN(n int) int { return c.random.IntN(n) }

// Write makes one or a few calls in a group, and reports whether one of them was a commit.
func (c *Client) Write(group int) (committed bool) {
	name := c.random.IntN(Names)
	if !c.knows(group, name) && c.random.IntN(2) == 0 && c.Do(c.Call(Load, group, name)).Table == "" {
		c.create(group, name)
		return false
	}
	switch n := c.random.IntN(100); {
	case n < 70:
		c.commit(group, name)
		return true
	case n < 82:
		c.readOne(group, name)
	case n < 85:
		c.create(group, name)
	case !c.habits.Moves:
		c.readOne(group, name)
	case n < 89:
		c.Do(c.Call(Drop, group, name))
	case n < 92 && !c.habits.Namespaces:
		c.Do(c.Call(Unregister, group, name))
	case n < 92:
		c.clear(group)
	default:
		call := c.Call(Rename, group, name)
		call.To = (name + 1 + c.random.IntN(Names-1)) % Names
		c.Do(call)
	}
	return false
}

// create creates a table. If the namespace was dropped, it first creates the namespace.
func (c *Client) create(group, name int) {
	answer := c.Do(c.Call(Create, group, name))
	if c.habits.Namespaces && moorage.KindOf(answer.Err) == moorage.KindNoSuchNamespace {
		c.Do(c.Call(CreateNS, group, 0))
	}
}

// clear drops a namespace. Most of the time it first drops all tables in it.
func (c *Client) clear(group int) {
	for name := range Names {
		if c.random.IntN(8) > 0 {
			c.Do(c.Call(Drop, group, name))
		}
	}
	c.Do(c.Call(DropNS, group, 0))
}

// commit makes one commit. Most of the time an append first reads the table that it appends to.
func (c *Client) commit(group, name int) {
	known := c.seen[place{group, name}]
	switch n := c.random.IntN(4); {
	case n == 0 && known.Table != "":
		call := c.Call(SetPinned, group, name)
		call.Table = known.Table
		c.Do(call)
	case n <= 1:
		c.Do(c.Call(Set, group, name))
	default:
		if known.Table == "" || c.random.IntN(4) > 0 {
			known = c.Do(c.Call(Load, group, name))
		}
		if known.Table != "" {
			c.Do(c.AppendTo(known, group, name))
		}
	}
}

// AppendTo returns a new call that appends to the version in the answer known.
func (c *Client) AppendTo(known Answer, group, name int) Call {
	call := c.Call(Append, group, name)
	call.Table, call.Parent, call.Sequence = known.Table, known.Head, known.Next
	call.Snapshot = int64(c.number+1)<<32 | int64(c.calls)
	return call
}

// Read makes one read in a group.
func (c *Client) Read(group int) { c.readOne(group, c.random.IntN(Names)) }

func (c *Client) readOne(group, name int) {
	actions := []Action{Load, Load, Exists, List, Refresh}
	c.Do(c.Call(actions[c.random.IntN(len(actions))], group, name))
}

// settlesMax is the maximum number of times that Settle makes a call.
const settlesMax = 100

// Settle reads the last state of a group. It repeats a call that fails with KindUnavailable, at
// most settlesMax times. Such a failure is allowed only if the test injects faults.
func (c *Client) Settle(group int) {
	calls := []Call{c.Call(List, group, 0)}
	for name := range Names {
		calls = append(calls, c.Call(Load, group, name))
	}
	for _, call := range calls {
		answer := c.Do(call)
		for i := 0; answer.Unknown() || moorage.KindOf(answer.Err) == moorage.KindUnavailable; i++ {
			if i == settlesMax {
				c.recorder.Fail(fmt.Errorf("no answer to %s", describe(call, answer)))
				return
			}
			call = c.Call(call.Action, group, call.Name)
			answer = c.Do(call)
		}
	}
}

func (c *Client) knows(group, name int) bool { return c.seen[place{group, name}].Table != "" }

// Call returns a new call for Do.
func (c *Client) Call(action Action, group, name int) Call {
	c.calls++
	return Call{
		ID: fmt.Sprintf("%d.%d", c.number, c.calls), Client: c.number, Action: action, Group: group, Name: name,
	}
}

// Do makes a call and records it.
func (c *Client) Do(call Call) Answer {
	answer := c.recorder.Do(call, func() Answer { return c.ask(call) })
	at := place{call.Group, call.Name}
	switch {
	case answer.Version != Version{} && call.Action != Unregister:
		c.seen[at] = answer
	case answer.Err == nil && (call.Action == Drop || call.Action == Unregister || call.Action == Rename),
		answer.Err != nil && moorage.KindOf(answer.Err) == moorage.KindNoSuchTable:
		delete(c.seen, at)
	}
	return answer
}
