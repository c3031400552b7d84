package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/catalog"
	"moorage/metadata"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
)

// engine writes the files that an engine writes before it commits an append: manifests and manifest
// lists.
type engine struct {
	tb      testing.TB
	files   storage.Store
	version int
}

// draft is an append that is about to be written. A test may change it first.
type draft struct {
	table          *catalog.Table // as seen by its client
	id             int64
	parent         int64 // 0 if none
	sequence       int64
	manifests      []draftManifest
	kept           []iceberg.ManifestFile // manifests in the list of parent
	summary        map[string]string
	requirements   string // further requirements, each preceded by a comma
	snapshot       string // further members of the snapshot, likewise
	refMembers     string // further members of set-snapshot-ref, likewise
	branch         string
	list           string // the location of the manifest list
	firstRow, rows int64
	schema         int
	omitFirstRow   bool
	otherUpdates   string // likewise
}

// draftManifest is a manifest added by an append.
type draftManifest struct {
	path     string
	files    []draftFile
	snapshot int64 // that added the manifest, according to the list
	sequence int64
	spec     int32
	content  iceberg.ManifestContent
	change   func(*iceberg.ManifestBuilder) // of its entry in the list; may be nil
	min      int64
}

// draftFile is a file of a manifest.
type draftFile struct {
	path                     string
	status                   iceberg.ManifestEntryStatus
	rows                     int64
	snapshot, sequence, file *int64 // inherited if nil
	firstRow                 *int64
	content                  iceberg.ManifestEntryContent
}

// draft returns an append of files to table, the version seen by its client. Each file has ten
// rows, and all are in one manifest.
func (e *engine) draft(table *catalog.Table, id int64, files ...string) *draft {
	e.tb.Helper()
	document := table.Document
	d := &draft{
		table: table, id: id, parent: histories.Head(document), branch: "main",
		sequence: memberOf(e.tb, document, "last-sequence-number") + 1,
		list:     fmt.Sprintf("%s/metadata/snap-%d-1-sent.avro", document.Location(), id),
		summary:  map[string]string{"operation": "append", "added-records": fmt.Sprint(10 * len(files)), "added-data-files": fmt.Sprint(len(files))},
	}
	if e.version >= 3 {
		d.firstRow, d.rows = memberOf(e.tb, document, "next-row-id"), int64(10*len(files))
	}
	d.kept = e.listOf(document, d.parent)
	m := draftManifest{path: fmt.Sprintf("%s/metadata/m-%d.avro", document.Location(), id), snapshot: id, sequence: d.sequence, min: d.sequence}
	for _, path := range files {
		m.files = append(m.files, draftFile{path: document.Location() + "/data/" + path, status: iceberg.EntryStatusADDED, rows: 10})
	}
	d.manifests = []draftManifest{m}
	return d
}

// listOf returns the manifests of a snapshot.
func (e *engine) listOf(document *metadata.Document, snapshot int64) []iceberg.ManifestFile {
	e.tb.Helper()
	for s := range document.Snapshots() {
		if s.ID == snapshot {
			return e.read(s.ManifestList)
		}
	}
	return nil
}

// read reads a manifest list with an independent reader, not that of the server.
func (e *engine) read(location string) []iceberg.ManifestFile {
	e.tb.Helper()
	raw := must1(storageRead(e.tb, e.files, location))(e.tb)
	return must1(iceberg.ReadManifestList(bytes.NewReader(raw)))(e.tb)
}

// write writes the files of d and returns its request.
func (e *engine) write(d *draft) catalog.CommitRequest {
	e.tb.Helper()
	var entries []iceberg.ManifestFile
	for _, m := range d.manifests {
		entries = append(entries, e.writeManifest(m))
	}
	var out bytes.Buffer
	var parent *int64
	if d.parent != 0 {
		parent = &d.parent
	}
	sequence := d.sequence
	must(e.tb, iceberg.WriteManifestList(e.version, &out, d.id, parent, &sequence, d.firstRow, append(entries, d.kept...)))
	must(e.tb, e.files.Create(e.tb.Context(), d.list, out.Bytes()))
	return e.request(d)
}

// request returns the request of d, without writing anything.
func (e *engine) request(d *draft) catalog.CommitRequest {
	e.tb.Helper()
	at, parent := "null", ""
	if d.parent != 0 {
		at, parent = fmt.Sprint(d.parent), fmt.Sprintf(`"parent-snapshot-id":%d,`, d.parent)
	}
	rows := ""
	if e.version >= 3 && !d.omitFirstRow {
		rows = fmt.Sprintf(`,"first-row-id":%d,"added-rows":%d`, d.firstRow, d.rows)
	}
	summary := must1(json.Marshal(d.summary))(e.tb)
	return catalogkit.CommitRequest(e.tb,
		fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-ref-snapshot-id","ref":%q,"snapshot-id":%s}%s]`,
			d.table.Document.UUID(), d.branch, at, d.requirements),
		fmt.Sprintf(`[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":%q,"summary":%s,"schema-id":%d%s%s}},
			{"action":"set-snapshot-ref","ref-name":%q,"type":"branch","snapshot-id":%d%s}%s]`,
			d.id, parent, d.sequence, newClock().Now().UnixMilli(), d.list, summary, d.schema, rows, d.snapshot, d.branch, d.id, d.refMembers, d.otherUpdates))
}

// writeManifest writes a manifest, and returns its entry in a list.
func (e *engine) writeManifest(m draftManifest) iceberg.ManifestFile {
	e.tb.Helper()
	var out bytes.Buffer
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	writer := must1(iceberg.NewManifestWriter(e.version, &out, *iceberg.UnpartitionedSpec, schema, m.snapshot))(e.tb)
	var files [3]int32
	var rows [3]int64
	for _, f := range m.files {
		builder := must1(iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, f.content, f.path, iceberg.ParquetFile, nil, nil, nil, f.rows, 4000))(e.tb)
		if f.firstRow != nil {
			builder.FirstRowID(*f.firstRow)
		}
		entry := iceberg.NewManifestEntry(f.status, f.snapshot, f.sequence, f.file, builder.Build())
		must(e.tb, []func(iceberg.ManifestEntry) error{writer.Existing, writer.Add, writer.Delete}[f.status](entry))
		files[f.status]++
		rows[f.status] += f.rows
	}
	must(e.tb, writer.Close())
	must(e.tb, e.files.Create(e.tb.Context(), m.path, out.Bytes()))
	builder := iceberg.NewManifestFile(e.version, m.path, int64(out.Len()), m.spec, m.snapshot).
		SequenceNum(m.sequence, m.min).Content(m.content).
		AddedFiles(files[1]).ExistingFiles(files[0]).DeletedFiles(files[2]).
		AddedRows(rows[1]).ExistingRows(rows[0]).DeletedRows(rows[2])
	if m.change != nil {
		m.change(builder)
	}
	return builder.Build()
}

// storageRead returns the content of a file.
func storageRead(tb testing.TB, files storage.Store, location string) ([]byte, error) {
	body, _, err := files.Open(tb.Context(), location)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(body)
	return out.Bytes(), err
}

// must1 returns a function that fails the test if err is not nil, and otherwise returns value.
func must1[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// memberOf returns the number that a document has under name, or 0 if it has none.
func memberOf(tb testing.TB, document *metadata.Document, name string) (value int64) {
	tb.Helper()
	members := map[string]json.RawMessage{}
	must(tb, json.Unmarshal(document.Raw(), &members))
	if raw, ok := members[name]; ok {
		must(tb, json.Unmarshal(raw, &value))
	}
	return value
}

// rowsOf returns the number of rows in the live data files of the head of main. It fails the test
// if a file occurs twice.
func (e *engine) rowsOf(document *metadata.Document) (rows int64) {
	e.tb.Helper()
	seen := map[string]bool{}
	for _, m := range e.listOf(document, histories.Head(document)) {
		raw := must1(storageRead(e.tb, e.files, m.FilePath()))(e.tb)
		for _, entry := range must1(iceberg.ReadManifest(m, bytes.NewReader(raw), true))(e.tb) {
			file := entry.DataFile()
			if seen[file.FilePath()] {
				e.tb.Errorf("%s is there twice", file.FilePath())
			}
			seen[file.FilePath()] = true
			rows += file.Count()
		}
	}
	return rows
}
