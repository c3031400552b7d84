package leases_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// TestAskedAgainMeanwhile: a search reads that no policy requires a table's work. After that, a
// policy requires it again, or the table's own properties change. The table then stays due, whether
// there was a policy before or not.
func TestAskedAgainMeanwhile(t *testing.T) {
	t.Parallel()
	put := func(w *world, ident moorage.Identifier) {
		w.t.Helper()
		must(w.t, policy.New(w.ledger, nil).Put(w.ctx, w.catalog.As(moorage.Anonymous()).Scopes(), ident,
			policy.Asked{Type: policy.Compaction, Status: policy.Enabled, By: "ann"}, nil))
	}
	table := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: "t0"}
	for name, meanwhile := range map[string]func(w *world){
		"the server":    func(w *world) { put(w, moorage.Identifier{}) },
		"the warehouse": func(w *world) { put(w, moorage.Identifier{Warehouse: "w"}) },
		"the table":     func(w *world) { put(w, table) },
		"a property": func(w *world) {
			checked, err := jsontext.Check([]byte(`[{"action":"set-properties","updates":{"a":"b"}}]`))
			must(w.t, err)
			updates, err := metadata.DecodeUpdates(checked)
			must(w.t, err)
			_, err = w.catalog.As(moorage.Anonymous()).Commit(w.ctx, table, catalog.CommitRequest{Updates: updates})
			must(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.unasked = true
			w.meanwhile = func() { meanwhile(w) }
			w.wantNothing(ann, "nobody asked when it looked")
			if w.schedule(w.tables[0]).Value.Job(kind).Due.IsZero() {
				t.Error("it is not due any more")
			}
			w.unasked, w.meanwhile = false, func() {}
			w.claim(ann)
		})
	}
}

// TestUnreadableSchedule: an unreadable schedule does not keep callers from other tables, whether
// its table is due or was assigned to a program that died. If a caller gets nothing, the log gives
// the reason.
func TestUnreadableSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	dead := w.claim(ann)
	spoil := func(id registry.ID) {
		t.Helper()
		_, err := w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{
			registry.Put(registry.ScheduleKey(id), registry.StateNone, []byte("{")),
		}})
		must(t, err)
	}
	spoil(dead.Lease.ID.Pointer)
	w.advance(time.Minute)
	first := w.claim(bob)
	for _, id := range w.tables {
		if id != dead.Lease.ID.Pointer && id != first.Lease.ID.Pointer {
			spoil(id)
			break
		}
	}
	second := w.claim(bob)
	for _, each := range []leases.Assignment{first, second} {
		must(t, w.Finish(w.ctx, bob, each.Job, leases.AssignmentResult{Outcome: leases.OutcomeDone}))
	}
	w.wantNothing(bob, "the others cannot be read")
	if said := w.log.String(); !strings.Contains(said, "tables=2") || !strings.Contains(said, "schedule") {
		t.Errorf("the log says %q", said)
	}
}
