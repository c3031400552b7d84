package due_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/maintenance/due"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/testkit/registrytest"
)

// preview returns what a policy would do, page by page.
func (w *world) preview(scope moorage.Identifier, asked policy.Asked) []due.Preview {
	w.t.Helper()
	s := &due.Control{
		Ledger: registrytest.Ledger(w.store), Policies: w.policies, Jobs: w.jobs,
		Tables: w.catalog.As(moorage.System("expire")).Tables(),
	}
	var all []due.Preview
	for after := ""; ; {
		page, next, err := s.Preview(w.ctx, w.ann().Scopes(), scope, asked, after, 1)
		must(w.t, err)
		if len(page) > 1 {
			w.t.Errorf("a page of %d tables", len(page))
		}
		all = append(all, page...)
		if after = next; after == "" {
			return all
		}
	}
}

// TestPreview: a preview shows, for each table of a scope, what a policy would do before it takes
// effect. The preview writes nothing.
func TestPreview(t *testing.T) { overStores(t, testPreview) }

func testPreview(t *testing.T, w *world) {
	for i, name := range []string{"many", "held", "own"} {
		_, history := w.table(name, uint64(i))
		for range 6 {
			w.clock.Advance(time.Second)
			w.commit(name, history.Append("main", 1)...)
		}
	}
	w.commit("held", `{"action":"set-properties","updates":{"gc.enabled":"false"}}`)
	must(t, w.policies.Put(w.ctx, w.ann().Scopes(), ident("own"), policy.Asked{
		Type: policy.SnapshotManagement, Status: policy.Disabled, By: "ann",
	}, nil))
	w.clock.Advance(3 * time.Hour)
	w.store.take()
	asked := policy.Asked{
		Type: policy.SnapshotManagement, Status: policy.Enabled, Settings: policy.Settings{policy.MaxSnapshotAgeHours: "2"},
	}
	for scope, want := range map[string]int{"server": 3, "w": 3, "ns": 3, "other": 0, "many": 1} {
		on := moorage.Identifier{}
		switch scope {
		case "w":
			on = warehouse
		case "ns":
			on = moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}}
		case "other":
			on = moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"other"}}
			_, err := w.ann().CreateNamespace(w.ctx, "w", on.Namespace, nil)
			must(t, err)
			w.store.take()
		case "many":
			on = ident("many")
		}
		found := w.preview(on, asked)
		if len(found) != want {
			t.Errorf("the preview of %s: %+v", scope, found)
		}
		for _, each := range found {
			expires, nothing := len(each.Run.Expiry.Snapshots), each.Nothing
			wantExpires, wantNothing := map[string]int{"many": 5}[each.Table.Name], map[string]string{
				"held": policy.HeldCollection, "own": "the table ns.own says no",
			}[each.Table.Name]
			if expires != wantExpires || nothing != wantNothing || each.Failed != "" || (each.Run.Files > 0) != (expires > 0) {
				t.Errorf("the preview of %s: %+v", scope, each)
			}
		}
	}
	for _, call := range w.store.take() {
		if strings.HasPrefix(call, "Apply") {
			t.Errorf("a preview calls %s", call)
		}
	}
	w.previewOfOthers(t)
}

// previewOfOthers checks previews of the other types, and one that is refused.
func (w *world) previewOfOthers(t *testing.T) {
	orphans := policy.Asked{Type: policy.UnreferencedFileRemoval, Status: policy.Enabled}
	if found := w.preview(ident("many"), orphans); !strings.Contains(found[0].Nothing, "includeOlder") {
		t.Errorf("orphans: %+v", found)
	}
	orphans.Settings = policy.Settings{policy.IncludeOlder: "true"}
	if found := w.preview(ident("many"), orphans); found[0].Nothing != "" || found[0].Run.Reach == "" {
		t.Errorf("orphans, also old ones: %+v", found)
	}
	// These snapshots do not record the number of files, so it is unknown whether the table has
	// many.
	compaction := policy.Asked{Type: policy.Compaction, Status: policy.Enabled}
	if found := w.preview(ident("many"), compaction); found[0].Due || found[0].Files != metadata.Unsaid {
		t.Errorf("compaction: %+v", found)
	}
	w.table("full", 7)
	w.commit("full", fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":%d,`+
		`"manifest-list":"file:///wh/ns/full/metadata/l.avro","summary":{"operation":"append","total-data-files":"6"},"schema-id":0}}`,
		w.clock.Now().UnixMilli()), `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}`)
	if found := w.preview(ident("full"), compaction); !found[0].Due || found[0].Files != 6 {
		t.Errorf("compaction of six files: %+v", found)
	}
	s := &due.Control{}
	_, _, err := s.Preview(w.ctx, w.ann().Scopes(), warehouse, policy.Asked{Type: policy.Compaction}, "", 1)
	if moorage.KindOf(err) != moorage.KindIllegalArgument {
		t.Errorf("a policy without a status: %v", err)
	}
}
