package jobs_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"moorage/maintenance/jobs"
	"moorage/registry"
)

// TestLifeIsDrawn: docs/design/jobs.md draws exactly the moves of a job that the code allows.
func TestLifeIsDrawn(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/design/jobs.md")
	must(t, err)
	var drawn, allowed []string
	for _, found := range regexp.MustCompile(`(?m)^ +(\w+) --> (\w+): `).FindAllSubmatch(page, -1) {
		drawn = append(drawn, fmt.Sprintf("%s --> %s", found[1], found[2]))
	}
	for from, all := range jobs.Moves() {
		for _, to := range all {
			allowed = append(allowed, fmt.Sprintf("%s --> %s", from, to))
		}
	}
	slices.Sort(drawn)
	slices.Sort(allowed)
	if !slices.Equal(drawn, allowed) {
		t.Errorf("the page draws\n%q\nthe code allows\n%q", drawn, allowed)
	}
}

// lifeStore is a store that fails the test if a job makes a move that is not in jobs.Moves.
type lifeStore struct {
	registry.Store
	t testing.TB
}

func (w lifeStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	type move struct {
		record registry.Record
		to     registry.State
	}
	var moves []move
	for _, write := range batch.Writes {
		if write.Key.Table != registry.TableJob {
			continue
		}
		records, err := w.Store.Get(ctx, write.Key)
		if err != nil || !isRequired(batch.Conditions, records[0], write.Key) {
			continue // another process was faster, or the test itself writes
		}
		to := write.State
		if write.Delete {
			to = registry.StateNone
		}
		moves = append(moves, move{records[0], to})
	}
	etags, err := w.Store.Apply(ctx, batch)
	if err != nil {
		return etags, err
	}
	for _, m := range moves {
		from := m.record.State
		if !m.record.Exists() {
			from = registry.StateNone
		}
		if from != m.to && !slices.Contains(jobs.Moves()[from], m.to) {
			w.t.Errorf("%s went from %s to %s, which the diagram does not have", m.record.Key, from, m.to)
		}
	}
	return etags, nil
}

// isRequired reports whether one of conditions requires record to be unchanged.
func isRequired(conditions []registry.Condition, record registry.Record, key registry.Key) bool {
	if !record.Exists() {
		return slices.Contains(conditions, registry.Absent(key))
	}
	return slices.Contains(conditions, registry.ETagIs(key, record.ETag))
}
