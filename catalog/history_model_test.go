package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"moorage"
	"moorage/metadata"
)

const (
	// historyCheckTimeout bounds the check of a history. One that does not end in time has shown nothing.
	historyCheckTimeout = time.Minute
	// historyProblemsMax is how many problems are printed.
	historyProblemsMax = 20
	// never is when a call ends whose outcome stays unknown: it may still happen after everything else.
	never = int64(1) << 62
)

// historyState is what the model knows of a group: the version that each name leads to.
type historyState [historyNames]placed

// find returns the name that leads to the table, -1 if none does.
func (s historyState) find(table string) int {
	return slices.IndexFunc(s[:], func(p placed) bool { return p.table == table })
}

func (s historyState) with(name int, p placed) historyState {
	s[name] = p
	return s
}

func (s historyState) renamed(from, to int) historyState {
	return s.with(to, s[from]).with(from, placed{})
}

// historyVersion is a version of a table, as its file tells.
type historyVersion struct {
	placed
	base     string // the file before it, "" for the first
	author   string // the call that made it
	document *metadata.Document
}

// historyChecker judges a history. Nothing in it looks at the catalog or its store.
type historyChecker struct {
	versions map[string]historyVersion   // by location; also those that were deleted since
	authored map[string][]historyVersion // by call
	faults   bool
	// followed holds the locations on which an acknowledged commit was made. A table cannot have been dropped with one of
	// them: no location comes back. Without knowing that, the search for an order tries every drop at every version.
	followed map[string]bool
}

// newHistoryChecker reads the files that were ever created.
func newHistoryChecker(files map[string][]byte, faults bool) (*historyChecker, error) {
	k := &historyChecker{versions: map[string]historyVersion{}, authored: map[string][]historyVersion{}, faults: faults, followed: map[string]bool{}}
	for location, body := range files {
		document, err := metadata.Parse(body)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", location, err)
		}
		v := historyVersion{placed: placed{document.UUID(), location}, document: document}
		v.author, _ = document.Property(propAuthor)
		if log := document.MetadataLog(); len(log) > 0 {
			v.base = log[len(log)-1].MetadataLocation
		}
		k.versions[location] = v
		k.authored[v.author] = append(k.authored[v.author], v)
	}
	return k, nil
}

// model says what a group of names is to one client alone.
func (k *historyChecker) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return historyState{} },
		Step: func(state, input, output any) (bool, any) {
			return k.step(state.(historyState), input.(historyCall), output.(historyAnswer))
		},
		Partition: func(operations []porcupine.Operation) [][]porcupine.Operation {
			groups := make([][]porcupine.Operation, historyGroups)
			for _, o := range operations {
				group := o.Input.(historyCall).group
				groups[group] = append(groups[group], o)
			}
			return groups
		},
		DescribeOperation: func(input, output any) string {
			return describeEvent(input.(historyCall), output.(historyAnswer))
		},
		DescribeState: func(state any) string { return fmt.Sprint(state) },
	}
}

// step tells whether the call could be answered so in state, and the state after it.
func (k *historyChecker) step(state historyState, call historyCall, answer historyAnswer) (bool, historyState) {
	switch {
	case answer.unknown():
		return true, k.perhaps(state, call)
	case answer.err != nil:
		return k.mayRefuse(state, call, moorage.KindOf(answer.err)), state
	}
	now := state[call.name]
	switch call.action {
	case actLoad, actRefresh:
		return now == answer.version(), state
	case actExists:
		return now != placed{}, state
	case actList:
		for name, listed := range answer.listed {
			if listed != (state[name] != placed{}) {
				return false, state
			}
		}
		return true, state
	case actCreate:
		return now == placed{}, state.with(call.name, answer.version())
	case actDrop:
		return k.mayEnd(now), state.with(call.name, placed{})
	case actUnregister:
		return now == answer.version(), state.with(call.name, placed{})
	case actRename:
		return now != placed{} && state[call.to] == placed{}, state.renamed(call.name, call.to)
	}
	return k.commit(state, call, answer.base(), answer.version())
}

// commit tells whether a commit could make next out of base, and the state after it.
func (k *historyChecker) commit(state historyState, call historyCall, base, next placed) (bool, historyState) {
	at := call.name
	if call.table != "" {
		at = state.find(call.table) // it follows the table to its new name
	}
	if at < 0 || state[at] != base {
		return false, state
	}
	if call.action == actAppend && k.head(base) != call.parent {
		return false, state
	}
	return true, state.with(at, next)
}

// mayEnd tells whether a table can have been dropped with its version p.
func (k *historyChecker) mayEnd(p placed) bool { return p != placed{} && !k.followed[p.location] }

// head returns the head of main in a version, 0 if there is none.
func (k *historyChecker) head(p placed) int64 {
	v, ok := k.versions[p.location]
	if !ok {
		return 0
	}
	return head(v.document)
}

// mayRefuse tells whether a call could be refused for such a reason.
func (k *historyChecker) mayRefuse(state historyState, call historyCall, kind moorage.Kind) bool {
	now := state[call.name]
	switch kind {
	case moorage.KindUnavailable:
		return k.faults
	case moorage.KindAlreadyExists:
		return call.action == actCreate && now != placed{} || call.action == actRename && state[call.to] != placed{}
	case moorage.KindNoSuchTable:
		return now == placed{} || call.table != "" && state.find(call.table) < 0
	case moorage.KindCommitFailed:
		if call.table == "" {
			return false // it required nothing
		}
		at := state.find(call.table)
		return now != placed{} && now.table != call.table ||
			call.action == actAppend && at >= 0 && k.head(state[at]) != call.parent
	}
	return false
}

// perhaps returns the state after a call that nobody knows to have happened: as if it happened where it can
// have, else as it was. Such a call has no end, so that the order may also put it behind everything else, where it
// does not matter what it does.
func (k *historyChecker) perhaps(state historyState, call historyCall) historyState {
	free := state[call.name] == placed{}
	switch call.action {
	case actDrop, actUnregister:
		if k.mayEnd(state[call.name]) {
			return state.with(call.name, placed{})
		}
	case actRename:
		if !free && state[call.to] == (placed{}) {
			return state.renamed(call.name, call.to)
		}
	case actCreate:
		for _, made := range k.authored[call.id] {
			if free {
				return state.with(call.name, made.placed)
			}
		}
	case actSet, actSetPinned, actAppend:
		for _, made := range k.authored[call.id] {
			if ok, next := k.commit(state, call, placed{made.table, made.base}, made.placed); ok {
				return next
			}
		}
	}
	return state
}

// contents returns what is wrong with the versions that were answered: each must be what its file holds,
// and the version that it was made on plus what the call asked for.
func (k *historyChecker) contents(events []historyEvent) []string {
	var problems []string
	for _, event := range events {
		call, answer := event.call, event.answer
		if answer.err != nil || answer.table == nil {
			continue
		}
		made, ok := k.versions[answer.table.MetadataLocation]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: there never was such a file", describeEvent(call, answer)))
			continue
		case !bytes.Equal(made.document.Raw(), answer.table.Document.Raw()):
			problems = append(problems, fmt.Sprintf("%s: the file holds something else", describeEvent(call, answer)))
		}
		switch call.action {
		case actCreate, actSet, actSetPinned, actAppend:
			if problem := k.commitContents(call, made); problem != "" {
				problems = append(problems, describeEvent(call, answer)+": "+problem)
			}
		}
	}
	return problems
}

// commitContents says what is wrong with a version that call made; "" if nothing is.
func (k *historyChecker) commitContents(call historyCall, made historyVersion) string {
	if made.author != call.id {
		return "the file was made by " + made.author
	}
	if call.action == actCreate {
		return ""
	}
	base, ok := k.versions[made.base]
	if !ok {
		return "the version before it never was"
	}
	want := base.document.Properties()
	want[propAuthor], want[propClient(call.client)] = call.id, call.id
	if got := made.document.Properties(); !maps.Equal(got, want) {
		return fmt.Sprintf("properties %v, want %v", got, want)
	}
	snapshots := snapshotIDs(base.document)
	if call.action == actAppend {
		snapshots = append(snapshots, call.snapshot)
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

// judge returns what is wrong with events, and porcupine's account if the order is.
func (k *historyChecker) judge(events []historyEvent) (problems []string, result porcupine.CheckResult, info porcupine.LinearizationInfo) {
	operations := make([]porcupine.Operation, len(events))
	for i, event := range events {
		to := event.to
		switch event.call.action {
		case actSet, actSetPinned, actAppend:
			if event.answer.err == nil {
				k.followed[event.answer.base().location] = true
			}
		}
		if event.answer.unknown() {
			to = never
		}
		operations[i] = porcupine.Operation{
			ClientId: event.call.client, Input: event.call, Call: event.from, Output: event.answer, Return: to,
		}
	}
	result, info = porcupine.CheckOperationsVerbose(k.model(), operations, historyCheckTimeout)
	return k.contents(events), result, info
}

// checkHistory fails the test unless the history is right.
func checkHistory(t *testing.T, system *historySystem, h history) {
	t.Helper()
	k, err := newHistoryChecker(system.files.all(), system.faults)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	problems, result, info := k.judge(h.events)
	t.Logf("checked in %s", time.Since(began).Round(time.Millisecond))
	for i, problem := range problems {
		if i == historyProblemsMax {
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
	for _, line := range firstUnexplained(h.events, info) {
		t.Log(line)
	}
}

// firstUnexplained describes, for each group, the calls behind the longest order that was found.
func firstUnexplained(events []historyEvent, info porcupine.LinearizationInfo) []string {
	var lines []string
	for group, orders := range info.PartialLinearizationsOperations() {
		explained := map[string]bool{}
		for _, order := range orders {
			if len(order) <= len(explained) {
				continue
			}
			clear(explained)
			for _, operation := range order {
				explained[operation.Input.(historyCall).id] = true
			}
		}
		var rest []historyEvent
		for _, event := range events {
			if event.call.group == group && !explained[event.call.id] && !event.answer.unknown() {
				rest = append(rest, event)
			}
		}
		slices.SortFunc(rest, func(a, b historyEvent) int { return int(a.from - b.from) })
		for i, event := range rest {
			if i == historyProblemsMax {
				break
			}
			lines = append(lines, fmt.Sprintf("not explained: %d to %d: %s", event.from, event.to, describeEvent(event.call, event.answer)))
		}
	}
	return lines
}

func describeEvent(call historyCall, answer historyAnswer) string {
	text := fmt.Sprintf("%s %s %s", call.id, call.action, call.ident())
	if call.action == actRename {
		text += " to " + groupIdent(call.group, call.to).String()
	}
	if call.table != "" {
		text += fmt.Sprintf(" of %s", call.table)
	}
	if call.action == actAppend {
		text += fmt.Sprintf(" after %d", call.parent)
	}
	switch {
	case answer.err != nil:
		return fmt.Sprintf("%s: %v", text, answer.err)
	case answer.table != nil:
		return fmt.Sprintf("%s: %s, made on %s", text, answer.table.MetadataLocation, answer.base().location)
	case call.action == actList:
		return fmt.Sprintf("%s: %v", text, answer.listed)
	}
	return text + ": done"
}
