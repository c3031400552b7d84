package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	g "maragu.dev/gomponents"

	"moorage/management/client"
)

var update = flag.Bool("update", false, "write the golden files")

// now is the time of all golden pages.
var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// hostile is a name that tries everything: markup, a mark that turns the direction of text round, a
// control character, and length.
const hostile = `"><script>alert(1)</script>` + "\u202e\x07&'" + "<b>"

func point[T any](value T) *T { return &value }

func at(ago time.Duration) *time.Time { return point(now.Add(-ago)) }

var ships = client.Object{Warehouse: "default", Namespace: []string{"harbour"}, Table: "ships"}

// head returns the head of a table's pages.
func head(o client.Object) tableHead {
	return tableHead{now: now, object: o, details: &client.ObjectDetails{
		Row: client.Row{
			Kind: client.KindTable, Warehouse: o.Warehouse, Namespace: o.Namespace, Name: o.Table, UUID: "0b1", By: "key:etl",
			Summary: &client.ObjectSummary{
				Format: 2, At: at(22 * time.Minute), Rows: point(int64(50_100_000)), Bytes: point(int64(81e9)), Files: point(int64(812)),
				Deletes: point(int64(3)), Snapshots: point(int64(120)), Operation: "append", Engine: "spark 4.1",
			},
		},
		Owner: "analysts", Location: "s3://lake/" + o.Table, Properties: map[string]string{"comment": o.Table, "owner": o.Table},
		Columns: []client.Column{
			{ID: 1, Path: "id", Type: "long", Required: true}, {ID: 2, Path: o.Table, Type: "struct", Doc: o.Table},
			{ID: 3, Path: o.Table + ".city", Type: "string"},
		},
		Labels: &client.Labels{
			ObjectLabels: map[string]string{"team": o.Table},
			Fields:       []client.FieldLabels{{FieldID: 3, Labels: map[string]string{"classification": "pii"}}},
		},
	}}
}

// documentOf returns the metadata of a table with three snapshots. Two of them have the same
// parent.
func documentOf(name string) *document {
	return &document{
		Format: 2, Schemas: []schema{{ID: 0, Fields: []schemaField{
			{ID: 1, Name: "id", Type: []byte(`"long"`)}, {ID: 2, Name: name, Type: []byte(`"string"`), Write: []byte(`"x"`)},
		}, Identifier: []int{1}}},
		Specs: []spec{{Fields: []specField{{Source: 2, Transform: "month"}}}}, Current: point(int64(3)),
		Orders: []sortOrder{{Fields: []sortField{{Source: 1, Transform: "identity", Direction: "desc", Nulls: "nulls-last"}}}},
		Snapshots: []snapshot{
			{ID: 1, Sequence: 1, MS: now.Add(-3 * time.Hour).UnixMilli(), Summary: map[string]string{"operation": "append", "added-records": "5", "total-records": "5"}},
			{ID: 2, Parent: point(int64(1)), Sequence: 2, MS: now.Add(-2 * time.Hour).UnixMilli(), Summary: map[string]string{"operation": name}},
			{ID: 3, Parent: point(int64(1)), Sequence: 3, MS: now.Add(-time.Hour).UnixMilli(), Summary: map[string]string{"operation": "overwrite", "total-records": "12"}, Manifest: "s3://lake/list.avro"},
		},
		Refs: map[string]ref{"main": {Snapshot: 3, Type: "branch"}, name: {Snapshot: 2, Type: "branch"}, "eod": {Snapshot: 1, Type: "tag"}},
	}
}

// events returns what happened to a table, the newest first.
func events(o client.Object) []client.Event {
	made := []client.Event{
		{Time: now.Add(-time.Minute), Operation: "drop-table", Purge: true, Caller: "bob@corp", Client: "Apache Iceberg 1.12.0", RequestID: "U34MA46H7O-5"},
		{Time: now.Add(-time.Hour), Operation: "update-table", Caller: "key:etl", Actions: []string{"add-snapshot", "set-snapshot-ref main"},
			MetadataLocation: "s3://lake/m/00002-" + o.Table + ".metadata.json",
			Summary:          &client.EventSummary{Operation: "append", Rows: point(int64(12)), Files: point(int64(3))},
			Delta:            &client.EventDelta{Rows: point(int64(7)), Files: point(int64(-2))}},
		{Time: now.Add(-2 * time.Hour), Operation: "rename-table", Previous: &client.EventName{Namespace: []string{"old"}, Name: o.Table}},
		{Time: now.Add(-3 * time.Hour), Operation: "create-table", MetadataLocation: "s3://lake/m/00001-1.metadata.json",
			Summary: &client.EventSummary{Rows: point(int64(5)), Files: point(int64(1))}},
	}
	for i := range made {
		made[i].Kind, made[i].Warehouse, made[i].Namespace, made[i].Name = client.KindTable, o.Warehouse, o.Namespace, o.Table
	}
	return made
}

// rolledBack returns the versions of a table, the newest first. It got two snapshots, and was taken
// back to the first.
func rolledBack() []client.Event {
	version := func(by string, snapshot int64, actions ...string) client.Event {
		return client.Event{Time: now.Add(-time.Hour), Operation: "update-table", Caller: by, Actions: actions, Version: by,
			Summary: &client.EventSummary{Snapshot: &snapshot, Operation: "append"}}
	}
	return []client.Event{
		version("bob", 1, "set-snapshot-ref main"), version("eve", 2, "set-properties"), version("ann", 2, "add-snapshot", "set-snapshot-ref main"),
		version("ann", 1, "add-snapshot", "set-snapshot-ref main"), {Operation: "create-table", Caller: "ann"},
	}
}

// TestRollbacks finds which version was rolled back by which.
func TestRollbacks(t *testing.T) {
	t.Parallel()
	versions := rolledBack()
	found := rollbacksIn(versions)
	if len(found.to) != 1 || found.to[0] != &versions[3] || len(found.by) != 2 || found.by[1] != &versions[0] || found.by[2] != &versions[0] {
		t.Errorf("got %+v", found)
	}
	if ahead := rollbacksIn(versions[1:]); len(ahead.to)+len(ahead.by) > 0 {
		t.Errorf("without a rollback: %+v", ahead)
	}
}

// rows returns a namespace, a table and a view.
func rows(name string) []client.Row {
	return []client.Row{
		{Kind: client.KindNamespace, Warehouse: "default", Namespace: []string{"harbour"}, Name: "archive"},
		{Kind: client.KindTable, Warehouse: "default", Namespace: []string{"harbour"}, Name: name, By: name, Summary: &client.ObjectSummary{
			At: at(48 * time.Hour), Rows: point(int64(7)), Bytes: point(int64(1234)), Files: point(int64(1)), Operation: "append", Comment: name,
		}},
		{Kind: client.KindView, Warehouse: "default", Namespace: []string{"harbour"}, Name: "daily"},
	}
}

// dropped returns a dropped table that can come back, and a view that cannot.
func dropped(name string) []client.Dropped {
	return []client.Dropped{
		{ID: "a1", Kind: "table", Warehouse: "default", Namespace: []string{"harbour"}, Name: name, State: client.StateDropped, At: now.Add(-22 * time.Minute),
			By: name, EndsAt: at(-6 * 24 * time.Hour), Purge: client.PurgeWaiting, Undrop: client.UndropYes, Summary: &client.ObjectSummary{Rows: point(int64(7))}},
		{ID: "a2", Kind: "view", Warehouse: "default", Namespace: []string{"harbour"}, Name: name, State: client.StateEnded, At: now.Add(-time.Hour), Undrop: "Ended: " + name},
	}
}

// goldenPages returns every page in its states.
func goldenPages() map[string]*page {
	strange := client.Object{Warehouse: hostile, Namespace: []string{hostile, "b/c.."}, Table: hostile}
	browse := func(m browsePage) *page {
		return &page{title: "harbour", crumbs: crumbsOf(m.object), body: m.node()}
	}
	within := client.Object{Warehouse: "default", Namespace: []string{"harbour"}}
	beside := &tree{object: ships, branches: []branch{
		{of: client.Object{Warehouse: "default"}, rows: []client.Row{
			{Kind: client.KindNamespace, Warehouse: "default", Name: "harbour"}, {Kind: client.KindNamespace, Warehouse: "default", Name: "other"},
		}},
		{of: within, rows: rows("ships"), more: true},
	}}
	table := func(o client.Object, d *document, why string) *page {
		h := head(o)
		h.aside = beside.node()
		return h.page(placeTable, tablePage{tableHead: h, document: d, why: why, recipes: []Recipe{
			{Title: "DuckDB", Lines: []string{"ATTACH 'default';", o.Table}}, {Title: "Flink SQL", Note: "with jars", Lines: []string{"x"}},
		}}.node())
	}
	history := func(o client.Object, all []client.Event) *page {
		h := head(o)
		return h.page(placeHistory, historyPage{tableHead: h, isFirst: true, history: client.History{
			Versions: all, NextPage: client.NextPage{NextPageToken: point("next")},
		}}.node())
	}
	diff := func(o client.Object, d client.TableDifference) *page {
		h := head(o)
		return h.page(placeHistory, diffPage{tableHead: h, from: "now~1", to: "now", differs: d}.node())
	}
	snapshots := func(o client.Object, d *document, chosen int64) *page {
		m := snapshotsPage{tableHead: head(o), document: d, chosen: d.snapshot(chosen)}
		m.rows, m.lanes = graphOf(d.Snapshots, 0)
		return m.tableHead.page(placeSnapshots, m.node())
	}
	bare := head(ships)
	bare.details.Summary, bare.details.Columns, bare.details.Properties, bare.details.Labels = nil, nil, nil, nil
	return map[string]*page{
		"warehouses-empty": {title: "Warehouses", body: warehousesPage{}.list()},
		"warehouses-many": {title: "Warehouses", body: warehousesPage{isCounted: true, more: true, warehouses: []warehouseRow{
			{client.WarehouseSummary{Name: "default", Location: "file:///lake"}, &client.Stats{Tables: 3, Rows: 50_000, Bytes: 362_000}},
			{client.WarehouseSummary{Name: hostile, Location: hostile}, nil},
		}}.list()},
		"browse-empty":     browse(browsePage{now: now, object: within, isFirst: true}),
		"browse-no-rights": browse(browsePage{now: now, object: client.Object{Warehouse: "default"}, isFirst: true}),
		"browse-many": browse(browsePage{now: now, object: within, prefix: "s", page: client.ObjectsPage{
			Objects: rows("ships"), NextPage: client.NextPage{NextPageToken: point("next")},
		}, details: &client.ObjectDetails{Owner: "ann", Properties: map[string]string{"comment": "ships and ports"}}}),
		"browse-hostile":   browse(browsePage{now: now, object: client.Object{Warehouse: hostile, Namespace: []string{hostile}}, page: client.ObjectsPage{Objects: rows(hostile)}}),
		"table":            table(ships, documentOf("ordered_at"), ""),
		"table-hostile":    table(strange, documentOf(hostile), ""),
		"table-no-rights":  table(ships, nil, "Needs read on harbour.ships"),
		"table-empty":      bare.page(placeTable, tablePage{tableHead: bare, document: &document{}}.node()),
		"history":          history(ships, append(events(ships), client.Event{Time: now.Add(-4 * time.Hour), Version: "00000-0.metadata.json"})),
		"history-rollback": history(ships, rolledBack()),
		"history-empty":    history(ships, nil),
		"history-hostile":  history(strange, events(strange)),
		"snapshots":        snapshots(ships, documentOf("audit"), 3),
		"snapshots-files":  snapshotWithFiles(),
		"snapshots-empty":  snapshots(ships, &document{}, 0),
		"snapshots-hostil": snapshots(strange, documentOf(hostile), 2),
		"diff-empty":       diff(ships, client.TableDifference{}),
		"diff": diff(ships, client.TableDifference{
			FormatVersion: &[2]int{1, 2}, Location: &[2]string{"a", hostile}, PartitionSpec: &[2]any{nil, hostile},
			Schema: &client.SchemaDifference{
				Added:   []client.ColumnShown{{ID: 15, Path: "discount", Type: "double", Required: true}},
				Removed: []client.ColumnShown{{ID: 2, Path: hostile, Type: "int"}},
				Changed: []client.ColumnChange{{ID: 4, Path: "amount", Was: map[string]any{"type": "decimal(10,2)"}, Is: map[string]any{"type": "decimal(12,2)"}}},
			},
			Properties: &client.PropertyChanges{
				Set: map[string][2]*string{"a": {nil, point("1")}, "b": {point("1"), point(hostile)}}, Removed: map[string]string{hostile: "x"},
			},
			Refs:      &client.RefsDifference{Added: []client.RefShown{{Name: hostile, Type: "tag", SnapshotID: 7}}},
			Snapshots: &client.SnapshotsAdded{Removed: []int64{1, 2}},
			Totals:    map[string][]int64{"rows": {5, 12}, "bytes": {5000, 100}, "files": {-1, 3}},
		}),
		"changes":        {title: "Changes", body: changesPage{now: now, events: events(ships)}.node()},
		"changes-empty":  {title: "Changes", body: changesPage{now: now}.node()},
		"changes-hostil": {title: "Changes", body: changesPage{now: now, events: events(strange)}.node()},
		"search":         {title: "Search", body: searchPage{words: hostile, found: client.Found{Objects: rows(hostile), More: true}}.node()},
		"search-empty":   {title: "Search", body: searchPage{words: "x"}.node()},
		"home": {title: "Overview", body: homePage{now: now, isOperator: true, events: events(ships), findings: []client.Finding{
			{Level: client.LevelBad, What: "purge of tmp.x", Fact: hostile, Remedy: "moorage doctor retry 7c1e90aa"},
		}}.node()},
		"home-no-rights": {title: "Overview", body: homePage{now: now, noEvents: "Needs describe on the server"}.node()},
		"failure": problem{status: 404, title: "There is no such object", message: hostile, help: "List the existing objects.",
			requestID: "console:X-1", object: strange}.page(),
		"failure-dropped": problem{status: 404, title: "There is no such object", object: ships, now: now, dropped: dropped("ships")}.page(),
		"rows": head(ships).page(placeRows, rowsPage{tableHead: head(ships), refs: []string{"main", hostile}, limit: "20", rows: client.Rows{
			Columns: []client.RowColumn{{Name: "id", Type: "long"}, {Name: hostile, Type: "string"}}, ColumnsInAll: 7, Stopped: "After 5 files",
			Rows: []json.RawMessage{[]byte(`[1,"` + "\\u202e<script>alert(1)" + `"]`), []byte(`[null,{"a":[1,"<b>"]}]`), []byte(`[1]`)},
		}}.node()),
		"rows-empty":     head(ships).page(placeRows, rowsPage{tableHead: head(ships)}.node()),
		"rows-no-rights": head(ships).page(placeRows, rowsPage{tableHead: head(ships), why: "Needs read on harbour.ships"}.node()),
		"health": {title: "x", body: healthPanel(ships, &client.Health{Findings: []client.HealthFinding{
			{Level: "warn", What: "small files", Fact: hostile, Limit: "25 %", Command: "moorage maintain set harbour.ships compaction on"}, {Level: "ok", What: "snapshots"},
		}, Shape: &client.Shape{Sizes: []client.SizeClass{{Below: 1 << 20, Files: 3}, {Files: 1}},
			ByRows: []client.CountClass{{Below: 1000, Count: 4}, {}}, ByFiles: []client.CountClass{{Below: 2}, {Below: 6, Count: 1}, {Count: 0}}, Worst: []client.PartitionShape{{Partition: hostile, Files: 4}}, Stopped: hostile}})},
		"activity": {title: "x", body: g.Group{
			refusalPanel(now, client.Refusals{Nodes: []client.NodeAsked{{Name: "a", Since: now}, {Name: hostile, Failed: hostile}},
				Refusals: []client.Refusal{{Time: now, Caller: hostile, Type: "CommitFailedException", Reason: hostile, By: hostile, LastAt: now}}}, func(string) g.Node { return nil }),
			topPanel(&client.Top{Node: hostile, Since: now, Tables: []client.BusyTable{{Name: hostile, Commits: 1.25}}, Minutes: []client.Minute{{At: now, Commits: 3}, {At: now, Loads: 5}}}),
			denialPanel(now, &client.NodeDenials{Denials: []client.Denial{{Caller: hostile, Object: hostile, Missing: []string{"read"}}}}),
		}},
		"warehouse": {title: "x", body: warehousePage{now: now, warehouse: client.Warehouse{
			WarehouseSummary: client.WarehouseSummary{Name: hostile, Location: hostile}, Creator: hostile, Secret: &client.WarehouseSecret{Kind: "access-key", Set: now, By: hostile},
			Health: &client.StorageHealth{Failing: []client.StorageFailure{{Calls: "reads", Error: hostile}}}, Storage: map[string]string{hostile: hostile},
		}, validated: &client.WarehouseValidation{Trials: []client.WarehouseTrial{{Name: "files", Passed: true}, {Name: "x", Failure: hostile}}, Features: []client.StorageFeature{{Name: hostile, Value: hostile}}}}.node()},
		"dropped":       {title: "Dropped", body: droppedPage{now: now, object: within, isEnded: true, page: client.DroppedPage{Dropped: dropped(hostile)}}.node()},
		"dropped-empty": {title: "Dropped", body: droppedPage{now: now, object: within}.node()},
		"maintenance": head(ships).page(placeMaintain, maintenancePage{tableHead: head(ships), status: client.MaintenanceStatus{
			Pauses: []client.MaintenancePause{{Object: ships, Reason: hostile, By: "ann", Since: now}},
			Kinds: []client.MaintenanceKind{{Kind: "snapshots", State: "Blocked", Why: hostile, From: "warehouse default", Due: now.Add(time.Hour),
				Settings: map[string]client.MaintenanceValue{"max-age": {Value: "5d", From: "default"}}}},
			Jobs: []client.MaintenanceJob{{Kind: "orphans", State: "delete", Principal: hostile, Created: now, LastError: hostile}},
			Runs: []client.MaintenanceRun{{Kind: "snapshots", Outcome: "done", Began: now, Ended: now.Add(time.Second), Files: 3, Error: hostile,
				Kept: []client.MaintenanceKept{{Reason: "outside", Files: 2}}}},
		}}.node()),
		"metadata": head(ships).page(placeMetadata, metadataPage{tableHead: head(ships), version: hostile, location: "s3://lake/" + hostile,
			raw: json.RawMessage(`{"format-version":2,"properties":{"a":"<b>"},"refs":{}}`), log: []metadataFile{{File: "s3://lake/m/" + hostile}}}.node()),
		"maintenance-preview": head(ships).page(placeMaintain, maintenancePage{tableHead: head(ships),
			preview: &preview{kind: "snapshots", plan: &client.MaintenancePlan{
				Held: hostile, Blocked: hostile, Refs: []string{hostile}, Files: 12, Manifests: 3, Sample: []string{"s3://lake/" + hostile},
				Snapshots: []client.MaintenancePlanSnapshot{{ID: 1234567890, Expires: true}, {ID: 2, Why: hostile}},
				Kept:      []client.MaintenanceKept{{Reason: "named again", Files: 1}},
			}},
			leases: []client.Lease{{Holder: hostile, Principal: hostile, Scope: "*", Since: now, Expires: now.Add(time.Minute)}},
			status: client.MaintenanceStatus{
				Kinds: []client.MaintenanceKind{
					{Kind: "compaction", State: "Disabled", From: "default"}, {Kind: "snapshots", State: "Disabled", From: "warehouse default"},
					{Kind: "orphans", State: "Not_Yet_Run", From: "server", Due: now.Add(time.Hour)}, {Kind: "a", State: "Waiting", Due: now}, {Kind: "b"},
					{Kind: "c", State: "Paused"}, {Kind: "d", State: "Running", Job: "7"},
				},
				Jobs: []client.MaintenanceJob{{ID: "7", State: "blocked"}, {ID: "8", Paused: "ann: quarter end"}},
			}}.node()),
		"maintenance-compaction": {title: "x", body: g.Group{
			(&preview{kind: kindCompaction, compact: &client.MaintenancePreview{Files: 8, Due: true}}).node(),
			(&preview{kind: kindCompaction, compact: &client.MaintenancePreview{Files: 1}}).node(),
			(&preview{kind: kindCompaction, compact: &client.MaintenancePreview{Nothing: hostile}}).node(),
			(&preview{kind: kindCompaction, compact: &client.MaintenancePreview{Failed: hostile}}).node(),
			(&preview{kind: kindCompaction}).node(), (&preview{kind: hostile, failure: hostile}).node(),
		}},
		"maintenance-empty": head(ships).page(placeMaintain, maintenancePage{tableHead: head(ships)}.node()),
		"grants": {title: "Access", body: grantsPage{
			now: now, object: ships, asked: question{hostile, "drop"}, onPath: []client.ObjectGrants{
				{Object: ships, Owner: hostile, Grants: []client.Grant{{Grantee: hostile, Privileges: []string{"read"}, By: "ann", At: now}}},
			}, explain: &client.Explanation{Decision: "forbid", Missing: []string{"drop"}, Grantors: []string{hostile}, Steps: []client.Step{
				{Kind: "table", Name: "harbour.ships", Owner: "ann", Grants: []client.Counted{{Grantee: "r", Privileges: []string{"read"}, Via: []string{hostile}}}},
				{Kind: "server", Owns: true},
			}},
		}.node()},
		"grants-off": {title: "Access", body: grantsPage{isOff: true, limits: &restrictions{}}.node()},
		"grants-restricted": {title: "Access", body: grantsPage{now: now, object: ships, onPath: []client.ObjectGrants{{Object: within, Managed: true}}, limits: &restrictions{
			protection: client.Protection{Protected: true}, mirror: hostile, access: client.Access{LimitedTo: []string{}}, dropped: dropped(hostile),
			asked: &client.Principal{Name: hostile, Disabled: true, Keys: []client.Key{{ID: hostile, Roles: []string{hostile}, Ends: now.Add(time.Hour)}}},
		}}.node()},
		"principals-empty":     {title: "Access", body: principalsPage{now: now}.node()},
		"principals-no-rights": {title: "Access", body: principalsPage{now: now, visitor: "key:ann", needs: "admin on server"}.node()},
		"principals-many":      {title: "Access", body: principalsPage{now: now, principals: client.PrincipalsPage{Principals: manyPrincipals()}, roles: client.RolesPage{Roles: []client.Role{{Name: "analysts", Members: []string{"key:p1", "corp:ann"}}}}}.node()},
		"principal": {title: "key:etl", crumbs: accessCrumbs(), body: principalPage{now: now, principal: client.Principal{Name: "key:etl", Description: "nightly jobs", Created: now.Add(-time.Hour), Keys: []client.Key{
			{ID: "PCqYhZBNT5Ww", Description: "spark", Generation: 2, Created: now.Add(-time.Hour), By: "key:root", Ends: now.Add(time.Hour)},
			{ID: "AAAAhZBNT5Ww", Generation: 1, Roles: []string{"readers"}, Created: now.Add(-time.Hour), By: "key:root", Ends: now.Add(-time.Minute)},
		}}}.node()},
		"principal-empty":     {title: "key:etl", body: principalPage{now: now, principal: client.Principal{Name: "key:etl"}}.node()},
		"principal-other":     {title: "corp:ann", body: principalPage{now: now, principal: client.Principal{Name: "corp:ann", SpeaksFor: hostile}}.node()},
		"principal-hostile":   {title: hostile, body: principalPage{now: now, principal: client.Principal{Name: keyAlias + hostile, Disabled: true, Description: hostile, Keys: []client.Key{{ID: hostile, Description: hostile, Roles: []string{hostile}, By: hostile}}}}.node()},
		"principal-no-rights": {title: "key:etl", body: principalPage{now: now, needs: "admin on server", principal: client.Principal{Name: "key:etl", Keys: []client.Key{{ID: "PCqYhZBNT5Ww", Ends: now.Add(time.Hour)}}}}.node()},
		"secret":              {title: "A key", body: secretNode(now, client.MadeKey{Principal: "key:etl", Secret: "mrg_abc_def", Key: client.Key{ID: "abc", Ends: now.Add(time.Hour), Description: hostile}})},
		"secret-again":        shownBefore(to(placePrincipal, client.Object{}, "principal", "key:etl")),
		"principals": {title: "Access", body: principalsPage{
			now: now, principals: client.PrincipalsPage{
				Principals: []client.Principal{{Name: hostile, Disabled: true, Description: hostile, Created: now, Keys: []client.Key{{Ends: now.Add(time.Hour)}}}},
				NextPage:   client.NextPage{NextPageToken: point("x")},
			}, roles: client.RolesPage{Roles: []client.Role{{Name: "analysts", Members: []string{hostile}}}},
		}.node()},
		"login":           loginPage{back: "/console/changes", channel: channel{isLocal: true}}.page(),
		"login-providers": loginPage{back: hostile, why: hostile, channel: channel{isTLS: true}, providers: []string{"corp", hostile}}.page(),
		"login-no-tls":    loginPage{}.page(),
		"cluster-one":     {title: "Cluster", body: clusterPage{now: now, nodes: []client.NodeState{nodeState("vm:1")}}.node()},
		"cluster-empty":   {title: "Cluster", body: clusterPage{now: now, nodes: []client.NodeState{{NodeAsked: client.NodeAsked{Name: "vm:1"}}}}.node()},
		"cluster-many": {title: "Cluster", body: clusterPage{now: now, nodes: []client.NodeState{
			nodeState("a:1"), nodeState("b:1"), nodeState("c:1"), {NodeAsked: client.NodeAsked{Name: "d:1", Failed: "it does not answer"}},
			{NodeAsked: client.NodeAsked{Name: "e:1", Since: now}, Version: "0.1.0", Members: 5},
		}}.node()},
		"cluster-hostile": {title: "Cluster", body: clusterPage{now: now, nodes: []client.NodeState{
			nodeState(hostile), {NodeAsked: client.NodeAsked{Name: hostile, Failed: hostile}},
		}}.node()},
		"cluster-no-rights": problem{status: 403, title: titles[403], message: "Not allowed: operate on server"}.page(),
		"operations-empty":  {title: "Operations", body: operationsPage{now: now}.node()},
		"operations": {title: "Operations", body: operationsPage{
			now: now, isDeep: true, findings: client.FindingsPage{Findings: []client.Finding{{ID: "7c1e", Level: client.LevelWarn, What: hostile, Fact: hostile}}},
			jobs:   client.MaintenanceJobsPage{Jobs: []client.MaintenanceJob{{Kind: "orphans", Object: &strange, LastError: hostile}, {}}},
			leases: client.LeasesPage{Leases: []client.Lease{{Holder: hostile, Principal: hostile, Scope: hostile, Since: now, Expires: now}}},
		}.node()},
		"api": {title: "API", body: apiPage{uri: "http://127.0.0.1:8181", hasKeys: true, operations: []apiOperation{
			{method: "GET", path: "/management/v1/changes", summary: "Follow what changes", parameters: []string{"after"}},
			{method: "POST", path: "/management/v1/undrop", summary: hostile, description: hostile},
		}}.node()},
		"prepared": {title: "Roll back", body: prepared{
			title: "Roll back", path: "/v1/default/namespaces/harbour/tables/ships", body: []byte(`{"updates":[]}`), key: "k", button: "Roll back " + hostile,
			command: command("moorage", "rollback", "harbour.ships", "now~1"), back: to(placeHistory, ships), warnings: []string{hostile}, needs: "write on table default.harbour.ships",
		}.node()},
		"view": {title: "busiest", body: viewPage{
			now: now, object: client.Object{Warehouse: "default", Namespace: []string{"harbour"}, View: hostile},
			details: &client.ObjectDetails{Location: hostile, Columns: []client.Column{{ID: 1, Path: hostile, Type: "int"}}, Properties: map[string]string{hostile: hostile}},
			document: viewDocument{Current: 2, Versions: []viewVersion{
				{ID: 1, Representations: []representation{{SQL: "SELECT 1", Dialect: "spark"}}},
				{ID: 2, MS: now.UnixMilli(), Namespace: []string{"a.b"}, Representations: []representation{{SQL: "SELECT\r\n\t2 -- " + hostile, Dialect: hostile}}},
			}},
		}.node()},
	}
}

// snapshotWithFiles returns the page of a snapshot with its manifests and the files of one of them.
// A branch can be moved forward to it.
func snapshotWithFiles() *page {
	d := documentOf("audit")
	d.Refs["behind"] = ref{Snapshot: 1, Type: "branch"}
	m := snapshotsPage{tableHead: head(ships), document: d, chosen: d.snapshot(3), files: &snapshotFiles{manifest: 1, found: client.Manifests{
		Manifests: []client.Manifest{{Path: "s3://lake/m/" + hostile, Content: hostile, Bytes: 5000}, {Path: "s3://lake/m/1-m0.avro", Content: "data", Added: point(int64(2)), Removed: point(int64(0))}},
		More:      true, FilesMore: true, Files: []client.ManifestFile{
			{Path: "s3://lake/d/" + hostile, Content: "data", Status: client.StatusAdded, Format: "PARQUET", Rows: 7, Bytes: 1234, Partition: hostile,
				Bounds: []client.ColumnBounds{{ID: 1, Path: hostile, Lower: point(hostile)}, {ID: 9}}},
			{Path: "x", Status: client.StatusRemoved},
		},
	}}}
	m.rows, m.lanes = graphOf(d.Snapshots, 0)
	return m.tableHead.page(placeSnapshots, m.node())
}

// TestForward prepares to move a branch forward, with its retention. A branch whose head is no
// ancestor is refused.
func TestForward(t *testing.T) {
	t.Parallel()
	d := documentOf("audit")
	d.Refs["behind"] = ref{Snapshot: 1, Type: "branch", MinSnapshots: point(int64(5))}
	server, _ := newServer(map[string]any{"/management/v1/object": head(ships).details, "/management/v1/metadata": d})
	ask := func(branch string) string {
		w := send(server, "GET", to(placeRef, ships, "type", "forward", "ref", branch, "snapshot", "3").href(), "")
		return w.Body.String()
	}
	if got := ask("behind"); !strings.Contains(got, "min-snapshots-to-keep") || !strings.Contains(got, "Move behind forward") {
		t.Errorf("got %s", got)
	}
	for _, branch := range []string{"audit", "main", "nothing"} {
		if got := ask(branch); !strings.Contains(got, "cannot be moved forward") {
			t.Errorf("%s: got %s", branch, got)
		}
	}
	d.Snapshots[0].Parent = point(int64(3)) // a loop, which no client should write
	if got := d.behind(d.snapshot(3)); len(got) > 3 {
		t.Errorf("in a loop: %v", got)
	}
}

// TestManyColumns shows a table of 10,000 columns within a bound.
func TestManyColumns(t *testing.T) {
	t.Parallel()
	details := *head(ships).details
	details.Columns = nil
	for id := range 10_000 {
		details.Columns = append(details.Columns, client.Column{ID: id, Path: strings.Repeat("c", 100), Type: "string"})
	}
	server, _ := newServer(map[string]any{"/management/v1/object": details, "/management/v1/metadata": documentOf("x")})
	w := send(server, "GET", to(placeTable, ships).href(), "")
	if w.Code != 200 || w.Body.Len() > 1<<20 || !strings.Contains(w.Body.String(), "10000 columns") || !strings.Contains(w.Body.String(), "first 1000 columns") {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
}

// TestChangesPages goes back in the changes, and forward from a time.
func TestChangesPages(t *testing.T) {
	t.Parallel()
	many := make([]client.Event, 200)
	for i := range many {
		many[i] = client.Event{Operation: "drop-table", Kind: client.KindTable, Warehouse: "w", Namespace: []string{"a"}, Name: "t", Caller: "c" + grouped(int64(i))}
	}
	server, api := newServer(map[string]any{"/management/v1/changes": client.ChangesPage{Events: many, Next: "17"}})
	for _, test := range []struct{ query, asks, has, lacks string }{
		{"?older=100", "tail=200", "Later changes", "c150"}, {"?older=100", "tail=200", "c50", "For earlier"},
		{"?older=900", "tail=1000", "Later changes", "rel=\"next\""}, {"?since=2h&caller=ann", "since=2h", "after=17", "Earlier"},
		{"?since=2h&after=17", "after=17", "c150", "data-poll"}, {"?older=0", "tail=100&within=50ms", "older=100", "For earlier"},
	} {
		body := send(server, "GET", Root+"/changes"+test.query, "").Body.String()
		asked := api.asked[len(api.asked)-1].query
		if !strings.Contains(body, test.has) || strings.Contains(body, test.lacks) || !strings.Contains(asked, test.asks) {
			t.Errorf("%s asks %s:\n%s", test.query, asked, body)
		}
	}
	// The API reads back for a short time, so there may be earlier events although it found few.
	for _, found := range [][]client.Event{many[:3], nil} {
		api.answers["/management/v1/changes"] = client.ChangesPage{Events: found, AtEnd: true}
		body := send(server, "GET", Root+"/changes", "").Body.String()
		if !strings.Contains(body, "For earlier changes type a time under Since.") || strings.Contains(body, `rel="next"`) || strings.Contains(body, "No change that") {
			t.Errorf("%d events:\n%s", len(found), body)
		}
	}
	if body := send(server, "GET", Root+"/changes?since=2h", "").Body.String(); !strings.Contains(body, "No change that you may see matches.") {
		t.Errorf("none since a time:\n%s", body)
	}
}

// manyPrincipals returns 20 principals. Some have keys.
func manyPrincipals() (all []client.Principal) {
	for i := range 20 {
		p := client.Principal{Name: fmt.Sprintf("key:p%d", i), Created: now.Add(-time.Duration(i) * time.Hour)}
		for j := range i % 3 {
			p.Keys = append(p.Keys, client.Key{ID: "k", Ends: now.Add(time.Duration(3-j) * time.Hour)})
		}
		all = append(all, p)
	}
	return all
}

// nodeState returns the state of a node that answers.
func nodeState(name string) client.NodeState {
	return client.NodeState{
		NodeAsked: client.NodeAsked{Name: name, Since: now.Add(-time.Hour)}, Version: name, Members: 4, HeapBytes: 81e6,
		Store:       []client.CallTimes{{Call: "get", Count: 12_000, Failed: 3, P50: 0.04, P99: 1.5}, {Call: name, Failed: 1}},
		Connections: &client.Connections{Used: 3, Idle: 5, Max: 20}, Cached: &client.CacheUse{Bytes: 12e6, BytesMax: 256 << 20},
	}
}

// TestGolden compares each page in each state with a file.
func TestGolden(t *testing.T) {
	t.Parallel()
	f := frame{version: "v1", style: "/console/static/console.css?v=1", script: "/console/static/console.js?v=1", mark: "/m", theme: themeDark, here: "/console"}
	for name, p := range goldenPages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made bytes.Buffer
			if err := f.document(p).Render(&made); err != nil {
				t.Fatal(err)
			}
			checkHarmless(t, made.String())
			got := strings.ReplaceAll(made.String(), "><", ">\n<") + "\n"
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("the page differs from %s (%v); -update writes it:\n%s", path, err, got)
			}
		})
	}
}

// checkHarmless fails if the hostile name had an effect on a page.
func checkHarmless(t *testing.T, page string) {
	t.Helper()
	for _, bad := range []string{"<script>alert", "\u202e", "\x07", "<b>", ` style="`, "<style", "javascript:", " onclick"} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page has %q: %s", bad, page[max(0, i-100):min(len(page), i+100)])
		}
	}
}
