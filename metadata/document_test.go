package metadata_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/metadata"
)

const (
	testUUID  = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	testNowMS = 1_700_000_000_000
)

// testEnv returns the Env of a commit based on the n-th file of a table.
func testEnv(n int) metadata.Env {
	env := metadata.Env{Now: time.UnixMilli(testNowMS), NewUUID: func() string { return testUUID }}
	if n > 0 {
		env.BaseLocation = fmt.Sprintf("file:///tmp/t/metadata/%05d.metadata.json", n)
	}
	return env
}

const testSchema = `{"type":"struct","schema-id":0,"fields":[
	{"id":1,"name":"id","required":true,"type":"long"},
	{"id":2,"name":"at","required":false,"type":"timestamp"},
	{"id":3,"name":"note","required":false,"type":"string"}]}`

// createTest returns a new table of the format version.
func createTest(t testing.TB, version int) *metadata.Document {
	t.Helper()
	d, err := metadata.Create(metadata.CreateTable{
		Location:      "file:///tmp/t",
		Schema:        []byte(testSchema),
		PartitionSpec: []byte(`{"fields":[{"source-id":2,"transform":"day","name":"at_day"}]}`),
		Properties:    map[string]string{"format-version": fmt.Sprint(version)},
	}, testEnv(0))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decodeTest decodes updates, which may be JSON objects without the brackets around them.
func decodeTest(t testing.TB, updates string) []metadata.Update {
	t.Helper()
	if !strings.HasPrefix(updates, "[") {
		updates = "[" + updates + "]"
	}
	decoded, err := checked(metadata.DecodeUpdates, updates)
	if err != nil {
		t.Fatalf("%s: %v", updates, err)
	}
	return decoded
}

// applyTest applies updates, and checks that parsing the result gives the same values.
func applyTest(t testing.TB, d *metadata.Document, updates string) *metadata.Document {
	t.Helper()
	next, err := d.Apply(decodeTest(t, updates), testEnv(1))
	if err != nil {
		t.Fatalf("%s: %v", updates, err)
	}
	checkIndex(t, next)
	const slack = 100 // commas, brackets, and the keys of removed members
	if spare := cap(next.Raw()) - len(next.Raw()); next != d && spare > slack {
		t.Errorf("%s: %d bytes of %d are held for nothing", updates, spare, cap(next.Raw()))
	}
	return next
}

// checkIndex fails the test unless d has the index that Parse would give it.
func checkIndex(t testing.TB, d *metadata.Document) {
	t.Helper()
	if err := metadata.CheckIndex(d); err != nil {
		t.Fatal(err)
	}
}

// tableContent is a table document as read by package encoding/json.
type tableContent struct {
	LastSequenceNumber int64 `json:"last-sequence-number"`
	LastColumnID       int   `json:"last-column-id"`
	CurrentSchemaID    int   `json:"current-schema-id"`
	LastPartitionID    int   `json:"last-partition-id"`
	NextRowID          int64 `json:"next-row-id"`
	Refs               map[string]json.RawMessage
	Schemas            []json.RawMessage
	Snapshots          []snapshotOf
	SnapshotLog        []snapshotOf `json:"snapshot-log"`
}

type snapshotOf struct {
	ID int64 `json:"snapshot-id"`
}

func tableOf(t testing.TB, d *metadata.Document) (content tableContent) {
	t.Helper()
	if err := json.Unmarshal(d.Raw(), &content); err != nil {
		t.Fatalf("%s: %v", d.Raw(), err)
	}
	return content
}

// snapshotUpdates returns updates that add a snapshot and set main to it. A parent of 0 means none.
func snapshotUpdates(id, parent int64, sequence int) string {
	parentMember := ""
	if parent != 0 {
		parentMember = fmt.Sprintf(`"parent-snapshot-id":%d,`, parent)
	}
	return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,
		"timestamp-ms":%d,"manifest-list":"file:///tmp/t/metadata/snap-%d.avro","summary":{"operation":"append"},
		"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%[1]d}`,
		id, parentMember, sequence, testNowMS, id)
}

func TestLifeOfATable(t *testing.T) {
	t.Parallel()
	d := createTest(t, 2)
	for i := int64(1); i <= 3; i++ {
		d = applyTest(t, d, snapshotUpdates(100+i, (100+i-1)*min(1, i-1), int(i)))
	}
	d = applyTest(t, d, `{"action":"add-schema","schema":{"type":"struct","fields":[
		{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},
		{"id":4,"name":"more","required":false,"type":"int"}]}},
		{"action":"set-current-schema","schema-id":-1},
		{"action":"set-properties","updates":{"a":"b"}},
		{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":101,"max-ref-age-ms":5}`)
	if content := tableOf(t, d); content.LastColumnID != 4 || content.CurrentSchemaID != 1 {
		t.Errorf("last column %d, current schema %d, want 4 and 1", content.LastColumnID, content.CurrentSchemaID)
	}
	if id, ok := d.CurrentSnapshotID(); !ok || id != 103 {
		t.Errorf("current snapshot %d %t, want 103", id, ok)
	}
	refs, err := metadata.Parse(d.RawRefs())
	if err != nil {
		t.Fatal(err)
	}
	if !refs.HasSnapshot(101) || refs.HasSnapshot(102) || !refs.HasSnapshot(103) {
		t.Errorf("snapshots of refs: %s", d.RawRefs())
	}
	d = applyTest(t, d, `{"action":"remove-snapshots","snapshot-ids":[101,102]},
		{"action":"upgrade-format-version","format-version":3}`)
	if content := tableOf(t, d); !slices.Equal(content.SnapshotLog, []snapshotOf{{103}}) || content.Refs["t"] != nil {
		t.Errorf("after the removal: %s", d.Raw())
	}
	if n := len(d.MetadataLog()); n != 5 {
		t.Errorf("%d entries of metadata-log, want 5", n)
	}
}

func TestApplyWithoutChangeReturnsTheDocument(t *testing.T) {
	t.Parallel()
	d := createTest(t, 2)
	next, err := d.Apply(decodeTest(t, `{"action":"assign-uuid","uuid":"`+testUUID+`"},
		{"action":"remove-snapshot-ref","ref-name":"none"}`), testEnv(1))
	if err != nil || next != d {
		t.Errorf("got %v, %v, want the document itself", next, err)
	}
}

func TestStaleSnapshotIsConflict(t *testing.T) {
	t.Parallel()
	d := applyTest(t, createTest(t, 2), snapshotUpdates(1, 0, 1))
	_, err := d.Apply(decodeTest(t, snapshotUpdates(2, 1, 1)), testEnv(1))
	if kind := moorage.KindOf(err); kind != moorage.KindCommitFailed {
		t.Errorf("got %v (%v), want a conflict", err, kind)
	}
}

// Versions share the names of their members. A member that one version adds or drops does not
// affect the others.
func TestVersionsShareNames(t *testing.T) {
	t.Parallel()
	made := []*metadata.Document{createTest(t, 1), mustParse(t, vectors(t, "valid")["v2-minimal"])}
	for _, base := range made {
		for _, updates := range []string{
			`{"action":"set-properties","updates":{"a":"1"}}`,
			`{"action":"upgrade-format-version","format-version":3}`,
			`{"action":"upgrade-format-version","format-version":3},{"action":"set-properties","updates":{"a":"2"}}`,
			`{"action":"upgrade-format-version","format-version":2},` + snapshotUpdates(5, 0, 1),
		} {
			next := applyTest(t, base, updates)
			made = append(made, next, applyTest(t, next, `{"action":"set-properties","updates":{"b":"3"}}`))
		}
	}
	for _, d := range made {
		checkIndex(t, d)
	}
}

// Logs may be null, because the Java reference accepts that. The next version has new logs.
func TestApplyToNullLogs(t *testing.T) {
	t.Parallel()
	raw := string(createTest(t, 2).Raw())
	for _, log := range []string{"snapshot-log", "metadata-log"} {
		was := `"` + log + `":[]`
		if !strings.Contains(raw, was) {
			t.Fatalf("%s is not in %s", was, raw)
		}
		raw = strings.Replace(raw, was, `"`+log+`":null`, 1)
	}
	d := mustParse(t, []byte(raw))
	next := applyTest(t, d, snapshotUpdates(5, 0, 1))
	if logged, snapshots := next.MetadataLog(), len(tableOf(t, next).SnapshotLog); len(logged) != 1 || snapshots != 1 {
		t.Errorf("%d metadata files and %d snapshots are logged in %s, want one of each", len(logged), snapshots, next.Raw())
	}
}

// The cost of a document covers its bytes, the bytes of RawRefs, and its index.
func TestCostIsThatOfBothTexts(t *testing.T) {
	t.Parallel()
	d := createTest(t, 2)
	for id := range 20 {
		const fixed = 1024
		least := fixed + int64(len(d.Raw())+len(d.RawRefs())) + metadata.IndexBytes(d)
		if most, cost := least+int64(id), d.CostBytes(); cost < least || cost > most { // the commas are counted twice
			t.Fatalf("%d snapshots: costs %d bytes, want %d to %d", id, cost, least, most)
		}
		d = applyTest(t, d, snapshotUpdates(int64(id+1), int64(id), id+1))
	}
}

// Properties cost their text three times, including twice within the document, plus two strings for
// each.
func TestCostIsAlsoThatOfProperties(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ count, valueBytes int }{{1, 100_000}, {1000, 1}, {1000, 100}} {
		var members []string
		for i := range row.count {
			members = append(members, fmt.Sprintf(`"property %d":%q`, i, strings.Repeat("x", row.valueBytes)))
		}
		text := strings.Join(members, ",")
		without := createTest(t, 2)
		with := applyTest(t, without, `{"action":"set-properties","updates":{`+text+`}}`)
		const stringBytes, entryBytesMax, other = 16, 100, 1024
		least := int64(3*len(text) + row.count*2*stringBytes)
		most := int64(3*len(text) + row.count*entryBytesMax + other)
		if cost := with.CostBytes() - without.CostBytes(); cost < least || cost > most {
			t.Errorf("%d properties of %d bytes cost %d bytes, want %d to %d", row.count, row.valueBytes, cost, least, most)
		}
	}
}

// If files that leave the metadata log are deleted, at most TrimMax of them leave the log in one
// commit.
func TestTrimmedAtOnce(t *testing.T) {
	t.Parallel()
	for deletes, want := range map[string]int{"true": metadata.TrimMax, "false": 12} {
		var entries []string
		for i := range 12 {
			entries = append(entries, fmt.Sprintf(`{"timestamp-ms":%d,"metadata-file":"s://%d"}`, i, i))
		}
		raw := strings.Replace(string(createTest(t, 2).Raw()), `"metadata-log":[]`, `"metadata-log":[`+strings.Join(entries, ",")+`]`, 1)
		base := mustParse(t, []byte(raw))
		next := applyTest(t, base, `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"1",`+
			`"write.metadata.delete-after-commit.enabled":"`+deletes+`"}}`)
		if got := next.TrimmedSince(base); len(got) != want {
			t.Errorf("delete-after-commit=%s: trimmed %q, want %d", deletes, got, want)
		}
		for range 2 {
			next = applyTest(t, next, `{"action":"set-properties","updates":{"a":"b"}}`)
		}
		if log := next.MetadataLog(); len(log) != 1 {
			t.Errorf("delete-after-commit=%s: %d entries are left, want 1", deletes, len(log))
		}
	}
}

// The files that left the metadata log follow from the documents before and after, however many
// there are.
func TestTrimmedSince(t *testing.T) {
	t.Parallel()
	const bound = `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"%d"}}`
	for _, row := range []struct {
		name    string
		log     []string // of the base
		max     int      // of the commit
		trimmed []string
	}{
		{"room", []string{"s://1", "s://2"}, 3, nil},
		{"none logged", nil, 1, nil},
		{"full", []string{"s://1", "s://2", "s://3"}, 3, []string{"s://1"}},
		{"bound lowered", []string{"s://1", "s://2", "s://3"}, 2, []string{"s://1", "s://2"}},
		{"all", []string{"s://1", "s://2", "s://3"}, 1, []string{"s://1", "s://2", "s://3"}},
		{"logged twice", []string{"s://1", "s://2", "s://1"}, 2, []string{"s://2"}},
		{"logged twice, spelled otherwise", []string{"s://1", "s://2", `s:\/\/1`}, 2, []string{"s://2"}},
		{"escaped", []string{`s://\"1\"`, `s://\"2\"`}, 1, []string{`s://"1"`, `s://"2"`}},
		{"beginning of another", []string{"s://1", "s://10"}, 2, []string{"s://1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var entries []string
			for i, location := range row.log {
				entries = append(entries, fmt.Sprintf(`{"timestamp-ms":%d,"metadata-file":"%s"}`, i, location))
			}
			raw := strings.Replace(string(createTest(t, 2).Raw()), `"metadata-log":[]`, `"metadata-log":[`+strings.Join(entries, ",")+`]`, 1)
			base := mustParse(t, []byte(raw))
			if len(base.MetadataLog()) != len(row.log) {
				t.Fatalf("not logged in %s", raw)
			}
			next := applyTest(t, base, fmt.Sprintf(bound, row.max))
			if got := next.TrimmedSince(base); !slices.Equal(got, row.trimmed) {
				t.Errorf("trimmed %q, want %q; the log is %v now", got, row.trimmed, next.MetadataLog())
			}
		})
	}
}
