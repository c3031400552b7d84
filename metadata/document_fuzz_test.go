package metadata_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"moorage/internal/jsontext"
	"moorage/metadata"
)

// An accepted document is JSON, stays unchanged, and can be committed to. The result is accepted
// too, and its derived index is correct.
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
		d, err := metadata.Parse(raw)
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
			return // its times are in the future
		}
		checkIndex(t, next)
		if next.Location() != "s3://elsewhere" || len(tableOf(t, next).Snapshots) != len(tableOf(t, d).Snapshots) {
			t.Errorf("%s became %s", raw, next.Raw())
		}
		checkKept(t, d, next, "location", "statistics", "last-updated-ms", "metadata-log")
	})
}

// useDocument calls the methods that read a document.
func useDocument(t *testing.T, d *metadata.Document) {
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
	if want := len(tableOf(t, d).Snapshots); count != want {
		t.Errorf("%d snapshots, want %d", count, want)
	}
	d.MetadataLog()
	d.StatisticsFiles()
	d.Properties()
	d.CostBytes()
}

// checkKept fails the test unless the new document has all members of the old one, except the
// changed ones, byte for byte and in order.
func checkKept(t testing.TB, was, is *metadata.Document, changed ...string) {
	t.Helper()
	gone := make(map[string]bool)
	for _, key := range changed {
		gone[key] = true
	}
	at := 0
	for _, m := range membersOf(t, metadata.SpelledOut(was)) {
		if gone[m.name] {
			continue
		}
		found := bytes.Index(is.Raw()[at:], m.raw)
		if found < 0 {
			t.Fatalf("%s is not in %s", m.raw, is.Raw())
		}
		at += found + len(m.raw)
	}
}

// member is a member of an object: its name, its value, and the text of both.
type member struct {
	name       string
	value, raw []byte
}

func membersOf(t testing.TB, object []byte) (members []member) {
	t.Helper()
	r := jsontext.NewReader(object)
	err := r.Object(func(key []byte) error {
		start := r.KeyPos()
		value, err := r.Value()
		members = append(members, member{string(key), value, r.From(start)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return members
}

// The result of applying any updates can be parsed again, and the parts that they do not touch are
// unchanged.
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
	bases := []*metadata.Document{
		mustParse(f, all["v1-legacy-snapshots"]), mustParse(f, all["v2-full"]), mustParse(f, all["v3-rich"]), createTest(f, 2),
	}
	f.Fuzz(func(t *testing.T, version uint8, raw []byte) {
		updates, err := metadata.StrictUpdates(raw)
		if err != nil {
			return
		}
		base := bases[int(version)%len(bases)]
		next, err := base.Apply(updates, testEnv(1))
		if err == nil && next != base {
			checkIndex(t, next)
			useDocument(t, next)
			checkKept(t, base, next, append([]string{"schemas", "partition-specs", "sort-orders", "snapshots", "statistics", "partition-statistics",
				"snapshot-log", "metadata-log", "encryption-keys"}, "format-version", "table-uuid", "location", "last-sequence-number",
				"last-updated-ms", "last-column-id", "schema", "current-schema-id", "partition-spec", "default-spec-id",
				"last-partition-id", "default-sort-order-id", "properties", "current-snapshot-id", "refs", "next-row-id")...)
		}
		if built, err := metadata.Build(updates, testEnv(0)); err == nil {
			checkIndex(t, built)
		}
	})
}

func FuzzDecodeUpdates(f *testing.F) {
	for _, row := range updateRows {
		f.Add([]byte("[" + row.updates + "]"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		updates, err := metadata.StrictUpdates(raw)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %s", raw)
		}
		for _, u := range updates {
			if u.Action() == "" || u.Empty() {
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
		requirements, err := metadata.StrictRequirements(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %s", raw)
		}
		_ = metadata.Check(d, requirements)
		_ = metadata.Check(nil, requirements)
		_, _ = metadata.IsCreate(requirements)
	})
}
