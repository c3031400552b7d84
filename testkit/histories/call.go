package histories

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"moorage"
	"moorage/metadata"
)

// Names is the number of names in a group.
const Names = 3

// Action is a kind of call.
type Action string

// The actions.
const (
	Load       Action = "load"
	Exists     Action = "exists"
	List       Action = "list"
	Refresh    Action = "refresh"    // a commit without updates, which returns the present version
	Set        Action = "set"        // sets properties of whatever table has the name
	SetPinned  Action = "set-pinned" // sets properties of the table with the table-uuid
	Append     Action = "append"     // appends a snapshot, if no other commit was faster
	Create     Action = "create"
	Drop       Action = "drop"
	Unregister Action = "unregister"
	Rename     Action = "rename"
	CreateNS   Action = "create-namespace"
	DropNS     Action = "drop-namespace"
)

// commits reports whether the action is a commit that changes a table.
func (a Action) commits() bool { return a == Set || a == SetPinned || a == Append }

// Writes reports whether an acknowledged call of this kind makes a version of a table, alone or
// together with other calls.
func (a Action) Writes() bool { return a == Create || a.commits() }

// reads reports whether the action changes nothing.
func (a Action) reads() bool { return a == Load || a == Exists || a == List || a == Refresh }

// Call is one call of a client.
type Call struct {
	ID       string // "7.113": call 113 of client 7; also the value of PropClient in the version that it makes
	Client   int
	Action   Action
	Group    int
	Name, To int    // To is the other name of a rename
	Table    string // the required table-uuid
	Parent   int64  // for an append: the required head of main, 0 if there is none
	Snapshot int64  // for an append: the new snapshot
	Sequence int64  // the sequence number of Snapshot
}

// TableName returns the name of the n-th table in a group.
func TableName(n int) string { return "t" + string(rune('0'+n)) }

// propClientPrefix is the prefix of the properties that say which calls made a version.
const propClientPrefix = "client-"

// PropClient returns the name of a client's property. Its value is the ID of the client's last call
// that changed or created the table.
func PropClient(client int) string { return fmt.Sprintf("%s%d", propClientPrefix, client) }

// Authors returns the calls that together made a version, ordered by their clients' properties.
// made is that version's document, and base the previous one, or nil for the first version. If
// commits shared the version, there are several calls.
func Authors(base, made *metadata.Document) (calls []string) {
	before := map[string]string{}
	if base != nil {
		before = base.Properties()
	}
	properties := made.Properties()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strings.HasPrefix(name, propClientPrefix) && properties[name] != before[name] {
			calls = append(calls, properties[name])
		}
	}
	return calls
}

// Version is the version of the table that has a name, or zero if no table has it.
type Version struct{ Table, Location string }

// Answer is the answer to a call. Its Version is set if the answer contains a table.
type Answer struct {
	Err error
	Version
	Base   string            // the location of the previous version, "" if there is none
	Sum    [sha256.Size]byte // of the document
	Head   int64             // the head of main in the document, 0 if there is none
	Next   int64             // the sequence number of its next snapshot
	Listed [Names]bool
}

// Found returns an answer that contains a table.
func Found(location string, document *metadata.Document) Answer {
	answer := Answer{Version: Version{document.UUID(), location}, Sum: sha256.Sum256(document.Raw()),
		Head: Head(document), Next: 1}
	for snapshot := range document.Snapshots() {
		answer.Next = max(answer.Next, snapshot.SequenceNumber+1)
	}
	if log := document.MetadataLog(); len(log) > 0 {
		answer.Base = log[len(log)-1].MetadataLocation
	}
	return answer
}

// Unknown reports whether the outcome is unknown: the call may have happened, or may still happen.
func (a Answer) Unknown() bool {
	return a.Err != nil && moorage.KindOf(a.Err) == moorage.KindCommitUnknown
}

// Event is a call with its answer, and the times when it began and ended.
type Event struct {
	Call     Call
	Answer   Answer
	From, To int64 // positions in the count of all begins and ends of calls
}

// Committed reports whether a new version of a table was acknowledged.
func (e Event) Committed() bool { return e.Answer.Err == nil && e.Call.Action.Writes() }

// String describes the event.
func (e Event) String() string { return describe(e.Call, e.Answer) }

func describe(call Call, answer Answer) string {
	text := fmt.Sprintf("%s %s group %d %s", call.ID, call.Action, call.Group, TableName(call.Name))
	if call.Action == Rename {
		text += " to " + TableName(call.To)
	}
	if call.Table != "" {
		text += fmt.Sprintf(" of %s", call.Table)
	}
	if call.Action == Append {
		text += fmt.Sprintf(" after %d", call.Parent)
	}
	switch {
	case answer.Err != nil:
		return fmt.Sprintf("%s: %v", text, answer.Err)
	case answer.Version != Version{}:
		return fmt.Sprintf("%s: %s, made on %s", text, answer.Location, answer.Base)
	case call.Action == List:
		return fmt.Sprintf("%s: %v", text, answer.Listed)
	}
	return text + ": done"
}

// History holds all calls and answers of all clients.
type History struct {
	Events  []Event
	Failure error // a failure of the workload itself
}

// Summary counts the calls by outcome.
func (h History) Summary() string {
	counts := map[string]int{}
	for _, event := range h.Events {
		result := "done"
		if event.Answer.Err != nil {
			result = moorage.KindOf(event.Answer.Err).String()
		}
		counts[string(event.Call.Action)+" "+result]++
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s: %d", key, counts[key]))
	}
	return fmt.Sprintf("%d calls; %s", len(h.Events), strings.Join(lines, ", "))
}

// Recorder records events. The zero value is ready for use. It is safe for concurrent use.
type Recorder struct {
	count   atomic.Int64
	commits atomic.Int64
	unknown atomic.Int64

	mu      sync.Mutex // guards history; no other lock is taken under it
	history History
}

// Do makes a call with ask and records it. It does not record a read without an answer, because
// such a read shows nothing.
func (r *Recorder) Do(call Call, ask func() Answer) Answer {
	from := r.count.Add(1)
	answer := ask()
	event := Event{call, answer, from, r.count.Add(1)}
	if event.Committed() {
		r.commits.Add(1)
	}
	if answer.Unknown() && call.Action.reads() {
		return answer
	}
	if answer.Unknown() {
		r.unknown.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Events = append(r.history.Events, event)
	return answer
}

// Commits returns the number of acknowledged new versions of tables.
func (r *Recorder) Commits() int { return int(r.commits.Load()) }

// Unknown returns the number of writes with an unknown outcome.
func (r *Recorder) Unknown() int { return int(r.unknown.Load()) }

// Fail records a failure of the workload itself.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Failure = errors.Join(r.history.Failure, err)
}

// History returns the recorded history. No call may be in progress.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history
}

// Commit returns the requirements and the updates of a call that commits, as JSON. If the call adds
// a snapshot, now is the snapshot's time in milliseconds since 1970, and its manifest list is below
// folder.
func (c Call) Commit(now int64, folder string) (requirements, updates string) {
	updates = fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, PropClient(c.Client), c.ID)
	if c.Table != "" {
		requirements = fmt.Sprintf(`{"type":"assert-table-uuid","uuid":%q}`, c.Table)
	}
	if c.Action == Append {
		required, parent := "null", ""
		if c.Parent != 0 {
			required, parent = fmt.Sprint(c.Parent), fmt.Sprintf(`"parent-snapshot-id":%d,`, c.Parent)
		}
		requirements += fmt.Sprintf(`,{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}`, required)
		updates += fmt.Sprintf(`,{"action":"add-snapshot","snapshot":{
			"snapshot-id":%[1]d,%[2]s"sequence-number":%[3]d,"timestamp-ms":%[4]d,
			"manifest-list":"%[5]s/%[1]d.avro","summary":{"operation":"append"},"schema-id":0}},
			{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%[1]d}`,
			c.Snapshot, parent, c.Sequence, now, folder)
	}
	return "[" + requirements + "]", "[" + updates + "]"
}
