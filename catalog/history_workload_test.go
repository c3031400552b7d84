package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"moorage"
	"moorage/metadata"
)

// Sizes of every history. Tables are renamed within their group only, so that groups can be checked one by one.
const (
	historyGroups = 12
	historyNames  = 3 // in a group
)

// historySize is how much a history does.
type historySize struct {
	writers, commits int // each writer makes so many commits, and other calls between them
	readers, reads   int
	steady           bool // tables are neither dropped nor renamed
}

// historyAction is what a client may ask.
type historyAction string

const (
	actLoad       historyAction = "load"
	actExists     historyAction = "exists"
	actList       historyAction = "list"
	actRefresh    historyAction = "refresh"    // a commit without updates answers the present version
	actSet        historyAction = "set"        // properties, of whatever has the name
	actSetPinned  historyAction = "set-pinned" // properties, of the table with the table-uuid
	actAppend     historyAction = "append"     // a snapshot, if nobody was faster
	actCreate     historyAction = "create"
	actDrop       historyAction = "drop"
	actUnregister historyAction = "unregister"
	actRename     historyAction = "rename"
)

// historyCall is what a client asked.
type historyCall struct {
	id              string // "7.113": the client and its call
	client          int
	action          historyAction
	group, name, to int    // to is the other name of a rename
	table           string // the table-uuid that it requires
	parent          int64  // the head of main that an append requires, 0 if none
	snapshot        int64  // that an append adds
	sequence        int64  // the snapshot's
}

func (c historyCall) ident() moorage.Identifier { return groupIdent(c.group, c.name) }

func groupIdent(group, name int) moorage.Identifier {
	return moorage.Identifier{Warehouse: testWarehouse, Namespace: groupNamespace(group), Name: "t" + string(rune('0'+name))}
}

// historyAnswer is what it was answered.
type historyAnswer struct {
	err    error
	table  *Table // of calls that answer one
	listed [historyNames]bool
}

func (a historyAnswer) unknown() bool {
	return a.err != nil && moorage.KindOf(a.err) == moorage.KindCommitUnknown
}

// placed is the version of a table that a name leads to; zero if it leads nowhere.
type placed struct{ table, location string }

// version returns the version that was answered.
func (a historyAnswer) version() placed {
	if a.table == nil {
		return placed{}
	}
	return placed{a.table.Document.UUID(), a.table.MetadataLocation}
}

// base returns the version that a commit's answer says it was made on.
func (a historyAnswer) base() placed {
	log := a.table.Document.MetadataLog()
	if len(log) == 0 {
		return placed{table: a.table.Document.UUID()}
	}
	return placed{a.table.Document.UUID(), log[len(log)-1].MetadataLocation}
}

// historyEvent is a call with its answer, and its place in time.
type historyEvent struct {
	call     historyCall
	answer   historyAnswer
	from, to int64 // in a count of all begins and ends
}

// history is what all clients saw.
type history struct {
	events  []historyEvent
	failure error // of the workload itself
}

// summary counts the calls by what became of them.
func (h history) summary() string {
	counts := map[string]int{}
	for _, event := range h.events {
		result := "done"
		if event.answer.err != nil {
			result = moorage.KindOf(event.answer.err).String()
		}
		counts[string(event.call.action)+" "+result]++
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s: %d", key, counts[key]))
	}
	return fmt.Sprintf("%d calls; %s", len(h.events), strings.Join(lines, ", "))
}

// historyRecorder takes down what happens. It is safe for concurrent use.
type historyRecorder struct {
	count atomic.Int64

	mu      sync.Mutex // guards history; a leaf
	history history
}

func (r *historyRecorder) add(event historyEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.events = append(r.history.events, event)
}

func (r *historyRecorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.failure = errors.Join(r.history.failure, err)
}

// runHistory lets clients work on system and returns what they saw, the final state of every name last.
func runHistory(ctx context.Context, system *historySystem, size historySize, seed uint64) history {
	recorder := &historyRecorder{}
	var group sync.WaitGroup
	for number := range size.writers + size.readers {
		client := newHistoryClient(ctx, system, recorder, number, seed)
		group.Go(func() {
			if number < size.writers {
				client.write(size)
			} else {
				client.read(size.reads)
			}
		})
	}
	group.Wait()
	if system.disturb != nil {
		if err := system.disturb(ctx); err != nil {
			recorder.fail(err)
		}
	}
	last := newHistoryClient(ctx, system, recorder, size.writers+size.readers, seed)
	for group := range historyGroups {
		last.do(last.call(actList, group, 0))
		for name := range historyNames {
			last.untilAnswered(last.call(actLoad, group, name))
		}
	}
	return recorder.history
}

// historyClient makes one call after the other.
type historyClient struct {
	ctx      context.Context
	system   *historySystem
	node     *Catalog
	recorder *historyRecorder
	number   int
	calls    int
	random   *rand.Rand
	seen     [historyGroups][historyNames]*Table // what it saw last; nil: none
}

func newHistoryClient(ctx context.Context, system *historySystem, recorder *historyRecorder, number int, seed uint64) *historyClient {
	return &historyClient{
		ctx: ctx, system: system, recorder: recorder, number: number,
		node:   system.nodes[number%len(system.nodes)],
		random: rand.New(rand.NewPCG(seed, uint64(number))),
	}
}

// write makes commits, and other calls between them.
func (c *historyClient) write(size historySize) {
	for made := 0; made < size.commits; {
		group, name := c.random.IntN(historyGroups), c.random.IntN(historyNames)
		if c.seen[group][name] == nil && c.random.IntN(2) == 0 && c.do(c.call(actLoad, group, name)).table == nil {
			c.do(c.call(actCreate, group, name))
			continue
		}
		switch n := c.random.IntN(100); {
		case n < 70:
			c.commit(group, name)
			made++
		case n < 82:
			c.readOne(group, name)
		case n < 85:
			c.do(c.call(actCreate, group, name))
		case size.steady:
			c.readOne(group, name)
		case n < 89:
			c.do(c.call(actDrop, group, name))
		case n < 92:
			c.do(c.call(actUnregister, group, name))
		default:
			call := c.call(actRename, group, name)
			call.to = (name + 1 + c.random.IntN(historyNames-1)) % historyNames
			c.do(call)
		}
		if c.system.disturb != nil && c.random.IntN(50) == 0 {
			if err := c.system.disturb(c.ctx); err != nil {
				c.recorder.fail(err)
			}
		}
	}
}

// commit makes one commit; an append looks first what it appends to, most of the time.
func (c *historyClient) commit(group, name int) {
	known := c.seen[group][name]
	switch n := c.random.IntN(4); {
	case n == 0 && known != nil:
		call := c.call(actSetPinned, group, name)
		call.table = known.Document.UUID()
		c.do(call)
	case n <= 1:
		c.do(c.call(actSet, group, name))
	default:
		if known == nil || c.random.IntN(4) > 0 {
			known = c.do(c.call(actLoad, group, name)).table
		}
		if known == nil {
			return
		}
		c.do(c.appendTo(known, group, name))
	}
}

// appendTo begins a call that appends to a version of a table.
func (c *historyClient) appendTo(known *Table, group, name int) historyCall {
	call := c.call(actAppend, group, name)
	call.table = known.Document.UUID()
	call.parent = head(known.Document)
	call.snapshot, call.sequence = int64(c.number+1)<<32|int64(c.calls), 1
	for snapshot := range known.Document.Snapshots() {
		call.sequence = max(call.sequence, snapshot.SequenceNumber+1)
	}
	return call
}

// head returns the snapshot that main points to, 0 if there is none.
func head(document *metadata.Document) int64 {
	id, ok := document.CurrentSnapshotID()
	if !ok {
		return 0
	}
	return id
}

func (c *historyClient) read(calls int) {
	for range calls {
		c.readOne(c.random.IntN(historyGroups), c.random.IntN(historyNames))
	}
}

func (c *historyClient) readOne(group, name int) {
	actions := []historyAction{actLoad, actLoad, actExists, actList, actRefresh}
	c.do(c.call(actions[c.random.IntN(len(actions))], group, name))
}

// call begins a call that do makes.
func (c *historyClient) call(action historyAction, group, name int) historyCall {
	c.calls++
	return historyCall{
		id: fmt.Sprintf("%d.%d", c.number, c.calls), client: c.number, action: action, group: group, name: name,
	}
}

// do makes a call and takes it down.
func (c *historyClient) do(call historyCall) historyAnswer {
	from := c.recorder.count.Add(1)
	answer := call.ask(c.ctx, c.node)
	c.recorder.add(historyEvent{call, answer, from, c.recorder.count.Add(1)})
	c.remember(call, answer)
	return answer
}

// untilAnswered repeats a call that may be refused because of an injected fault.
func (c *historyClient) untilAnswered(call historyCall) {
	for {
		answer := c.do(call)
		if answer.err == nil || moorage.KindOf(answer.err) != moorage.KindUnavailable {
			return
		}
	}
}

// remember keeps what the client learnt of a name.
func (c *historyClient) remember(call historyCall, answer historyAnswer) {
	switch {
	case answer.table != nil && call.action != actUnregister:
		c.seen[call.group][call.name] = answer.table
	case answer.err == nil && (call.action == actDrop || call.action == actUnregister || call.action == actRename),
		answer.err != nil && moorage.KindOf(answer.err) == moorage.KindNoSuchTable:
		c.seen[call.group][call.name] = nil
	}
}

// Properties that commits set: who made the version, and the last call of each client.
const propAuthor = "author"

func propClient(client int) string { return fmt.Sprintf("client-%d", client) }

// ask makes the call on a node.
func (c historyCall) ask(ctx context.Context, node *Catalog) (answer historyAnswer) {
	switch c.action {
	case actLoad:
		answer.table, answer.err = node.LoadTable(ctx, c.ident())
	case actExists:
		answer.err = node.TableExists(ctx, c.ident())
	case actList:
		var names []string
		names, _, answer.err = node.ListTables(ctx, testWarehouse, groupNamespace(c.group), Page{})
		for _, name := range names {
			answer.listed[name[1]-'0'] = true
		}
	case actRefresh:
		answer.table, answer.err = node.Commit(ctx, c.ident(), CommitRequest{})
	case actSet, actSetPinned, actAppend:
		var request CommitRequest
		if request, answer.err = c.request(); answer.err == nil {
			answer.table, answer.err = node.Commit(ctx, c.ident(), request)
		}
	case actCreate:
		answer.table, answer.err = node.CreateTable(ctx, c.ident(), CreateTableRequest{
			Schema:     []byte(testSchema),
			Properties: map[string]string{propAuthor: c.id, "write.metadata.previous-versions-max": "5"},
		})
	case actDrop:
		answer.err = node.DropTable(ctx, c.ident(), DropOptions{})
	case actUnregister:
		answer.table, answer.err = node.UnregisterTable(ctx, c.ident())
	case actRename:
		answer.err = node.RenameTable(ctx, c.ident(), groupIdent(c.group, c.to))
	}
	return answer
}

// request returns the body of a commit.
func (c historyCall) request() (CommitRequest, error) {
	updates := fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q,%q:%q}}`, propAuthor, c.id, propClient(c.client), c.id)
	requirements := ""
	if c.table != "" {
		requirements = fmt.Sprintf(`{"type":"assert-table-uuid","uuid":%q}`, c.table)
	}
	if c.action == actAppend {
		required, parent := "null", ""
		if c.parent != 0 {
			required, parent = fmt.Sprint(c.parent), fmt.Sprintf(`"parent-snapshot-id":%d,`, c.parent)
		}
		requirements += fmt.Sprintf(`,{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}`, required)
		updates += fmt.Sprintf(`,{"action":"add-snapshot","snapshot":{"snapshot-id":%[1]d,%[2]s"sequence-number":%[3]d,"timestamp-ms":%[4]d,
			"manifest-list":"file:///wh/%[1]d.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%[1]d}`,
			c.snapshot, parent, c.sequence, newClock().Now().UnixMilli())
	}
	r, err := metadata.DecodeRequirements([]byte("[" + requirements + "]"))
	if err != nil {
		return CommitRequest{}, err
	}
	u, err := metadata.DecodeUpdates([]byte("[" + updates + "]"))
	return CommitRequest{Requirements: r, Updates: u}, err
}
