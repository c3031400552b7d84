package metadata_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/metadata"
)

// vectors returns the shared documents of a folder of testdata/metadata, by name.
func vectors(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "metadata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", folder, err)
	}
	raws := make(map[string][]byte, len(files))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raws[strings.TrimSuffix(filepath.Base(file), ".json")] = raw
	}
	return raws
}

func mustParse(t testing.TB, raw []byte) *metadata.Document {
	t.Helper()
	d, err := metadata.Parse(raw)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return d
}

func TestParseValidVectors(t *testing.T) {
	t.Parallel()
	for name, raw := range vectors(t, "valid") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mustParse(t, raw)
			if !bytes.Equal(d.Raw(), raw) {
				t.Error("Raw differs from what was parsed")
			}
			checkIndex(t, d)
			refs := mustParse(t, d.RawRefs())
			for s := range refs.Snapshots() {
				if !headsOf(t, d)[s.ID] {
					t.Errorf("snapshot %d is no head", s.ID)
				}
			}
			if d.CostBytes() < int64(len(raw)) {
				t.Errorf("costs %d bytes, its JSON alone has %d", d.CostBytes(), len(raw))
			}
		})
	}
}

func TestParseInvalidVectors(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"unsupported-version":          "Cannot read unsupported version 42",
		"v1-missing-schema-type":       "Cannot parse type",
		"v2-current-schema-not-found":  "Cannot find schema with current-schema-id=2 from schemas",
		"v2-missing-last-partition-id": "last-partition-id must exist in format v2",
		"v2-missing-partition-specs":   "partition-specs must exist in format v2",
		"v2-missing-schemas":           "schemas must exist in format v2",
		"v2-missing-sort-orders":       "sort-orders must exist in format v2",
	}
	raws := vectors(t, "invalid")
	if len(raws) != len(want) {
		t.Errorf("%d vectors, %d expectations", len(raws), len(want))
	}
	for name, raw := range raws {
		_, err := metadata.Parse(raw)
		if err == nil || !strings.Contains(err.Error(), want[name]) {
			t.Errorf("%s: got %v, want %q", name, err, want[name])
		}
	}
}

// If a client registers a view as a table, the error reports that, and does not name a missing
// member.
func TestParseRefusesAView(t *testing.T) {
	t.Parallel()
	_, err := metadata.Parse([]byte(viewDocument))
	const want = "Cannot read the metadata of a view as that of a table"
	if moorage.KindOf(err) != moorage.KindBadRequest || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAccessorsOfRichDocument(t *testing.T) {
	t.Parallel()
	d := mustParse(t, vectors(t, "valid")["v3-rich"])
	if d.FormatVersion() != 3 || d.UUID() != "3F1C9B52-6D0E-4C7A-9D57-0B1F6A2E8C41" ||
		d.Location() != "s3://lake/sales/orders" || d.LastUpdatedMS() != 1660000000000 {
		t.Errorf("header: %d %s %s %d", d.FormatVersion(), d.UUID(), d.Location(), d.LastUpdatedMS())
	}
	if v, ok := d.Property("encryption.key-id"); !ok || v != "k/1" {
		t.Errorf("property %q %t", v, ok)
	}
	if _, ok := d.Property("none"); ok {
		t.Error("found a property that is not there")
	}
	properties := d.Properties()
	properties["owner"] = "changed"
	if v, _ := d.Property("owner"); v != `a "quoted" name` {
		t.Errorf("owner is %q", v)
	}
	if id, ok := d.CurrentSnapshotID(); !ok || id != 4810235518990234613 {
		t.Errorf("current snapshot %d %t", id, ok)
	}
	if !d.HasSnapshot(4810235518990234611) || d.HasSnapshot(1) {
		t.Error("HasSnapshot is wrong")
	}
	log := d.MetadataLog()
	if len(log) != 2 || log[1] != (metadata.MetadataLogEntry{1659999992000, "s3://lake/sales/orders/metadata/00001-b.metadata.json"}) {
		t.Errorf("metadata log %v", log)
	}
	var snapshots []metadata.Snapshot
	for s := range d.Snapshots() {
		snapshots = append(snapshots, s)
	}
	if len(snapshots) != 3 || snapshots[0].HasParent || snapshots[1].ParentID != 4810235518990234611 ||
		snapshots[2].ManifestList != "s3://lake/sales/orders/metadata/l3.avro" || snapshots[2].SequenceNumber != 3 {
		t.Errorf("snapshots %+v", snapshots)
	}
	if files := d.StatisticsFiles(); len(files) != 2 || !strings.HasSuffix(files[0], "s1.puffin") || !strings.HasSuffix(files[1], "p2.parquet") {
		t.Errorf("statistics files %v", files)
	}
}

func TestManifestsOfV1Snapshot(t *testing.T) {
	t.Parallel()
	d := mustParse(t, vectors(t, "valid")["v1-legacy-snapshots"])
	for s := range d.Snapshots() {
		if s.ID == 11 && (len(s.Manifests) != 2 || s.ManifestList != "" || !strings.HasSuffix(s.Manifests[1], "m2.avro")) {
			t.Errorf("snapshot %+v", s)
		}
	}
}

// laterEnv returns the Env of a commit to a vector.
func laterEnv() metadata.Env {
	return metadata.Env{
		Now: time.UnixMilli(1660000001000), BaseLocation: "s3://lake/sales/orders/metadata/00002-c.metadata.json",
		NewUUID: func() string { return testUUID },
	}
}

// A commit to a document of the first Iceberg releases writes the members that these releases left
// out.
func TestApplyToLegacyDocument(t *testing.T) {
	t.Parallel()
	d := mustParse(t, vectors(t, "valid")["v1-legacy-snapshots"])
	unchanged, err := d.Apply(nil, laterEnv())
	if err != nil || unchanged != d {
		t.Fatalf("without updates: %v, another document: %t", err, unchanged != d)
	}
	next, err := d.Apply(decodeTest(t, `{"action":"set-properties","updates":{"a":"b"}}`), laterEnv())
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, next)
	for key, want := range map[string]string{
		"schema": `{"type":"struct","fields":[{"id":1,`, "current-schema-id": `0`, "schemas": `[{"schema-id":0,"type":"struct",`,
		"partition-spec": `[{"name":"x","transform":"identity","source-id":1}]`, "default-spec-id": `0`,
		"partition-specs": `[{"spec-id":0,"fields":[{"field-id":1000,"name":"x",`, "last-partition-id": `1000`,
		"sort-orders": `[{"order-id":0,"fields":[]}]`, "default-sort-order-id": `0`,
		"refs": `{"main":{"snapshot-id":12,"type":"branch"}}`, "current-snapshot-id": `12`,
	} {
		if got := memberOf(next, key); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

// memberOf returns the unmodified JSON of a top-level member, or "" if there is none.
func memberOf(d *metadata.Document, key string) string {
	for name, value := range mustCheck(d.Raw()).Members() {
		if string(name) == key {
			return string(value.Bytes())
		}
	}
	return ""
}

// headsOf returns the snapshots that refs point to.
func headsOf(t testing.TB, d *metadata.Document) map[int64]bool {
	t.Helper()
	heads := make(map[int64]bool)
	if id, ok := d.CurrentSnapshotID(); ok {
		heads[id] = true
	}
	for _, raw := range tableOf(t, d).Refs {
		var ref snapshotOf
		if err := json.Unmarshal(raw, &ref); err != nil {
			t.Fatal(err)
		}
		heads[ref.ID] = true
	}
	return heads
}

// mustCheck returns text that was already accepted, as checked JSON.
func mustCheck(raw []byte) jsontext.Checked {
	j, err := jsontext.Check(raw)
	if err != nil {
		panic(err)
	}
	return j
}

// Every part that a commit does not touch stays the same byte for byte, in documents with every
// oddity.
func TestApplyKeepsWhatItDoesNotTouch(t *testing.T) {
	t.Parallel()
	d := mustParse(t, vectors(t, "valid")["v3-rich"])
	updates := `{"action":"add-snapshot","snapshot":{"snapshot-id":5,"parent-snapshot-id":4810235518990234613,
		"sequence-number":4,"timestamp-ms":1660000000500,"manifest-list":"l5","summary":{"operation":"append"},
		"first-row-id":300,"added-rows":1,"key-id":"k/2", "x-new":[9223372036854775807, 0.0]}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5},
		{"action":"set-properties","updates":{"new":"<a & b>"}}`
	next, err := d.Apply(decodeTest(t, updates), laterEnv())
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, next)
	changed := map[string]bool{
		"last-sequence-number": true, "last-updated-ms": true, "next-row-id": true, "properties": true,
		"current-snapshot-id": true, "refs": true, "snapshots": true, "snapshot-log": true, "metadata-log": true,
	}
	now := membersOf(t, next.Raw())
	for i, m := range membersOf(t, d.Raw()) {
		name := m.name
		if now[i].name != name {
			t.Fatalf("member %d is %s, was %s", i, now[i].name, name)
		}
		if same := memberOf(next, name) == memberOf(d, name); same == changed[name] {
			t.Errorf("%s: unchanged is %t: %s", name, same, memberOf(next, name))
		}
	}
	was, is := memberOf(d, "snapshots"), memberOf(next, "snapshots")
	if prefix := strings.TrimRight(strings.TrimSuffix(was, "]"), " \n"); !strings.HasPrefix(is, prefix) {
		t.Errorf("snapshots became %s", is)
	}
	if !strings.Contains(is, `"first-row-id":300,"added-rows":1,"key-id":"k/2", "x-new":[9223372036854775807, 0.0]}`) {
		t.Errorf("the new snapshot is not as sent: %s", is)
	}
	if got, want := memberOf(next, "properties"), `{"owner" : "a \"quoted\" name","encryption.key-id" : "k\/1",`+
		`"write.metadata.previous-versions-max" : "2","new":"<a & b>"}`; got != want {
		t.Errorf("properties %s, want %s", got, want)
	}
	if refs := memberOf(next, "refs"); !strings.Contains(refs, `"q\u0031" : { "snapshot-id" : 4810235518990234611, `) ||
		!strings.Contains(refs, `"x-ref" : null`) || !strings.Contains(refs, `"main":{"snapshot-id":5,"type":"branch"}`) {
		t.Errorf("refs %s", refs)
	}
	if log := next.MetadataLog(); len(log) != 2 || log[0].TimestampMS != 1659999992000 || log[1].TimestampMS != 1660000000000 {
		t.Errorf("metadata log %v", log)
	}
}
