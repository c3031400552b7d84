package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/metadata"
	"moorage/testkit/catalogkit"
)

// The snapshots in the tests of refusals: the one seen by the client of the append, a later one,
// and the append.
const seenID, sinceID, lateID = 1, 2, 3

// rebaseRefusal is an append that must not be rebased.
type rebaseRefusal struct {
	name    string
	version int // format version; 0 means 2
	// since changes the table after the client of the append has loaded it. If nil, it is another
	// append.
	since func(f *catalogkit.Fixture, e *engine, seen *catalog.Table)
	// spoil changes the append before it is written, and spoilFiles the files after that.
	spoil      func(d *draft, f *catalogkit.Fixture)
	spoilFiles func(d *draft, f *catalogkit.Fixture)
	// why is the reason that is counted. It is empty if the request is not treated as an append at
	// all.
	why metadata.Misfit
}

func number(n int64) *int64 { return &n }

// remove deletes a file directly in the storage.
func remove(f *catalogkit.Fixture, location string) { must(f.T, f.Files.Delete(f.Ctx, location)) }

// rebaseRefusals breaks each condition of a rebase once.
var rebaseRefusals = []rebaseRefusal{
	{name: "another update", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.otherUpdates = `,{"action":"set-properties","updates":{"mine":"yes"}}`
	}},
	{name: "another requirement", why: "requirement", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.requirements = `,{"type":"assert-current-schema-id","current-schema-id":7}`
	}},
	{name: "rows without ids", why: "format", version: 3, spoil: func(d *draft, _ *catalogkit.Fixture) { d.omitFirstRow = true }},
	{name: "an encrypted list", version: 3, spoil: func(d *draft, _ *catalogkit.Fixture) { d.snapshot = `,"key-id":"k"` }},
	{name: "an overwrite", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["operation"] = "overwrite" }},
	{name: "what Kafka Connect compares", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["kafka.connect.offsets.a"] = "1" }},
	{name: "what Flink compares", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["flink.max-committed-checkpoint-id"] = "1" }},
	{name: "what Spark's streams compare", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["spark.sql.streaming.epochId"] = "1" }},
	{name: "what a materialised view depends on", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["dependsOnTables"] = "x" }},
	{name: "a staged snapshot", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["wap.id"] = "1" }},
	{name: "a published snapshot", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["published-wap-id"] = "1" }},
	{name: "a picked snapshot", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary["source-snapshot-id"] = "1" }},
	{name: "another retention", why: "retention", spoil: func(d *draft, _ *catalogkit.Fixture) { d.refMembers = `,"min-snapshots-to-keep":7` }},
	{name: "a branch that was made since", why: "branch", spoil: func(d *draft, _ *catalogkit.Fixture) { d.branch = "none" }},
	{
		name: "a head that does not descend from what was seen", why: "parent",
		since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
			d := e.draft(seen, sinceID, "b")
			d.branch, d.parent, d.kept = "other", 0, nil
			must1(f.Commit(f.Ctx, ident("t"), e.write(d)))(f.T)
			must1(f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(f.T, `[]`,
				`[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":2}]`)))(f.T)
		},
	},
	{name: "another schema", why: "schema", since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
		sinceAppend(f, e, seen)
		must1(f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(f.T, `[]`, `[{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[
			{"id":1,"name":"id","required":false,"type":"long"},{"id":3,"name":"more","required":false,"type":"long"}]}},
			{"action":"set-current-schema","schema-id":-1}]`)))(f.T)
	}},
	{name: "a spec that is not the table's", why: "manifest", spoil: func(d *draft, _ *catalogkit.Fixture) { d.manifests[0].spec = 7 }},
	{name: "a snapshot that is there", why: "repeated", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.id, d.manifests[0].snapshot = sinceID, sinceID
		d.list, d.manifests[0].path = d.list+"2", d.manifests[0].path+"2"
	}},
	{name: "a list without the manifests that were there", why: "lost", spoil: func(d *draft, _ *catalogkit.Fixture) { d.kept = nil }},
	{name: "a list with a manifest from elsewhere", why: "replaced", spoil: func(d *draft, _ *catalogkit.Fixture) {
		other := d.manifests[0]
		other.path, other.snapshot, other.files = other.path+"2", 77, []draftFile{{path: "x", status: iceberg.EntryStatusADDED, rows: 1}}
		d.manifests = append(d.manifests, other)
	}},
	{name: "a merge of what is gone", why: "replaced", since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
		d := e.draft(seen, sinceID, "b")
		d.kept, d.summary["operation"] = nil, "overwrite"
		must1(f.Commit(f.Ctx, ident("t"), e.write(d)))(f.T)
	}, spoil: mergeAll},
	{name: "a merge that lost a file", why: "lost", spoil: func(d *draft, f *catalogkit.Fixture) {
		mergeAll(d, f)
		d.manifests[0].files = d.manifests[0].files[:1]
	}},
	{name: "a manifest of deletes", why: "manifest", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].content = iceberg.ManifestContentDeletes
	}},
	{name: "a deleted file", why: "manifest", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].files = append(d.manifests[0].files, draftFile{
			path: "x", status: iceberg.EntryStatusDELETED, rows: 1, snapshot: number(1), sequence: number(1), file: number(1),
		})
	}},
	{name: "a deleted file that the list keeps quiet about", why: "manifest", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].files = append(d.manifests[0].files, draftFile{
			path: "x", status: iceberg.EntryStatusDELETED, rows: 1, snapshot: number(1), sequence: number(1), file: number(1),
		})
		d.manifests[0].change = func(b *iceberg.ManifestBuilder) { b.DeletedFiles(0).DeletedRows(0) }
	}},
	{name: "a sequence number of another snapshot", why: "numbers", spoil: func(d *draft, _ *catalogkit.Fixture) { d.manifests[0].sequence-- }},
	{name: "a manifest that is there", why: "twice", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].path = d.table.Document.Location() + "/metadata/both.avro"
	}, since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
		d := e.draft(seen, sinceID, "b")
		d.manifests[0].path = seen.Document.Location() + "/metadata/both.avro"
		remove(f, d.manifests[0].path)
		must1(f.Commit(f.Ctx, ident("t"), e.write(d)))(f.T)
	}},
	{name: "a new file with a number of its own", why: "numbers", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].files[0].sequence = number(1)
	}},
	{name: "other counts than in the list", why: "manifest", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].change = func(b *iceberg.ManifestBuilder) { b.AddedRows(7) }
	}},
	{name: "too many manifests", why: "many", spoil: func(d *draft, _ *catalogkit.Fixture) {
		for i := range 64 {
			m := d.manifests[0]
			m.path = fmt.Sprintf("%s%d", m.path, i)
			d.manifests = append(d.manifests, m)
		}
	}},
	{name: "a file that was added since", why: "twice", spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].files[0].path = d.table.Document.Location() + "/data/b"
	}},
	{name: "a snapshot in between that expired", why: "parent", since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
		sinceAppend(f, e, seen)
		now := f.Load("t")
		must1(f.Commit(f.Ctx, ident("t"), e.write(e.draft(now, 4, "d"))))(f.T)
		must1(f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(f.T, `[]`, `[{"action":"remove-snapshots","snapshot-ids":[2]}]`)))(f.T)
	}, spoil: func(d *draft, _ *catalogkit.Fixture) {
		d.manifests[0].files[0].path = d.table.Document.Location() + "/data/b"
	}},
	{name: "more rows than ids", why: "row-ids", version: 3, spoil: func(d *draft, _ *catalogkit.Fixture) { d.rows = 9 }},
	{name: "a list outside of the table", why: "unread", spoil: func(d *draft, _ *catalogkit.Fixture) { d.list = "file:///wh/elsewhere/snap.avro" }},
	{name: "a manifest outside of the table", why: "unread", spoil: func(d *draft, _ *catalogkit.Fixture) { d.manifests[0].path = "file:///wh/elsewhere/m.avro" }},
	{name: "no list", why: "unread", spoilFiles: func(d *draft, f *catalogkit.Fixture) { remove(f, d.list) }},
	{name: "no manifest", why: "unread", spoilFiles: func(d *draft, f *catalogkit.Fixture) { remove(f, d.manifests[0].path) }},
	{name: "a damaged list", why: "unread", spoilFiles: func(d *draft, f *catalogkit.Fixture) {
		remove(f, d.list)
		must(f.T, f.Files.Create(f.Ctx, d.list, []byte("Obj\x01 and no more")))
	}},
	{name: "a manifest of another length", why: "unread", spoilFiles: func(d *draft, f *catalogkit.Fixture) {
		remove(f, d.manifests[0].path)
		must(f.T, f.Files.Create(f.Ctx, d.manifests[0].path, []byte("Obj\x01")))
	}},
	{name: "off by the table", since: func(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
		sinceAppend(f, e, seen)
		must1(f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "moorage.append-rebase", "off")))(f.T)
	}},
}

// sinceAppend appends the file "b" after seen.
func sinceAppend(f *catalogkit.Fixture, e *engine, seen *catalog.Table) {
	must1(f.Commit(f.Ctx, ident("t"), e.write(e.draft(seen, sinceID, "b"))))(f.T)
}

// mergeAll makes d merge the manifest of the snapshot seen by its client into its own manifest.
func mergeAll(d *draft, _ *catalogkit.Fixture) {
	d.kept = nil
	d.manifests[0].min = 1
	d.manifests[0].files = append(d.manifests[0].files, draftFile{
		path: d.table.Document.Location() + "/data/a", status: iceberg.EntryStatusEXISTING, rows: 10,
		snapshot: number(seenID), sequence: number(1), file: number(1),
	})
}

// rebaseCase prepares a table, and an append that comes too late. It returns the request for that
// append.
func rebaseCase(f *catalogkit.Fixture, c rebaseRefusal) catalog.CommitRequest {
	f.T.Helper()
	version := max(c.version, 2)
	e := newEngine(f, version)
	must1(f.Commit(f.Ctx, ident("t"), e.write(e.draft(createVersion(f, "t", version), seenID, "a"))))(f.T)
	seen := f.Load("t")
	d := e.draft(seen, lateID, "c")
	if c.spoil != nil {
		c.spoil(d, f)
	}
	request := e.write(d)
	if c.since == nil {
		c.since = sinceAppend
	}
	c.since(f, e, seen)
	if c.spoilFiles != nil {
		c.spoilFiles(d, f)
	}
	return request
}

// An append that cannot be rebased is refused with the same error as without rebases, and nothing
// is written for it.
func TestRebaseRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range rebaseRefusals {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			count := &catalogkit.FileCount{There: map[string]bool{}}
			var why []metadata.Misfit
			f := catalogkit.New(t, catalogkit.CountFiles(count), func(config *catalog.Config) {
				config.AppendRefused = func(reason metadata.Misfit) { why = append(why, reason) }
			})
			request := rebaseCase(f, c)
			before, files := f.Load("t"), len(locations(count))
			_, err := f.Commit(f.Ctx, ident("t"), request)
			catalogkit.WantKind(t, err, moorage.KindCommitFailed)
			if want := slices.DeleteFunc([]metadata.Misfit{c.why}, func(why metadata.Misfit) bool { return why == "" }); !slices.Equal(why, want) {
				t.Errorf("the reasons are %q, want %q", why, want)
			}
			if after := f.Load("t"); after.MetadataLocation != before.MetadataLocation || len(locations(count)) != files {
				t.Errorf("it was refused, and left %d files, at %s", len(locations(count))-files, after.MetadataLocation)
			}
			f.WantClean()
		})
	}
}

// Without the changes that the tests of refusals make, the append is rebased. An append that merges
// manifests is rebased too.
func TestRebaseFits(t *testing.T) {
	t.Parallel()
	for _, c := range []rebaseRefusal{
		{name: "version 2"}, {name: "version 3", version: 3}, {name: "a merge", spoil: mergeAll},
		{name: "no summary of rows", spoil: func(d *draft, _ *catalogkit.Fixture) { d.summary = map[string]string{"operation": "append"} }},
		{name: "the current schema is required", spoil: func(d *draft, _ *catalogkit.Fixture) {
			d.requirements = `,{"type":"assert-current-schema-id","current-schema-id":0}`
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			moved := must1(f.Commit(f.Ctx, ident("t"), rebaseCase(f, c)))(t)
			if got := fmt.Sprint(snapshotChain(t, moved.Document)); got != "[3 2 1]" {
				t.Errorf("the chain is %s", got)
			}
			if rows := newEngine(f, max(c.version, 2)).rowsOf(moved.Document); rows != 30 {
				t.Errorf("there are %d rows, want 30", rows)
			}
			f.WantClean()
		})
	}
}

// An append of a client that saw no snapshot can be rebased onto all later snapshots, as long as
// all of them still exist.
func TestRebaseOntoExpired(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	e := newEngine(f, 2)
	empty := createVersion(f, "t", 2)
	late := e.write(e.draft(empty, lateID, "c"))
	must1(f.Commit(f.Ctx, ident("t"), e.write(e.draft(empty, 1, "a"))))(t)
	must1(f.Commit(f.Ctx, ident("t"), e.write(e.draft(f.Load("t"), 2, "b"))))(t)
	must1(f.Commit(f.Ctx, ident("t"), catalogkit.CommitRequest(t, `[]`, `[{"action":"remove-snapshots","snapshot-ids":[1]}]`)))(t)
	_, err := f.Commit(f.Ctx, ident("t"), late)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
}

// A rebase needs the consent of both the table and the request, or of a table for all requests. The
// warehouse, the table and the request can each refuse it.
func TestRebaseConsent(t *testing.T) {
	t.Parallel()
	const unset, on, off = catalog.RebaseUnset, catalog.RebaseOn, catalog.RebaseOff
	consents := map[string][]catalog.RebaseChoice{"on": {on}, "on-all": {unset, on}}
	for _, warehouse := range []string{"", "off"} {
		for _, table := range []string{"", "on", "on-all", "off"} {
			for _, request := range []catalog.RebaseChoice{unset, on, off} {
				f := catalogkit.New(t)
				where := ident("t")
				where.Warehouse = "other"
				must1(f.Warehouses().Create(f.Ctx, warehouses.Spec{
					Name: "other", Location: "file:///other", Properties: rebaseProperty(warehouse),
				}))(t)
				must1(f.CreateNamespace(f.Ctx, "other", moorage.Namespace{"ns"}, nil))(t)
				seen := must1(f.CreateTable(f.Ctx, where, catalog.CreateTableRequest{
					Schema: []byte(catalogkit.Schema), Properties: rebaseProperty(table),
				}))(t)
				e := newEngine(f, 2)
				first, late := e.write(e.draft(seen, 1, "a")), e.write(e.draft(seen, 2, "b"))
				late.Rebase = request
				must1(f.Commit(f.Ctx, where, first))(t)
				_, err := f.Commit(f.Ctx, where, late)
				want := warehouse == "" && slices.Contains(consents[table], request)
				if want != (err == nil) {
					t.Errorf("warehouse %q, table %q, request %d: %v", warehouse, table, request, err)
				}
				if err != nil {
					catalogkit.WantKind(t, err, moorage.KindCommitFailed)
				}
			}
		}
	}
}

// rebaseProperty returns properties with moorage.append-rebase set to value. It returns none if
// value is empty.
func rebaseProperty(value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{metadata.PropAppendRebase: value}
}

// If a warehouse is changed to refuse rebases, this takes effect within five seconds.
func TestRebaseRefusedByAChangedWarehouse(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	e := newEngine(f, 2)
	seen := createVersion(f, "t", 2)
	first, late := e.write(e.draft(seen, 1, "a")), e.write(e.draft(seen, 2, "b"))
	must1(f.Commit(f.Ctx, ident("t"), first))(t)
	must1(f.Instance.Warehouses().Change(f.Ctx, ident("t").Warehouse, warehouses.Change{
		Properties: map[string]*string{metadata.PropAppendRebase: new("off")},
	}))(t)
	f.Clock.Advance(5 * time.Second)
	_, err := f.Commit(f.Ctx, ident("t"), late)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
}

// An unknown value is refused. A warehouse cannot consent on behalf of its clients.
func TestRebaseWrongChoices(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	wrong := map[string]string{"moorage.append-rebase": "maybe"}
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "moorage.append-rebase", "maybe"))
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	_, err = f.CreateTable(f.Ctx, ident("u"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: wrong})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	for _, properties := range []map[string]string{
		wrong, rebaseProperty("on"), rebaseProperty("on-all"), {"header.X-MOORAGE-append-Rebase": "on"},
	} {
		_, err = f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "v", Location: "file:///v", Properties: properties})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
}
