package historytest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"moorage/metadata"
)

const (
	// checkTimeout bounds the search for an order. A search that does not end in time has shown
	// nothing.
	checkTimeout = 5 * time.Minute
	// problemsMax is how many problems are printed.
	problemsMax = 20
)

// version is a version of a table, as its file describes it.
type version struct {
	Version
	base     string // the file before it, "" for the first
	author   string // the call that made it
	document *metadata.Document
}

// Checker judges a history. Nothing in it looks at the catalog or its store. It is safe for
// concurrent use.
type Checker struct {
	files    map[string]version   // by location; also those that were deleted since
	authored map[string][]version // by call
	faults   bool
}

// NewChecker reads the metadata files that were ever created, by their locations. With faults,
// calls may have been refused as unavailable.
func NewChecker(files map[string][]byte, faults bool) (*Checker, error) {
	k := &Checker{files: map[string]version{}, authored: map[string][]version{}, faults: faults}
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

// Judge returns what is wrong with the versions in events, and whether there is an order of the
// calls of each group.
func (k *Checker) Judge(events []Event) (problems []string, result porcupine.CheckResult) {
	result = porcupine.Ok
	for _, v := range k.judgeGroups(events) {
		if v.result == porcupine.Illegal || result == porcupine.Ok {
			result = v.result
		}
	}
	return k.contents(events), result
}

// judgeGroups judges each group by itself, as many at a time as there are processors.
func (k *Checker) judgeGroups(events []Event) []verdict {
	groups := map[int][]Event{}
	for _, event := range events {
		groups[event.Call.Group] = append(groups[event.Call.Group], event)
	}
	verdicts := make([]verdict, len(groups))
	var search errgroup.Group
	search.SetLimit(runtime.GOMAXPROCS(0))
	for i, group := range slices.Sorted(maps.Keys(groups)) {
		search.Go(func() error {
			verdicts[i] = k.judgeGroup(groups[group])
			return nil
		})
	}
	_ = search.Wait() // none returns an error
	return verdicts
}

// contents returns what is wrong with the versions that were answered. Each must be what its file
// holds: the version on which it was made plus what the call asked for.
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

// commitContents returns what is wrong with a version that call made, or "".
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

// Check fails the test unless the events are right. With -artifacts it keeps a picture of those
// that are not.
func (k *Checker) Check(t testing.TB, events []Event) {
	t.Helper()
	for i, problem := range k.contents(events) {
		if i == problemsMax {
			t.Error("and more of that")
			break
		}
		t.Error(problem)
	}
	for _, v := range k.judgeGroups(events) {
		if v.result == porcupine.Ok {
			continue
		}
		group := v.events[0].Call.Group
		picture := filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.html", group))
		if err := porcupine.VisualizePath(v.model, v.info, picture); err != nil {
			t.Error(err)
		}
		t.Errorf("no order of the calls in group %d explains all answers (%s); -artifacts keeps the picture %s",
			group, v.result, picture)
		for _, line := range v.unexplained() {
			t.Log(line)
		}
	}
}

// unexplained describes the first calls behind the longest order that was found.
func (v verdict) unexplained() []string {
	longest := map[string]bool{}
	for _, orders := range v.info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) <= len(longest) {
				continue
			}
			clear(longest)
			for _, operation := range order {
				longest[operation.Input.(Call).ID] = true
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(v.events), func(e Event) bool {
		return longest[e.Call.ID] ||
			e.Answer.Unknown()
	})
	slices.SortFunc(rest, func(a, b Event) int { return cmp.Compare(a.From, b.From) })
	var lines []string
	for _, event := range rest[:min(len(rest), problemsMax)] {
		lines = append(lines, fmt.Sprintf("not explained: %d to %d: %s", event.From, event.To, event))
	}
	return lines
}
