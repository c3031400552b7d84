package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/testkit/servers"
)

// world collects the answers that the writers got, over all rounds.
type world struct {
	own     []*owner
	shared  sharedCount
	views   viewWorld
	round   int      // the last; -1 before the first
	commits []commit // to the common tables of the last round
	settled []settled
}

// settled is a common table of an earlier round. It does not change any more.
type settled struct{ namespace, table, location string }

func newWorld() *world {
	w := &world{round: -1, views: viewWorld{began: time.Now()}}
	for i := range writersCount {
		w.own = append(w.own, &owner{namespace: fmt.Sprintf("own%d", i), tables: map[string]ownTable{}})
	}
	return w
}

// commonNamespace returns the namespace for a round's common tables. Each round has its own, so
// that their histories stay short enough to read completely.
func commonNamespace(round int) string { return fmt.Sprintf("round%d", round) }
func commonTables() []string           { return []string{"t0", "t1", "t2"} }

// prepare creates the namespaces and tables for the writers of a round.
func (w *world) prepare(t *testing.T, c *servers.Client, number int) {
	t.Helper()
	must := func(a servers.Answer) {
		if a.Outcome != servers.Acknowledged {
			t.Errorf("prepare round %d: %d %s", number, a.Status, a.Text)
		}
	}
	if number == 0 {
		must(c.CreateNamespace(t.Context(), sharedNamespace))
		must(c.CreateNamespace(t.Context(), viewsNamespace))
		for _, o := range w.own {
			must(c.CreateNamespace(t.Context(), o.namespace))
		}
	}
	must(c.CreateNamespace(t.Context(), commonNamespace(number)))
	for _, table := range commonTables() {
		must(c.Create(t.Context(), commonNamespace(number), table, map[string]string{
			"write.metadata.previous-versions-max": "100000",
		}))
	}
	w.round, w.commits = number, nil
}

// take adds the answers that a writer got.
func (w *world) take(t *testing.T, from *writer) {
	t.Helper()
	for _, problem := range from.problems {
		t.Errorf("writer %d: %s", from.number, problem)
	}
	w.commits = append(w.commits, from.commits...)
	w.shared.add(from.shared)
	w.views.take(from.views)
}

// summary counts the commits to the common tables of the last round, and the changes of views in
// all rounds.
func (w *world) summary() string {
	var counts [3]int
	for _, made := range w.commits {
		counts[made.outcome]++
	}
	return fmt.Sprintf("commits to common tables: %d acknowledged, %d refused, %d unknown; in all %d versions and %d drops of views",
		counts[servers.Acknowledged], counts[servers.Refused], counts[servers.Unknown], w.views.versions, w.views.drops)
}

// verify compares the server's data with the answers that the writers got.
func (w *world) verify(t *testing.T, c *servers.Client) {
	t.Helper()
	ctx := t.Context()
	for _, o := range w.own {
		if w.round >= 0 {
			report(t, o.verify(ctx, c))
		}
	}
	if w.round < 0 {
		return
	}
	report(t, w.verifyShared(ctx, c))
	w.views.verify(t, c)
	w.verifySettled(t, c, settledLooks)
	namespace := commonNamespace(w.round)
	for _, table := range commonTables() {
		a := c.Load(ctx, namespace, table)
		if a.Outcome != servers.Acknowledged {
			t.Errorf("load %s.%s: %d %s", namespace, table, a.Status, a.Text)
			continue
		}
		var commits []commit
		for _, made := range w.commits {
			if made.table == table {
				commits = append(commits, made)
			}
		}
		report(t, verifyTable(a.Table, commits))
		w.settled = append(w.settled, settled{namespace, table, a.Table.Location})
	}
}

// settledLooks is the number of earlier rounds' tables that each round checks.
const settledLooks = 60

// verifySettled checks the last count tables of earlier rounds.
func (w *world) verifySettled(t *testing.T, c *servers.Client, count int) {
	t.Helper()
	for _, old := range w.settled[max(0, len(w.settled)-count):] {
		a := c.Load(t.Context(), old.namespace, old.table)
		if a.Table.Location != old.location {
			t.Errorf("%s.%s, which nobody changed, is at %q, want %s (status %d)", old.namespace, old.table, a.Table.Location, old.location, a.Status)
		}
	}
}

func report(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// verifyShared compares the number of tables in the shared namespace with the number expected from
// creates and drops. It also loads each of them.
func (w *world) verifyShared(ctx context.Context, c *servers.Client) error {
	names, err := c.List(ctx, sharedNamespace)
	if err != nil {
		return err
	}
	least, most := w.shared.live-w.shared.maybeFewer, w.shared.live+w.shared.maybeMore
	if len(names) < least || len(names) > most {
		return fmt.Errorf("%s holds %v, want %d to %d tables", sharedNamespace, names, least, most)
	}
	w.shared = sharedCount{live: len(names)}
	uuids := map[string]string{}
	for _, name := range names {
		a := c.Load(ctx, sharedNamespace, name)
		if a.Outcome != servers.Acknowledged {
			return fmt.Errorf("load %s.%s: %d %s", sharedNamespace, name, a.Status, a.Text)
		}
		if other, twice := uuids[a.Table.Metadata.UUID]; twice {
			return fmt.Errorf("%s and %s are the same table", name, other)
		}
		uuids[a.Table.Metadata.UUID] = name
	}
	return nil
}

// version is one version in a table's history.
type version struct {
	location string
	document servers.Document
}

// readHistory reads all versions of a table from their files, oldest first.
func readHistory(last servers.Loaded) ([]version, error) {
	var locations []string
	for _, entry := range last.Metadata.Log {
		locations = append(locations, entry.File)
	}
	var history []version
	for _, location := range append(locations, last.Location) {
		raw, err := os.ReadFile(strings.TrimPrefix(location, "file://"))
		if err != nil {
			return nil, fmt.Errorf("a version in the metadata log: %w", err)
		}
		v := version{location: location}
		if err := json.Unmarshal(raw, &v.document); err != nil {
			return nil, fmt.Errorf("read %s: %w", location, err)
		}
		history = append(history, v)
	}
	return history, nil
}

// verifyTable compares the history of a common table with the outcomes of the commits to it.
func verifyTable(last servers.Loaded, commits []commit) error {
	history, err := readHistory(last)
	if err != nil {
		return err
	}
	byID := map[string]commit{}
	for _, made := range commits {
		byID[made.id] = made
	}
	problems := []error{}
	at := map[string][]string{} // the first versions that show each commit
	for i, v := range history[1:] {
		var authors []commit
		for _, id := range authorsOf(history[i], v) {
			at[id] = append(at[id], v.location)
			made, ok := byID[id]
			if !ok {
				problems = append(problems, fmt.Errorf("%s was made by %q, which nobody asked for", v.location, id))
			}
			authors = append(authors, made)
		}
		problems = append(problems, verifyStep(history[i], v, authors))
	}
	for _, made := range commits {
		found := at[made.id]
		switch {
		case made.outcome == servers.Acknowledged && !slices.Equal(found, []string{made.location}):
			problems = append(problems, fmt.Errorf("commit %s was acknowledged at %s and is at %v", made.id, made.location, found))
		case made.outcome == servers.Refused && len(found) > 0:
			problems = append(problems, fmt.Errorf("commit %s was refused and is at %v", made.id, found))
		case made.outcome == servers.Unknown && len(found) > 1:
			problems = append(problems, fmt.Errorf("commit %s happened more than once, at %v", made.id, found))
		}
	}
	return errors.Join(problems...)
}

// authorsOf returns the commits that turned the version before into after.
func authorsOf(before, after version) (ids []string) {
	for name, id := range after.document.Properties {
		if strings.HasPrefix(name, propWriterPrefix) && id != before.document.Properties[name] {
			ids = append(ids, id)
		}
	}
	return ids
}

// verifyStep compares a version with the one before it. The version must differ by exactly the
// changes of its authors, and at most one of them may append.
func verifyStep(before, after version, authors []commit) error {
	log := after.document.Log
	if len(log) == 0 || log[len(log)-1].File != before.location {
		return fmt.Errorf("%s was not made of %s, which stands before it", after.location, before.location)
	}
	properties := maps.Clone(before.document.Properties)
	var added []int64
	for _, made := range authors {
		properties[propWriter(made.writer)] = made.id
		if made.snapshot != 0 {
			added = append(added, made.snapshot)
		}
	}
	snapshots, head := before.document.Snapshots, before.document.Head()
	switch {
	case len(authors) == 0 || len(added) > 1:
		return fmt.Errorf("%s was made by %d commits, %d of which append", after.location, len(authors), len(added))
	case !maps.Equal(properties, after.document.Properties):
		return fmt.Errorf("%s has the properties %v, want %v", after.location, after.document.Properties, properties)
	case len(after.document.Snapshots) != len(snapshots)+len(added):
		return fmt.Errorf("%s has %d snapshots, want %d", after.location, len(after.document.Snapshots),
			len(snapshots)+len(added))
	case len(added) == 0 && after.document.Head() != head:
		return fmt.Errorf("%s has the head %d, want %d", after.location, after.document.Head(), head)
	case len(added) == 0:
		return nil
	case after.document.Head() != added[0]:
		return fmt.Errorf("%s has the head %d, want %d", after.location, after.document.Head(), added[0])
	}
	last, parent := after.document.Snapshots[len(snapshots)], int64(0)
	if last.Parent != nil {
		parent = *last.Parent
	}
	if last.ID != added[0] || parent != head {
		return fmt.Errorf("%s adds snapshot %d after %d, want %d after %d", after.location, last.ID, parent, added[0], head)
	}
	return nil
}
