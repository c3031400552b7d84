package historytest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"moorage/metadata"
)

const (
	// checkTimeout bounds the search for an order. One that does not end in time has shown nothing.
	checkTimeout = time.Minute
	// problemsMax is how many problems are printed.
	problemsMax = 20
	// never is when a call ends whose outcome stays unknown: it may still happen after everything else.
	never = int64(1) << 62
	// end stands in the order of a group where all calls that were answered are over.
	end Action = "end"
)

// version is a version of a table, as its file tells.
type version struct {
	Version
	base     string // the file before it, "" for the first
	author   string // the call that made it
	document *metadata.Document
}

// Checker judges a history. Nothing in it looks at the catalog or its store. It is not safe for concurrent use.
type Checker struct {
	files    map[string]version   // by location; also those that were deleted since
	authored map[string][]version // by call
	faults   bool
	// followed holds the locations on which another version was certainly made. A table cannot have been dropped with one of
	// them: no location comes back. Without knowing that, the search for an order tries every drop at every version.
	followed map[string]bool
}

// NewChecker reads the metadata files that were ever created, by their locations. With faults, calls may have been refused
// as unavailable.
func NewChecker(files map[string][]byte, faults bool) (*Checker, error) {
	k := &Checker{files: map[string]version{}, authored: map[string][]version{}, faults: faults, followed: map[string]bool{}}
	for location, body := range files {
		document, err := metadata.Parse(body)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", location, err)
		}
		v := version{Version: Version{document.UUID(), location}, document: document}
		v.author, _ = document.Property(PropAuthor)
		if log := document.MetadataLog(); len(log) > 0 {
			v.base = log[len(log)-1].MetadataLocation
		}
		k.files[location] = v
		k.authored[v.author] = append(k.authored[v.author], v)
	}
	return k, nil
}

// Head returns the snapshot that main points to, 0 if there is none.
func Head(document *metadata.Document) int64 {
	id, ok := document.CurrentSnapshotID()
	if !ok {
		return 0
	}
	return id
}

// model says what a group of names is to one client alone.
func (k *Checker) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, output any) (bool, any) {
			return k.step(s.(state), input.(Call), output.(Answer))
		},
		Partition: func(operations []porcupine.Operation) [][]porcupine.Operation {
			groups := map[int][]porcupine.Operation{}
			for _, o := range operations {
				group := o.Input.(Call).Group
				groups[group] = append(groups[group], o)
			}
			var parts [][]porcupine.Operation
			for _, group := range slices.Sorted(maps.Keys(groups)) {
				parts = append(parts, groups[group])
			}
			return parts
		},
		DescribeOperation: func(input, output any) string { return describe(input.(Call), output.(Answer)) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
}

// Judge returns what is wrong with the versions in events, and porcupine's account of their order.
func (k *Checker) Judge(events []Event) (problems []string, result porcupine.CheckResult, info porcupine.LinearizationInfo) {
	seen := k.seen(events)
	var operations []porcupine.Operation
	ends := map[int]int64{} // of the groups
	clients := 0
	for _, event := range events {
		clients = max(clients, event.Call.Client+1)
		to := event.To
		if event.Answer.Unknown() {
			if k.leftNothing(event.Call, seen) {
				continue
			}
			to = never
		}
		ends[event.Call.Group] = max(ends[event.Call.Group], event.From, event.To)
		operations = append(operations, porcupine.Operation{
			ClientId: event.Call.Client, Input: event.Call, Call: event.From, Output: event.Answer, Return: to,
		})
	}
	for group, last := range ends {
		operations = append(operations, porcupine.Operation{
			ClientId: clients, Input: Call{Action: end, Group: group}, Call: last + 1, Output: Answer{}, Return: last + 2,
		})
	}
	result, info = porcupine.CheckOperationsVerbose(k.model(), operations, checkTimeout)
	return k.contents(events), result, info
}

// seen returns the locations of the versions that certainly were current once: those that were answered, and those
// that they were made on. It fills in what was followed.
func (k *Checker) seen(events []Event) map[string]bool {
	seen := map[string]bool{}
	for _, event := range events {
		if event.Answer.Err != nil {
			continue
		}
		for location := event.Answer.Location; location != "" && !seen[location]; {
			seen[location] = true
			location = k.files[location].base
			if location != "" {
				k.followed[location] = true
			}
		}
	}
	return seen
}

// leftNothing tells whether nobody saw anything of a call whose outcome is unknown, so that it may as well have happened
// after everything else. The search for an order is much shorter without such calls.
func (k *Checker) leftNothing(call Call, seen map[string]bool) bool {
	made := k.authored[call.ID]
	if call.Action == Create {
		return len(made) == 0 // without a file it did not come to write a record
	}
	return call.Action.commits() && !slices.ContainsFunc(made, func(v version) bool { return seen[v.Location] })
}

// contents returns what is wrong with the versions that were answered: each must be what its file holds,
// and the version that it was made on plus what the call asked for.
func (k *Checker) contents(events []Event) []string {
	var problems []string
	for _, event := range events {
		call, answer := event.Call, event.Answer
		if answer.Err != nil || answer.Version == (Version{}) {
			continue
		}
		made, ok := k.files[answer.Location]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: there never was such a file", event))
			continue
		case sha256.Sum256(made.document.Raw()) != answer.Sum:
			problems = append(problems, fmt.Sprintf("%s: the file holds something else", event))
		}
		if call.Action.Writes() {
			if problem := k.commitContents(call, made); problem != "" {
				problems = append(problems, event.String()+": "+problem)
			}
		}
	}
	return problems
}

// commitContents says what is wrong with a version that call made; "" if nothing is.
func (k *Checker) commitContents(call Call, made version) string {
	if made.author != call.ID {
		return "the file was made by " + made.author
	}
	if call.Action == Create {
		return ""
	}
	base, ok := k.files[made.base]
	if !ok {
		return "the version before it never was"
	}
	want := base.document.Properties()
	want[PropAuthor], want[PropClient(call.Client)] = call.ID, call.ID
	if got := made.document.Properties(); !maps.Equal(got, want) {
		return fmt.Sprintf("properties %v, want %v", got, want)
	}
	snapshots := snapshotIDs(base.document)
	if call.Action == Append {
		snapshots = append(snapshots, call.Snapshot)
	}
	if got := snapshotIDs(made.document); !slices.Equal(got, snapshots) {
		return fmt.Sprintf("snapshots %v, want %v", got, snapshots)
	}
	return ""
}

func snapshotIDs(document *metadata.Document) []int64 {
	var ids []int64
	for snapshot := range document.Snapshots() {
		ids = append(ids, snapshot.ID)
	}
	return ids
}

// Check fails the test unless the events are right. With -artifacts it keeps a picture of those that are not.
func (k *Checker) Check(t testing.TB, events []Event) {
	t.Helper()
	problems, result, info := k.Judge(events)
	for i, problem := range problems {
		if i == problemsMax {
			t.Errorf("and %d more", len(problems)-i)
			break
		}
		t.Error(problem)
	}
	if result == porcupine.Ok {
		return
	}
	picture := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(k.model(), info, picture); err != nil {
		t.Error(err)
	}
	t.Errorf("there is no order of the calls that explains all answers (%s); -artifacts keeps the picture %s", result, picture)
	for _, line := range firstUnexplained(events, info) {
		t.Log(line)
	}
}

// firstUnexplained describes, for each part, the calls behind the longest order that was found.
func firstUnexplained(events []Event, info porcupine.LinearizationInfo) []string {
	var lines []string
	for _, orders := range info.PartialLinearizationsOperations() {
		explained := map[string]bool{}
		group := -1
		for _, order := range orders {
			if len(order) <= len(explained) {
				continue
			}
			clear(explained)
			for _, operation := range order {
				call := operation.Input.(Call)
				explained[call.ID], group = true, call.Group
			}
		}
		var rest []Event
		for _, event := range events {
			if event.Call.Group == group && !explained[event.Call.ID] && !event.Answer.Unknown() {
				rest = append(rest, event)
			}
		}
		slices.SortFunc(rest, func(a, b Event) int { return int(a.From - b.From) })
		for i, event := range rest {
			if i == problemsMax {
				break
			}
			lines = append(lines, fmt.Sprintf("not explained: %d to %d: %s", event.From, event.To, event))
		}
	}
	return lines
}
