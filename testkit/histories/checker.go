package histories

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
	// checkTimeout limits the search for an order. A search that does not end in time has no
	// result.
	checkTimeout = 5 * time.Minute
	// problemsMax is the maximum number of problems printed.
	problemsMax = 20
)

// version is a version of a table, read from its metadata file.
type version struct {
	Version
	base     string   // the previous file, "" for the first
	authors  []string // the calls that made the version; empty if the previous file is missing
	document *metadata.Document
}

// Checker judges a history. It does not use the catalog or its store. It is safe for concurrent
// use.
type Checker struct {
	files    map[string]version   // by location; including deleted files
	authored map[string][]version // by call
	faults   bool
}

// NewChecker returns a Checker. files holds all metadata files that were ever created, by location.
// If faults is true, calls may fail with KindUnavailable.
func NewChecker(files map[string][]byte, faults bool) (*Checker, error) {
	k := &Checker{files: map[string]version{}, authored: map[string][]version{}, faults: faults}
	for location, body := range files {
		document, err := metadata.Parse(body)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", location, err)
		}
		found := Found(location, document)
		k.files[location] = version{Version: found.Version, base: found.Base, document: document}
	}
	for location, v := range k.files {
		if base := k.files[v.base]; v.base == "" || base.document != nil {
			v.authors = Authors(base.document, v.document)
		}
		k.files[location] = v
		for _, author := range v.authors {
			k.authored[author] = append(k.authored[author], v)
		}
	}
	return k, nil
}

// Head returns the id of main's snapshot, or 0 if there is none.
func Head(document *metadata.Document) int64 {
	id, ok := document.CurrentSnapshotID()
	if !ok {
		return 0
	}
	return id
}

// Judge returns the problems of the versions in events. It also returns whether the calls of each
// group can be put into an order that explains the answers.
func (k *Checker) Judge(events []Event) (problems []string, result porcupine.CheckResult) {
	result = porcupine.Ok
	for _, v := range k.judgeGroups(events) {
		if v.result == porcupine.Illegal || result == porcupine.Ok {
			result = v.result
		}
	}
	return k.contents(events), result
}

// judgeGroups judges each group separately, as many at a time as there are processors.
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
	_ = search.Wait() // no function returns an error
	return verdicts
}

// sightings returns the locations of the versions that are known to have been current: the versions
// in answers, and their previous versions. The value is the end of the first call that shows the
// version.
func (k *Checker) sightings(events []Event) map[string]int64 {
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.To, b.To) })
	seen := map[string]int64{}
	for _, event := range events {
		if event.Answer.Err != nil {
			continue
		}
		for location := event.Answer.Location; location != ""; location = k.files[location].base {
			if _, before := seen[location]; before {
				break
			}
			seen[location] = event.To
		}
	}
	return seen
}

// Shared counts the versions that are known to have been current and were made by commits. It also
// returns how many of them were made by several commits together.
func (k *Checker) Shared(events []Event) (versions, shared int) {
	for location := range k.sightings(events) {
		v := k.files[location]
		if v.base != "" {
			versions++
		}
		if len(v.authors) > 1 {
			shared++
		}
	}
	return versions, shared
}

// contents returns the problems of the versions that are known to have been current. Each answer
// must equal its version's file, and contain the effect of its call. Each version must be the
// previous version with the changes of all the calls that made it.
func (k *Checker) contents(events []Event) []string {
	var problems []string
	calls := map[string]Event{}
	for _, event := range events {
		call, answer := event.Call, event.Answer
		calls[call.ID] = event
		if answer.Err != nil || answer.Version == (Version{}) {
			continue
		}
		made, ok := k.files[answer.Location]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: there never was such a file", event))
		case sha256.Sum256(made.document.Raw()) != answer.Sum:
			problems = append(problems, fmt.Sprintf("%s: the file holds something else", event))
		case call.Action.Writes() && !slices.Contains(made.authors, call.ID):
			problems = append(problems, fmt.Sprintf("%s: the file was made by %q", event, made.authors))
		}
	}
	seen := k.sightings(events)
	happened := map[string]string{} // the location of the version that a call made, by call
	for _, location := range slices.Sorted(maps.Keys(seen)) {
		made, ok := k.files[location]
		if !ok {
			continue // covered by the other checks
		}
		if problem := k.versionContents(made, calls); problem != "" {
			problems = append(problems, location+": "+problem)
		}
		for _, author := range made.authors {
			event, before := calls[author], happened[author]
			happened[author] = location
			switch {
			case before != "":
				problems = append(problems, fmt.Sprintf("%s: it happened twice, in %s and %s", event, before, location))
			case event.Answer.Err != nil && !event.Answer.Unknown():
				problems = append(problems, fmt.Sprintf("%s: it happened in %s", event, location))
			case event.From > seen[location]:
				problems = append(problems, fmt.Sprintf("%s: %s was seen before", event, location))
			}
		}
	}
	return problems
}

// versionContents returns the problem of a version, or "".
func (k *Checker) versionContents(made version, calls map[string]Event) string {
	if made.base == "" {
		if len(made.authors) != 1 || calls[made.authors[0]].Call.Action != Create {
			return fmt.Sprintf("the first version was made by %q", made.authors)
		}
		return ""
	}
	base, ok := k.files[made.base]
	if !ok {
		return "the version before it never was"
	}
	properties, snapshots, head := base.document.Properties(), snapshotIDs(base.document), Head(base.document)
	appends := 0
	for _, author := range made.authors {
		call := calls[author].Call
		switch {
		case !call.Action.commits():
			return fmt.Sprintf("it was made by %q, which is no commit", author)
		case call.Action == Append && call.Parent != Head(base.document):
			return fmt.Sprintf("%s appends to %d, the head before it is %d", author, call.Parent, Head(base.document))
		case call.Action == Append:
			snapshots, head = append(snapshots, call.Snapshot), call.Snapshot
			appends++
		}
		properties[PropClient(call.Client)] = author
	}
	switch got := made.document; {
	case len(made.authors) == 0:
		return "nobody made it"
	case appends > 1:
		return fmt.Sprintf("%d of %q append", appends, made.authors)
	case !maps.Equal(got.Properties(), properties):
		return fmt.Sprintf("properties %v, want %v", got.Properties(), properties)
	case !slices.Equal(snapshotIDs(got), snapshots) || Head(got) != head:
		return fmt.Sprintf("snapshots %v with head %d, want %v with head %d",
			snapshotIDs(got), Head(got), snapshots, head)
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

// Check fails the test if the events have a problem. In that case, with -artifacts, it also writes
// a picture of the events.
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

// unexplained describes the first calls after the longest order that was found.
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
