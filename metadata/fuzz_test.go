package metadata

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A document that is accepted is JSON, stays as it is, and can be changed: the result is accepted
// as well, with the index that it was derived with.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"valid", "invalid"} {
		for _, raw := range vectors(f, folder) {
			f.Add(raw)
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err == nil {
				f.Add(compact.Bytes())
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent := bytes.Clone(raw)
		d, err := Parse(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %s", raw)
		}
		useDocument(t, d)
		updates := decodeTest(t, `{"action":"set-location","location":"s3://elsewhere"},
			{"action":"set-statistics","statistics":{"snapshot-id":-7,"statistics-path":"p","file-size-in-bytes":1,
			"file-footer-size-in-bytes":1,"blob-metadata":[]}}`)
		next, err := d.Apply(updates, laterEnv())
		if !bytes.Equal(raw, sent) {
			t.Fatal("the document has changed")
		}
		if err != nil {
			return // its times are ahead
		}
		checkIndex(t, next)
		if next.location != "s3://elsewhere" || next.arrays[snapshots].len() != d.arrays[snapshots].len() {
			t.Errorf("%s became %s", raw, next.Raw())
		}
		checkKept(t, d, next, keyLocation, "statistics", keyLastUpdatedMS, "metadata-log")
	})
}

// useDocument calls what reads a document.
func useDocument(t *testing.T, d *Document) {
	t.Helper()
	checkIndex(t, d)
	mustParse(t, d.RawRefs())
	count := 0
	for s := range d.Snapshots() {
		count++
		if !d.HasSnapshot(s.ID) {
			t.Errorf("snapshot %d is not found", s.ID)
		}
	}
	if count != d.arrays[snapshots].len() {
		t.Errorf("%d snapshots, want %d", count, d.arrays[snapshots].len())
	}
	d.MetadataLog()
	d.StatisticsFiles()
	d.Properties()
	d.CostBytes()
}

// checkKept fails unless is has all members of was, except the changed ones, byte for byte and in
// order.
func checkKept(t testing.TB, was, is *Document, changed ...string) {
	t.Helper()
	if was.canonical != nil {
		was = was.canonical
	}
	gone := make(map[string]bool)
	for _, key := range changed {
		gone[key] = true
	}
	at := 0
	for i, name := range was.names {
		if gone[name] {
			continue
		}
		member := was.raw[was.places[i].start:was.places[i].valueEnd]
		found := bytes.Index(is.raw[at:], member)
		if found < 0 {
			t.Fatalf("%s is not in %s", member, is.raw)
		}
		at += found + len(member)
	}
}

// Whatever updates make of a document can be read again, and what they cannot touch is kept.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[` + snapshotUpdates(5, 0, 40) + `]`, `[` + snapshotUpdates(5, 4810235518990234613, 4) + `]`,
		`[{"action":"remove-snapshots","snapshot-ids":[4810235518990234612,1]},{"action":"upgrade-format-version","format-version":3}]`,
		`[{"action":"add-schema","schema":` + testSchema + `},{"action":"set-current-schema","schema-id":-1}]`,
		`[{"action":"add-spec","spec":{"fields":[{"source-id":1,"transform":"void","name":"v"}]}},{"action":"set-default-spec","spec-id":-1},{"action":"remove-partition-specs","spec-ids":[0]}]`,
		`[{"action":"add-sort-order","sort-order":{"order-id":9,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}]`,
		`[{"action":"set-snapshot-ref","ref-name":"q1","type":"branch","snapshot-id":4810235518990234612,"max-ref-age-ms":1},{"action":"remove-snapshot-ref","ref-name":"main"}]`,
		`[{"action":"set-properties","updates":{"a":"\u2028"}},{"action":"remove-properties","removals":["a","owner"]},{"action":"set-location","location":"x//"}]`,
		`[{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1}},{"action":"remove-statistics","snapshot-id":4810235518990234611}]`,
		`[{"action":"add-encryption-key","encryption-key":{"key-id":"n","encrypted-key-metadata":"AA=="}},{"action":"remove-encryption-key","key-id":"k/2"},{"action":"remove-schemas","schema-ids":[0]}]`,
		`[{"action":"assign-uuid","uuid":"` + testUUID + `"}]`,
	} {
		for version := range 3 {
			f.Add(uint8(version), []byte(seed))
		}
	}
	all := vectors(f, "valid")
	bases := []*Document{
		mustParse(f, all["v1-legacy-snapshots"]), mustParse(f, all["v2-full"]), mustParse(f, all["v3-rich"]), createTest(f, 2),
	}
	f.Fuzz(func(t *testing.T, version uint8, raw []byte) {
		updates, err := strictUpdates(raw)
		if err != nil {
			return
		}
		base := bases[int(version)%len(bases)]
		next, err := base.Apply(updates, testEnv(1))
		if err == nil && next != base {
			checkIndex(t, next)
			useDocument(t, next)
			checkKept(t, base, next, append(arrayKeys[:], keyFormatVersion, keyUUID, keyLocation, keyLastSequenceNumber,
				keyLastUpdatedMS, keyLastColumnID, keySchema, keyCurrentSchemaID, keyPartitionSpec, keyDefaultSpecID,
				keyLastPartitionID, keyDefaultOrderID, keyProperties, keyCurrentSnapshotID, keyRefs, keyNextRowID)...)
		}
		if built, err := Build(updates, testEnv(0)); err == nil {
			checkIndex(t, built)
		}
	})
}

func FuzzDecodeUpdates(f *testing.F) {
	for _, row := range updateRows {
		f.Add([]byte("[" + row.updates + "]"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		updates, err := strictUpdates(raw)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %s", raw)
		}
		for _, u := range updates {
			if u.Action() == "" || u.op == nil {
				t.Errorf("%s has an empty update", raw)
			}
		}
	})
}

func FuzzDecodeRequirements(f *testing.F) {
	for _, row := range requirementRows {
		f.Add([]byte("[" + row.requirement + "]"))
	}
	d := mustParse(f, vectors(f, "valid")["v3-rich"])
	f.Fuzz(func(t *testing.T, raw []byte) {
		requirements, err := strictRequirements(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %s", raw)
		}
		_ = Check(d, requirements)
		_ = Check(nil, requirements)
		_, _ = IsCreate(requirements)
	})
}
