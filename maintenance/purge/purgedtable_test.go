package purge_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"moorage/metadata"
	"moorage/storage"
	"moorage/storage/memory"
)

// purged is a table to be purged, with real manifests in a store.
type purged struct {
	t       testing.TB
	version int
	store   *memory.Store
	files   []string // all created files; rank returns their kind

	uuid, location string // of the table
	metadata       string // its current metadata file

	properties map[string]string
	snapshots  []map[string]any
	log        []string
	statistics []string
	partitions []string
}

func newPurged(t testing.TB, version int) *purged {
	return &purged{
		t: t, version: version, store: memory.New(), properties: map[string]string{},
		uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1", location: purgedTable, metadata: purgedMetadata,
	}
}

func (p *purged) file(location string, body []byte) string {
	p.t.Helper()
	if err := p.store.Create(p.t.Context(), location, body); err != nil {
		p.t.Fatal(err)
	}
	p.files = append(p.files, location)
	return location
}

// data makes data files, deletes makes delete files.
func (p *purged) data(names ...string) []iceberg.ManifestEntry {
	return p.entries(iceberg.EntryContentData, names)
}

func (p *purged) deletes(names ...string) []iceberg.ManifestEntry {
	return p.entries(iceberg.EntryContentPosDeletes, names)
}

func (p *purged) entries(content iceberg.ManifestEntryContent, names []string) []iceberg.ManifestEntry {
	p.t.Helper()
	var entries []iceberg.ManifestEntry
	for i, name := range names {
		if !strings.Contains(name, ":/") {
			name = purgedTable + "/data/" + name
		}
		entries = append(entries, p.entry(iceberg.ManifestEntryStatus(i%3), content, p.file(name, []byte("data"))))
	}
	return entries
}

// entry returns a manifest entry for a file. The status may also be that of a removed file.
func (p *purged) entry(status iceberg.ManifestEntryStatus, content iceberg.ManifestEntryContent, path string) iceberg.ManifestEntry {
	p.t.Helper()
	file, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, content, path, iceberg.ParquetFile, nil, nil, nil, 1, 4)
	if err != nil {
		p.t.Fatal(err)
	}
	snapshot, sequence := int64(1), int64(1)
	return iceberg.NewManifestEntry(status, &snapshot, &sequence, &sequence, file.Build())
}

// manifest writes a manifest of entries, which are all data files or all delete files.
func (p *purged) manifest(name string, entries ...iceberg.ManifestEntry) iceberg.ManifestFile {
	p.t.Helper()
	if !strings.Contains(name, ":/") {
		name = purgedTable + "/metadata/" + name
	}
	content := iceberg.ManifestContentData
	if len(entries) > 0 && entries[0].DataFile().ContentType() != iceberg.EntryContentData {
		content = iceberg.ManifestContentDeletes
	}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	var body bytes.Buffer
	writer, err := iceberg.NewManifestWriter(p.version, &body, *iceberg.UnpartitionedSpec, schema, 1, iceberg.WithManifestWriterContent(content))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, entry := range entries {
		add := writer.Add
		switch entry.Status() {
		case iceberg.EntryStatusDELETED:
			add = writer.Delete
		case iceberg.EntryStatusEXISTING:
			add = writer.Existing
		}
		if err := add(entry); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		p.t.Fatal(err)
	}
	manifest, err := writer.ToManifestFile(name, int64(body.Len()), iceberg.WithManifestFileContent(content))
	if err != nil {
		p.t.Fatal(err)
	}
	p.file(name, body.Bytes())
	return manifest
}

// snapshot adds a snapshot with a manifest list.
func (p *purged) snapshot(list string, manifests ...iceberg.ManifestFile) {
	p.t.Helper()
	// In the list, all manifests count as new, so that each gets a sequence number.
	added, sequence := int64(1), int64(len(p.snapshots)+1)
	var body bytes.Buffer
	if err := iceberg.WriteManifestList(p.version, &body, added, nil, &sequence, 0, manifests); err != nil {
		p.t.Fatal(err)
	}
	p.listed(p.file(purgedTable+"/metadata/"+list, body.Bytes()))
}

// listed adds a snapshot whose manifest list is at location, whatever is stored there.
func (p *purged) listed(location string) {
	p.addSnapshot("manifest-list", location)
}

func (p *purged) addSnapshot(member string, value any) {
	id := len(p.snapshots) + 1
	snapshot := map[string]any{
		"snapshot-id": id, "timestamp-ms": 1700000000000 + id, "summary": map[string]string{"operation": "append"}, "schema-id": 0, member: value,
	}
	if p.version > 1 {
		snapshot["sequence-number"] = id
	}
	if p.version > 2 {
		snapshot["first-row-id"], snapshot["added-rows"] = 0, 1
	}
	p.snapshots = append(p.snapshots, snapshot)
}

// document writes the table's current metadata file and returns it.
func (p *purged) document() *metadata.Document {
	p.t.Helper()
	var log, statistics, partitions []map[string]any
	for i, location := range p.log {
		log = append(log, map[string]any{"timestamp-ms": 1700000000000 + i, "metadata-file": location})
	}
	for i, location := range p.statistics {
		statistics = append(statistics, map[string]any{
			"snapshot-id": i + 1, "statistics-path": location, "file-size-in-bytes": 4, "file-footer-size-in-bytes": 4, "blob-metadata": []any{},
		})
	}
	for i, location := range p.partitions {
		partitions = append(partitions, map[string]any{"snapshot-id": i + 1, "statistics-path": location, "file-size-in-bytes": 4})
	}
	schema := map[string]any{"type": "struct", "schema-id": 0, "fields": []any{map[string]any{"id": 1, "name": "id", "required": false, "type": "long"}}}
	members := map[string]any{
		"format-version": p.version, "table-uuid": p.uuid, "location": p.location,
		"last-sequence-number": len(p.snapshots), "last-updated-ms": 1700000001000, "last-column-id": 1,
		"schema": schema, "schemas": []any{schema}, "current-schema-id": 0,
		"partition-spec": []any{}, "partition-specs": []any{map[string]any{"spec-id": 0, "fields": []any{}}}, "default-spec-id": 0, "last-partition-id": 999,
		"sort-orders": []any{map[string]any{"order-id": 0, "fields": []any{}}}, "default-sort-order-id": 0, "properties": p.properties,
		"snapshots": p.snapshots, "metadata-log": log, "statistics": statistics, "partition-statistics": partitions, "next-row-id": 1000,
	}
	for name, value := range members {
		if list, ok := value.([]map[string]any); ok && list == nil {
			delete(members, name)
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		p.t.Fatal(err)
	}
	document, err := metadata.Parse(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	p.file(p.metadata, raw)
	return document
}

// left returns which files are still there.
func (p *purged) left() []string {
	p.t.Helper()
	var left []string
	for _, file := range p.files {
		if _, err := p.store.Stat(p.t.Context(), file); err == nil {
			left = append(left, strings.TrimPrefix(file, purgedTable+"/"))
		}
	}
	slices.Sort(left)
	return left
}

// purge purges the table whose files are in store, with the claim purgedTable.
func (p *purged) purge(store storage.Store, document *metadata.Document, log io.Writer, yield func([]string) error) error {
	logger := slog.New(slog.NewTextHandler(log, nil))
	return eachBatch(p.t.Context(), logger, store, document, purgedMetadata, []string{purgedTable}, yield)
}

func (p *purged) delete(batch []string) error { return p.store.Delete(p.t.Context(), batch...) }

// full fills p with two snapshots that share a manifest, and every other kind of file that a table
// can refer to.
func (p *purged) full() *purged {
	shared := p.manifest("m-shared.avro", p.data("a.parquet", "b.parquet", "c.parquet")...)
	p.snapshot("snap-1.avro", shared)
	manifests := []iceberg.ManifestFile{shared, p.manifest("m-new.avro",
		append(p.data("d.parquet"), p.entry(iceberg.EntryStatusEXISTING, iceberg.EntryContentData, purgedTable+"/data/a.parquet"))...)}
	if p.version > 1 {
		manifests = append(manifests, p.manifest("m-deletes.avro", p.deletes("x-deletes.parquet", "y-deletes.parquet")...))
	}
	p.snapshot("snap-2.avro", manifests...)
	if p.version == 1 {
		old := p.manifest("m-unlisted.avro", p.data("e.parquet")...)
		p.addSnapshot("manifests", []string{old.FilePath()})
	}
	p.statistics = append(p.statistics, p.file(purgedTable+"/metadata/1.stats", []byte("puff")))
	p.partitions = append(p.partitions, p.file(purgedTable+"/metadata/1.partitions.parquet", []byte("part")))
	for _, name := range []string{"00000", "00001", "00002"} {
		p.log = append(p.log, p.file(purgedTable+"/metadata/"+name+".metadata.json", []byte("{}")))
	}
	return p
}
